"""Data sets that are decoded and augmented one image at a time, in worker processes that run ahead of the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from sam_repro.data.counter import Draw, key
from sam_repro.data.on_device import Normalise, OnDevice
from sam_repro.data.pictures import Pictures, Tally
from sam_repro.data.preprocess import Transform
from sam_repro.data.sending import send
from sam_repro.data.sets import Batch, EvalData, TrainData
from sam_repro.data.workers import Pool, Raw, Samples, Work, merged


def neighbours(count: int) -> Tensor:
    """0 with 1, 2 with 3, ...: the same pairs into however many parts of even size a batch is split over ranks."""
    other = torch.arange(count) ^ 1
    return other.clamp_(max=count - 1) if count % 2 == 0 else other.where(other < count, max(0, count - 2))


class StreamTrain(TrainData):
    """Order, crops, flips and policies are pure functions of (seed, epoch, sample id), whatever process decodes.

    Mixing is the exception: decoding a second image for every sample would double the work, so a sample's partner is
    its neighbour in the batch (its share is still its own). Resumed runs see the same batches, so the same partners.
    """

    def __init__(
        self,
        pictures: Pictures,
        targets: Tensor,
        transform: Transform,
        on_device: OnDevice,
        tally: Tally,
        pool: Pool,
        device: torch.device,
    ) -> None:
        super().__init__(len(pictures), on_device.seed)
        self.pictures = pictures
        self.targets = targets.to(device)
        self.on_device = on_device
        self.tally = tally
        self.pool = pool
        self.samples = pool.add(Samples(pictures, transform, substitute=True))
        self.device = device

    def gather(self, ids: Tensor, epoch: int) -> Batch:
        parts = ids.tensor_split(max(1, min(self.pool.workers, len(ids))))
        return self._delivered(merged(list(self._raw(parts, epoch))), epoch)

    def gather_each(self, batches: Iterable[Tensor], epoch: int) -> Iterator[Batch]:
        for raw in self._raw(batches, epoch):
            yield self._delivered(raw, epoch)

    def _raw(self, batches: Iterable[Tensor], epoch: int) -> Iterator[Raw]:
        transform_key = key(self.seed, epoch, Draw.transform)
        return self.pool.run([Work(self.samples, transform_key, ids.tolist()) for ids in batches])

    def _delivered(self, raw: Raw, epoch: int) -> Batch:
        for complaint in raw.complaints:
            self.tally.add(complaint)
        ids = send(raw.ids, self.device)
        images = self.on_device.pixels(send(raw.images, self.device), raw.ids, epoch)
        targets = self.targets[ids]
        if self.on_device.mixing:
            other = send(neighbours(len(images)), self.device)
            images, targets = self.on_device.blend(images, targets, images[other], targets[other], raw.ids, epoch)
        return Batch(images, targets, ids)


class StreamEval(EvalData):
    """Unreadable images are named and left out, so a batch may be smaller."""

    def __init__(
        self,
        pictures: Pictures,
        targets: Tensor,
        transform: Transform,
        normalise: Normalise,
        tally: Tally,
        pool: Pool,
        device: torch.device,
    ) -> None:
        self.size = len(pictures)
        self.pictures = pictures
        self.targets = targets.to(device)
        self.normalise = normalise
        self.tally = tally
        self.pool = pool
        self.samples = pool.add(Samples(pictures, transform, substitute=False))
        self.device = device

    def batches(self, batch_size: int, rank: int = 0, ranks: int = 1) -> Iterator[Batch]:
        share = torch.arange(self.size)[rank::ranks]
        works = [Work(self.samples, 0, ids.tolist()) for ids in torch.split(share, batch_size)] if len(share) else []
        for raw in self.pool.run(works):
            for complaint in raw.complaints:
                self.tally.add(complaint)
            if len(raw.ids):
                ids = send(raw.ids, self.device)
                yield Batch(self.normalise(send(raw.images, self.device)), self.targets[ids], ids)
