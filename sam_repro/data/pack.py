"""ImageNet in one file: its pictures scaled once, one after the other, memory-mapped.

    head        a line: the form, and the shorter side of the pictures
    pictures    JPEGs
    index       a line of JSON (the classes, and of each half how many images each has), and of all pictures their
                lengths, their SHA-256s and their names, as arrays
    end         where the index starts, its length, its SHA-256

At a start the file's size and its index are checked; `sam-repro fetch imagenet --pack --check` looks at each picture.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sam_repro.data.declared import Decoder
from sam_repro.data.listed import Names
from sam_repro.data.pictures import StoredPictures
from sam_repro.errors import UserError
from sam_repro.files.read import DamagedError, opened

HALVES = ("train", "val")
RECORD = np.dtype([("length", "<u4"), ("digest", "V32")])
_END = struct.Struct("<QQ32s")


def head(pixels: int) -> bytes:
    return f"sam_repro pack 1: shorter side {pixels}, JPEG quality 95 4:4:4\n".encode()


def digest(name: bytes, content: bytes) -> bytes:
    return hashlib.sha256(name + b"\0" + content).digest()


def index(classes: Sequence[str], counts: dict[str, list[int]], records: NDArray[Any], names: Names) -> bytes:
    line = json.dumps({"classes": list(classes), "counts": counts, "width": names.itemsize})
    return line.encode() + b"\n" + records.tobytes() + names.tobytes()


def end(start: int, index: bytes) -> bytes:
    return _END.pack(start, len(index), hashlib.sha256(index).digest())


class Pack:
    """An open pack. Its pages are the operating system's, shared by all ranks and workers of a machine."""

    def __init__(self, path: Path, pixels: int) -> None:
        self.path = path
        try:
            with opened(path) as file:
                self.content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, DamagedError, ValueError) as error:  # ValueError: an empty file
            raise UserError(f"{path} can't be read ({getattr(error, 'strerror', None) or error})") from None
        # Pictures are read here and there: what lies behind one is not wanted next.
        self.content.madvise(mmap.MADV_RANDOM)
        found = self._index(pixels)
        if found is None:
            raise UserError(
                f"{path} is torn, or no pack of {pixels} pixels: delete it and make it again with "
                f"`sam-repro fetch imagenet --pack --pixels {pixels}`"
            )
        self.digest = hashlib.sha256(found).hexdigest()
        line, _, arrays = found.partition(b"\n")
        said = json.loads(line)
        self.classes: list[str] = said["classes"]
        self.counts: dict[str, list[int]] = said["counts"]
        size = sum(sum(counts) for counts in self.counts.values())
        self.records = np.frombuffer(arrays, RECORD, size)
        self.names: Names = np.frombuffer(arrays, f"S{said['width']}", size, size * RECORD.itemsize)
        lengths = self.records["length"].astype(np.int64)
        self.starts = len(head(pixels)) + np.cumsum(lengths) - lengths

    def _index(self, pixels: int) -> bytes | None:
        """The index, where the file is whole as far as its size and its index tell."""
        size = len(self.content)
        if size < _END.size or self.content[: len(head(pixels))] != head(pixels):
            return None
        start, length, checksum = _END.unpack(self.content[size - _END.size :])
        found = self.content[start : start + length] if start + length + _END.size == size else b""
        return found if hashlib.sha256(found).digest() == checksum else None

    def half(self, name: str) -> tuple[PackedPictures, Tensor]:
        counts, before = self.counts[name], 0
        for other in HALVES[: HALVES.index(name)]:
            before += sum(self.counts[other])
        labels = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
        return PackedPictures(self, before + np.arange(len(labels))), labels

    def picture(self, row: int) -> bytes:
        start, length = int(self.starts[row]), int(self.records["length"][row])
        page = start - start % mmap.PAGESIZE
        self.content.madvise(mmap.MADV_WILLNEED, page, start + length - page)  # in one piece, not page by page
        return self.content[start : start + length]

    def altered(self) -> str | None:
        """The name of the first picture that is not what was packed."""
        for row, (name, record) in enumerate(zip(self.names, self.records, strict=True)):
            if digest(bytes(name), self.picture(row)) != record["digest"].tobytes():
                return os.fsdecode(bytes(name))
        return None


class PackedPictures(StoredPictures):
    """Some of a pack's pictures."""

    def __init__(self, pack: Pack, rows: NDArray[np.int64], decoder: Decoder = Decoder.fast) -> None:
        self.pack = pack
        self.rows = rows
        self.decoder = decoder

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, ids: Tensor) -> Self:
        return type(self)(self.pack, self.rows[ids.numpy()], self.decoder)

    def by(self, decoder: Decoder) -> Self:
        return type(self)(self.pack, self.rows, decoder)

    def path(self, index: int) -> Path:
        """As if the pack were a folder."""
        return self.pack.path / os.fsdecode(bytes(self.pack.names[self.rows[index]]))

    def content(self, index: int) -> bytes:
        return self.pack.picture(int(self.rows[index]))
