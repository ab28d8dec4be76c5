"""The operator T of the ball that the perturbation stays in: eps = rho T^2 d / l2(T d), or rho T sign(d) for p = inf.

ASAM section 3 (element-wise and filter-wise, eq. 5), FisherSAM (F-SAM supplement A4). Each function gives the diagonal
of T for the tensors that are worked on together; the parameters that are not normalised have T = 1 and never come here.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from sam_repro.methods.spec import Geometry, Normalised, Spec
from sam_repro.methods.start import kernel_norms
from sam_repro.methods.vector import Tensors


def elementwise(w: Tensors, g: Tensors, eta: float) -> list[Tensor]:
    """T = abs(w) + eta."""
    t = list(torch._foreach_abs(w))
    if eta:
        torch._foreach_add_(t, eta)
    return t


def filterwise(w: Tensors, g: Tensors, eta: float) -> list[Tensor]:
    """T = l2(f) + eta on a convolution's filter f, abs(w) + eta on every weight that is in no filter (ASAM eq. 5)."""
    return [(kernel_norms(x) if x.dim() > 2 else x.abs()) + eta for x in w]


def fisher(w: Tensors, g: Tensors, eta: float) -> list[Tensor]:
    """T = F^(-1/2) with F = 1 + eta g^2."""
    f = torch._foreach_mul(g, g)
    torch._foreach_mul_(f, eta)
    torch._foreach_add_(f, 1.0)
    torch._foreach_rsqrt_(f)
    return list(f)


GEOMETRIES: dict[Geometry, Callable[[Tensors, Tensors, float], list[Tensor]]] = {
    Geometry.elementwise: elementwise,
    Geometry.filterwise: filterwise,
    Geometry.fisher: fisher,
}


def is_normalised(spec: Spec, name: str) -> bool:
    """Whether T acts on this parameter. "weight" is in the name of a batch norm's scale, too, and in no bias's."""
    return spec.geometry is not Geometry.identity and (spec.normalise is Normalised.all or "weight" in name)
