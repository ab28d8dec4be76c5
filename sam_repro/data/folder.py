"""Class folders: root/<half>/<class>/*, image files of any size and of the formats of `pictures.FORMATS`."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from sam_repro.data.declared import DatasetConfig
from sam_repro.data.listing import SUFFIXES, count_classes, halves, images, subfolders
from sam_repro.data.pictures import FilePictures
from sam_repro.errors import UserError

LabelledFiles = tuple[FilePictures, Tensor]


def find_folder(config: DatasetConfig) -> tuple[LabelledFiles, LabelledFiles]:
    """(train, test). Classes are numbered in the sorted order of their names."""
    root = Path(config.root).expanduser()
    train, test = halves(root)
    if count_classes(config.root) != config.classes:
        raise UserError(
            f"{train} has {len(subfolders(train))} class folders: set dataset.classes={len(subfolders(train))}, "
            "or leave it out"
        )
    names = subfolders(train)
    if (held := subfolders(test)) != names:
        odd = sorted(set(names) ^ set(held))
        if not held:
            raise UserError(f"{train} has no {test.name}/ (nor val/) with the same class folders beside it")
        raise UserError(f"{train} and {test} have different classes: {', '.join(odd[:5])}: every class needs both")
    return labelled(train, names), labelled(test, names)


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
