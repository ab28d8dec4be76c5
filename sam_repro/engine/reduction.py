"""The one place where a pass's gradients are summed over the ranks: in buckets that leave during its backward pass.

A bucket goes out as soon as the backward pass of the last micro-batch has left all of its gradients, while those of
earlier layers are still computed. Buckets are fixed, and every rank sends them in one order, whichever of its
parameters got a gradient. The last one, of the first layers, whose gradients end the backward pass, waits for the
pass's numbers (loss, right predictions, requests) and carries them. Small models have that one alone, as have passes
that `method.m` leaves on their rank: the step sums after the descent.

The buffers are those of one flat all-reduce, cut in pieces, and are gone after the sum. Gradients are not views of
them, as in torch's DistributedDataParallel, for methods exchange the memory of gradients and weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from torch import Tensor, nn

from sam_repro.engine.ranks import Ranks, Sum

# A bucket has a megabyte at least, below which a collective's fixed delay is what it costs, and a pass some 16 at most.
LEAST, MOST = 1 << 18, 16


class Reduction:
    def __init__(self, ranks: Ranks, parameters: Sequence[nn.Parameter], every_pass: bool) -> None:
        """every_pass: whether the gradients of every pass are summed, so that they may leave before it ends."""
        self.ranks = ranks
        self.early: list[list[nn.Parameter]] = []
        self.last = list(parameters)
        self.missing: list[set[nn.Parameter]] = []  # of each early bucket, while they may leave
        self.on_their_way: list[Sum] = []
        if every_pass and ranks.world > 1 and ranks.overlaps:
            *self.early, self.last = buckets(parameters)
        for i, bucket in enumerate(self.early):
            for p in bucket:
                p.register_post_accumulate_grad_hook(partial(self._ready, i))  # type: ignore[no-untyped-call]

    def let_leave(self) -> None:
        """The backward pass that follows is the last before the sum."""
        self.missing = [set(bucket) for bucket in self.early]

    def _ready(self, i: int, p: nn.Parameter) -> None:
        if not self.missing:
            return
        if p not in self.missing[i]:
            raise RuntimeError("a gradient came in two parts of one backward pass: see use_reentrant of checkpointing")
        self.missing[i].remove(p)
        while len(self.on_their_way) < len(self.early) and not self.missing[len(self.on_their_way)]:
            self._send()

    def _send(self) -> None:
        bucket = self.early[len(self.on_their_way)]
        self.on_their_way.append(self.ranks.start_sum(gradients(bucket)))

    def sum_(self, beside: Sequence[Tensor]) -> None:
        """Replace every gradient, and the numbers beside them, by its sum over the ranks. All ranks have the same."""
        while len(self.on_their_way) < len(self.early):
            self._send()
        self.ranks.sum_([*gradients(self.last), *beside])
        for sum_ in self.on_their_way:
            sum_.arrive()
        self.on_their_way, self.missing = [], []


def gradients(parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    return [p.grad for p in parameters if p.grad is not None]


def buckets(parameters: Sequence[nn.Parameter]) -> list[list[nn.Parameter]]:
    """From the last layer to the first, about the order in which their gradients come."""
    total = sum(p.numel() for p in parameters)
    least = max(LEAST, total // MOST)
    found: list[list[nn.Parameter]] = [[]]
    for p in reversed(parameters):
        if total >= 2 * least and sum(q.numel() for q in found[-1]) >= least:
            found.append([])
        found[-1].append(p)
    return found
