"""Two ways to average other than the engine's, to measure it by: in buckets during the backward pass; not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from sam_repro.engine.ranks import Ranks, like


class Bucket:
    def __init__(self, parameters: list[Tensor]) -> None:
        self.parameters = parameters
        sizes = [p.numel() for p in parameters]
        self.flat = torch.empty(sum(sizes), device=parameters[0].device)
        self.parts = [like(p, part) for p, part in zip(parameters, torch.split(self.flat, sizes), strict=True)]
        self.missing = len(parameters)
        self.work: dist.Work | None = None

    def send(self) -> None:
        torch._foreach_copy_(self.parts, [p.grad for p in self.parameters if p.grad is not None])
        self.work = dist.all_reduce(self.flat, async_op=True)

    def receive(self) -> None:
        assert self.work is not None
        self.work.wait()
        torch._foreach_copy_([p.grad for p in self.parameters if p.grad is not None], self.parts)
        self.missing, self.work = len(self.parameters), None


class Overlapped(Ranks):
    """Each bucket of gradients goes out as soon as the backward pass has left them, all ranks in one order."""

    def watch(self, parameters: Sequence[Tensor], elements: int) -> None:
        self.buckets: list[Bucket] = []
        self.active, self.sent = False, 0
        held: list[Tensor] = []
        for p in reversed(parameters):  # about the order in which their gradients come
            held.append(p)
            if sum(q.numel() for q in held) >= elements or p is parameters[0]:
                self.buckets.append(Bucket(held))
                held = []
        for bucket in self.buckets:
            for p in bucket.parameters:
                p.register_post_accumulate_grad_hook(self._leaves(bucket))  # type: ignore[no-untyped-call]

    def _leaves(self, bucket: Bucket) -> Callable[[Tensor], None]:
        return lambda _: self._left(bucket)

    def _left(self, bucket: Bucket) -> None:
        bucket.missing -= self.active
        while self.active and self.sent < len(self.buckets) and not self.buckets[self.sent].missing:
            self.buckets[self.sent].send()
            self.sent += 1

    def sum_(self, tensors: Sequence[Tensor]) -> None:
        """The gradients are on their way; what is left of the tensors are the few numbers beside them."""
        count = sum(len(bucket.parameters) for bucket in self.buckets)
        for bucket in self.buckets[self.sent :]:
            bucket.send()
        super().sum_(tensors[count:])
        for bucket in self.buckets:
            bucket.receive()
        self.collectives += len(self.buckets)
        self.sent = 0


class Alone(Ranks):
    """Every rank keeps what it has: the time of a step without communication."""

    def sum_(self, tensors: Sequence[Tensor]) -> None:
        pass
