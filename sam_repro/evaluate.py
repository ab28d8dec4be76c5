"""`sam-repro evaluate run=<id> on=[imagenet,real,v2,r,c]`: judge a finished run on other test sets.

The model is the run's own `weights.safetensors`. What comes out is printed, kept in the run folder's `evaluations.json`
and added to the run's line in the ledger, where the tables find it; of a published folder it is kept there alone.

    run=                      id of a finished run, or the first characters of it; or the folder of a published one
    on=                       of imagenet, real (ImageNet-ReaL), v2, r, c; or a data set with as many classes (cifar10)
    translate=                a text file: the run, a translator, prints it line for line, and keeps nothing
    results_dir=              where the run is (default results)
    dataset.root=             where the test sets are, if not where the run's data was
    dataset.workers=          processes that decode
    dataset.skip_unreadable=  so many broken images of a test set are named and left out
    runtime.device=           auto, cpu or cuda
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from sam_repro import signals
from sam_repro.config.compose import compose, one_line
from sam_repro.config.groups import options as choices
from sam_repro.config.overrides import quoted
from sam_repro.config.reads import is_text
from sam_repro.config.rules import check
from sam_repro.config.schema import AugmentConfig, BudgetConfig, Config
from sam_repro.data.declared import DatasetConfig, LabelNoise, Source, Split
from sam_repro.errors import UserError, command, nearest
from sam_repro.runs import ledger
from sam_repro.runs.evaluations import keep
from sam_repro.runs.publish import CARD
from sam_repro.runs.run import Run, find_run
from sam_repro.trained import trained
from sam_repro.words import HELP, parse

if TYPE_CHECKING:
    import torch
    from torch import nn

OF_THE_CONFIGURATION = ("dataset.root", "dataset.workers", "dataset.skip_unreadable", "runtime.device")
OPTIONS = ("run", "on", "translate", "results_dir", *OF_THE_CONFIGURATION)
CLASSES = 1000  # of every test set but ImageNet-R, which has 200 of them


@command
def main(words: list[str]) -> int:
    if not words or set(words) & set(HELP):
        print(__doc__)
        return 0
    wanted = options(words)
    run = finished_run(Path(wanted.get("results_dir", "results")), wanted.get("run", ""))
    config = configured(stored(run), wanted)
    if "translate" in wanted:
        return translate(config, run, Path(wanted["translate"]))
    if config.task is not None:
        raise UserError(f"run={run.id} learnt task={config.task}, which judges it after every epoch: see runs show")
    if is_text(config):
        raise UserError(f"run={run.id} learnt to translate: translate=FILE prints a file's translation")
    names = [n.strip() for n in wanted.get("on", config.dataset.name.value).strip("[]").split(",")]
    found = evaluations(config, run, names)
    # Before they are kept: whatever is wrong with the ledger, hours of work can be read on the screen.
    for name, value in found.items():
        print(f"{name:32} {value:8.2f}", flush=True)
    if not keep(run, found):
        print(
            f"warning: {run.results / ledger.FILE} has no line of run {run.id}, so no table shows these "
            f"numbers (they are in {run.evaluations}); start the run once more: that writes its line again",
            file=sys.stderr,
        )
    return 0


def translate(config: Config, run: Run, file: Path) -> int:
    """Print a file's translation; how far it is goes to standard error."""
    from sam_repro.engine.ranks import device_of
    from sam_repro.engine.setup import before_cuda, prepare
    from sam_repro.tasks.translation.lines import text_of, translated
    from sam_repro.tasks.translation.task import Translation
    from sam_repro.train import task_of

    lines = text_of(file)
    before_cuda(config.runtime)
    device = device_of(config.runtime, 0)
    prepare(config.runtime, config.seed, local_ranks=1)
    task: object = task_of(config, device)
    if not isinstance(task, Translation):
        raise UserError(f"translate={file}: run={run.id} learnt to classify, or something else than to translate")

    def say(done: int, of: int) -> None:
        print(f"{done} of {of} sentences", end="\n" if done == of else "\r", file=sys.stderr, flush=True)

    found = translated(task, trained(config, run.weights).to(device).eval(), lines, say)
    print(*found, sep="\n", flush=True)
    return 0


def options(words: list[str]) -> dict[str, str]:
    given = parse(words, {})
    for key in (*given.names, *given.settings):
        if key not in given.settings or key not in OPTIONS:
            raise UserError(f"{key}: there is no such option.{nearest(key, OPTIONS)} Options: {', '.join(OPTIONS)}")
    return given.settings


def finished_run(results: Path, start: str) -> Run:
    if not start:
        raise UserError("run: name the run to evaluate, as in run=<id>; `sam-repro runs list` has them")
    if "/" in start or Path(start, CARD).exists():
        run = Run(Path(start))
        if not run.weights.exists():
            raise UserError(f"run={start} is no folder with the weights of a run")
        return run
    run = find_run(results, start)
    if not run.done.exists():
        raise UserError(f"run={run.id} is not finished: start it again to let it go on")
    return run


