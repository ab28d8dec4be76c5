"""Which parameters are perturbed. The others take part in the step, and in no perturbation or norm of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.option import Option

if TYPE_CHECKING:
    from sam_repro.methods.leaves import Leaf


@dataclass(frozen=True)
class Scope(Option):
    axis: ClassVar[str] = "scope"
    default: ClassVar[str] = "all"
    by_layer: ClassVar[bool] = False  # whether it asks what layer a parameter is of

    def holds(self, leaf: Leaf) -> bool:
        raise NotImplementedError

    def chosen(self, leaves: list[Leaf]) -> list[int]:
        """The places of those that are perturbed."""
        if self.by_layer and any(leaf.layer is None for leaf in leaves):
            raise ValueError(
                f"method.scope={self.name} asks for layers, which names do not tell: build() takes the model"
            )
        found = [i for i, leaf in enumerate(leaves) if self.holds(leaf)]
        if not found:
            known = ", ".join(leaf.name for leaf in leaves[:3])
            raise ValueError(f"method.{self} fits no parameter of this model: they are called {known}, ...")
        return found

    def __str__(self) -> str:
        return f"{self.axis}={self.name}"
