"""FisherSAM (F-SAM supplement A4): T = F^(-1/2), F = 1 + eta g^2."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sam_repro.methods.geometries import Normalising
from sam_repro.methods.option import Problem

if TYPE_CHECKING:
    from torch import Tensor

    from sam_repro.methods.axes import Point


@dataclass(frozen=True)
class Fisher(Normalising):
    def problems(self, point: Point) -> Iterator[Problem]:
        if self.p == "linf":
            yield "p", "linf is not defined with geometry=fisher: p=l2"

    def operator(self, kind: Hashable, w: list[Tensor], g: list[Tensor]) -> list[Tensor]:
        import torch

        f = torch._foreach_mul(g, g)
        torch._foreach_mul_(f, self.eta)
        torch._foreach_add_(f, 1.0)
        torch._foreach_rsqrt_(f)
        return list(f)