def stored(run: Run) -> Config:
    """The configuration that a run was trained with."""
    config = run.stored()
    try:
        check(config)
    except UserError as error:
        raise UserError(f"{run.config} is no configuration of a run ({error}): put it back") from error
    return config


def of_imagenet(config: Config, run: Run) -> None:
    data = config.dataset
    if data.name is not Source.imagenet or data.classes != CLASSES:
        raise UserError(
            f"run={run.id} was trained on dataset={data.name.value} with {data.classes} classes: "
            f"these test sets are for a run on dataset=imagenet with its {CLASSES}"
        )


def data_of(name: str, config: Config) -> DatasetConfig:
    """Another data set's test half, prepared as the run's own was."""
    own = config.dataset
    if name == own.name.value:
        return replace(own, evaluate_on=Split.test, label_noise=LabelNoise(), test_images=None)
    # The user's own pictures are counted where they are; the others are what they are wherever they lie.
    where = [f"dataset.root={quoted(own.root)}"] if name == Source.folder.value else []
    other = compose([f"dataset={name}", *where]).dataset
    if (other.classes, other.image_size) != (own.classes, own.image_size):
        raise UserError(
            f"on={name}: it has {other.classes} classes of {other.image_size} pixels, the run {own.classes} of "
            f"{own.image_size}"
        )
    return replace(
        other,
        root=own.root,
        mean=own.mean,
        std=own.std,
        workers=own.workers,
        skip_unreadable=own.skip_unreadable,
        decoder=own.decoder,
    )


def configured(config: Config, wanted: Mapping[str, str]) -> Config:
    """With this command's options. The device is this machine's, whatever the run was trained on."""
    node = OmegaConf.structured(config)
    try:
        for key in OF_THE_CONFIGURATION:
            value = wanted.get(key, "auto" if key == "runtime.device" else None)
            if value is not None:
                OmegaConf.update(node, key, None if value == "null" else value)
        changed = OmegaConf.to_object(node)
    except OmegaConfBaseException as error:
        raise UserError(one_line(error)) from error
    assert isinstance(changed, Config)
    return check(changed)


def evaluations(config: Config, run: Run, names: list[str]) -> dict[str, float]:
    """Metric name -> value in percent (mCE too, AlexNet = 100), for the ledger."""
    import torch

    from sam_repro.data.evaluation_sets import NAMES, corruption_scores, evaluation_sets
    from sam_repro.engine.precision import forward
    from sam_repro.engine.ranks import device_of
    from sam_repro.engine.setup import before_cuda, prepare
    from sam_repro.tasks.classification.task import accuracy

    known = (*NAMES, *(name for name in choices("dataset") if name not in NAMES))
    for name in names:
        if name not in known:
            raise UserError(f"on={name}: there is no such test set.{nearest(name, known)} Choose of {', '.join(known)}")
        if name in NAMES:
            of_imagenet(config, run)
    others = {name: data_of(name, config) for name in names if name not in NAMES}
    before_cuda(config.runtime)
    device = device_of(config.runtime, 0)
    prepare(config.runtime, config.seed, local_ranks=1)
    model = trained(config, run.weights).to(device).eval()
    if config.runtime.channels_last:
        model = model.to(memory_format=torch.channels_last)

    def computed(*inputs: torch.Tensor) -> torch.Tensor:
        return forward(model, inputs, config.runtime)

    found: dict[str, float] = {}
    for name, data in others.items():
        found[f"{name}_accuracy"] = accuracy_on(model, data, config, device)
    for name in (name for name in names if name in NAMES):
        single = {}
        for test in evaluation_sets(name, config.dataset, device):
            single[test.name] = accuracy(computed, test, config.loop.eval_batch)
            print(f"{test.name:32} {100 * single[test.name]:8.2f}", file=sys.stderr, flush=True)
        if name == "c":
            scores = corruption_scores(single)
            found |= {"imagenet_c_accuracy": 100 * scores["mean_accuracy"], "imagenet_c_mce": 100 * scores["mCE"]}
        else:
            found[f"imagenet_{name}_accuracy" if name != "imagenet" else "imagenet_accuracy"] = 100 * single[name]
    return found


def accuracy_on(model: nn.Module, data: DatasetConfig, config: Config, device: torch.device) -> float:
    """In percent, over a data set's whole test half."""
    from sam_repro.engine.evaluate import evaluate
    from sam_repro.engine.ranks import Ranks
    from sam_repro.tasks.classification.task import Classification

    few = replace(data, train_images=data.classes)
    task = Classification.load(replace(config, dataset=few, augment=AugmentConfig(), budget=BudgetConfig()), device)
    return evaluate(model, task, config, Ranks(0, 1, device))["test_accuracy"]


if __name__ == "__main__":
    signals.begin()
    sys.exit(main())
