"""F-SAM (supplement eq. 51): d = g_t - sigma m_t, m_t = lambda m_{t-1} + (1 - lambda) g_t, with lambda in ema_decay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.directions import Direction, Equation
from sam_repro.methods.option import BELOW_ONE, UP_TO_ONE, Problem, choice, value

if TYPE_CHECKING:
    from torch import Tensor

    from sam_repro.methods.axes import Point
    from sam_repro.methods.state import State
    from sam_repro.methods.work import Work


@dataclass(frozen=True)
class MinusEma(Direction):
    """m is kept per shard, or with ema_shared once for all shards: then it moves at the end of the step."""

    copied: ClassVar[tuple[str, ...]] = ("ema",)

    sigma: float = value(1.0, "how much of the average is subtracted", UP_TO_ONE)
    ema_decay: float = value(0.6, "the papers' lambda", BELOW_ONE)
    ema_order: str = choice(
        ("update_first", "subtract_first"),
        "update_first: the paper, the average takes g before it is subtracted; subtract_first: the released code",
    )
    ema_start: str = choice(
        ("zero", "first"), "zero: m_0 = 0; first: m_1 = g_1, and the first step is a plain SAM step"
    )
    ema_shared: bool = value(False, "with m set: one average for all shards instead of one a shard")

    def problems(self, point: Point) -> Iterator[Problem]:
        if self.ema_shared and point.sharding.m is None:
            yield "ema_shared", "goes with m set: without m there is one average anyway"
        if self.ema_shared and self.ema_order == "update_first":
            yield (
                "ema_shared",
                ("needs ema_order=subtract_first: this step's average is known only after every shard's pass"),
            )

    @property
    def vectors(self) -> int:
        return 1

    def prepare(self, work: Work) -> tuple[Equation, list[list[Tensor]]]:
        return self.bend, [self._beside(work, work.names[i], g) for i, g in zip(work.where, work.g, strict=True)]

    def _beside(self, work: Work, name: str, g: Tensor) -> list[Tensor]:
        """m, and the sum of this step's gradients where all shards share one m; nothing on a first gradient that m
        starts from."""
        import torch

        ema = (work.shared if self.ema_shared else work.state).of("ema")
        total = [work.sum_over_shards(name, g)] if self.ema_shared else []
        if name in ema:
            return [ema[name], *total]
        if self.ema_start == "zero":
            ema[name] = torch.zeros_like(g)
            return [ema[name], *total]
        if total:
            total[0].add_(g)
        else:
            ema[name] = g.clone()
        return []

    def bend(self, d: list[Tensor], beside: list[list[Tensor]]) -> None:
        import torch

        from sam_repro.methods.vector import axpy

        if not beside:
            return
        m, *total = beside
        if total:
            torch._foreach_add_(total[0], d)
            axpy(d, -self.sigma, m)
        elif self.ema_order == "update_first":
            torch._foreach_lerp_(m, d, 1 - self.ema_decay)
            axpy(d, -self.sigma, m)
        else:
            before = torch._foreach_mul(m, self.sigma)
            torch._foreach_lerp_(m, d, 1 - self.ema_decay)
            torch._foreach_sub_(d, before)

    def absorb(self, shared: State, mean: dict[str, Tensor]) -> None:
        ema = shared.of("ema")
        for name, g in mean.items():
            if name in ema:
                ema[name].lerp_(g, 1 - self.ema_decay)
            else:
                ema[name] = g
