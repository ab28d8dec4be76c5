"""rho, always."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sam_repro.methods.radii import Radius

if TYPE_CHECKING:
    from sam_repro.methods.moment import Moment


@dataclass(frozen=True)
class Constant(Radius):
    def at(self, moment: Moment | None) -> float:
        return self.rho
