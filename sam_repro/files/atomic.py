"""Files that are whole or absent: what a run writes must survive `kill -9`, a full disk and a power cut.

A file is written under a temporary name in its own folder, flushed to the disk and renamed. A reader sees the old
content or the new one, never a mixture. Disk errors reach the caller as they are; no temporary file stays behind.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_SUFFIX = ".partial"


@contextmanager
def open_atomic(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file to write into; it takes the place of `path` when the block ends without an exception."""
    target = Path(path)
    # Unique, so that two writers of one path never write into each other's file: the last rename wins.
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}{_SUFFIX}")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(target.parent)


def write_atomic(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write the whole content of a small file. Text is UTF-8 and its newlines stay as they are."""
    with open_atomic(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def in_the_way(files: Iterable[Path], folders: Iterable[Path]) -> str:
    """What keeps files and folders from being written because it is none, such as a folder in a file's place; or ""."""
    for path in files:
        if os.path.lexists(path) and not path.is_file():
            return f"{path} is no file, and one is to be written there: move it away"
    for path in folders:
        if os.path.lexists(path) and not path.is_dir():
            return f"{path} is no folder, and one is to be written there: move it away"
    return ""


def sync_folder(folder: Path) -> None:
    """Make a rename or a new file in the folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Some shared file systems refuse to sync a folder; the rename itself has happened all the same.
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(folder: str | os.PathLike[str]) -> None:
    """Delete the temporary files of a writer that was killed. Only for the one process that owns the folder."""
    for leftover in Path(folder).glob(f".*{_SUFFIX}"):
        with suppress(OSError):
            leftover.unlink()
