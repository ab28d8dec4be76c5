"""Data sets that are decoded and augmented one image at a time, in worker processes that run ahead of the model."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from sam_repro.data.counter import Draw, hashes, key
from sam_repro.data.on_device import Normalise, OnDevice
from sam_repro.data.pictures import Pictures, Tally, UnreadableError
from sam_repro.data.preprocess import Transform
from sam_repro.data.sending import send
from sam_repro.data.sets import Batch, EvalData, TrainData
from sam_repro.machine import cores

_AHEAD = 4  # batches a worker prepares before they are asked for
_MOST_WORKERS = 16


@dataclass(frozen=True)
class Raw:
    """What a worker hands over: uint8 images, which samples they are, and complaints about those that are none."""

    images: Tensor
    ids: Tensor
    complaints: list[str]

    def pin_memory(self) -> Raw:  # called by the DataLoader's pinning thread
        return Raw(self.images.pin_memory(), self.ids, self.complaints)


class Samples(Dataset[Any]):
    """Decodes and transforms whole batches. Each sample seeds the generator with a hash of (seed, epoch, id)."""

    def __init__(self, pictures: Pictures, transform: Transform, transform_key: int, substitute: bool) -> None:
        self.pictures = pictures
        self.transform = transform
        self.transform_key = transform_key
        self.substitute = substitute  # whether the next readable image takes the place of an unreadable one

    def __getitems__(self, ids: list[int]) -> Raw:
        images, seen, complaints = [], [], []
        with torch.random.fork_rng(devices=[]):
            for asked in ids:
                for index in range(asked, asked + (len(self.pictures) if self.substitute else 1)):
                    index %= len(self.pictures)
                    try:
                        images.append(self._one(index))
                        seen.append(index)
                        break
                    except UnreadableError as error:
                        complaints.append(str(error))
        stacked = torch.stack(images) if images else torch.empty(0)
        return Raw(stacked, torch.tensor(seen, dtype=torch.int64), complaints)

    def _one(self, index: int) -> Tensor:
        picture = self.pictures.read(index)
        seed = int(hashes(torch.tensor([index]), self.transform_key))
        torch.default_generator.manual_seed(seed)  # `torch.manual_seed` would also wake CUDA, 100 x slower
        return self.transform(picture).contiguous()


def neighbours(count: int) -> Tensor:
    """0 with 1, 2 with 3, ...: the same pairs into however many parts of even size a batch is split over ranks."""
    other = torch.arange(count) ^ 1
    return other.clamp_(max=count - 1) if count % 2 == 0 else other.where(other < count, max(0, count - 2))


def worker_count(wanted: int | None) -> int:
    """The rank's share of the cores it may run on."""
    if wanted is not None:
        return wanted
    share = cores() // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return min(max(share, 1), _MOST_WORKERS)


def _run_ahead(samples: Samples, batches: Iterable[Tensor], workers: int, device: torch.device) -> Iterator[Raw]:
    listed = [ids.tolist() for ids in batches]
    return iter(
        DataLoader(
            samples,
            batch_sampler=listed,
            num_workers=min(workers, len(listed)),
            collate_fn=_as_it_is,
            pin_memory=device.type == "cuda",
            prefetch_factor=_AHEAD if workers and listed else None,
            worker_init_fn=_deaf,
            generator=torch.Generator(),  # else it draws its seed from the global one, which dropout uses
        )
    )


def _deaf(worker: int) -> None:
    """A signal to the whole process group is for the training, which still needs its workers while it saves."""
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


def _as_it_is(raw: Any) -> Any:
    return raw


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
        workers: int,
        device: torch.device,
    ) -> None:
        super().__init__(len(pictures), on_device.seed)
        self.pictures = pictures
        self.targets = targets.to(device)
        self.transform = transform
        self.on_device = on_device
        self.tally = tally
        self.workers = workers
        self.device = device

    def gather(self, ids: Tensor, epoch: int) -> Batch:
        return self._delivered(self._samples(epoch).__getitems__(ids.tolist()), epoch)

    def gather_each(self, batches: Iterable[Tensor], epoch: int) -> Iterator[Batch]:
        for raw in _run_ahead(self._samples(epoch), batches, self.workers, self.device):
            yield self._delivered(raw, epoch)

    def _samples(self, epoch: int) -> Samples:
        return Samples(self.pictures, self.transform, key(self.seed, epoch, Draw.transform), substitute=True)

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
        workers: int,
        device: torch.device,
    ) -> None:
        self.size = len(pictures)
        self.samples = Samples(pictures, transform, 0, substitute=False)
        self.targets = targets.to(device)
        self.normalise = normalise
        self.tally = tally
        self.workers = workers
        self.device = device

    def batches(self, batch_size: int, rank: int = 0, ranks: int = 1) -> Iterator[Batch]:
        share = torch.arange(self.size)[rank::ranks]
        parts = [share[start : start + batch_size] for start in range(0, len(share), batch_size)]
        for raw in _run_ahead(self.samples, parts, self.workers, self.device):
            for complaint in raw.complaints:
                self.tally.add(complaint)
            if len(raw.ids):
                ids = send(raw.ids, self.device)
                yield Batch(self.normalise(send(raw.images, self.device)), self.targets[ids], ids)
