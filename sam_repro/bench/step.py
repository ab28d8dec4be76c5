"""End-to-end time of a training step, by method: input, passes, update, through the engine as a run takes it.

    OMP_NUM_THREADS=2 sam-repro bench step [--model resnet18] [--methods plain,sam,asam] [--rounds 7] [--json]

All methods train one model on one batch of 128, on the device found, with the default precision (bf16, channels-last),
in one process, taking turns. `plain` is the base optimizer alone, fused SGD with momentum; ratios are to it. `loop` is
the same step written by hand in ten lines, on a batch that is ready: what the engine costs beyond it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from sam_repro import methods
from sam_repro.bench.timing import Bar, hardware, milliseconds, ratio, stopwatch, take_turns
from sam_repro.config.compose import compose
from sam_repro.config.schema import Config
from sam_repro.engine import optimizer
from sam_repro.engine.batchnorm import RunningStatistics
from sam_repro.engine.precision import LossScale
from sam_repro.engine.ranks import Ranks, device_of
from sam_repro.engine.schedule import Schedule
from sam_repro.engine.setup import prepare
from sam_repro.engine.state import TrainState
from sam_repro.engine.step import Stepper
from sam_repro.methods import factory
from sam_repro.tasks.classification.task import Classification

METHODS = tuple(dict.fromkeys(["plain", *factory.names()]))
BATCHES = 5  # of the training set: what a pass over all of it means here (sam_full, sam_noise)
STEPS = 1_000_000  # of the pretended run: no schedule gets anywhere
AT_MOST = 2.01
A_PASS = 1.03  # of every method: its step / (its passes x SGD's step)


def configure(model: str, method: str, batch: int, *more: str) -> Config:
    larger = [f"method.ascent_batch={4 * batch}"] if method == "sam_larger" else []
    return compose(
        [
            f"model={model}",
            f"method={method}",
            f"loop.batch_size={batch}",
            "augment=basic",
            "base_optimizer.lr=1e-4",
            f"budget.train_images={BATCHES * batch}",
            "budget.test_images=10",
            f"runtime.threads={torch.get_num_threads()}",
            *larger,
            *more,
        ]
    )


class Trainer:
    """A model, its data, and steps of any method on them, put together as `sam_repro.train` does."""

    def __init__(self, c: Config, clock: str = "wall") -> None:
        prepare(c.runtime, seed=0, local_ranks=1)
        self.ranks = Ranks(0, 1, device_of(c.runtime, 0))
        self.task = Classification.load(c, self.ranks.device)
        self.data, self.model = self.task.train, self.task.build().to(self.ranks.device)
        if c.runtime.channels_last:
            self.model = self.model.to(memory_format=torch.channels_last)
        self.config, self.clock = c, clock
        self.ids = self.data.order(0)[: c.loop.batch_size]

    def step(self, c: Config) -> Callable[[], float]:
        """Seconds of a step as this configuration takes it, the mean over its cadence."""
        schedule = Schedule(c.schedule, c.base_optimizer.lr, STEPS, 1)
        estimator = methods.build(c.method, self.model, seed=0)
        base = optimizer.build(c.base_optimizer, self.model)
        statistics, scale = RunningStatistics(self.model, c.loop.batchnorm), LossScale(enabled=False)
        state = TrainState(self.model, estimator, base, statistics, scale)
        stepper = Stepper(c, self.task, state, schedule, self.ranks)
        every, done = c.method.point.between.every, 0

        def turn() -> None:
            nonlocal done
            for _ in range(every):
                stepper(next(stepper.shards([self.ids], 0, done)))
                done += 1

        timed = stopwatch(turn, self.clock, self.wait)
        return lambda: timed() / every

    def loop(self) -> Callable[[], float]:
        """A plain SGD step in the same precision, as one writes it by hand."""
        batch = self.data.gather(self.ids, 0)
        base = optimizer.build(self.config.base_optimizer, self.model)
        images = batch.images.contiguous(memory_format=torch.channels_last)

        def step() -> None:
            with torch.autocast(images.device.type, torch.bfloat16):
                output = self.model(images)
            F.cross_entropy(output.float(), batch.targets).backward()  # type: ignore[no-untyped-call]
            base.step()
            base.zero_grad()

        return stopwatch(step, self.clock, self.wait)

    @property
    def wait(self) -> Callable[[], None] | None:
        return torch.cuda.synchronize if self.ranks.device.type == "cuda" else None


def run(
    model: str = "resnet18", rounds: int = 7, batch: int = 128, names: Sequence[str] = METHODS, clock: str = "wall"
) -> dict[str, Any]:
    configs = {name: configure(model, name, batch) for name in dict.fromkeys(["plain", *names])}
    trainer = Trainer(configs["plain"], clock)
    contestants = {"loop": trainer.loop()} | {name: trainer.step(c) for name, c in configs.items()}
    taken = take_turns(contestants, rounds)
    ratios = {name: round(ratio(taken[name], taken["plain"]), 3) for name in contestants}
    size, runtime = trainer.data.size, trainer.config.runtime
    passes = {"loop": 1.0} | {name: round(c.method.passes(batch, size), 3) for name, c in configs.items()}
    bars = [Bar("SAM step / SGD step", ratios["sam"], AT_MOST, at_least=False)] if "sam" in ratios else []
    for name in list(configs)[1:]:
        a_pass = round(ratios[name] / passes[name], 3)
        bars.append(Bar(f"{name} step / (its passes x SGD's)", a_pass, A_PASS, at_least=False))
    return {
        "hardware": hardware(),
        "settings": {
            "model": model,
            "batch": batch,
            "clock": clock,
            "precision": runtime.precision.value,
            "channels_last": runtime.channels_last,
            "train_images": size,
        },
        "rounds": rounds,
        "milliseconds": milliseconds(taken),
        "passes": passes,
        "ratios": ratios,
        "bars": [bar.as_json() for bar in bars],
    }


def table(result: dict[str, Any]) -> str:
    lines = [f"{'method':<14}{'ms a step':>11}{'to plain':>10}{'passes':>8}"]
    for name, milli in result["milliseconds"].items():
        lines.append(f"{name:<14}{milli:>11.1f}{result['ratios'][name]:>10.3f}{result['passes'][name]:>8.2f}")
    return "\n".join(lines)
