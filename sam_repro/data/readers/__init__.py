"""Readers of data sets. One is a file of this folder with the name of its `Source` and a function `read`:

    read(config) -> training and test half, each of images and labels

Images are uint8 [n, 3, size, size] or files (`StoredPictures`); labels are int64 [n], below config.classes.
The sets of verified files (`layouts.LAYOUTS`) share one reader, `official.py`.
"""

from __future__ import annotations

from importlib import import_module

from torch import Tensor

from sam_repro.data.declared import DatasetConfig
from sam_repro.data.layouts import LAYOUTS, Layout
from sam_repro.data.pictures import StoredPictures

Labelled = tuple[Tensor | StoredPictures, Tensor]  # images, labels


def read(config: DatasetConfig, layout: Layout | None = None) -> tuple[Labelled, Labelled]:
    """`layout` replaces the table of official files and digests (stand-ins of the same form)."""
    if config.name in LAYOUTS:
        from sam_repro.data.official import load_official

        return load_official(config, layout or LAYOUTS[config.name])
    found: tuple[Labelled, Labelled] = import_module(f"{__name__}.{config.name.value}").read(config)
    return found
