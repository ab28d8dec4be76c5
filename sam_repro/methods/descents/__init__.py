"""How the final gradient follows from the gradient at w + eps. All of it over the whole parameter vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.option import Option

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Descent(Option):
    axis: ClassVar[str] = "descent"
    default: ClassVar[str] = "plain"
    needs_first: ClassVar[bool] = False  # the first gradient, kept until the second is there

    def combine(self, g_adv: list[Tensor], g: list[Tensor], lazy: bool) -> None:
        """The final gradient, in place in g_adv; g is the first one. Called where that is kept."""
