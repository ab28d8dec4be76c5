"""Checkpoints that survive a kill at every line: whole or absent, verified before they are believed, two kept.

`<folder>/<step>/` holds one file a rank and `manifest.json`, written last, with the SHA-256 of each. Without a
manifest, or with a file that does not match it, a checkpoint does not count and the one before is taken. Files load
with `weights_only=True`: tensors, numbers and strings, no code. A checkpoint's name is the step in digits, then a plus
for each good one of the same step that it replaces; whatever else lies in the folder, links above all, is left alone.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import re
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from sam_repro.engine.ranks import Ranks
from sam_repro.errors import Shared
from sam_repro.files.atomic import write_atomic
from sam_repro.files.digest import file_sha256

KEEP = 2
MANIFEST = "manifest.json"
NAME = re.compile(r"[0-9]{9,}\+*")
# What reading a thing of another form than expected may raise.
MALFORMED = (
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    RuntimeError,
    EOFError,
    pickle.UnpicklingError,
)

State = dict[str, Any]


class Misfit(ValueError):
    """A checkpoint that is whole but not of this run. The message says which and why."""


@dataclass(frozen=True)
class Stored:
    """A checkpoint that holds: the shares of the ranks that wrote it."""

    folder: Path
    count: int

    def share(self, rank: int) -> State:
        """Mapped, not read: a tensor takes memory when it is copied, and only the part of a share that is wanted."""
        file = self.folder / f"rank{rank}.pt"
        try:
            found: State = torch.load(file, map_location="cpu", weights_only=True, mmap=True)
        except MALFORMED as error:
            raise Misfit(f"{file.name}: {error}") from error
        return found


class Checkpoints:
    def __init__(self, folder: Path, ranks: Ranks) -> None:
        self.folder, self.ranks = folder, ranks
        self.rejected = set[Path]()  # what `load` found not to hold

    def save(self, step: int, mine: State) -> None:
        """Every rank calls it with its own share. Raises the OSError of whichever rank could not write."""
        main = self.ranks.main
        folder, failed = self.ranks.share(self._begun(step) if main else None)
        if failed is None:
            name, content = f"rank{self.ranks.rank}.pt", io.BytesIO()
            torch.save(mine, content)
            digest = hashlib.sha256(content.getbuffer()).hexdigest()
            mishap = failure(lambda: write_atomic(folder / name, content.getvalue()))
            parts = self.ranks.gather((name, digest, mishap))
            failed = next((mishap for _, _, mishap in parts if mishap is not None), None)
            if failed is None and main:
                manifest = {"step": step, "files": {name: digest for name, digest, _ in parts}}
                failed = failure(lambda: write_atomic(folder / MANIFEST, json.dumps(manifest, indent=2)))
            failed = self.ranks.share(failed)
        if main:
            good = [one for one in self._newest_first() if one not in self.rejected]
            for old in [folder] if failed is not None else {*good[KEEP:], *self.rejected}:
                shutil.rmtree(old, ignore_errors=True)
        if failed is not None:
            raise OSError(*failed)

    def load(self) -> tuple[Stored | None, list[str]]:
        """(the newest checkpoint that holds, why newer ones did not)."""
        chosen: Stored | None = None
        rejected: list[str] = []
        mistake = ""
        if self.ranks.main:
            if self.folder.is_symlink() or (self.folder.exists() and not self.folder.is_dir()):
                mistake = f"{self.folder} must be a folder, not a link or a file: remove it"
            for folder in self._newest_first():
                problem, count = _verdict(folder)
                if problem is None:
                    chosen = Stored(folder, count)
                    break
                rejected.append(problem)
                self.rejected.add(folder)
        if mistake := self.ranks.share(mistake):
            raise Shared(mistake)
        return self.ranks.share(chosen), rejected

    def remove(self) -> None:
        if self.ranks.main:
            for folder in self._newest_first():
                shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # something else is in there, or nothing ever was
                self.folder.rmdir()
        self.ranks.barrier()

    def _begun(self, step: int) -> tuple[Path, tuple[int | None, str] | None]:
        """An empty folder for a checkpoint. A good one of the same step stays until the new one is whole."""
        folder = self.folder / f"{step:09d}"
        while folder.is_symlink() or (folder.exists() and (not folder.is_dir() or _verdict(folder)[0] is None)):
            folder = folder.with_name(folder.name + "+")
        shutil.rmtree(folder, ignore_errors=True)
        return folder, failure(lambda: folder.mkdir(parents=True))

    def _newest_first(self) -> list[Path]:
        if self.folder.is_symlink():
            return []
        own = [f for f in self.folder.glob("*") if NAME.fullmatch(f.name) and f.is_dir() and not f.is_symlink()]
        return sorted(own, key=lambda f: (int(f.name.rstrip("+")), len(f.name)), reverse=True)


def failure(write: Callable[[], object]) -> tuple[int | None, str] | None:
    """What kept this from being written, in a form that a rank can send to the others; None where nothing did."""
    try:
        write()
    except OSError as error:
        return error.errno, str(error)
    return None


def _verdict(folder: Path) -> tuple[str | None, int]:
    """(why a checkpoint can't be believed or None, of how many ranks it is)."""
    try:
        files = json.loads(_own(folder / MANIFEST).read_bytes())["files"]
        if set(files) != {f"rank{i}.pt" for i in range(len(files))} or not files:
            raise ValueError("not the files of ranks")
        for name, digest in files.items():
            if file_sha256(_own(folder / name)) != digest:
                return f"{folder.name}/{name} is torn or was altered", 0
    except FileNotFoundError as error:
        return f"{folder.name} is incomplete ({Path(str(error.filename)).name} is missing)", 0
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return f"{folder.name}/{MANIFEST} can't be read", 0
    return None, len(files)


def _own(file: Path) -> Path:
    """A file of the checkpoint's own: no link is followed, no pipe waited for."""
    if not stat.S_ISREG(file.lstat().st_mode):
        raise OSError(f"{file.name} is no file")
    return file
