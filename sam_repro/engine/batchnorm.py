"""Which passes of a step move the running statistics of batch normalisation, and how shards and ranks agree on them.

A sharpness-aware step runs several forward passes, most at perturbed weights. By default the statistics come from the
step's first pass over the batch. Whatever pass it is, it normalises by its own batch: a pass that must not count runs
with `track_running_stats` off, which reads and writes no buffer (zeroing `momentum` instead would still count the batch
and, done twice, freeze the statistics for ever).

One step makes one update: where a step has several forward passes side by side (micro-batches, shards), each starts
from the same statistics and the results are averaged. The update is linear, so the average over ranks may wait for the
next evaluation and is the same as if one process had held all shards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from sam_repro.config.schema import BatchNorm
from sam_repro.engine.ranks import Ranks


class RunningStatistics:
    def __init__(self, model: nn.Module, policy: BatchNorm) -> None:
        self.policy = policy
        self.layers = [m for m in model.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
        self.averages: list[Tensor] = [b for m in self.layers for b in (m.running_mean, m.running_var) if b is not None]
        self.counts: list[Tensor] = [m.num_batches_tracked for m in self.layers if m.num_batches_tracked is not None]
        self.passes = 0

    def begin_shard(self) -> None:
        """The next pass is the first of a shard's."""
        self.passes = 0
        self.start = self.copy() if self.policy is BatchNorm.last else []

    @contextmanager
    def during(self, counts: bool, goes_on: bool = False) -> Iterator[bool]:
        """A pass; whether it moves the statistics. `counts`: it is over a batch, not over the whole training set.

        goes_on: it is over another part of the last one's batch, and moves them if that did.
        """
        self.passes += counts and not goes_on
        moves = counts and (self.policy is not BatchNorm.first or self.passes == 1)
        if moves and self.policy is BatchNorm.last and not goes_on:
            self.restore(self.start)
        if not moves:
            for layer in self.layers:
                layer.track_running_stats = False
        try:
            yield moves
        finally:
            for layer in self.layers:
                layer.track_running_stats = True

    def side_by_side(self, count: int) -> SideBySide:
        return SideBySide(self, count)

    def average_over(self, ranks: Ranks) -> None:
        if self.averages and ranks.world > 1:
            torch._foreach_div_(self.averages, ranks.world)
            ranks.sum_(self.averages)

    def copy(self) -> list[Tensor]:
        return [*cloned(self.averages), *cloned(self.counts)]

    def restore(self, saved: Sequence[Tensor]) -> None:
        """One call each for the averages and the counts, which are of another type."""
        size = len(self.averages)
        for own, old in ((self.averages, saved[:size]), (self.counts, saved[size:])):
            if own:
                torch._foreach_copy_(own, list(old))


class SideBySide:
    """The update of `count` forward passes that all start from the same statistics: their mean, counted once."""

    def __init__(self, statistics: RunningStatistics, count: int) -> None:
        self.statistics, self.count = statistics, count
        self.start = statistics.copy() if count > 1 else []
        self.total: list[Tensor] = []

    def one_done(self) -> None:
        if self.count == 1 or not self.statistics.averages:
            return
        now = self.statistics.averages
        if not self.total:
            self.total = cloned(now)
        else:
            torch._foreach_add_(self.total, now)
        self.counts = cloned(self.statistics.counts)
        self.statistics.restore(self.start)

    def all_done(self) -> None:
        if self.total:
            torch._foreach_div_(self.total, self.count)
            self.statistics.restore([*self.total, *self.counts])


def cloned(tensors: Sequence[Tensor]) -> list[Tensor]:
    return list(torch._foreach_clone(list(tensors))) if tensors else []
