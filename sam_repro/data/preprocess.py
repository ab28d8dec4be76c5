"""Transforms of one uint8 image at a time, by torchvision.transforms.v2.

They draw from torch's global generator, which `stream.Samples` seeds anew for every sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
        steps: list[Any] = [v2.RandomResizedCrop((size, size), scale=(augment.resized_crop, 1.0), antialias=True)]
    else:
        steps = _fit(config)
    if augment.crop:
        steps.append(v2.RandomCrop(size, padding=augment.crop))
    if augment.flip:
        steps.append(v2.RandomHorizontalFlip())
    if augment.policy is Policy.autoaugment_cifar:
        steps.append(v2.AutoAugment(v2.AutoAugmentPolicy.CIFAR10))
    elif augment.policy is Policy.autoaugment_imagenet:
        steps.append(v2.AutoAugment(v2.AutoAugmentPolicy.IMAGENET))
    elif augment.policy is Policy.randaugment:
        steps.append(v2.RandAugment(augment.randaugment_ops, augment.randaugment_magnitude))
    transform: Transform = v2.Compose(steps)
    return transform
