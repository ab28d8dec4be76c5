"""A data set of the user's own: `dataset=own dataset.reader=package.module:attribute`.

The reader is called with `root` (dataset.root) and `image_size` and returns the training and the test half, each a pair
of images and labels. Images are uint8 [n, 3, image_size, image_size], a tensor or an array, or else a list of the paths
of image files of any size; labels are whole numbers below dataset.classes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from sam_repro import own
from sam_repro.data.declared import DatasetConfig
from sam_repro.data.pictures import FilePictures
from sam_repro.data.readers import Labelled
from sam_repro.errors import UserError


def read(config: DatasetConfig) -> tuple[Labelled, Labelled]:
    assert config.reader is not None
    found = own.load("dataset.reader", config.reader)(root=config.root, image_size=config.image_size)
    try:
        (images, labels), (held, held_labels) = found
        return _half(config, "training", images, labels), _half(config, "test", held, held_labels)
    except UserError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise _wrong(config, f"must return (images, labels) of training and of test ({reason})") from error


def _half(config: DatasetConfig, which: str, images: Any, labels: Any) -> Labelled:
    labels = torch.as_tensor(labels)
    if labels.dim() != 1 or labels.is_floating_point() or len(labels) != len(images):
        raise _wrong(config, f"returns {len(images)} {which} images and labels {labels.dtype} {list(labels.shape)}")
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < config.classes:
        found = f"{labels.min()} to {labels.max()}"
        raise _wrong(config, f"returns {which} labels {found}: dataset.classes={config.classes}")
    if isinstance(images, (list, tuple)) and all(isinstance(image, (str, Path)) for image in images):
        return FilePictures([Path(image) for image in images]), labels.long()
    pixels, size = torch.as_tensor(images), config.image_size
    if pixels.dtype is not torch.uint8 or list(pixels.shape[1:]) != [3, size, size]:
        found = f"{pixels.dtype} {list(pixels.shape)}"
        raise _wrong(config, f"returns {which} images {found}, not uint8 [n, 3, {size}, {size}]")
    return pixels, labels.long()


def _wrong(config: DatasetConfig, what: str) -> UserError:
    return UserError(f"dataset.reader={str(config.reader).partition('@')[0]} {what}")
