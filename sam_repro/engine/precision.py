"""Mixed precision: a forward pass under autocast and, for fp16, the scale of its loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from sam_repro.config.schema import Precision, RuntimeConfig

DTYPES = {Precision.bf16: torch.bfloat16, Precision.fp16: torch.float16}


def forward(model: Callable[..., Tensor], inputs: Sequence[Tensor], runtime: RuntimeConfig) -> Tensor:
    """The model's output, computed in the run's precision and memory format, in single precision at least."""
    order = torch.channels_last if runtime.channels_last else torch.contiguous_format
    inputs = [x.contiguous(memory_format=order) if x.ndim == 4 else x for x in inputs]
    kind = inputs[0].device.type
    with torch.autocast(kind, DTYPES.get(runtime.precision), enabled=runtime.precision in DTYPES):
        output = model(*inputs)
    return output.to(torch.promote_types(output.dtype, torch.float32))


class LossScale:
    """The dynamic loss scale of fp16 training: halved after an overflow, doubled after `patience` good steps.

    Unlike torch's GradScaler it may unscale several passes of one step, and it says at once whether one overflowed.
    """

    def __init__(self, enabled: bool, scale: float = 2.0**16, patience: int = 2000) -> None:
        self.enabled, self.scale, self.patience = enabled, scale if enabled else 1.0, patience
        self.good_steps = 0

    def unscale_(self, gradients: Sequence[Tensor]) -> None:
        if self.enabled and gradients:
            torch._foreach_mul_(list(gradients), 1.0 / self.scale)

    def overflowed(self, gradients: Sequence[Tensor]) -> Tensor | bool:
        """Whether one of them is not finite; of tensors, on their device."""
        if not self.enabled or not gradients:
            return False
        # A sum of finite numbers could overflow, a largest absolute value can't; NaN and inf come through it.
        largest = torch.stack(torch._foreach_norm(list(gradients), float("inf")))
        return ~torch.isfinite(largest).all()

    def update(self, overflowed: bool) -> None:
        if not self.enabled:
            return
        self.good_steps = 0 if overflowed else self.good_steps + 1
        if overflowed:
            self.scale = max(1.0, self.scale / 2)
        elif self.good_steps >= self.patience:
            self.scale, self.good_steps = self.scale * 2, 0

    def state_dict(self) -> dict[str, Any]:
        return {"scale": self.scale, "good_steps": self.good_steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        scale, good_steps = float(state["scale"]), int(state["good_steps"])
        if not 0 < scale < math.inf or good_steps < 0:
            raise ValueError(f"a loss scale of {scale:g} after {good_steps} good steps")
        self.scale, self.good_steps = scale, good_steps
