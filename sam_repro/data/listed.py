"""The images of class folders as one array, and a listing that is kept, so that a million names are read once.

A file that comes, goes or is renamed changes the times of the folder that holds it. So a listing is kept in the user's
cache beside the times of all folders that were looked into, and holds as long as these do: a thousand folders are asked
in place of a million files. What is torn, foreign or of other times is no listing, and is made anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sam_repro.data.listing import SETTLED_SECONDS, Times, cached_at, times, walked
from sam_repro.files.atomic import write_atomic
from sam_repro.files.read import DamagedError, read_bytes

Names = NDArray[np.bytes_]  # all of one width: a million Python strings would be copied to each worker
WORTH_KEEPING = 10_000  # images; fewer are listed in no time
_MOST = 1 << 32  # bytes of a listing
_OF_ANOTHER_FORM = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    RecursionError,
)  # whole, but no listing as it is made here


def listed(folder: Path, classes: Sequence[str]) -> tuple[Names, list[int]]:
    """The paths of the images of folder/<class>, class after class, and how many each class has."""
    cache = cached_at("listings", folder)
    kept = _kept(cache, folder, classes) if cache is not None else None
    if kept is None:
        parts, state = [np.empty(0, "S1")], dict[str, Times]()
        for name in classes:
            images, folders = walked(folder / name)
            parts.append(np.array([os.fsencode(f"{name}/{image}") for image in images], np.bytes_))
            state |= {f"{name}/{below}": of for below, of in folders.items()}
        kept = np.concatenate(parts), [len(part) for part in parts[1:]]
        if cache is not None and len(kept[0]) >= WORTH_KEEPING and _holds(folder, state) and _settled(state):
            with suppress(OSError):  # a home that can't be written costs time alone
                cache.parent.mkdir(parents=True, exist_ok=True)
                write_atomic(cache, _record(classes, state, *kept))
    return below(folder, kept[0]), kept[1]


def _holds(folder: Path, state: dict[str, Times]) -> bool:
    return all(of is not None and times(folder / below) == of for below, of in state.items())


def _settled(state: dict[str, Times]) -> bool:
    """What has just changed may change again without its times showing it."""
    return all(max(of[:2]) / 1e9 + SETTLED_SECONDS < time.time() for of in state.values() if of)


def _record(classes: Sequence[str], state: dict[str, Times], names: Names, counts: list[int]) -> bytes:
    """What the listing is of, and the names."""
    head: dict[str, Any] = {"classes": list(classes), "counts": counts, "width": names.itemsize, "folders": state}
    return checked(json.dumps(head).encode() + b"\n" + names.tobytes())


def checked(content: bytes) -> bytes:
    """After its checksum: what is torn is no listing."""
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def _kept(cache: Path, folder: Path, classes: Sequence[str]) -> tuple[Names, list[int]] | None:
    with suppress(FileNotFoundError, DamagedError, *_OF_ANOTHER_FORM):
        whole = read_bytes(cache, _MOST)
        _, _, content = whole.partition(b"\n")
        if checked(content) != whole:
            return None
        line, _, names = content.partition(b"\n")
        head = json.loads(line)
        if head["classes"] == list(classes) and _holds(folder, head["folders"]):
            return np.frombuffer(names, f"S{head['width']}"), head["counts"]
    return None


def below(folder: Path, names: Names) -> Names:
    """The folder's path before each of the names."""
    prefix = np.frombuffer(os.fsencode(folder / "-")[:-1], np.uint8)
    paths = np.empty((len(names), len(prefix) + names.itemsize), np.uint8)
    paths[:, : len(prefix)] = prefix
    paths[:, len(prefix) :] = np.ascontiguousarray(names).view(np.uint8).reshape(len(names), names.itemsize)
    found: Names = paths.view(f"S{paths.shape[1]}")[:, 0]
    return found
