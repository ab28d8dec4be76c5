"""What the rest of the project sees of data: a training set, an evaluation set, and batches of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from sam_repro.data.counter import Draw, key, permutation


@dataclass(frozen=True)
class Batch:
    images: Tensor  # float32 [n, 3, H, W], normalised, on the device
    targets: Tensor  # int64 [n], or float32 [n, classes] where targets are soft
    ids: Tensor  # int64 [n], on the device: which samples of the set these are

    def take(self, which: slice | Tensor) -> Self:
        return type(self)(self.images[which], self.targets[which], self.ids[which])


class TrainData(ABC):
    """A training set whose order and augmentation are pure functions of (seed, epoch, sample id). Each weighs one."""

    weights: Tensor | None = None

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.seed = seed
        self._other: tuple[int, Tensor] | None = None

    def order(self, epoch: int) -> Tensor:
        """The epoch's permutation of all ids, an int64 tensor on the CPU."""
        return permutation(self.size, key(self.seed, epoch, Draw.order))

    def steps(self, batch_size: int, drop_last: bool) -> int:
        return self.size // batch_size if drop_last else -(-self.size // batch_size)

    def batches(self, epoch: int, batch_size: int, drop_last: bool) -> list[Tensor]:
        """The epoch's order, in parts of `batch_size`; the last of them shorter, or left out."""
        order, steps = self.order(epoch), self.steps(batch_size, drop_last)
        return [order[i * batch_size : (i + 1) * batch_size] for i in range(steps)]

    def other(self, epoch: int, step: int, n: int) -> Tensor:
        """n ids of a random batch independent of the step's own: a slice of a second permutation of the epoch."""
        if self._other is None or self._other[0] != epoch:
            self._other = epoch, permutation(self.size, key(self.seed, epoch, Draw.other))
        return self._other[1][(step * n + torch.arange(n)) % self.size]

    @abstractmethod
    def gather(self, ids: Tensor, epoch: int) -> Batch:
        """The samples `ids`, augmented and normalised, on the device."""

    def gather_each(self, batches: Iterable[Tensor], epoch: int) -> Iterator[Batch]:
        """The batches in turn. Sources that decode while the model computes override this."""
        for ids in batches:
            yield self.gather(ids, epoch)


class EvalData(ABC):
    """An evaluation set: fixed order, no augmentation."""

    size: int

    @abstractmethod
    def batches(self, batch_size: int, rank: int = 0, ranks: int = 1) -> Iterator[Batch]:
        """This rank's share. Together the ranks see every sample exactly once: nothing is padded or repeated."""


@dataclass(frozen=True)
class Data:
    train: TrainData
    test: EvalData  # or the held-out part of the training set, with dataset.evaluate_on=validation
    classes: int
    facts: dict[str, Any]  # what was really loaded; plain JSON values for the run's record
    validation: EvalData | None = None  # the held-out part beside the test set, with dataset.evaluate_on=both
