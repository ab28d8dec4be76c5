"""How the project tells its user of a mistake, and with which code a process ends. Imports nothing of the project."""

from __future__ import annotations

import difflib
import errno
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import NoReturn, Protocol

# Exit codes, as in sysexits.h where it has one. 0: done (a collapsed run too); 1: a crash, with its traceback.
USER_ERROR = 2
DISK_FULL = 74
INTERRUPTED = 75  # stopped by a signal with its checkpoint saved, or another process trains this run: try again

FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


class UserError(ValueError):
    """A mistake of the user's, told in one line that names the key and the fix."""


class Shared(UserError):
    """One that every rank of a run raises, so that one of them tells it."""


class Main(Protocol):
    def __call__(self, arguments: Sequence[str] | None = None) -> int: ...


def command(body: Callable[[list[str]], int]) -> Main:
    """The `main` of a command: it takes the words behind the command's name and returns the exit code."""

    @wraps(body)
    def main(arguments: Sequence[str] | None = None) -> int:
        try:
            return body(_of_one_line(list(sys.argv[1:] if arguments is None else arguments)))
        except UserError as mistake:
            if isinstance(cause := mistake.__cause__, OSError) and cause.errno in FULL:
                complain(full_disk(cause))  # whatever file it was that could not be written
                return DISK_FULL
            complain(str(mistake))
            return USER_ERROR
        except OSError as error:
            if (told := denied(error)) is not None:
                complain(told)
                return USER_ERROR
            if error.errno not in FULL:
                raise
            complain(full_disk(error))
            return DISK_FULL

    return main


def _of_one_line(words: list[str]) -> list[str]:
    """A line break in a folder's name would be a command in the script of a job that runs there."""
    for word in words:
        if re.search(r"[\x00-\x1f\x7f]", word):
            raise UserError(f"{word.partition('=')[0]!r}: a line break or another control character is in its value")
    return words


def complain(message: str, every_rank: bool = False) -> None:
    """Say what is wrong, in one line whatever the message's."""
    rank = os.environ.get("RANK", "0")
    if rank != "0" and not every_rank:
        return  # every rank of a launcher finds the same mistake in the configuration; one says it
    print(f"error: {'' if rank == '0' else f'rank {rank}: '}{' '.join(message.split())}", file=sys.stderr)


def end(code: int) -> NoReturn:
    """End a rank's process. Without the interpreter's own end: gloo's threads may abort it after an uneven one."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def full_disk(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    return f"the disk is full{where}; make room and run the same command again"


def denied(error: BaseException) -> str | None:
    """A file or folder that this user may not read or write: theirs to mend. None of any other error."""
    if not isinstance(error, OSError) or error.errno not in _DENIED or not error.filename:
        return None
    reason = os.strerror(error.errno).lower()
    return f"{error.filename}: {reason}; give yourself the right to it, or name another place"


def nearest(word: str, known: Iterable[str]) -> str:
    """ " Did you mean 'x'?", or nothing."""
    close = _closest(word, list(known))
    return f" Did you mean {close!r}?" if close else ""


def hint(word: str, known: Iterable[str]) -> str:
    """ "did you mean 'x'?", or all that there is."""
    known = list(known)
    close = _closest(word, known)
    return f"did you mean {close!r}?" if close else f"there are {', '.join(known)}"


def _closest(word: str, known: list[str]) -> str | None:
    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=0.5)), None)
