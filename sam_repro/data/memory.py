"""Data sets that fit in memory: uint8 images padded once, whole-batch crop, flip, cutout, normalisation and mixing."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from sam_repro.data.counter import Draw, integers, key
from sam_repro.data.on_device import Normalise, OnDevice
from sam_repro.data.sending import send
from sam_repro.data.sets import Batch, EvalData, TrainData

# A larger set than this stays in the host's memory and its batches are copied to the accelerator one by one.
DEVICE_BYTES = 4 << 30


def _place(images: Tensor, device: torch.device) -> Tensor:
    return images.to(device) if images.nbytes <= DEVICE_BYTES else images


def _flip(images: Tensor, flip: Tensor) -> Tensor:
    """Mirror the images whose `flip` is 1. a ^ ((a ^ b) & mask) chooses b by bits, 4 x faster than `torch.where`."""
    mask = (-flip).to(torch.uint8)[:, None, None, None]
    return images.flip(-1).bitwise_xor_(images).bitwise_and_(mask).bitwise_xor_(images)


class MemoryTrain(TrainData):
    def __init__(self, images: Tensor, targets: Tensor, on_device: OnDevice, device: torch.device) -> None:
        """`images` are uint8 [N, 3, H, W], `targets` int64 [N]."""
        super().__init__(len(images), on_device.seed)
        self.augment = on_device.augment
        self.on_device = on_device
        self.device = device
        self.height, self.width = images.shape[-2:]
        self.images = _place(F.pad(images, [self.augment.crop] * 4), device)
        self.targets = targets.to(device)
        self.windows = self._windows()

    def _windows(self) -> Tensor:
        """[N, y, x, 3, H, W]: every crop of every padded image, as a view that costs no memory."""
        n, channel, row, column = self.images.stride()
        offsets = 2 * self.augment.crop + 1
        return self.images.as_strided(
            (self.size, offsets, offsets, self.images.shape[1], self.height, self.width),
            (n, row, column, channel, row, column),
        )

    def gather(self, ids: Tensor, epoch: int) -> Batch:
        there = send(ids, self.device)
        images, targets = self._pixels(ids, epoch), self.targets[there]
        if self.on_device.mixing:
            # The partner is a sample of the whole set, drawn by this sample's own counter: still a pure function.
            partners = integers(ids, [key(self.seed, epoch, Draw.partner)], [self.size])[:, 0]
            others = send(partners, self.device)
            images, targets = self.on_device.blend(
                images, targets, self._pixels(partners, epoch), self.targets[others], ids, epoch
            )
        return Batch(images, targets, there)

    def _pixels(self, ids: Tensor, epoch: int) -> Tensor:
        """Cropped, mirrored, normalised, blanked."""
        offsets = 2 * self.augment.crop + 1
        keys = [key(self.seed, epoch, draw) for draw in (Draw.crop_y, Draw.crop_x, Draw.flip)]
        draws = integers(ids, keys, [offsets, offsets, 2])
        places = send(torch.cat([ids[:, None], draws], 1), self.images.device)  # the images may be left on the host
        which, crop_y, crop_x, flip = places.unbind(1)
        images = send(self.windows[which, crop_y, crop_x], self.device)
        if self.augment.flip:
            images = _flip(images, send(flip, self.device))
        return self.on_device.pixels(images, ids, epoch)


class MemoryEval(EvalData):
    def __init__(self, images: Tensor, targets: Tensor, normalise: Normalise, device: torch.device) -> None:
        self.size = len(images)
        self.images = _place(images, device)
        self.targets = targets.to(device)
        self.normalise = normalise
        self.device = device

    def batches(self, batch_size: int, rank: int = 0, ranks: int = 1) -> Iterator[Batch]:
        share = torch.arange(self.size)[rank::ranks]
        for start in range(0, len(share), batch_size):
            ids = share[start : start + batch_size]
            there = send(ids, self.device)
            images = send(self.images[there if self.images.device == self.device else ids], self.device)
            yield Batch(self.normalise(images), self.targets[there], there)
