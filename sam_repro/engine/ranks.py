"""The processes of one run and what they say to each other.

A step of m-sharpness sums its final gradient, by one all-reduce of one flat buffer after the descent: its passes must
*not* synchronise, some methods change the gradient after the last of them, and one rank computes several. So it costs
what SGD does. Where the perturbation is the whole batch's every pass is summed, in buckets most of which leave during
its backward pass (reduction.py). A few scalars (loss, right predictions, requests) ride along. A pass over the whole
training set is shared and costs one sum too, fp16 one of a single number for each pass that is not averaged, and
F-SAM's shared average one a step.
"""

from __future__ import annotations

import functools
import gc
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from sam_repro.config.schema import Device, RuntimeConfig
from sam_repro.engine.company import MEETING, Company
from sam_repro.errors import Shared, UserError
from sam_repro.machine import granted_gpus

# Generous enough for a full-gradient pass or a slow evaluation on one rank.
PATIENCE = timedelta(minutes=30)
T = TypeVar("T")
_meetings = count()  # a process may train several runs, one after the other


class Sum:
    """On its way over the ranks: one collective on one flat fp32 (or fp64) buffer.

    Each tensor lies there in its own order of memory, for channels-last gradients would cost a copy more in another.
    """

    def __init__(self, tensors: Sequence[Tensor], device: torch.device) -> None:
        self.tensors = [t.detach() for t in tensors]
        dtype = functools.reduce(torch.promote_types, (t.dtype for t in self.tensors))
        sizes = [t.numel() for t in self.tensors]
        self.flat = torch.empty(sum(sizes), dtype=dtype, device=device)
        self.parts = [like(t, part) for t, part in zip(self.tensors, torch.split(self.flat, sizes), strict=True)]
        torch._foreach_copy_(self.parts, self.tensors)
        self.work: Any = dist.all_reduce(self.flat, async_op=True)

    def arrive(self) -> None:
        self.work.wait()
        torch._foreach_copy_(self.tensors, self.parts)


@dataclass
class Ranks:
    rank: int
    world: int
    device: torch.device
    collectives: int = 0  # tests and debug=profile count them
    bytes_reduced: int = 0  # of the buffers that they add up
    company: Company | None = None  # where there are others
    overlaps: bool = True  # gradients leave during the backward pass; benchmarks ask what that spares

    @classmethod
    def join(cls, runtime: RuntimeConfig) -> Ranks:
        """Of the environment that torchrun sets, or alone."""
        rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        local = int(os.environ.get("LOCAL_RANK", 0))
        if "RANK" not in os.environ or world == 1:
            return cls(rank, world, device_of(runtime, local))
        store, _, _ = next(rendezvous("env://", timeout=PATIENCE))
        store = PrefixStore(MEETING.format(next(_meetings)), store)
        device = agreed(store, rank, world, runtime, local)
        company = Company(store, rank, world)
        backend, on = ("nccl", device) if device.type == "cuda" else ("gloo", None)
        dist.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=PATIENCE, device_id=on)
        return cls(rank, world, device, company=company)

    @property
    def main(self) -> bool:
        return self.rank == 0

    def sum_(self, tensors: Sequence[Tensor]) -> None:
        """Replace every tensor by its sum over the ranks."""
        if self.world > 1:
            self.start_sum(tensors).arrive()

    def add_up(self, numbers: Sequence[float]) -> list[float]:
        """Each number's sum over the ranks, in fp64."""
        if self.world == 1:
            return list(numbers)
        sums = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        self.sum_([sums])
        return [float(one) for one in sums]

    def mine(self, things: Sequence[T]) -> Sequence[T]:
        """This rank's share of what all ranks have: each thing is on one rank. It may be empty."""
        return things[self.rank :: self.world]

    def start_sum(self, tensors: Sequence[Tensor]) -> Sum:
        """The same without waiting: they are replaced when it arrives. All ranks start their sums in one order."""
        started = Sum(tensors, self.device)
        self._count(started.flat)
        return started

    def _count(self, buffer: Tensor) -> None:
        self.collectives += 1
        self.bytes_reduced += buffer.nbytes

    def any(self, flag: Tensor | bool) -> bool:
        """Whether it is true on any rank. Waits for the device once."""
        if self.world > 1:
            value = flag.float() if isinstance(flag, Tensor) else torch.full((), float(flag), device=self.device)
            dist.all_reduce(value, op=dist.ReduceOp.MAX)
            self._count(value)
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

    def together(self, act: Callable[[], T]) -> T:
        """What each rank does by itself; a mistake of one, such as data that its machine has not, is told to all."""
        mistake, made = "", None
        try:
            made = act()
        except UserError as error:
            if self.world == 1:
                raise
            mistake = str(error)
        told = self.gather(mistake)
        if any(told):
            raise Shared(told[0] or next(f"rank {rank}: {text}" for rank, text in enumerate(told) if text))
        assert made is not None
        return made

    def barrier(self) -> None:
        if self.world > 1:
            dist.barrier()

    def leave(self) -> None:
        """Without the collection first, half of all two-rank runs abort at exit."""
        if dist.is_initialized():
            gc.collect()
            if self.company is not None:
                self.company.part()
            dist.barrier()
            if self.company is not None:
                self.company.dismiss()
            dist.destroy_process_group()


