"""Image files below class folders: of any size and of the formats of `pictures.FORMATS`."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from sam_repro.data.listed import listed
from sam_repro.data.listing import SUFFIXES, images
from sam_repro.data.pictures import FilePictures
from sam_repro.errors import UserError

LabelledFiles = tuple[FilePictures, Tensor]


def labelled(folder: Path, names: list[str]) -> LabelledFiles:
    """All images below `folder`; the label is the position of the class folder in `names`."""
    paths, counts = listed(folder, names)
    for name, count in zip(names, counts, strict=True):
        _some(folder / name, count)
    return FilePictures(paths), torch.arange(len(names)).repeat_interleave(torch.tensor(counts))


def image_files(folder: Path) -> list[Path]:
    names = images(folder)
    _some(folder, len(names))
    return [folder / name for name in names]


def _some(folder: Path, count: int) -> None:
    if not count:
        raise UserError(f"{folder} has no images ({', '.join(SUFFIXES)})")
