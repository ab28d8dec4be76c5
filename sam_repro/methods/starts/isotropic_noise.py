"""Gaussian noise of one deviation: d0 ~ N(0, gamma^2) on every element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sam_repro.methods.starts import Noise

if TYPE_CHECKING:
    from sam_repro.methods.leaves import Leaf


@dataclass(frozen=True)
class IsotropicNoise(Noise):
    def deviation(self, leaf: Leaf, size: float) -> float:
        return size
