"""One process at a time, also where the file system has no flock."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLock

# What network and user-space file systems answer that have no flock. (filelock itself knows ENOSYS.)
_NO_FLOCK = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Waits until no other process is inside. Without flock the lock is a file that exists, taken away at the end.

    A process that was killed leaves that file; filelock takes it over where its host is this one and it is gone.
    """
    lock: BaseFileLock = FileLock(path)
    try:
        lock.acquire()
    except OSError as error:
        if error.errno not in _NO_FLOCK:
            raise
        lock = SoftFileLock(f"{os.fspath(path)}.held")  # `path` itself is there already, and stays
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
