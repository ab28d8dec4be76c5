"""Equal ids and equal runs are the same thing: random configurations, in families that differ by a word or two.

Another id must mean other weights after some steps, another learning rate somewhere, or other evaluated data, and the
same id the same of all three. Left out is what a run says of itself beyond its numbers so far: what it would do if it
collapsed (`on_divergence`), an upper limit above what there is (`budget`, `loop.micro_batch`, a subset as large as the
data set), and the other one of a schedule's two lengths (`plain_epochs`), which a recipe states for both of its rows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from hashlib import sha256
from itertools import islice

import pytest
import torch

from sam_repro.config.compose_many import compose_all
from sam_repro.config.identity import run_id
from sam_repro.config.schema import Config
from sam_repro.engine.ranks import Ranks
from sam_repro.train import prepared

STEPS, RUNS, FAMILY = 20, 200, 5
# Images of 16 pixels: batch norm refuses the one value that a map of 8 pixels ends with in a part of one image.
SMALL = (
    "dataset=synthetic", "dataset.image_size=16", "dataset.classes=3", "dataset.train_images=64",
    "dataset.test_images=12", "dataset.workers=0", "model.width=2", "schedule.epochs=5", "loop.batch_size=8",
    "track=none", "runtime.threads=1", "runtime.device=cpu", "runtime.precision=fp32",
)  # fmt: skip
# Groups first: an option replaces the fields that belong to it.
GROUPS = {
    "method": ["plain", "sam", "asam", "fsam", "rsam", "gsam", "looksam", "lpf_sgd", "sam_db", "esam", "sam_fraction"],
    "base_optimizer": ["sgd", "sgd_plain", "nesterov", "rmsprop", "adam", "adamw"],
    "augment": ["none", "basic", "basic_cutout", "basic_smoothing"],
}
FIELDS = {
    "dataset.evaluate_on": ["test", "validation", "both"],
    "dataset.validation": ["0.1", "0.3"],
    "dataset.test_images": ["12", "9"],
    "dataset.label_noise.rate": ["0", "0.4"],
    "dataset.label_noise.seed": ["0", "1"],
    "dataset.label_noise.include_true": ["false", "true"],
    "dataset.crop_share": ["1.0", "0.5"],
    "dataset.mean": ["[0.5,0.5,0.5]", "[0.4,0.5,0.5]"],
    "augment.crop": ["0", "2"],
    "augment.flip": ["false", "true"],
    "augment.cutout": ["0", "4"],
    "augment.cutout_probability": ["0.5", "1.0"],
    "augment.label_smoothing": ["0", "0.1"],
    "augment.policy": ["none", "randaugment"],
    "augment.randaugment_ops": ["1", "2"],
    "augment.randaugment_magnitude": ["9", "20"],
    "augment.mixup": ["0", "0.5"],
    "augment.cutmix": ["0", "1.0"],
    "augment.mix_probability": ["0.5", "1.0"],
    "base_optimizer.lr": ["0.1", "0.05"],
    "base_optimizer.weight_decay": ["0", "5e-4"],
    "base_optimizer.decay_norm_and_bias": ["true", "false"],
    "base_optimizer.momentum": ["0.9", "0.5"],
    "base_optimizer.nesterov": ["false", "true"],
    "base_optimizer.beta1": ["0.9", "0.8"],
    "base_optimizer.beta2": ["0.999", "0.9"],
    "base_optimizer.alpha": ["0.99", "0.9"],
    "base_optimizer.eps": ["1e-8", "1e-3"],
    "schedule.decay": ["cosine", "constant", "linear", "inverse_sqrt"],
    "schedule.per": ["step", "epoch"],
    "schedule.warmup_epochs": ["0", "2"],
    "schedule.warmup_start": ["0", "0.1"],
    "schedule.final": ["0", "0.1"],
    "schedule.epochs": ["5", "8"],
    "loop.batch_size": ["8", "16"],
    "loop.clip_norm": ["null", "0.1"],
    "loop.batchnorm": ["first", "last", "both"],
    "loop.masks": ["shared", "independent"],
    "loop.loss": ["softmax", "sigmoid"],
    "model.head_bias": ["null", "-2"],
    "method.scope": ["all", "only_norm", "no_norm"],
    "method.rho": ["0.05", "0.2"],
    "method.m": ["null", "4"],
    "runtime.precision": ["fp32", "bf16"],
    # These change no number and no id.
    "dataset.root": ["data", "elsewhere"],
    "loop.eval_batch": ["512", "5"],
    "track.every": ["50", "7"],
    "budget.name": ["paper", "mine"],
}


def drawn(source: random.Random, several: int) -> dict[str, str]:
    """A few words of a command line, by key."""
    keys = source.sample([*GROUPS, *FIELDS], several)
    return {key: source.choice(GROUPS.get(key) or FIELDS[key]) for key in keys}


def configurations(source: random.Random) -> Iterator[tuple[dict[str, str], Config]]:
    """Valid ones: each family is some words, and the same with a word or two that differ."""
    families = []
    for _ in range(RUNS):
        words = drawn(source, source.randint(1, 6))
        families.append([words, *({**words, **drawn(source, source.randint(1, 2))} for _ in range(2 * FAMILY))])
    lines = {line(words): words for family in families for words in family}
    made = {one: config for one, config in compose_all(lines).items() if isinstance(config, Config)}
    for family in families:
        if line(family[0]) in made:
            yield from islice(((words, made[line(words)]) for words in family if line(words) in made), FAMILY)


def line(words: dict[str, str]) -> tuple[str, ...]:
    groups = [key for key in words if key in GROUPS]
    return (*SMALL, *(f"{key}={words[key]}" for key in [*groups, *(k for k in words if k not in GROUPS)]))


def fingerprint(config: Config) -> str:
    """Of the weights after some steps, of every step's learning rate, and of what the run is evaluated on."""
    loop = prepared(config, Ranks(0, 1, torch.device("cpu")))
    data, stepper, batch = loop.task, loop.stepper, config.loop.batch_size
    schedule, digest = stepper.schedule, sha256()
    digest.update(repr([schedule.lr(step) for step in range(schedule.steps)]).encode())
    for held in (data.test, *([data.validation] if data.validation else [])):
        for batch_of_it in held.batches(4):
            digest.update(batch_of_it.images.numpy().tobytes() + batch_of_it.targets.numpy().tobytes())
    for step in range(STEPS):
        epoch, place = divmod(step, schedule.steps_per_epoch)
        ids = data.train.order(epoch)[place * batch : (place + 1) * batch]
        stepper(next(stepper.shards([ids], epoch, step)))
    for tensor in loop.state.model.state_dict().values():
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()


@pytest.mark.slow
def test_equal_ids_are_equal_runs_and_no_others() -> None:
    torch.set_num_threads(1)
    by_id, by_run = dict[str, tuple[str, object]](), dict[str, tuple[str, object]]()
    wrong = []
    for words, config in islice(configurations(random.Random(0)), RUNS):
        name, run = run_id(config), fingerprint(config)
        if by_id.setdefault(name, (run, words))[0] != run:
            wrong.append(f"one id, other numbers: {by_id[name][1]} and {words}")
        if by_run.setdefault(run, (name, words))[0] != name:
            wrong.append(f"equal numbers, other ids: {by_run[run][1]} and {words}")
    assert not wrong, "\n".join(wrong)
    assert len(by_id) > RUNS / 2  # else the families say little
