"""The current batch, or a part of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sam_repro.methods.ascents import Perturbing
from sam_repro.methods.option import SHARE, Problem, value

if TYPE_CHECKING:
    from sam_repro.methods.axes import Point


@dataclass(frozen=True)
class Batch(Perturbing):
    fraction: float = value(1.0, "of the batch, whose gradient the ascent takes", SHARE)
    keep: float = value(
        1.0, "share of the batch, the samples whose loss rose most, in the descent pass (ESAM's gamma)", SHARE
    )

    def problems(self, point: Point) -> Iterator[Problem]:
        if self.keep < 1 and self.fraction < 1:
            yield "keep", "compares the losses of one batch before and after: fraction=1"

    @property
    def share(self) -> float:
        return self.fraction

    @property
    def kept(self) -> float:
        return self.keep

    def passes(self, batch: int | None, train: int | None) -> float:
        return self.fraction
