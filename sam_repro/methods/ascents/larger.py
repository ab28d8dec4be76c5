"""A batch of `ascent_batch` samples that holds the current one (F-SAM figure A1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.ascents import Data, Perturbing
from sam_repro.methods.option import COUNT, Problem, value

if TYPE_CHECKING:
    from sam_repro.methods.axes import Point


@dataclass(frozen=True)
class Larger(Perturbing):
    data: ClassVar[Data] = "larger"

    ascent_batch: int | None = value(None, "samples of the larger batch", COUNT)

    def problems(self, point: Point) -> Iterator[Problem]:
        if self.ascent_batch is None:
            yield "ascent_batch", "must be said with ascent=larger: the samples of that batch"

    def passes(self, batch: int | None, train: int | None) -> float:
        return self.ascent_batch / batch if self.ascent_batch and batch else float("nan")
