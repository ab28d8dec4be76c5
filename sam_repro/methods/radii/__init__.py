"""How the radius rho moves during training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.option import NOT_NEGATIVE, Option, value

if TYPE_CHECKING:
    from sam_repro.methods.moment import Moment


@dataclass(frozen=True)
class Radius(Option):
    axis: ClassVar[str] = "radius"
    default: ClassVar[str] = "constant"

    follows_lr: ClassVar[bool] = False

    rho: float = value(0.0, "the radius, or where it moves its largest value", NOT_NEGATIVE)

    def at(self, moment: Moment | None) -> float:
        raise NotImplementedError
