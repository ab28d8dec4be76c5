"""Which files of a folder are images, in an order that any machine finds, and a digest of what is in them.

Imports no torch: a run's id needs it.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from sam_repro.errors import UserError
from sam_repro.files.atomic import write_atomic
from sam_repro.files.read import DamagedError, opened, read_json

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")


def subfolders(folder: Path) -> list[str]:
    """Sorted names, hidden ones left out; empty where there is no folder."""
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))


def halves(root: Path) -> tuple[Path, Path]:
    """The training and the test half: train/ and test/, or train/ and val/ where there is no test/."""
    return root / "train", root / ("test" if (root / "test").is_dir() or not (root / "val").is_dir() else "val")


def count_classes(root: str) -> int:
    """How many class folders the training half has."""
    train, _ = halves(Path(root).expanduser())
    if not (names := subfolders(train)):
        raise UserError(
            f"dataset=folder found no {train.absolute()} with class folders: set dataset.root= to a folder with "
            "train/<class>/<image> and test/<class>/<image> or val/<class>/<image>"
        )
    return len(names)


# What tells of a folder whether files came, went or were renamed; None: it can't be read.
Times = list[int] | None


def images(folder: Path) -> list[str]:
    """The names of all images below a class's folder, relative to it, sorted by their parts."""
    return walked(folder)[0]


def walked(folder: Path) -> tuple[list[str], dict[str, Times]]:
    """(images, the folders that were looked into, as they were before). Links to folders are not followed."""
    found: list[str] = []
    folders: dict[str, Times] = {}
    waiting = [""]
    while waiting:
        below = waiting.pop()
        folders[below] = times(folder / below)
        with suppress(OSError):  # a folder that can't be read is an empty one
            with os.scandir(folder / below) as scanned:
                entries = list(scanned)
            for entry in entries:
                if entry.is_dir():
                    waiting += [] if entry.is_symlink() else [f"{below}{entry.name}/"]
                elif entry.name.lower().endswith(SUFFIXES) and not entry.name.startswith("."):
                    found.append(below + entry.name)
    found.sort(key=None if len(folders) == 1 else lambda name: name.split("/"))
    return found, folders


def times(folder: Path) -> Times:
    try:
        s = folder.stat()
    except OSError:
        return None
    # The time of the last change of the inode can't be set by a program, as that of the content can.
    return [s.st_mtime_ns, s.st_ctime_ns, s.st_ino]


SETTLED_SECONDS = 2.0  # a file or folder younger than this may change again without its times showing it


def digest(root: str) -> str:
    """Of the names and contents of all images in both halves.

    Reading a large folder takes minutes, so the digest is kept in the user's cache beside what the file system says of
    each file (size, times, inode) and read again only where that has changed.
    """
    folder = Path(root).expanduser()
    classes = [half / name for half in halves(folder) for name in subfolders(half)]
    files = [one / name for one in classes for name in images(one)]
    state, newest = _state(folder, files)
    cache = cached_at("images", folder, ".json")
    if cache is not None and (kept := _kept(cache, state)):
        return kept
    found = hashlib.sha256()
    for file in files:
        try:
            with opened(file) as content:
                found.update(os.fsencode(file.relative_to(folder)) + b"\0")
                found.update(hashlib.file_digest(content, "sha256").digest())
        except (OSError, DamagedError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UserError(f"dataset.root={root}: {file} can't be read ({reason})") from error
    if cache is not None and newest + SETTLED_SECONDS < time.time() and _state(folder, files)[0] == state:
        with suppress(OSError):  # a home that can't be written costs time alone
            cache.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(cache, json.dumps(_record(state, found.hexdigest())) + "\n")
    return found.hexdigest()


def _state(folder: Path, files: Sequence[Path]) -> tuple[str, float]:
    """A digest of what the file system says of the files, and when the newest of them changed."""
    state, newest = hashlib.sha256(), 0.0
    for file in files:
        with suppress(OSError):  # to be told when it is read
            s = file.stat()
            # The time of the last change of the inode can't be set by a program, as that of the content can.
            facts = (s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino)
            state.update(os.fsencode(file.relative_to(folder)) + f"\0{facts}\0".encode())
            newest = max(newest, s.st_mtime, s.st_ctime)
    return state.hexdigest(), newest


def cached_at(kind: str, folder: Path, suffix: str = "") -> Path | None:
    """Where something that was found out about a folder is kept; None where there is no home."""
    name = hashlib.sha256(os.fsencode(folder.absolute())).hexdigest()[:16]
    with suppress(RuntimeError):
        home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
        return home / "sam_repro" / kind / f"{name}{suffix}"
    return None


def _kept(cache: Path, state: str) -> str | None:
    with suppress(FileNotFoundError, DamagedError):
        record = read_json(cache)
        if isinstance(record, dict) and record == _record(state, str(record.get("images"))):
            return str(record["images"])
    return None


def _record(state: str, images_digest: str) -> dict[str, str]:
    """With a checksum of its own: a damaged record is none."""
    check = hashlib.sha256(f"{state} {images_digest}".encode()).hexdigest()
    return {"state": state, "images": images_digest, "check": check}
