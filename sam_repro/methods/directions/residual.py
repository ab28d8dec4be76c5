"""SAM-noise (F-SAM A5.1): d = g - (<g, full> / <full, full>) full, over the whole parameter vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sam_repro.methods.directions import Direction, Equation
from sam_repro.methods.option import Problem

if TYPE_CHECKING:
    from torch import Tensor

    from sam_repro.methods.axes import Point
    from sam_repro.methods.work import Work


@dataclass(frozen=True)
class Residual(Direction):
    def problems(self, point: Point) -> Iterator[Problem]:
        if not point.ascent.this_batch:
            yield "ascent", "direction=residual subtracts the full gradient from the batch's: ascent=batch"

    def passes(self, batch: int | None, train: int | None, m: int | None) -> float:
        shards = batch / m if batch and m else 1.0  # each takes the full gradient anew
        return shards * train / batch if train and batch else float("nan")

    @property
    def vectors(self) -> int:
        return 1  # the full gradient

    def prepare(self, work: Work) -> tuple[Equation, list[list[Tensor]]]:
        import torch

        from sam_repro.methods.vector import axpy, dot, ratio

        full = work.another_gradient("full")
        beside = [full[i] if i in full else torch.zeros_like(g) for i, g in zip(work.where, work.g, strict=True)]
        everything = list(full.values())
        along = ratio(dot(work.g, beside, work.lazy), dot(everything, everything, work.lazy))

        def bend(d: list[Tensor], beside: list[list[Tensor]]) -> None:
            axpy(d, -along, beside[0])

        return bend, [[x] for x in beside]
