"""GSAM: rho_t = rho_min + (rho - rho_min) (lr_t - lr_min) / (lr_max - lr_min), never below rho_min.

Warm-up starts below lr_min, where the line would make rho negative: rho_min is the floor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.option import NOT_NEGATIVE, Problem, value
from sam_repro.methods.radii import Radius

if TYPE_CHECKING:
    from sam_repro.methods.axes import Point
    from sam_repro.methods.moment import Moment


@dataclass(frozen=True)
class FollowLr(Radius):
    follows_lr: ClassVar[bool] = True

    rho_min: float = value(0.0, "the radius at the lowest learning rate", NOT_NEGATIVE)

    def problems(self, point: Point) -> Iterator[Problem]:
        yield from super().problems(point)
        if self.rho_min > self.rho:
            yield "rho_min", f"must not exceed rho={self.rho:g}"

    def at(self, moment: Moment | None) -> float:
        if moment is None:
            raise ValueError(f"radius={self.name} needs estimate(..., at=Moment(lr=..., lr_min=..., lr_max=...))")
        span = moment.lr_max - moment.lr_min
        share = (moment.lr - moment.lr_min) / span if span > 0 else 1.0
        return max(self.rho_min, self.rho_min + (self.rho - self.rho_min) * share)
