"""The ascent direction d from the ascent gradient g, in place: on return `g` holds d.

Each function gets the tensors that are worked on together (in cache, or all of them) and its helper beside them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from sam_repro.methods.spec import Direction, EmaOrder, Spec
from sam_repro.methods.vector import Scalar, Tensors, axpy

Columns = list[Tensors]
Rule = Callable[[Spec, Tensors, Columns, Scalar], None]


def gradient(spec: Spec, g: Tensors, aids: Columns, coefficient: Scalar) -> None:
    """SAM: d = g."""


def minus_ema(spec: Spec, g: Tensors, aids: Columns, coefficient: Scalar) -> None:
    """F-SAM: m_t = lambda m_{t-1} + (1 - lambda) g_t, d = g_t - sigma m_t. The released code subtracts m_{t-1}."""
    (m,) = aids
    if spec.ema_order is EmaOrder.update_first:
        torch._foreach_lerp_(m, g, 1 - spec.ema_decay)
        axpy(g, -spec.sigma, m)
    else:
        before = torch._foreach_mul(m, spec.sigma)
        torch._foreach_lerp_(m, g, 1 - spec.ema_decay)
        torch._foreach_sub_(g, before)


def minus_shared_ema(spec: Spec, g: Tensors, aids: Columns, coefficient: Scalar) -> None:
    """F-SAM with one average for all shards: it moves at the end of the step, from the sum of their gradients."""
    m, total = aids
    torch._foreach_add_(total, g)
    axpy(g, -spec.sigma, m)


def residual(spec: Spec, g: Tensors, aids: Columns, coefficient: Scalar) -> None:
    """SAM-noise (F-SAM A5.1): d = g - (<g, full> / <full, full>) full; the coefficient is that quotient."""
    (full,) = aids
    axpy(g, -coefficient, full)


def noise_plus_gradient(spec: Spec, g: Tensors, aids: Columns, coefficient: Scalar) -> None:
    """R-SAM eq. 7: d = d0 + lambda g(w + d0)."""
    torch._foreach_mul_(g, spec.mix)
    for noise in aids:  # none where gamma is 0
        torch._foreach_add_(g, noise)


DIRECTIONS: dict[Direction, Rule] = {
    Direction.gradient: gradient,
    Direction.minus_ema: minus_ema,
    Direction.residual: residual,
    Direction.noise_plus_gradient: noise_plus_gradient,
}
