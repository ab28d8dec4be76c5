"""Class folders: root/<half>/<class>/*."""

from __future__ import annotations

from pathlib import Path

from sam_repro.data.declared import DatasetConfig
from sam_repro.data.folder import LabelledFiles, labelled
from sam_repro.data.listing import count_classes, halves, subfolders
from sam_repro.errors import UserError


def read(config: DatasetConfig) -> tuple[LabelledFiles, LabelledFiles]:
    """Classes are numbered in the sorted order of their names."""
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
