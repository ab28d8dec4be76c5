"""Processes that decode batches ahead of the model. They are started once, for training and evaluation alike."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from sam_repro.data.counter import hashes
from sam_repro.data.decoding import together
from sam_repro.data.pictures import Pictures, UnreadableError
from sam_repro.data.preprocess import Transform
from sam_repro.machine import cores

# Forked, they share the listing and what is imported. Left to Python, those of a spawned rank would do neither.
START = "fork" if sys.platform == "linux" else None  # None: as the platform's Python starts processes
_AHEAD = 4  # batches a worker prepares before they are asked for
_MOST_WORKERS = 16


def worker_count(wanted: int | None) -> int:
    """The rank's share of the cores it may run on."""
    if wanted is not None:
        return wanted
    share = cores() // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return min(max(share, 1), _MOST_WORKERS)


@dataclass(frozen=True)
class Work:
    """A batch to decode."""

    samples: int  # which of the pool's
    transform_key: int
    ids: list[int]


@dataclass(frozen=True)
class Raw:
    """What a worker hands over: uint8 images, which samples they are, and complaints about those that are none."""

    images: Tensor
    ids: Tensor
    complaints: list[str]

    def pin_memory(self) -> Raw:  # called by the DataLoader's pinning thread
        return Raw(self.images.pin_memory(), self.ids, self.complaints)


def merged(parts: Sequence[Raw]) -> Raw:
    if len(parts) == 1:
        return parts[0]
    images = [part.images for part in parts if len(part.ids)]
    complaints = [complaint for part in parts for complaint in part.complaints]
    return Raw(torch.cat(images) if images else torch.empty(0), torch.cat([part.ids for part in parts]), complaints)


class Samples:
    """Decodes and transforms whole batches. Each sample seeds the generator with a hash of (seed, epoch, id)."""

    def __init__(self, pictures: Pictures, transform: Transform, substitute: bool) -> None:
        self.pictures = pictures
        self.transform = transform
        self.substitute = substitute  # whether the next readable image takes the place of an unreadable one

    def batch(self, ids: Sequence[int], transform_key: int) -> Raw:
        images, seen, complaints = [], [], []
        with torch.random.fork_rng(devices=[]):
            seeds = hashes(torch.tensor(ids, dtype=torch.int64), transform_key).tolist()
            for asked, seed in zip(ids, seeds, strict=True):
                for index in range(asked, asked + (len(self.pictures) if self.substitute else 1)):
                    index %= len(self.pictures)
                    try:
                        own = seed if index == asked else int(hashes(torch.tensor([index]), transform_key))
                        images.append(self._one(index, own))
                        seen.append(index)
                        break
                    except UnreadableError as error:
                        complaints.append(str(error))
        stacked = together(images) if images else torch.empty(0)
        return Raw(stacked, torch.tensor(seen, dtype=torch.int64), complaints)

    def _one(self, index: int, seed: int) -> Tensor:
        picture = self.pictures.read(index)
        torch.default_generator.manual_seed(seed)  # `torch.manual_seed` would also wake CUDA, 100 x slower
        return self.transform(picture)


class _All(Dataset[Any]):
    """What every worker holds."""

    def __init__(self) -> None:
        self.samples: list[Samples] = []

    def __getitem__(self, work: Work) -> Raw:
        return self.samples[work.samples].batch(work.ids, work.transform_key)


class _Queue(Sampler[Work]):
    """What the loader is to do next."""

    works: Sequence[Work] = ()

    def __iter__(self) -> Iterator[Work]:
        return iter(self.works)


class Pool:
    """As many worker processes as are asked for, for any number of streams, one after the other.

    A stream that is asked for while another still runs (a method that passes over other samples within a step) gets
    workers of its own; they too stay for the next.
    """

    def __init__(self, workers: int, device: torch.device) -> None:
        self.workers = workers
        self._device = device
        self._all = _All()
        self._loaders: list[DataLoader[Any]] = []
        self._idle: list[DataLoader[Any]] = []
        weakref.finalize(self, _end, self._loaders)

    def add(self, samples: Samples) -> int:
        """Its number in a `Work`. To be called before the workers start, for they hold copies."""
        assert not self._loaders, "the workers have started"
        self._all.samples.append(samples)
        return len(self._all.samples) - 1

    def run(self, works: Sequence[Work]) -> Iterator[Raw]:
        if not self.workers:
            yield from map(self._all.__getitem__, works)
        elif works:
            loader = self._idle.pop() if self._idle else self._started()
            loader.sampler.works = works  # type: ignore[attr-defined]
            try:
                yield from loader
            finally:
                self._idle.append(loader)

    def _started(self) -> DataLoader[Any]:
        loader = DataLoader(
            self._all,
            batch_size=None,
            sampler=_Queue(),
            num_workers=self.workers,
            multiprocessing_context=START,
            persistent_workers=True,
            collate_fn=_as_it_is,
            pin_memory=self._device.type == "cuda",
            prefetch_factor=_AHEAD,
            worker_init_fn=begun,
            generator=torch.Generator(),  # else it draws its seed from the global one, which dropout uses
        )
        iter(loader)  # the processes start now
        self._loaders.append(loader)
        atexit.register(_end, self._loaders)  # before torch's own, which would wait for them without telling them
        return loader


def _end(loaders: list[DataLoader[Any]]) -> None:
    """Workers are deaf to signals, so they are told."""
    while loaders:
        iterator: Any = loaders.pop()._iterator
        if iterator is not None:
            iterator._shutdown_workers()


def begun(worker: int) -> None:
    """A signal to the whole process group is for the training, which still needs its workers while it saves.

    What was there at the fork is not looked at for garbage: a look writes to each object, and a written page is copied.
    """
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    gc.freeze()


def _as_it_is(raw: Any) -> Any:
    return raw
