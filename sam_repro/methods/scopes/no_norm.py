"""All but scale and shift of normalisation layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.scopes import Scope

if TYPE_CHECKING:
    from sam_repro.methods.leaves import Leaf


@dataclass(frozen=True)
class NoNorm(Scope):
    by_layer: ClassVar[bool] = True

    def holds(self, leaf: Leaf) -> bool:
        return not leaf.is_normalisation
