"""R-SAM eq. 6, not projected: eps = d0 + rho T^2 d / l2(T d), d = g(w + d0), which may be longer than rho."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.directions import Direction
from sam_repro.methods.option import Problem

if TYPE_CHECKING:
    from torch import Tensor

    from sam_repro.methods.axes import Point


@dataclass(frozen=True)
class GradientOnNoise(Direction):
    from_noise: ClassVar[bool] = True

    def problems(self, point: Point) -> Iterator[Problem]:
        if not point.start.noisy:
            yield "direction", f"{self.name} needs noise: start=kernel_noise or isotropic_noise"

    def bend(self, d: list[Tensor], beside: list[list[Tensor]]) -> None:
        pass
