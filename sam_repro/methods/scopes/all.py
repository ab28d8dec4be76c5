"""All of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sam_repro.methods.scopes import Scope

if TYPE_CHECKING:
    from sam_repro.methods.leaves import Leaf


@dataclass(frozen=True)
class All(Scope):
    def holds(self, leaf: Leaf) -> bool:
        return True
