"""The whole training set (SAM-full, F-SAM A5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sam_repro.methods.ascents import Data, Perturbing


@dataclass(frozen=True)
class Full(Perturbing):
    data: ClassVar[Data] = "full"

    def passes(self, batch: int | None, train: int | None) -> float:
        return train / batch if train and batch else float("nan")
