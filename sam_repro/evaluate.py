"""`python -m sam_repro.evaluate run=<id> on=[imagenet,real,v2,r,c]`: judge a finished run on other test sets.

The model is the run's own `weights.safetensors`. What comes out is printed, kept in the run folder's `evaluations.json`
and added to the run's line in the ledger, where the tables find it.

    run=            id of a finished run, or the first characters of it
    on=             of imagenet, real (ImageNet-ReaL), v2, r, c
    results_dir=    where the run is (default results)
    dataset.root=   where the test sets are, if not where the run's data was
    runtime.device= auto, cpu or cuda
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from sam_repro.compose import nearest
from sam_repro.outcome import DONE, USER_ERROR
from sam_repro.record.atomic import write_atomic
from sam_repro.report import ledger
from sam_repro.schema import Config, Device, UserError

FILE = "evaluations.json"
OPTIONS = ("run", "on", "results_dir", "dataset.root", "runtime.device")


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or {"-h", "--help"} & set(arguments):
        print(__doc__)
        return 0
    try:
        wanted = options(arguments)
        folder = find_run(Path(wanted.get("results_dir", "results")), wanted.get("run", ""))
        config = stored(folder)
        config.dataset.root = wanted.get("dataset.root", config.dataset.root)
        config.runtime.device = Device[wanted.get("runtime.device", "auto")]
        names = [n.strip() for n in wanted.get("on", "imagenet").strip("[]").split(",")]
        found = evaluations(config, folder, names)
    except UserError as mistake:
        print(f"error: {mistake}", file=sys.stderr)
        return USER_ERROR
    keep(folder, found)
    for name, value in found.items():
        print(f"{name:32} {value:8.2f}")
    return 0


def options(arguments: list[str]) -> dict[str, str]:
    found = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals or key not in OPTIONS:
            raise UserError(f"{key}: there is no such option.{nearest(key, OPTIONS)} Options: {', '.join(OPTIONS)}")
        found[key] = value
    if found.get("runtime.device", "auto") not in Device.__members__:
        raise UserError(f"runtime.device={found['runtime.device']}: choose of {', '.join(Device.__members__)}")
    return found


def find_run(results: Path, start: str) -> Path:
    runs = sorted(f for f in (results / "runs").glob("*") if f.is_dir())
    matching = [f for f in runs if start and f.name.startswith(start)]
    if len(matching) != 1:
        problem = "names no run" if not matching else f"names {len(matching)} runs"
        raise UserError(f"run={start} {problem} in {results / 'runs'}.{nearest(start, [f.name for f in runs])}")
    if not (matching[0] / DONE).exists():
        raise UserError(f"run={matching[0].name} is not finished: start it again to let it go on")
    return matching[0]


def stored(folder: Path) -> Config:
    """The configuration that a run was trained with."""
    config = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(Config), OmegaConf.load(folder / "config.yaml")))
    assert isinstance(config, Config)
    return config


def evaluations(config: Config, folder: Path, names: list[str]) -> dict[str, float]:
    """Metric name -> value in percent (mCE too, AlexNet = 100), for the ledger."""
    import torch
    from safetensors.torch import load_file

    from sam_repro import models
    from sam_repro.data.evaluations import NAMES, corruption_scores, evaluation_sets
    from sam_repro.engine.evaluate import accuracy
    from sam_repro.engine.ranks import device_of

    for name in names:
        if name not in NAMES:
            raise UserError(f"on={name}: there is no such test set.{nearest(name, NAMES)} Choose of {', '.join(NAMES)}")
    device = device_of(config.runtime, 0)
    model = models.build(config.model, config.dataset.classes, config.dataset.image_size)
    model.load_state_dict(load_file(folder / "weights.safetensors"))
    model = model.to(device).eval()
    if config.runtime.channels_last:
        model = model.to(memory_format=torch.channels_last)
    found: dict[str, float] = {}
    for name in names:
        single = {}
        for test in evaluation_sets(name, config.dataset, device):
            single[test.name] = accuracy(model, test, config, device)
            print(f"{test.name:32} {100 * single[test.name]:8.2f}", file=sys.stderr, flush=True)
        if name == "c":
            scores = corruption_scores(single)
            found |= {"imagenet_c_accuracy": 100 * scores["mean_accuracy"], "imagenet_c_mce": 100 * scores["mCE"]}
        else:
            found[f"imagenet_{name}_accuracy" if name != "imagenet" else "imagenet_accuracy"] = 100 * single[name]
    return found


def keep(folder: Path, found: dict[str, float]) -> None:
    """In the run folder, and as a new line of the run in the ledger."""
    file = folder / FILE
    before: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    write_atomic(file, json.dumps(before | found, indent=2) + "\n")
    results = folder.parents[1]
    entries, _ = ledger.read(results)
    for entry in entries:
        if entry["run_id"] == folder.name:
            metrics = {name: {"last": value, "best": value, "best_epoch": None} for name, value in found.items()}
            fields = {k: v for k, v in entry.items() if k not in ("version", "finished")}
            ledger.append(results, {**fields, "metrics": {**entry["metrics"], **metrics}})


if __name__ == "__main__":
    sys.exit(main())
