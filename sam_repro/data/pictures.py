"""Images that are read one at a time, and what is done about those that can't be read."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
from torch import Tensor

from sam_repro.data.declared import Decoder
from sam_repro.data.decoding import decode, planes
from sam_repro.errors import UserError
from sam_repro.files.read import opened


class UnreadableError(Exception):
    """An image file that can't be decoded. The message is its path and why."""


class StoredPictures(ABC):
    """Images as files hold them, decoded on demand."""

    decoder: Decoder

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, ids: Tensor) -> Self: ...

    @abstractmethod
    def by(self, decoder: Decoder) -> Self:
        """The same images, read by this decoder."""

    @abstractmethod
    def path(self, index: int) -> Path: ...

    @abstractmethod
    def content(self, index: int) -> bytes: ...

    def read(self, index: int) -> Tensor:
        """uint8 [3, h, w]; grey, palette, CMYK and transparent images become RGB."""
        from PIL import Image

        try:
            return planes(decode(self.content(index), self.decoder))
        except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
            raise UnreadableError(f"{self.path(index)} is no readable image ({type(error).__name__})") from None


class FilePictures(StoredPictures):
    """A file each. The paths are one array: a million Python strings would be copied to workers."""

    def __init__(self, paths: Sequence[Path] | np.ndarray, decoder: Decoder = Decoder.fast) -> None:
        self.paths = paths if isinstance(paths, np.ndarray) else np.array([os.fsencode(path) for path in paths])
        self.decoder = decoder

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, ids: Tensor) -> Self:
        return type(self)(self.paths[ids.numpy()], self.decoder)

    def by(self, decoder: Decoder) -> Self:
        return type(self)(self.paths, decoder)

    def path(self, index: int) -> Path:
        return Path(os.fsdecode(self.paths[index]))

    def content(self, index: int) -> bytes:
        with opened(self.path(index)) as file:
            return file.read()


class ArrayPictures:
    """Images that are in memory already, uint8 [N, 3, h, w], in the same form."""

    def __init__(self, images: Tensor) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def read(self, index: int) -> Tensor:
        return self.images[index]


Pictures = StoredPictures | ArrayPictures


class Tally:
    """Names every unreadable image once and ends the run when there are more than `dataset.skip_unreadable`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.found: list[str] = []  # also kept in the facts of the run

    def add(self, complaint: str) -> None:
        if complaint in self.found:
            return
        self.found.append(complaint)
        if len(self.found) > self.limit:
            raise UserError(
                f"{complaint}: repair or delete it, or leave out more than {self.limit} by dataset.skip_unreadable="
            )
        print(f"warning: {complaint}: left out ({len(self.found)} of at most {self.limit})", file=sys.stderr)
