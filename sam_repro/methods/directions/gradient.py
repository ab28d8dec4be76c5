"""SAM: d = g."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.directions import Direction

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Gradient(Direction):
    bends: ClassVar[bool] = False

    def bend(self, d: list[Tensor], beside: list[list[Tensor]]) -> None:
        pass
