"""ImageNet: root/train/<wnid>/*.JPEG and root/val/<wnid>/*.JPEG, or a pack of them."""

from __future__ import annotations

from sam_repro.data.declared import DatasetConfig
from sam_repro.data.imagenet import LabelledPictures, find_imagenet, find_packed


def read(config: DatasetConfig) -> tuple[LabelledPictures, LabelledPictures]:
    if config.pack is None:
        return find_imagenet(config.root)
    train, val = find_packed(config.root, config.pack)
    return train, val
