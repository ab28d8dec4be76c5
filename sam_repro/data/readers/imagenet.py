"""ImageNet: root/train/<wnid>/*.JPEG and root/val/<wnid>/*.JPEG."""

from __future__ import annotations

from sam_repro.data.declared import DatasetConfig
from sam_repro.data.folder import LabelledFiles
from sam_repro.data.imagenet import find_imagenet


def read(config: DatasetConfig) -> tuple[LabelledFiles, LabelledFiles]:
    return find_imagenet(config.root)
