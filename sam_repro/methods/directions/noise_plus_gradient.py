"""R-SAM eq. 7: d = d0 + lambda g(w + d0), lambda being mix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.directions import Direction, Equation
from sam_repro.methods.option import NOT_NEGATIVE, Problem, value

if TYPE_CHECKING:
    from torch import Tensor

    from sam_repro.methods.axes import Point
    from sam_repro.methods.work import Work


@dataclass(frozen=True)
class NoisePlusGradient(Direction):
    adds_noise: ClassVar[bool] = True

    mix: float = value(1.0, "R-SAM's lambda, the weight of g beside the noise", NOT_NEGATIVE)

    def problems(self, point: Point) -> Iterator[Problem]:
        if not point.start.noisy:
            yield "direction", "noise_plus_gradient needs noise: start=kernel_noise or isotropic_noise"

    def prepare(self, work: Work) -> tuple[Equation, list[list[Tensor]]]:
        return self.bend, [[work.noise[i]] if i in work.noise else [] for i in work.where]  # none where gamma is 0

    def bend(self, d: list[Tensor], beside: list[list[Tensor]]) -> None:
        import torch

        torch._foreach_mul_(d, self.mix)
        for noise in beside:
            torch._foreach_add_(d, noise)
