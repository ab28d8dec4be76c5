"""What one kernel of a tensor is: the part whose length noise and filter-wise geometry are relative to."""

from __future__ import annotations

from torch import Tensor


def kernel_norms(w: Tensor) -> Tensor:
    """l2 of each output channel, in a shape that broadcasts over w; of the whole for 0-D and 1-D tensors."""
    if w.dim() < 2:
        whole: Tensor = w.norm()
        return whole
    rows: Tensor = w.flatten(1).norm(dim=1)
    return rows.view(-1, *[1] * (w.dim() - 1))
