"""LookSAM: between, g + look * l2(g) * v / l2(v), v the part of the last g_adv orthogonal to its g.

With every=1 it is the method without it, for there is no step between; v is taken all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.cadences import Cadence
from sam_repro.methods.option import NOT_NEGATIVE, Problem, value

if TYPE_CHECKING:
    from torch import Tensor

    from sam_repro.methods.axes import Point
    from sam_repro.methods.state import State
    from sam_repro.methods.work import Work


@dataclass(frozen=True)
class Reuse(Cadence):
    needs_first: ClassVar[bool] = True

    look: float = value(0.0, "how much of the kept direction is added", NOT_NEGATIVE)

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

        v = list(torch._foreach_clone(g_adv))
        axpy(v, -ratio(dot(g_adv, g, work.lazy), dot(g, g, work.lazy)), g)
        stretch(v, ratio(1.0, root(dot(v, v, work.lazy))))
        work.state.tensors["look"] = {work.names[i]: x for i, x in zip(where, v, strict=True)}

    def between(self, work: Work) -> None:
        from sam_repro.methods.vector import axpy, dot, root

        look = work.state.of("look")
        where = [i for i in work.with_gradient() if work.names[i] in look]
        g = work.gradients(where)
        axpy(g, self.look * root(dot(g, g, work.lazy)), [look[work.names[i]] for i in where])
