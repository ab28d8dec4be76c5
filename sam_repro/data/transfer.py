"""Oxford Flowers-102 and Oxford-IIIT Pets in torchvision's layout, for fine-tuning.

Flowers is trained on its training and validation parts (1,020 + 1,020 images), Pets on "trainval" (3,680), as usual
where nothing is held out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from sam_repro.data.declared import Source
from sam_repro.data.download import UnreachableError
from sam_repro.data.folder import LabelledFiles
from sam_repro.data.layouts import roots
from sam_repro.data.pictures import FilePictures
from sam_repro.errors import UserError


def find_transfer(source: Source, root: str) -> tuple[LabelledFiles, LabelledFiles]:
    """(train, test)."""
    kind = _torchvision_class(source)
    halves = (("train", "val"), ("test",)) if source is Source.flowers102 else (("trainval",), ("test",))
    places = roots(root)
    for place in places:
        try:
            train, test = ([kind(place, split) for split in half] for half in halves)
        except (RuntimeError, OSError):  # what torchvision says of absent and of altered files
            continue
        return _join(train), _join(test)
    raise UserError(
        f"the files of {source.value} not found or altered; looked in {', '.join(str(p.absolute()) for p in places)}. "
        f"Either run `sam-repro fetch {source.value}`, or set dataset.root= to the folder that has them "
        "in torchvision's layout"
    )


def _torchvision_class(source: Source) -> Any:
    from torchvision.datasets import Flowers102, OxfordIIITPet

    return Flowers102 if source is Source.flowers102 else OxfordIIITPet


def download_transfer(source: Source, staging: Path) -> None:
    """By torchvision, which verifies the archives' md5s and unpacks them into `declared.FOLDERS[source]`."""
    try:
        _torchvision_class(source)(staging, "test", download=True)
    except (OSError, RuntimeError) as error:  # no host, and a wrong md5
        raise UnreachableError(str(error)) from None


def _join(parts: list[Any]) -> LabelledFiles:
    paths: list[Path] = []
    labels: list[int] = []
    for part in parts:
        # Both keep the same two lists, under different names.
        paths += part._image_files if hasattr(part, "_image_files") else part._images
        labels += part._labels
    for path in paths:
        if not Path(path).is_file():
            raise UserError(f"{path} is missing: fetch the data set again")
    return FilePictures(paths), torch.tensor(labels)
