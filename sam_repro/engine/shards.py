"""How a batch is split: into shards, the examples that share a perturbation, and among the ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from sam_repro.engine.ranks import Ranks
from sam_repro.engine.task import Batch, TrainSet, weight


@dataclass(frozen=True)
class Share:
    """Which examples of one perturbation a rank holds."""

    index: int  # of the shard among the step's, over all ranks
    of_ranks: tuple[Tensor, ...]  # the ids of each rank that shares it
    place: int  # this rank's among them
    shards: int  # into which the step's batch is split, over all ranks

    @property
    def ids(self) -> Tensor:
        return self.of_ranks[self.place]


@dataclass(frozen=True)
class Shard:
    """What this rank holds of the examples of one perturbation."""

    share: Share
    batch: Batch
    weight: float  # of the shard's examples over all ranks that share it
    of_step: float  # and of all shards of the step
    epoch: int
    step: int

    @property
    def ids(self) -> Tensor:
        return self.share.ids

    @property
    def index(self) -> int:
        return self.share.index


def split(ids: Tensor, shards: int | None, ranks: Ranks) -> list[Share]:
    """The shards of a batch that this rank works on: one that the ranks share, or so many, each of them some rank's."""
    if shards is None:
        return [Share(0, ids.tensor_split(ranks.world), ranks.rank, 1)]
    assert shards % ranks.world == 0, "the rules see to it that every rank has as many shards"
    each, parts = shards // ranks.world, ids.tensor_split(shards)
    return [Share(i, (parts[i],), 0, shards) for i in range(ranks.rank * each, (ranks.rank + 1) * each)]


def sharded(
    batches: Sequence[Tensor], shards: int | None, ranks: Ranks, data: TrainSet, epoch: int, step: int
) -> Iterator[list[Shard]]:
    """The shards of each batch in turn, the first of them that of `step`; fetched ahead where the data can."""
    splits = [split(ids, shards, ranks) for ids in batches]
    fetched = data.gather_each([share.ids for shares in splits for share in shares], epoch)
    for number, (ids, shares) in enumerate(zip(batches, splits, strict=True), start=step):
        of_step = weight(data, ids)
        yield [
            Shard(share, next(fetched), sum(weight(data, part) for part in share.of_ranks), of_step, epoch, number)
            for share in shares
        ]
