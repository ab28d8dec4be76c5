"""Image files below class folders: of any size and of the formats of `pictures.FORMATS`."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from sam_repro.data.listing import SUFFIXES, images
from sam_repro.data.pictures import FilePictures
from sam_repro.errors import UserError

LabelledFiles = tuple[FilePictures, Tensor]


def labelled(folder: Path, names: list[str]) -> LabelledFiles:
    """All images below `folder`; the label is the position of the class folder in `names`."""
    paths: list[Path] = []
    labels: list[int] = []
    for label, name in enumerate(names):
        found = image_files(folder / name)
        paths += found
        labels += [label] * len(found)
    return FilePictures(paths), torch.tensor(labels)


def image_files(folder: Path) -> list[Path]:
    files = images(folder)
    if not files:
        raise UserError(f"{folder} has no images ({', '.join(SUFFIXES)})")
    return files
