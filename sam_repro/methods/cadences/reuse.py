"""LookSAM: between, g + look * l2(g) * v / l2(v), v the part of the last g_adv orthogonal to its g.

Products and lengths are those of all parameters as one vector, as the paper writes it, or (look_by=tensor, as most
ports have it) of each tensor alone. With every=1 it is the method without it, for there is no step between; v is taken
all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.cadences import Cadence
from sam_repro.methods.option import NOT_NEGATIVE, Problem, choice, value

if TYPE_CHECKING:
    from torch import Tensor

    from sam_repro.methods.axes import Point
    from sam_repro.methods.state import State
    from sam_repro.methods.work import Work


@dataclass(frozen=True)
class Reuse(Cadence):
    needs_first: ClassVar[bool] = True

    look: float = value(0.0, "how much of the kept direction is added", NOT_NEGATIVE)
    look_by: str = choice(("whole", "tensor"), "what is split and scaled: all parameters as one vector, or each tensor")

    def problems(self, point: Point) -> Iterator[Problem]:
        if not point.ascent.this_batch or point.ascent.share < 1:
            yield "between", "reuse splits both gradients of one batch: ascent=batch, fraction=1"

    @property
    def vectors(self) -> int:
        return 1  # the direction

    def ascends(self, step: int, state: State) -> bool:
        return super().ascends(step, state) or not state.of("look")

    def remember(self, work: Work, where: list[int], g_adv: list[Tensor], g: list[Tensor]) -> None:
        """v / l2(v) with v = g_adv - (<g_adv, g> / <g, g>) g."""
        import torch

        from sam_repro.methods.vector import axpy, dot, ratio, root, stretch

        kept = list(torch._foreach_clone(g_adv))
        for v, by in zip(self._vectors(kept), self._vectors(g), strict=True):
            axpy(v, -ratio(dot(v, by, work.lazy), dot(by, by, work.lazy)), by)
            stretch(v, ratio(1.0, root(dot(v, v, work.lazy))))
        work.state.tensors["look"] = {work.names[i]: v for i, v in zip(where, kept, strict=True)}

    def between(self, work: Work) -> None:
        from sam_repro.methods.vector import axpy, dot, root

        look = work.state.of("look")
        where = [i for i in work.with_gradient() if work.names[i] in look]
        kept = [look[work.names[i]] for i in where]
        for g, v in zip(self._vectors(work.gradients(where)), self._vectors(kept), strict=True):
            axpy(g, self.look * root(dot(g, g, work.lazy)), v)

    def _vectors(self, tensors: list[Tensor]) -> list[list[Tensor]]:
        return [tensors] if self.look_by == "whole" else [[tensor] for tensor in tensors]
