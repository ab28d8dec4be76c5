"""The learning rate as a function of the step: nothing to save, nothing to attach."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sam_repro.config.schema import Decay, ScheduleConfig, Unit
from sam_repro.methods import Moment


@dataclass(frozen=True)
class Schedule:
    config: ScheduleConfig
    peak: float
    steps_per_epoch: int
    epochs: int
    warmup_epochs: float = 0.0
    warmup_steps: float | None = None  # in their place

    @property
    def steps(self) -> int:
        return self.steps_per_epoch * self.epochs

    def at(self, step: int) -> Moment:
        """The moment of the step-th step, counted from 0."""
        return Moment(
            step=step,
            progress=step / max(1, self.steps),
            lr=self.lr(step),
            lr_min=self.peak * self.config.final,
            lr_max=self.peak,
            warms_up=self._held(step) < self._warmup,
        )

    @property
    def _warmup(self) -> float:
        return self.warmup_epochs * self.steps_per_epoch if self.warmup_steps is None else self.warmup_steps

    def _held(self, step: int) -> int:
        """The step whose learning rate this step has: its epoch's first, where the rate is held during an epoch."""
        return step if self.config.per is Unit.step else step // self.steps_per_epoch * self.steps_per_epoch

    def lr(self, step: int) -> float:
        warmup, reached = self._warmup, step
        if self.config.per is Unit.epoch:
            step = self._held(step)
            reached = step + self.steps_per_epoch  # a whole epoch at warmup_start, which may be 0, would be lost
        if step < warmup:
            start = self.config.warmup_start
            return self.peak * (start + (1 - start) * min(1.0, reached / warmup))
        return self.peak * self._decay(step - warmup, max(1.0, self.steps - warmup), warmup)

    def _decay(self, step: float, steps: float, warmup: float) -> float:
        """From 1 at the end of the warm-up to `final` at the end of the run."""
        final, done = self.config.final, min(1.0, step / steps)
        match self.config.decay:
            case Decay.constant:
                return 1.0
            case Decay.cosine:
                return final + (1 - final) * 0.5 * (1 + math.cos(math.pi * done))
            case Decay.linear:
                return 1 - (1 - final) * done
            case Decay.inverse_sqrt:
                # lr = peak * sqrt(warmup / step), as Vaswani et al.; without a warm-up the first step is the unit.
                unit = max(1.0, warmup)
                return max(final, math.sqrt(unit / (unit + step)))
