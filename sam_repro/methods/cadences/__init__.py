"""On which steps all this happens, and what the steps between do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.option import COUNT, Option, value

if TYPE_CHECKING:
    from torch import Tensor

    from sam_repro.methods.state import State
    from sam_repro.methods.work import Work


@dataclass(frozen=True)
class Cadence(Option):
    axis: ClassVar[str] = "between"
    default: ClassVar[str] = "plain"
    needs_first: ClassVar[bool] = False  # the first gradient, kept until the second is there

    every: int = value(1, "an ascent every so many steps, the first one included", COUNT)

    def ascends(self, step: int, state: State) -> bool:
        return step % self.every == 0

    def remember(self, work: Work, where: list[int], g_adv: list[Tensor], g: list[Tensor]) -> None:
        """What the steps between need of both gradients of a step with an ascent."""

    def between(self, work: Work) -> None:
        """Turn the batch's gradient into the final one, on a step without an ascent."""
