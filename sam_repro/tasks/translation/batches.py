"""Batches of sentences of like length, as a pure function of (seed, epoch).

Pairs are sorted by the source's length, cut into zones, sorted within a zone by the target's length and cut into
batches: both sides of a batch are then of nearly one length. Pairs of equal lengths, and the order of the batches, are
shuffled anew every epoch. So the batches of an epoch are known before it begins, and training goes on from any of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sam_repro.data.counter import Draw, key, permutation
from sam_repro.tasks.translation.bpe import EOS, PAD
from sam_repro.tasks.translation.corpus import Pairs, Side

Ids = np.ndarray


class Epochs:
    """The batches of every epoch: as many in each, of the same shapes.

    most: tokens a batch on either side, padding included. A pair that is longer is a batch of its own.
    """

    def __init__(self, pairs: Pairs, most: int, seed: int) -> None:
        self.seed = seed
        source, target = pairs.source.lengths, pairs.target.lengths
        longer = np.maximum(source, target)
        self._kind = source * (int(target.max()) + 1) + target  # equal for pairs of equal lengths
        self._by_kind = np.argsort(self._kind, kind="stable")
        # As many zones as a zone has batches, but for a factor: the fewer there are, the wider the range of source
        # lengths in each, and the more, the wider that of the target's in a batch.
        filled = np.cumsum(longer[self._by_kind])
        zone_tokens = most * max(1, round(float(np.sqrt(filled[-1] / most / 2))))
        self._batches: list[Ids] = []
        left = np.zeros(0, np.int64)  # what does not fill a batch of its zone goes into the next one's
        for zone in np.split(self._by_kind, np.flatnonzero(np.diff(filled // zone_tokens)) + 1):
            ids = np.concatenate([left, zone])
            ids = ids[np.argsort(target[ids], kind="stable")]
            *whole, left = _cut(ids, longer[ids], most)
            self._batches += whole
        self._batches.append(left)
        if len(self) > 1:
            # The very last is evened out with the one before: ranks and shards all want a part of it.
            halves = np.array_split(np.concatenate(self._batches[-2:]), 2)
            if max(len(half) * int(longer[half].max()) for half in halves) <= most:
                self._batches[-2:] = halves

    def __len__(self) -> int:
        """Batches an epoch."""
        return len(self._batches)

    def __call__(self, epoch: int) -> list[Ids]:
        """The epoch's batches in order: ids of pairs, each pair once; shuffled, so that parts of a batch are alike."""
        order = permutation(len(self._kind), key(self.seed, epoch, Draw.order)).numpy()
        instead = np.empty_like(order)
        instead[self._by_kind] = order[np.argsort(self._kind[order], kind="stable")]
        turns = permutation(len(self), key(self.seed, epoch, Draw.order, 1)).tolist()
        batches = [instead[self._batches[i]] for i in turns]
        return [b[permutation(len(b), key(self.seed, epoch, Draw.order, 2, i)).numpy()] for i, b in enumerate(batches)]


def in_order(lengths: Ids, most: int) -> list[Ids]:
    """Batches of sentences of like length, longest first, for what is not trained on."""
    order = np.argsort(-lengths, kind="stable")
    return _cut(order, lengths[order], most)


def _cut(order: Ids, lengths: Ids, most: int) -> list[Ids]:
    """Neighbours while their number times the longest of them stays within `most`."""
    found, first, longest = [], 0, 0
    for i, length in enumerate(lengths.tolist()):
        longest = max(longest, length)
        if i > first and longest * (i + 1 - first) > most:
            found.append(order[first:i])
            first, longest = i, length
    return [*found, order[first:]] if len(order) else found


@dataclass(frozen=True)
class Block:
    """Sentences side by side, as numpy arrays: the shape that the model takes."""

    source: Ids  # int64 [n, s], each row with its EOS, then PAD
    target_in: Ids  # int64 [n, t]: EOS, then the target without its last
    target_out: Ids  # int64 [n, t]: the target with its EOS, then PAD

    @property
    def tokens(self) -> int:
        """Of the target, ends of sentences included: what the loss is a mean over."""
        return int((self.target_out != PAD).sum())

    @property
    def padding(self) -> float:
        """The share of both sides that is padding."""
        return float(np.mean(np.concatenate([self.source.ravel(), self.target_out.ravel()]) == PAD))


def block(pairs: Pairs, ids: Ids) -> Block:
    target = padded(pairs.target, ids)
    first = np.full((len(ids), 1), EOS, np.int64)
    shifted = np.concatenate([first, target[:, :-1]], axis=1)
    shifted[target == PAD] = PAD
    return Block(padded(pairs.source, ids), shifted, target)


def padded(side: Side, ids: Ids) -> Ids:
    """int64 [n, longest]: the sentences one below the other, filled up with PAD."""
    lengths = side.lengths[ids] if len(ids) else np.zeros(0, np.int64)
    width = int(lengths.max()) if len(ids) else 0
    columns = np.arange(width)
    inside = columns < lengths[:, None]
    rows = np.full((len(ids), width), PAD, np.int64)
    places = side.starts[ids][:, None] + columns
    rows[inside] = side.ids[places[inside]]
    return rows
