"""The final gradient from the gradient at w + eps. All of it over the whole parameter vector."""

from __future__ import annotations

import torch
from torch import Tensor

from sam_repro.methods.vector import Scalar, Tensors, axpy, dot, ratio, root, stretch


def gsam(g_adv: Tensors, g: Tensors, alpha: float, lazy: bool) -> None:
    """GSAM: g_adv - alpha * (g - (<g, g_adv> / <g_adv, g_adv>) g_adv), in place in g_adv."""
    along: Scalar = ratio(dot(g, g_adv, lazy), dot(g_adv, g_adv, lazy))
    stretch(g_adv, 1 + alpha * along)
    axpy(g_adv, -alpha, g)


def orthogonal_direction(g_adv: Tensors, g: Tensors, lazy: bool) -> list[Tensor]:
    """LookSAM: v / l2(v) with v = g_adv - (<g_adv, g> / <g, g>) g."""
    v = list(torch._foreach_clone(g_adv))
    axpy(v, -ratio(dot(g_adv, g, lazy), dot(g, g, lazy)), g)
    stretch(v, ratio(1.0, root(dot(v, v, lazy))))
    return v


def reuse(g: Tensors, v: Tensors, look: float, lazy: bool) -> None:
    """LookSAM's steps between: g + look * l2(g) * v / l2(v), in place; v has length one already."""
    axpy(g, look * root(dot(g, g, lazy)), v)
