"""How a batch is split: into shards, the samples that share a perturbation, and among the ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from sam_repro.data import Batch, TrainData
from sam_repro.engine.ranks import Ranks


@dataclass(frozen=True)
class Shard:
    """What this rank holds of the samples of one perturbation."""

    ids: Tensor
    batch: Batch
    index: int  # among the step's shards, over all ranks
    size: int  # samples of the shard over all ranks: more than `ids` where they share it
    epoch: int
    step: int


def split(ids: Tensor, m: int | None, ranks: Ranks) -> list[tuple[int, int, Tensor]]:
    """(index, size over all ranks, this rank's samples) of the shards of a batch that this rank works on.

    Without m the ranks share one shard; with m every shard is some rank's own.
    """
    if m is None:
        return [(0, len(ids), ids.tensor_split(ranks.world)[ranks.rank])]
    assert len(ids) % (m * ranks.world) == 0, "the rules see to it that every rank has as many shards"
    each = len(ids) // m // ranks.world
    return [(i, m, ids[i * m : (i + 1) * m]) for i in range(ranks.rank * each, (ranks.rank + 1) * each)]


def sharded(
    batches: Sequence[Tensor], m: int | None, ranks: Ranks, data: TrainData, epoch: int, step: int
) -> Iterator[list[Shard]]:
    """The shards of each batch in turn, the first of them that of `step`; fetched ahead where the data can."""
    splits = [split(ids, m, ranks) for ids in batches]
    fetched = data.stream([ids for shards in splits for _, _, ids in shards], epoch)
    for number, shards in enumerate(splits, start=step):
        yield [Shard(ids, next(fetched), index, size, epoch, number) for index, size, ids in shards]
