"""Kernel-wise Gaussian noise (R-SAM section 3.2, LPF-SGD).

d0 ~ N(0, (gamma * l2(w_j))^2) on the weights w_j of the j-th output channel (kernels.py); a 1-D tensor is one kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.option import choice
from sam_repro.methods.starts import Noise

if TYPE_CHECKING:
    from torch import Tensor

    from sam_repro.methods.leaves import Leaf


@dataclass(frozen=True)
class KernelNoise(Noise):
    by_kernel: ClassVar[bool] = True

    noise_scale: str = choice(
        ("filter", "sqrt_filter"),
        "filter: gamma times l2 of the output channel is the deviation; "
        "sqrt_filter: R-SAM's algorithm 1 read literally, gamma^2 times l2 is the variance",
    )

    def deviation(self, leaf: Leaf, size: float) -> Tensor:
        from sam_repro.methods.kernels import kernels

        norm = kernels(leaf).norms(leaf.tensor.detach())
        return size * (norm.sqrt() if self.noise_scale == "sqrt_filter" else norm)
