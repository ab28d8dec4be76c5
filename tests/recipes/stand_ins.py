"""A stand-in for every data set of the recipes, in its official layout: tests/data has the writers of most of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from data_stand_ins import StandIns
from image_folders import jpeg, write
from scipy.io import savemat

from sam_repro.data.declared import Source
from sam_repro.data.imagenet import wnids
from sam_repro.data.layouts import LAYOUTS
from sam_repro.tasks.translation import grammar
from sam_repro.tasks.translation.text import SPLITS


def write_all(root: Path, patch: pytest.MonkeyPatch) -> None:
    """CIFAR-10 and -100, ImageNet, Flowers-102 and Pets, a few images a class at most, and IWSLT'14, under one root.

    The tables of official sizes and digests are pointed at the stand-ins: nothing of the reading code is replaced.
    """
    cifar = StandIns(root)
    patch.setitem(LAYOUTS, Source.cifar10, cifar.cifar10(10)[0])
    patch.setitem(LAYOUTS, Source.cifar100, cifar.cifar100(100)[0])
    _imagenet(root / "imagenet")
    _flowers(root / "flowers-102", patch)
    _pets(root / "oxford-iiit-pet")
    _iwslt14(root / "iwslt14")


def _iwslt14(root: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        pairs = [grammar.sentence(SPLITS.index(split), number) for number in range(40)]
        for side, language in enumerate(("de", "en")):
            (root / f"{split}.{language}").write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")


def _imagenet(root: Path) -> None:
    """All 1000 classes, one image each, since the class folders are counted."""
    for number, wnid in enumerate(wnids(), start=1):
        write(root / "train" / wnid / f"{wnid}_1.JPEG", jpeg(number % 256))
        write(root / "val" / wnid / f"ILSVRC2012_val_{number:08d}.JPEG", jpeg(number % 256))


def _flowers(root: Path, patch: pytest.MonkeyPatch) -> None:
    from torchvision.datasets import Flowers102
    from torchvision.datasets.utils import calculate_md5

    for number in range(1, 307):
        write(root / "jpg" / f"image_{number:05d}.jpg", jpeg(number % 256))
    thirds = np.arange(1, 307).reshape(3, 102)  # one image a class in each part
    savemat(root / "setid.mat", {"trnid": thirds[:1], "valid": thirds[1:2], "tstid": thirds[2:]})
    savemat(root / "imagelabels.mat", {"labels": [np.tile(np.arange(1, 103), 3)]})
    table = dict(Flowers102._file_dict)
    for part in ("setid", "label"):
        table[part] = (table[part][0], calculate_md5(root / table[part][0]))
    patch.setattr(Flowers102, "_file_dict", table)


def _pets(root: Path) -> None:
    for part in ("trainval", "test"):
        names = [f"breed{label}_{part}" for label in range(1, 38)]
        for label, name in enumerate(names, start=1):
            write(root / "images" / f"{name}.jpg", jpeg(label))
        lines = [f"{name} {label} 1 1\n" for label, name in enumerate(names, start=1)]
        write(root / "annotations" / f"{part}.txt", "".join(lines).encode())
