"""Making a pack (`pack.py`) of ImageNet's folders. Hours of work: what was packed before a kill is kept."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from sam_repro.data import imagenet
from sam_repro.data.declared import pack_name
from sam_repro.data.folder import LabelledFiles
from sam_repro.data.listed import Names, below
from sam_repro.data.pack import HALVES, RECORD, Pack, digest, end, head, index
from sam_repro.data.pictures import FilePictures, UnreadableError
from sam_repro.data.workers import begun, worker_count
from sam_repro.errors import UserError
from sam_repro.files.alone import alone
from sam_repro.files.atomic import sync_folder

_CHUNK = 64  # pictures that a worker scales before it hands them over
_TOLD = 400  # chunks from one line about how far it is to the next

# Pictures end to end, the length of each, and what is wrong with the one after them. A tensor is handed over in shared
# memory: what went through a pipe would keep workers waiting for ever whose reader was killed.
_Chunk = tuple[Tensor, list[int], str]


def make(source: str, root: Path, pixels: int) -> Pack:
    """root/imagenet-<pixels>.pack of the folders in `source`; an existing one is taken if it is whole."""
    target = root / pack_name(pixels)
    found = None if target.exists() else imagenet.find_imagenet(source)  # a folder that has none leaves nothing behind
    root.mkdir(parents=True, exist_ok=True)
    with alone(root / f".fetch-{target.name}.lock"):
        if not target.exists():
            _make(source, found or imagenet.find_imagenet(source), target, pixels)
        return Pack(target, pixels)


def _make(source: str, found: tuple[LabelledFiles, LabelledFiles], target: Path, pixels: int) -> None:
    (train, train_labels), (val, val_labels) = found
    names = np.concatenate([_names(source, half, files) for half, files in zip(HALVES, (train, val), strict=True)])
    staging = target.with_name(f".fetch-{target.name}")
    staging.mkdir(exist_ok=True)
    with open(staging / "pictures", "a+b") as pictures, open(staging / "records", "a+b") as records:
        done = _resume(pictures, records, names, pixels)
        files = FilePictures(np.concatenate([train.paths, val.paths]))
        for number, (contents, lengths, complaint) in enumerate(_chunks(files, pixels, done)):
            facts = np.empty(len(lengths), RECORD)
            for which, content in enumerate(torch.split(contents, lengths)):
                picture = content.numpy().tobytes()
                pictures.write(picture)
                facts[which] = len(picture), digest(bytes(names[done + which]), picture)
            pictures.flush()
            records.write(facts.tobytes())
            records.flush()
            if complaint:
                raise UserError(f"{complaint}: repair or delete it and start again (what was packed so far is kept)")
            done += len(lengths)
            if number % _TOLD == 0:
                print(f"{target.name}: {done:,} of {len(names):,}", file=sys.stderr)
        records.seek(0)
        counts = {
            half: np.bincount(labels.numpy(), minlength=len(imagenet.wnids())).tolist()
            for half, labels in zip(HALVES, (train_labels, val_labels), strict=True)
        }
        last = index(imagenet.wnids(), counts, np.frombuffer(records.read(), RECORD), names)
        pictures.write(last + end(pictures.seek(0, os.SEEK_END), last))
        pictures.flush()
        os.fsync(pictures.fileno())
    os.replace(staging / "pictures", target)
    sync_folder(target.parent)
    shutil.rmtree(staging)


def _names(source: str, half: str, files: FilePictures) -> Names:
    """<half>/<wnid>/<file>, wherever the half lies."""
    before = len(os.fsencode(imagenet.locate(source, f"imagenet/{half}", half) / "-")) - 1
    letters = files.paths.view(np.uint8).reshape(len(files), files.paths.itemsize)[:, before:]
    relative: Names = np.ascontiguousarray(letters).view(f"S{letters.shape[1]}")[:, 0]
    return below(Path(half), relative)


def _resume(pictures: BinaryIO, records: BinaryIO, names: Names, pixels: int) -> int:
    """How many pictures an earlier attempt left whole and under today's names. The rest is cut off."""
    pictures.seek(0)
    records.seek(0)
    first, said = head(pixels), records.read()
    kept = 0
    size = len(first)
    if pictures.read(size) == first:
        whole = len(said) - len(said) % RECORD.itemsize
        for name, record in zip(names, np.frombuffer(said[:whole], RECORD), strict=False):
            content = pictures.read(int(record["length"]))
            if digest(bytes(name), content) != record["digest"].tobytes():
                break
            kept, size = kept + 1, size + len(content)
    else:
        pictures.truncate(0)
        pictures.write(first)
        pictures.flush()
    pictures.truncate(size)
    records.truncate(kept * RECORD.itemsize)
    return kept


def _chunks(files: FilePictures, pixels: int, done: int) -> Iterator[_Chunk]:
    parts = [range(first, min(first + _CHUNK, len(files))) for first in range(done, len(files), _CHUNK)]
    return iter(
        DataLoader(
            _Scaled(files, pixels),
            batch_size=None,
            sampler=parts,
            num_workers=worker_count(None) if len(parts) > 1 else 0,
            collate_fn=_as_it_is,
            worker_init_fn=begun,
        )
    )


class _Scaled(Dataset[Any]):
    def __init__(self, files: FilePictures, pixels: int) -> None:
        self.files = files
        self.pixels = pixels

    def __getitem__(self, ids: range) -> _Chunk:
        contents: list[bytes] = []
        for which in ids:
            try:
                contents.append(self._one(which))
            except UnreadableError as error:
                return *_end_to_end(contents), str(error)
        return *_end_to_end(contents), ""

    def _one(self, which: int) -> bytes:
        """The shorter side scaled as evaluation scales it; a picture that is no larger stays the file that it is."""
        from PIL import Image
        from torchvision.transforms import v2

        picture = self.files.read(which)
        if min(picture.shape[1:]) <= self.pixels:
            return self.files.content(which)
        small = v2.functional.resize_image(picture, [self.pixels], antialias=True)
        written = io.BytesIO()
        Image.fromarray(small.permute(1, 2, 0).contiguous().numpy()).save(written, "JPEG", quality=95, subsampling=0)
        return written.getvalue()


def _end_to_end(contents: list[bytes]) -> tuple[Tensor, list[int]]:
    whole = bytearray().join(contents)
    return torch.frombuffer(whole, dtype=torch.uint8) if whole else torch.empty(0), [len(one) for one in contents]


def _as_it_is(chunk: Any) -> Any:
    return chunk
