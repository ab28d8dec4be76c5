"""Random pixels and balanced labels, any size and number of classes: for trials and timing."""

from __future__ import annotations

import torch
from torch import Tensor

from sam_repro.data.declared import DatasetConfig

_TRAIN, _TEST = 1024, 256


def read(config: DatasetConfig) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    return _half(config, _TRAIN, 0), _half(config, _TEST, 1)


def _half(config: DatasetConfig, n: int, seed: int) -> tuple[Tensor, Tensor]:
    n, size = max(n, 2 * config.classes), config.image_size
    pixels = torch.randint(0, 256, (n, 3, size, size), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
    return pixels, torch.arange(n) % config.classes