def like(t: Tensor, part: Tensor) -> Tensor:
    """The flat `part` in the form of t, and in its order of memory where that is channels-last."""
    if t.dim() == 4 and t.is_contiguous(memory_format=torch.channels_last):
        return part.as_strided(t.shape, t.stride())
    return part.view(t.shape)


def agreed(store: Any, rank: int, world: int, runtime: RuntimeConfig, local: int) -> torch.device:
    """This rank's device, once all have found theirs and they fit together: ranks of two backends would never meet."""
    device, mistake, gpu = torch.device("cpu"), "", ""
    try:
        device = device_of(runtime, local)
        gpu = str(torch.cuda.get_device_properties(device).uuid) if device.type == "cuda" else ""
    except UserError as error:
        mistake = str(error)
    store.set(f"here/{rank}", json.dumps([mistake, device.type, gpu]))
    found = [json.loads(store.get(f"here/{other}")) for other in range(world)]
    for other, (mistake, _, _) in enumerate(found):
        if mistake:
            raise Shared(f"rank {other}: {mistake}")
    types, known = [kind for _, kind, _ in found], dict[str, int]()
    if len(set(types)) > 1:
        raise Shared(
            f"rank {types.index('cpu')} sees no CUDA device and rank {types.index('cuda')} has one: mend the first "
            "one's machine, or say runtime.device=cpu"
        )
    for other, (_, _, gpu) in enumerate(found):
        if gpu and known.setdefault(gpu, other) != other:
            raise Shared(f"runtime.ranks asks for more GPUs than there are: ranks {known[gpu]} and {other} share one")
    return device


def device_of(runtime: RuntimeConfig, local_rank: int) -> torch.device:
    available = torch.cuda.is_available()
    if runtime.device is Device.cuda and not available:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        shown = "" if visible is None else f" (CUDA_VISIBLE_DEVICES={visible})"
        raise UserError(
            f"runtime.device=cuda, but torch sees no CUDA device here{shown}: use runtime.device=cpu or auto"
        )
    if runtime.device is Device.auto and not available and granted_gpus():
        raise UserError(
            "Slurm granted GPUs to this job, but torch sees none: leave this node out, or say runtime.device=cpu"
        )
    if runtime.device is Device.cpu or not available:
        return torch.device("cpu")
    seen = torch.cuda.device_count()
    if local_rank >= seen > 1:
        raise UserError(f"runtime.ranks asks for more GPUs than the {seen} that torch sees: lower it")
    # Slurm may show each of its tasks one GPU alone.
    device = torch.device("cuda", local_rank if seen > 1 else 0)
    torch.cuda.set_device(device)
    return device
