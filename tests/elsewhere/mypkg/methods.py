"""A direction, a geometry and a descent as a user's own package has them."""

import os
import signal
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sam_repro.methods.descents import Descent
from sam_repro.methods.directions import Direction, Equation
from sam_repro.methods.geometries import Normalising
from sam_repro.methods.option import NOT_NEGATIVE, value
from sam_repro.methods.work import Work


@dataclass(frozen=True)
class WithLast(Direction):
    """d = g + weight times the last step's g."""

    copied: ClassVar[tuple[str, ...]] = ("last",)

    weight: float = value(0.5, "of the last step's gradient", NOT_NEGATIVE)

    @property
    def vectors(self) -> int:
        return 1

    def prepare(self, work: Work) -> tuple[Equation, list[list[Tensor]]]:
        if work.state.steps == 1 and "STOP_IN_STEP_2" in os.environ:  # a test's, to see the run go on from there
            os.kill(os.getpid(), signal.SIGTERM)
        last = work.state.of("last")
        for i, g in zip(work.where, work.g, strict=True):
            last.setdefault(work.names[i], torch.zeros_like(g))
        return self.bend, [[last[work.names[i]]] for i in work.where]

    def bend(self, d: list[Tensor], beside: list[list[Tensor]]) -> None:
        (last,) = beside
        bent = torch._foreach_add(d, last, alpha=self.weight)
        torch._foreach_copy_(last, d)
        torch._foreach_copy_(d, bent)


@dataclass(frozen=True)
class Roots(Normalising):
    """T = sqrt(abs(w)) + eta."""

    def operator(self, kind: Hashable, w: list[Tensor], g: list[Tensor]) -> list[Tensor]:
        return [x.abs().sqrt() + self.eta for x in w]


@dataclass(frozen=True)
class Halfway(Descent):
    """The mean of both gradients."""

    needs_first: ClassVar[bool] = True

    def combine(self, g_adv: list[Tensor], g: list[Tensor], lazy: bool) -> None:
        torch._foreach_lerp_(g_adv, g, 0.5)
