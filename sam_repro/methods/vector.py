"""A list of tensors as one vector, in two arithmetics with the same formulas.

On a CPU (`lazy=False`) scalars are Python floats: reading one costs nothing there, and a scalar fits into a fused
`add(..., alpha=...)`. On an accelerator (`lazy=True`) they stay 0-dim tensors, so that the host never waits.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

Tensors = list[Tensor]
Scalar = float | Tensor


def flat(t: Tensor) -> Tensor | None:
    """A one-dimensional view of a dense tensor in memory order, None where there is no such view."""
    if t.is_contiguous():
        return t.view(-1)
    if t.dim() == 4 and t.is_contiguous(memory_format=torch.channels_last):
        return t.permute(0, 2, 3, 1).reshape(-1)
    return None


def dot(a: Tensors, b: Tensors, lazy: bool) -> Scalar:
    """<a, b>. `torch.dot` runs on all threads, `vector_norm` on one."""
    return total(dots(a, b, lazy), lazy)


def dots(a: Tensors, b: Tensors, lazy: bool) -> Tensors:
    """The parts of <a, b>, one a tensor. An accelerator takes the squares of all of them in one call."""
    if lazy and a and all(x is y for x, y in zip(a, b, strict=True)):
        dtype = torch.promote_types(a[0].dtype, torch.float32)
        return list(torch.stack(torch._foreach_norm(a, dtype=dtype)).square_().unbind())
    return [_dot(x, y) for x, y in zip(a, b, strict=True)]


def total(parts: Tensors, lazy: bool) -> Scalar:
    """On a CPU without rounding before the end: how the parts were grouped must not show."""
    if lazy:
        return torch.stack(parts).sum() if parts else 0.0
    values = [part.item() for part in parts]
    # fsum raises where infinities of both signs meet; a diverged run is no crash.
    return math.fsum(values) if all(map(math.isfinite, values)) else math.nan


def _dot(x: Tensor, y: Tensor) -> Tensor:
    if x.dtype in (torch.float16, torch.bfloat16):
        x, y = x.float(), x.float() if y is x else y.float()
    if y is x:
        one = flat(x)
        one = x.reshape(-1) if one is None else one
        return torch.dot(one, one)
    one, other = (flat(x), flat(y)) if x.stride() == y.stride() else (None, None)
    if one is None or other is None:
        one, other = x.reshape(-1), y.reshape(-1)
    return torch.dot(one, other)


def axpy(y: Tensors, a: Scalar, x: Tensors) -> None:
    """y += a x, in place."""
    if isinstance(a, Tensor):
        torch._foreach_add_(y, torch._foreach_mul(x, a))
    else:
        torch._foreach_add_(y, x, alpha=a)


def stretch(y: Tensors, a: Scalar) -> None:
    """y *= a, in place."""
    torch._foreach_mul_(y, a)


def root(a: Scalar) -> Scalar:
    return a.sqrt() if isinstance(a, Tensor) else math.sqrt(a) if a > 0 else a


def ratio(a: Scalar, b: Scalar) -> Scalar:
    """a / b, and 0 where b is 0: a zero gradient gives a zero perturbation and not NaN."""
    if isinstance(b, Tensor):
        return torch.where(b == 0, torch.zeros_like(b), a / b)
    return a / b if b != 0 else 0.0 * a
