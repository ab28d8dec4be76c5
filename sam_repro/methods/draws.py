"""Random numbers as a pure function of (seed, step, shard, purpose).

There is nothing to save in a checkpoint, shards and ranks draw independently, and tensors of one shape get different
numbers since one generator serves them in turn.
"""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor


def generator(device: torch.device, *key: object) -> torch.Generator:
    digest = hashlib.sha256("/".join(map(str, key)).encode()).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def kept(like: Tensor, share: float, draw: torch.Generator) -> Tensor:
    """ESAM's stochastic weight perturbation: a mask that keeps `share` of the elements, scaled by 1 / share."""
    z = torch.rand(like.shape, generator=draw, device=like.device)
    return torch.empty_like(like).copy_(z < share).div_(share)
