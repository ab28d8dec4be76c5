"""Where a step takes its first gradient: at w, or at w + d0."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.option import NOT_NEGATIVE, Option, Problem, value

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from sam_repro.methods.axes import Point
    from sam_repro.methods.leaves import Leaf
    from sam_repro.methods.moment import Moment


@dataclass(frozen=True)
class Start(Option):
    axis: ClassVar[str] = "start"
    default: ClassVar[str] = "none"
    noisy: ClassVar[bool] = False

    def size(self, at: Moment | None) -> float:
        """How large the noise is at this moment; 0 draws none."""
        return 0.0

    def noise(self, leaves: list[Leaf], size: float, draw: torch.Generator) -> list[Tensor]:
        """d0 for these parameters."""
        raise NotImplementedError


@dataclass(frozen=True)
class Noise(Start):
    """What all noise has in common.

    gamma may follow a cosine ramp, gamma_t = gamma + (gamma_end - gamma) (1 - cos(pi t / T)) / 2 over the run.
    """

    noisy: ClassVar[bool] = True

    gamma: float = value(
        0.0, "standard deviation of the noise; with kernel_noise, relative to the norm of its kernel", NOT_NEGATIVE
    )
    gamma_end: float | None = value(None, "cosine ramp from gamma to here over the run; null: constant", NOT_NEGATIVE)

    def problems(self, point: Point) -> Iterator[Problem]:
        if not (self.gamma > 0 or self.gamma_end) and not point.direction.adds_noise:
            yield "gamma", f"must be > 0 with start={self.name}"

    @property
    def vectors(self) -> int:
        return 1  # d0, or w + d0

    def size(self, at: Moment | None) -> float:
        if self.gamma_end is None:
            return self.gamma
        if at is None:
            raise ValueError("gamma_end needs estimate(..., at=Moment(progress=...))")
        return self.gamma + (self.gamma_end - self.gamma) * (1 - math.cos(math.pi * at.progress)) / 2

    def deviation(self, leaf: Leaf, size: float) -> Tensor | float:
        """Of the noise on this parameter, in a shape that broadcasts."""
        raise NotImplementedError

    def noise(self, leaves: list[Leaf], size: float, draw: torch.Generator) -> list[Tensor]:
        """Drawn in fp32 and in logical order, so that neither precision nor memory format changes the numbers."""
        import torch

        noise = []
        for leaf in leaves:
            w = leaf.tensor.detach()
            z = torch.randn(w.shape, generator=draw, device=w.device)
            noise.append(torch.empty_like(w).copy_(z).mul_(self.deviation(leaf, size)))
        return noise
