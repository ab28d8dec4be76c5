"""ImageNet-1k in the usual folder layout, and the test sets made for it, as their authors publish them.

    root/imagenet/train/<wnid>/*.JPEG        or root/train/...
    root/imagenet/val/<wnid>/ILSVRC2012_val_00000001.JPEG ...
    root/imagenetv2-matched-frequency-format-val/<class number>/*.jpeg
    root/imagenet-r/<wnid>/*.jpg             200 of the 1000 classes
    root/imagenet-c/<corruption>/<severity 1-5>/<wnid>/*.JPEG

Classes are numbered in the sorted order of the 1000 wnids (WordNet ids such as n01440764). The list of wnids, the
indices of ImageNet-R's classes and the reassessed labels come with timm.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor

from sam_repro.data.folder import LabelledFiles, image_files, labelled
from sam_repro.data.layouts import find_pack, roots
from sam_repro.data.listing import subfolders
from sam_repro.data.pack import Pack
from sam_repro.data.pictures import FilePictures, StoredPictures
from sam_repro.errors import UserError

LabelledPictures = tuple[StoredPictures, Tensor]

CORRUPTIONS = (
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "snow",
    "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate", "jpeg_compression",
)  # fmt: skip
SEVERITIES = (1, 2, 3, 4, 5)
V2 = "imagenetv2-matched-frequency-format-val"
_VALIDATION_NAME = re.compile(r"ILSVRC2012_val_(\d{8})")


def _info_of_timm(name: str) -> str:
    """A list that comes with timm. To import timm for it would take longer than all else at a start."""
    timm = find_spec("timm")
    assert timm is not None
    assert timm.origin is not None
    return Path(timm.origin).with_name("data").joinpath("_info", name).read_text()


@cache
def _timm_list(name: str) -> tuple[str, ...]:
    return tuple(_info_of_timm(name).split())


def wnids() -> tuple[str, ...]:
    return _timm_list("imagenet_synsets.txt")


def locate(root: str, *names: str) -> Path:
    """The first of root/<name> that is a folder; the empty name stands for the root itself."""
    places = [place / name for place in roots(root) for name in names]
    for place in places:
        if place.is_dir():
            return place
    raise UserError(
        f"{names[0]} not found; looked in {', '.join(str(place.absolute()) for place in places)}: "
        "get it from its authors, and name the folder that holds it by dataset.root= (of fetch: --from)"
    )


def find_imagenet(root: str) -> tuple[LabelledFiles, LabelledFiles]:
    """(train, val) from class folders."""
    return _whole(locate(root, "imagenet/train", "train")), _whole(locate(root, "imagenet/val", "val"))


def find_packed(root: str, pixels: int) -> tuple[LabelledPictures, LabelledPictures]:
    """(train, val) from one file."""
    pack = Pack(find_pack(root, pixels), pixels)
    _compare(pack.path, pack.classes, list(wnids()))
    return pack.half("train"), pack.half("val")


def find_validation(root: str, pack: int | None = None) -> LabelledPictures:
    return _whole(locate(root, "imagenet/val", "val")) if pack is None else find_packed(root, pack)[1]


def _whole(folder: Path) -> LabelledFiles:
    """All 1000 classes must be there: one that lacks would shift the number of every class after it."""
    _compare(folder, subfolders(folder), list(wnids()))
    return labelled(folder, list(wnids()))


def _compare(folder: Path, found: list[str], expected: list[str]) -> None:
    if found == expected:
        return
    lacking, strange = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    parts = [
        f"{len(names)} {what} ({names[0]}, ...)"
        for names, what in ((lacking, "lack"), (strange, "are unknown"))
        if names
    ]
    raise UserError(f"{folder} should hold {len(expected)} class folders: {' and '.join(parts)}")


def find_v2(root: str) -> LabelledFiles:
    """The folders are named 0 .. 999 and sort as strings (0, 1, 10, 100, ...): a name is a class number."""
    folder = locate(root, V2)
    numbers = [str(n) for n in range(len(wnids()))]
    _compare(folder, sorted(subfolders(folder)), sorted(numbers))
    return labelled(folder, numbers)


def find_r(root: str) -> tuple[LabelledFiles, Tensor]:
    """The images with labels 0 .. 199, and which of the 1000 outputs these are; the other outputs don't compete."""
    folder = locate(root, "imagenet-r")
    columns = [int(index) for index in _timm_list("imagenet_r_indices.txt")]
    names = [wnids()[index] for index in columns]
    _compare(folder, subfolders(folder), names)
    return labelled(folder, names), torch.tensor(columns)


def find_c(root: str, corruption: str, severity: int) -> LabelledFiles:
    return _whole(locate(root, f"imagenet-c/{corruption}/{severity}", f"{corruption}/{severity}"))


def find_real(root: str, reassessed: list[list[int]] | None = None, pack: int | None = None) -> LabelledPictures:
    """The validation images with the labels of Beyer et al. 2020: float32 [n, 1000], one where a label is right.

    An image without any right label is left out. The prediction counts as correct if it is one of the right labels.
    `reassessed` (real.json's content: a list a validation image, in the order of their numbers) replaces timm's copy.
    """
    if reassessed is None:
        reassessed = json.loads(_info_of_timm("imagenet_real_labels.json"))
    pictures: StoredPictures
    if pack is None:
        pictures = FilePictures(image_files(locate(root, "imagenet/val", "val")))
    else:
        pictures, _ = find_validation(root, pack)
    judged, targets = [], []
    for index in range(len(pictures)):
        path = pictures.path(index)
        number = _VALIDATION_NAME.match(path.name)
        if number is None or not 1 <= int(number[1]) <= len(reassessed):
            raise UserError(
                f"{path} is no validation image of ImageNet: its name tells its number (ILSVRC2012_val_...)"
            )
        if right := reassessed[int(number[1]) - 1]:
            judged.append(index)
            targets.append(torch.zeros(len(wnids())).index_fill_(0, torch.tensor(right), 1.0))
    return pictures[torch.tensor(judged)], torch.stack(targets)
