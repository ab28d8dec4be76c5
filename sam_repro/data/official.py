"""Reading the official layouts into uint8 arrays [n, 3, H, W] and int64 labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sam_repro.data.declared import DatasetConfig
from sam_repro.data.layouts import File, Layout, find, read
from sam_repro.errors import UserError

Pair = tuple[Tensor, Tensor]
_CIFAR_PIXELS = 3 * 32 * 32


def load_official(config: DatasetConfig, layout: Layout) -> tuple[Pair, Pair]:
    """(train, test), each of images and labels, every file verified."""
    folder = find(layout, config.root, config.name.value)
    halves = []
    for files in (layout.train, layout.test):
        images, labels = _idx(folder, files) if layout.idx else _binary(folder, files, layout.label_bytes)
        if labels.max() >= config.classes:
            raise UserError(f"{folder} has label {labels.max()}, but dataset.classes={config.classes}")
        if not config.stream:  # a stream resizes instead
            images = _enlarge(images, config.image_size)
        halves.append((torch.from_numpy(images), torch.from_numpy(labels)))
    return halves[0], halves[1]


def _binary(folder: Path, files: tuple[File, ...], label_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """CIFAR: each row is the label (CIFAR-100: coarse, then fine), then 32 x 32 bytes of red, of green and of blue."""
    rows = np.concatenate([np.frombuffer(read(folder, file), np.uint8) for file in files])
    rows = rows.reshape(-1, label_bytes + _CIFAR_PIXELS)
    labels = rows[:, label_bytes - 1].astype(np.int64)
    return rows[:, label_bytes:].reshape(-1, 3, 32, 32), labels


def _idx(folder: Path, files: tuple[File, ...]) -> tuple[np.ndarray, np.ndarray]:
    """MNIST's idx: big-endian magic number and dimensions, then bytes. Grey is replicated to three equal channels."""
    images, labels = (_parse_idx(read(folder, file), folder / file.name) for file in files)
    if len(images) != len(labels):
        raise UserError(f"{folder / files[0].name} has {len(images)} images but {len(labels)} labels")
    return np.repeat(images[:, None], 3, axis=1), labels.astype(np.int64)


def _parse_idx(content: bytes, path: Path) -> np.ndarray:
    dimensions = content[3]
    header = 4 + 4 * dimensions
    shape = np.frombuffer(content[4:header], ">i4")
    if content[:3] != b"\0\0\x08" or len(content) != header + shape.prod():
        raise UserError(f"{path} is no idx file of unsigned bytes")
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def _enlarge(images: np.ndarray, size: int) -> np.ndarray:
    """Black borders up to `size` (Fashion-MNIST: 28 -> 32), so that networks made for CIFAR fit."""
    margin = size - images.shape[-1]
    if margin < 0 or margin % 2:
        raise UserError(
            f"dataset.image_size={size} can't hold images of {images.shape[-1]} pixels: "
            f"set it to {images.shape[-1]} or an even number of pixels more, or resize by dataset.stream=true"
        )
    border = (margin // 2, margin // 2)
    return np.pad(images, ((0, 0), (0, 0), border, border))
