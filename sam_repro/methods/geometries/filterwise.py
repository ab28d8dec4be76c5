"""ASAM eq. 5: T = l2(f) + eta on a convolution's filter f, abs(w) + eta on every weight that is in no filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.geometries import Normalising

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Filterwise(Normalising):
    whole: ClassVar[bool] = True

    def operator(self, w: list[Tensor], g: list[Tensor]) -> list[Tensor]:
        from sam_repro.methods.kernels import kernel_norms

        return [(kernel_norms(x) if x.dim() > 2 else x.abs()) + self.eta for x in w]
