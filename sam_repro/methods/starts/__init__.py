"""Where a step takes its first gradient: at w, or at w + d0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sam_repro.methods.option import Option

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from sam_repro.methods.moment import Moment


@dataclass(frozen=True)
class Start(Option):
    axis: ClassVar[str] = "start"
    default: ClassVar[str] = "none"
    noisy: ClassVar[bool] = False

    def size(self, at: Moment | None) -> float:
        """How large the noise is at this moment; 0 draws none."""
        return 0.0

    def noise(self, weights: list[Tensor], size: float, draw: torch.Generator) -> list[Tensor]:
        """d0 for these weights."""
        raise NotImplementedError
