"""GSAM: g_adv - alpha * (g - (<g, g_adv> / <g_adv, g_adv>) g_adv), the part of g orthogonal to g_adv subtracted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.descents import Descent
from sam_repro.methods.option import NOT_NEGATIVE, Problem, value

if TYPE_CHECKING:
    from torch import Tensor

    from sam_repro.methods.axes import Point


@dataclass(frozen=True)
class Gsam(Descent):
    needs_first: ClassVar[bool] = True

    alpha: float = value(0.0, "how much of the orthogonal part is subtracted", NOT_NEGATIVE)

    def problems(self, point: Point) -> Iterator[Problem]:
        if not point.ascent.this_batch:
            yield "descent", "gsam compares both gradients of one batch: ascent=batch"
        if point.ascent.share < 1:
            yield "fraction", "gsam compares both gradients of one batch: fraction=1"

    def combine(self, g_adv: list[Tensor], g: list[Tensor], lazy: bool) -> None:
        from sam_repro.methods.vector import axpy, dot, ratio, stretch

        along = ratio(dot(g, g_adv, lazy), dot(g_adv, g_adv, lazy))
        stretch(g_adv, 1 + self.alpha * along)
        axpy(g_adv, -self.alpha, g)
