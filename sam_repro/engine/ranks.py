"""The processes of one run and what they say to each other.

Gradients are averaged by one explicit all-reduce of one flat buffer after a method has computed its final gradient, not
by hooks inside the backward pass: half of a sharpness-aware step's passes must *not* synchronise, some methods change
the gradient after their last pass, and a step of m-sharpness computes several final gradients on one rank. A few
scalars (loss, right predictions, requests) ride along. So a step of m-sharpness costs one all-reduce, as SGD's does,
and one whose perturbation is the whole batch's one a pass. A pass over the whole training set is shared and costs one
too, fp16 one of a single number for each pass that is not averaged, and F-SAM's shared average one a step.
"""

from __future__ import annotations

import functools
import gc
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from sam_repro.config.schema import Device, RuntimeConfig
from sam_repro.errors import UserError

# Generous enough for a full-gradient pass or a slow evaluation on one rank.
PATIENCE = timedelta(minutes=30)


@dataclass
class Ranks:
    rank: int
    world: int
    device: torch.device
    collectives: int = 0  # tests and logs count them

    @classmethod
    def join(cls, runtime: RuntimeConfig) -> Ranks:
        """Of the environment that torchrun sets, or alone."""
        rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        local = int(os.environ.get("LOCAL_RANK", 0))
        ranks = cls(rank, world, device_of(runtime, local))
        if "RANK" in os.environ and world > 1 and not dist.is_initialized():
            cuda = ranks.device.type == "cuda"
            dist.init_process_group(
                "nccl" if cuda else "gloo", timeout=PATIENCE, device_id=ranks.device if cuda else None
            )
        return ranks

    @property
    def main(self) -> bool:
        return self.rank == 0

    def sum_(self, tensors: Sequence[Tensor]) -> None:
        """Replace every tensor by its sum over the ranks: one collective on one flat fp32 (or fp64) buffer.

        Each lies there in its own order of memory, for channels-last gradients would cost a copy more in another.
        """
        if self.world == 1:
            return
        tensors = [t.detach() for t in tensors]
        dtype = functools.reduce(torch.promote_types, (t.dtype for t in tensors))
        sizes = [t.numel() for t in tensors]
        flat = torch.empty(sum(sizes), dtype=dtype, device=self.device)
        parts = [like(t, part) for t, part in zip(tensors, torch.split(flat, sizes), strict=True)]
        torch._foreach_copy_(parts, tensors)
        dist.all_reduce(flat)
        self.collectives += 1
        torch._foreach_copy_(tensors, parts)

    def any(self, flag: Tensor | bool) -> bool:
        """Whether it is true on any rank. Waits for the device once."""
        if self.world > 1:
            value = flag.float() if isinstance(flag, Tensor) else torch.full((), float(flag), device=self.device)
            dist.all_reduce(value, op=dist.ReduceOp.MAX)
            self.collectives += 1
            flag = value
        return bool(flag)

    def share(self, thing: Any) -> Any:
        """Rank 0's value, on every rank."""
        box = [thing]
        if self.world > 1:
            dist.broadcast_object_list(box, src=0, device=self.device)
        return box[0]

    def gather(self, thing: Any) -> list[Any]:
        """Every rank's value, on every rank."""
        if self.world == 1:
            return [thing]
        box: list[Any] = [None] * self.world
        dist.all_gather_object(box, thing)
        return box

    def barrier(self) -> None:
        if self.world > 1:
            dist.barrier()

    def abandon(self) -> None:
        """Leave without the others, who may be anywhere; they end when this process has."""
        if dist.is_initialized():
            dist.destroy_process_group()

    def leave(self) -> None:
        """Without the collection first, half of all two-rank runs abort at exit."""
        if dist.is_initialized():
            gc.collect()
            dist.barrier()
            dist.destroy_process_group()


def like(t: Tensor, part: Tensor) -> Tensor:
    """The flat `part` in the form of t, and in its order of memory where that is channels-last."""
    if t.dim() == 4 and t.is_contiguous(memory_format=torch.channels_last):
        return part.as_strided(t.shape, t.stride())
    return part.view(t.shape)


def device_of(runtime: RuntimeConfig, local_rank: int) -> torch.device:
    available = torch.cuda.is_available()
    if runtime.device is Device.cuda and not available:
        raise UserError("runtime.device=cuda, but torch sees no CUDA device here: use runtime.device=cpu or auto")
    if runtime.device is Device.cpu or not available:
        return torch.device("cpu")
    if int(os.environ.get("LOCAL_WORLD_SIZE", 1)) > torch.cuda.device_count():
        seen = torch.cuda.device_count()
        raise UserError(f"runtime.ranks asks for more GPUs than the {seen} that torch sees: lower it")
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    return device
