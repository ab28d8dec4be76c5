"""No perturbation: the base optimizer alone, or the mean of gradients over noise (LPF-SGD)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.ascents import Ascent
from sam_repro.methods.option import COUNT, Problem, value

if TYPE_CHECKING:
    from sam_repro.methods.axes import Point


@dataclass(frozen=True)
class NoAscent(Ascent):
    ascends: ClassVar[bool] = False

    draws: int = value(1, "gradients averaged over that many draws of the noise (LPF-SGD's M)", COUNT)
    split: bool = value(True, "each draw takes a part of the batch, one pass in all; false: each takes all of it")

    def problems(self, point: Point) -> Iterator[Problem]:
        if self.draws > 1 and not point.start.noisy:
            yield "draws", "averages over noise: set method.start=kernel_noise"
        if self.draws == 1 and not self.split:
            yield "split", "goes with method.draws above 1"

    @property
    def parts(self) -> int:
        return self.draws if self.split else 1

    def passes(self, batch: int | None, train: int | None) -> float:
        return self.draws / self.parts

    @property
    def vectors(self) -> int:
        return int(self.draws > 1)  # the sum
