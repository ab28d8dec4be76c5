"""ASAM eq. 5: T = l2(f) + eta on a convolution's filter f, abs(w) + eta on every weight that is in no filter."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.geometries import Normalising

if TYPE_CHECKING:
    from torch import Tensor

    from sam_repro.methods.leaves import Leaf


@dataclass(frozen=True)
class Filterwise(Normalising):
    whole: ClassVar[bool] = True
    by_kernel: ClassVar[bool] = True

    def kind(self, leaf: Leaf) -> Hashable:
        from sam_repro.methods.kernels import is_filter, kernels

        own = super().kind(leaf)
        return kernels(leaf) if own and is_filter(leaf) else own

    def operator(self, kind: Hashable, w: list[Tensor], g: list[Tensor]) -> list[Tensor]:
        from sam_repro.methods.kernels import Kernels

        return [(kind.norms(x) if isinstance(kind, Kernels) else x.abs()) + self.eta for x in w]
