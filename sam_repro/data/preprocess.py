"""Transforms of one uint8 image at a time, by torchvision.transforms.v2.

They draw from torch's global generator, which `stream.Samples` seeds anew for every sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sam_repro.config.schema import AugmentConfig, Policy
from sam_repro.data.declared import DatasetConfig, Fit

Transform = Callable[[Tensor], Tensor]


def evaluation(config: DatasetConfig) -> Transform:
    """To image_size: squashed, or the shorter side to image_size / crop_share and then the centre."""
    from torchvision.transforms import v2

    transform: Transform = v2.Compose(_fit(config))
    return transform


def _fit(config: DatasetConfig) -> list[Any]:
    from torchvision.transforms import v2

    size = config.image_size
    if config.fit is Fit.squash:
        return [v2.Resize((size, size), antialias=True)]
    return [v2.Resize(round(size / config.crop_share), antialias=True), v2.CenterCrop(size)]


def training(config: DatasetConfig, augment: AugmentConfig) -> Transform:
    """Crop, mirror, policy. "Inception-style" is the resized crop (Szegedy et al. 2015): an area share of
    `resized_crop` .. 1 with proportions 3:4 .. 4:3. Cutout, normalisation and mixing follow on the device."""
    from torchvision.transforms import v2

    size = config.image_size
    if augment.resized_crop:
        steps: list[Any] = [ResizedCrop(size, augment.resized_crop)]
    else:
        steps = _fit(config)
    if augment.crop:
        steps.append(v2.RandomCrop(size, padding=augment.crop))
    if augment.flip:
        steps.append(mirrored_or_not)
    if augment.policy is Policy.autoaugment_cifar:
        steps.append(v2.AutoAugment(v2.AutoAugmentPolicy.CIFAR10))
    elif augment.policy is Policy.autoaugment_imagenet:
        steps.append(v2.AutoAugment(v2.AutoAugmentPolicy.IMAGENET))
    elif augment.policy is Policy.randaugment:
        steps.append(v2.RandAugment(augment.randaugment_ops, augment.randaugment_magnitude))

    return InTurn(steps)


class InTurn:
    """torchvision's Compose, without its dispatch. An object and no closure: a worker that is not forked is sent it."""

    def __init__(self, steps: list[Any]) -> None:
        self.steps = steps

    def __call__(self, image: Tensor) -> Tensor:
        for step in self.steps:
            image = step(image)
        return image


class ResizedCrop:
    """torchvision's RandomResizedCrop: its draws and, to the bit, its pixels, without what its dispatch costs.

    torch resizes a piece in half the time where its pixels lie together, all colours of one side by side.
    """

    def __init__(self, size: int, least: float) -> None:
        from torchvision.transforms import v2

        self.size = [size, size]
        self._draw = v2.RandomResizedCrop(self.size, scale=(least, 1.0)).make_params
        self._resize = v2.functional.resize_image

    def __call__(self, image: Tensor) -> Tensor:
        p = self._draw([image])
        top, left = p["top"], p["left"]
        piece = image[None, :, top : top + p["height"], left : left + p["width"]]
        resized: Tensor = self._resize(piece.contiguous(memory_format=torch.channels_last), self.size, antialias=True)
        return resized[0]


def mirrored_or_not(image: Tensor) -> Tensor:
    """torchvision's RandomHorizontalFlip."""
    return image.flip(-1) if torch.rand(1) < 0.5 else image
