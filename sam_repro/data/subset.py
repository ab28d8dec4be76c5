"""Fixed, class-balanced parts of a data set. They depend on the labels alone, never on a run's seed."""

from __future__ import annotations

import torch
from torch import Tensor

from sam_repro.data.counter import Draw, hashes, key


def _rank_in_class(labels: Tensor, draw: Draw) -> Tensor:
    """For each sample its place in a random order of its own class."""
    ranks = torch.empty_like(labels)
    words = hashes(torch.arange(len(labels)), key(draw))
    for label in range(int(labels.max()) + 1):
        members = (labels == label).nonzero().flatten()
        ranks[members[words[members].argsort(stable=True)]] = torch.arange(len(members))
    return ranks


def balanced(labels: Tensor, n: int) -> Tensor:
    """n ids in ascending order, as many of each class as there are (differing by one where n is no multiple).

    A smaller subset is part of every larger one.
    """
    by_rank = _rank_in_class(labels, Draw.subset).argsort(stable=True)
    return by_rank[:n].sort().values


def split(labels: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """(rest, held out): the same share of each class is held out, ids in ascending order."""
    sizes = labels.bincount()[labels]
    held = _rank_in_class(labels, Draw.validation) < (sizes * share).round()
    return (~held).nonzero().flatten(), held.nonzero().flatten()
