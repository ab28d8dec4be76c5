"""Class folders: root/<half>/<class>/*, image files of any size and format of PIL's."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from sam_repro.data.declared import DatasetConfig
from sam_repro.data.listing import SUFFIXES, images, subfolders
from sam_repro.data.pictures import FilePictures
from sam_repro.errors import UserError

Half = tuple[FilePictures, Tensor]


def find_folder(config: DatasetConfig) -> tuple[Half, Half]:
    """(train, test). Classes are numbered in the sorted order of their names."""
    root = Path(config.root).expanduser()
    names = class_names(root / "train", config.classes)
    if (held := class_names(root / "test", config.classes)) != names:
        odd = sorted(set(names) ^ set(held))
        raise UserError(f"{root}/train and {root}/test have different classes: {', '.join(odd[:5])}")
    return labelled(root / "train", names), labelled(root / "test", names)


def class_names(folder: Path, classes: int) -> list[str]:
    names = subfolders(folder)
    if not names:
        raise UserError(
            f"dataset=folder found no {folder.absolute()}: set dataset.root= to a folder with "
            "train/<class>/<image> and test/<class>/<image>"
        )
    if len(names) != classes:
        raise UserError(f"{folder} has {len(names)} class folders: set dataset.classes={len(names)}")
    return names


def labelled(folder: Path, names: list[str]) -> Half:
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
