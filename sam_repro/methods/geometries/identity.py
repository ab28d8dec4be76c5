"""SAM: T = 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sam_repro.methods.geometries import Geometry

if TYPE_CHECKING:
    from sam_repro.methods.leaves import Leaf


@dataclass(frozen=True)
class Identity(Geometry):
    def kind(self, leaf: Leaf) -> None:
        return None
