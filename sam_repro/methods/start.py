"""Where a step starts: at w, or at w + d0 with kernel-wise Gaussian noise (R-SAM section 3.2, LPF-SGD).

    d0 ~ N(0, (gamma * l2(w_j))^2) on the j-th output channel; a 1-D tensor is one kernel.

Random numbers are a pure function of (seed, step, shard, purpose): there is nothing to save in a checkpoint, shards and
ranks draw independently, and tensors of one shape get different numbers since one generator serves them in turn.
"""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from sam_repro.methods.spec import NoiseScale
from sam_repro.methods.vector import Tensors


def generator(device: torch.device, *key: object) -> torch.Generator:
    digest = hashlib.sha256("/".join(map(str, key)).encode()).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def kernel_norms(w: Tensor) -> Tensor:
    """l2 of each output channel, in a shape that broadcasts over w; of the whole for 0-D and 1-D tensors."""
    if w.dim() < 2:
        whole: Tensor = w.norm()
        return whole
    rows: Tensor = w.flatten(1).norm(dim=1)
    return rows.view(-1, *[1] * (w.dim() - 1))


def kernel_noise(weights: Tensors, gamma: float, scale: NoiseScale, draw: torch.Generator) -> list[Tensor]:
    """d0, drawn in fp32 and in logical order, so that neither precision nor memory format changes the numbers."""
    noise = []
    for w in weights:
        norm = kernel_norms(w)
        deviation = gamma * (norm.sqrt() if scale is NoiseScale.sqrt_filter else norm)
        z = torch.randn(w.shape, generator=draw, device=w.device)
        noise.append(torch.empty_like(w).copy_(z).mul_(deviation))
    return noise


def kept(like: Tensor, share: float, draw: torch.Generator) -> Tensor:
    """ESAM's stochastic weight perturbation: a mask that keeps `share` of the elements, scaled by 1 / share."""
    z = torch.rand(like.shape, generator=draw, device=like.device)
    return torch.empty_like(like).copy_(z < share).div_(share)
