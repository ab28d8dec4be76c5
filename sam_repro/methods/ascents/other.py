"""Another random batch of the same size (SAM-db, F-SAM A5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sam_repro.methods.ascents import Data, Perturbing


@dataclass(frozen=True)
class Other(Perturbing):
    data: ClassVar[Data] = "other"

    def passes(self, batch: int | None, train: int | None) -> float:
        return 1.0
