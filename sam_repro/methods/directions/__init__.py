"""How the ascent direction d follows from the ascent gradient g.

`prepare` gives the equation and, for every parameter that has a gradient, the tensors that stand beside it. The
equation gets the tensors that are worked on together (in cache, or all of them) with those beside them, and turns g
into d in place. Parameters with as many tensors beside them are worked on together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.option import Option

if TYPE_CHECKING:
    from torch import Tensor

    from sam_repro.methods.state import State
    from sam_repro.methods.work import Work

Equation = Callable[["list[Tensor]", "list[list[Tensor]]"], None]


@dataclass(frozen=True)
class Direction(Option):
    axis: ClassVar[str] = "direction"
    default: ClassVar[str] = "gradient"
    bends: ClassVar[bool] = True  # whether d is other than g
    adds_noise: ClassVar[bool] = False  # to the gradient, the noise of the start
    from_noise: ClassVar[bool] = False  # whether the ascent goes on from w + d0, where the gradient was taken

    def passes(self, batch: int | None, train: int | None, m: int | None) -> float:
        """What it takes beyond the ascent's own, in passes over the batch."""
        return 0.0

    def prepare(self, work: Work) -> tuple[Equation, list[list[Tensor]]]:
        return self.bend, [[] for _ in work.where]

    def bend(self, d: list[Tensor], beside: list[list[Tensor]]) -> None:
        """The equation: on entry d is g."""
        raise NotImplementedError

    def absorb(self, shared: State, mean: dict[str, Tensor]) -> None:
        """At the end of a step: the mean over all shards and ranks of what `work.add_up` collected, by parameter."""
