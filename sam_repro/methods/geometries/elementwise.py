"""ASAM: T = abs(w) + eta."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sam_repro.methods.geometries import Normalising

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Elementwise(Normalising):
    def operator(self, kind: Hashable, w: list[Tensor], g: list[Tensor]) -> list[Tensor]:
        import torch

        t = list(torch._foreach_abs(w))
        if self.eta:
            torch._foreach_add_(t, self.eta)
        return t
