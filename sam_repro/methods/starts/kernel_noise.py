"""Kernel-wise Gaussian noise (R-SAM section 3.2, LPF-SGD).

    d0 ~ N(0, (gamma * l2(w_j))^2) on the j-th output channel; a 1-D tensor is one kernel.

gamma may follow a cosine ramp, gamma_t = gamma + (gamma_end - gamma) (1 - cos(pi t / T)) / 2 over the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.option import NOT_NEGATIVE, Problem, choice, value
from sam_repro.methods.starts import Start

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from sam_repro.methods.axes import Point
    from sam_repro.methods.moment import Moment


@dataclass(frozen=True)
class KernelNoise(Start):
    noisy: ClassVar[bool] = True

    gamma: float = value(0.0, "standard deviation of the noise, relative to the norm of its kernel", NOT_NEGATIVE)
    gamma_end: float | None = value(None, "cosine ramp from gamma to here over the run; null: constant", NOT_NEGATIVE)
    noise_scale: str = choice(
        ("filter", "sqrt_filter"),
        "filter: gamma times l2 of the output channel is the deviation; "
        "sqrt_filter: R-SAM's algorithm 1 read literally, gamma^2 times l2 is the variance",
    )

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

    def noise(self, weights: list[Tensor], size: float, draw: torch.Generator) -> list[Tensor]:
        """Drawn in fp32 and in logical order, so that neither precision nor memory format changes the numbers."""
        import torch

        from sam_repro.methods.kernels import kernel_norms

        noise = []
        for w in weights:
            norm = kernel_norms(w)
            deviation = size * (norm.sqrt() if self.noise_scale == "sqrt_filter" else norm)
            z = torch.randn(w.shape, generator=draw, device=w.device)
            noise.append(torch.empty_like(w).copy_(z).mul_(deviation))
        return noise
