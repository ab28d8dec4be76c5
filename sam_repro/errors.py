"""How the project tells its user of a mistake, and with which code a process ends. Imports nothing of the project."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable
from typing import NoReturn

# Exit codes, as in sysexits.h where it has one. 0: done (a collapsed run too); 1: a crash, with its traceback.
USER_ERROR = 2
DISK_FULL = 74
INTERRUPTED = 75  # stopped by a signal with its checkpoint saved, or another process trains this run: try again


class UserError(ValueError):
    """A mistake of the user's, told in one line that names the key and the fix."""


def end(code: int) -> NoReturn:
    """End a rank's process. Without the interpreter's own end: gloo's threads may abort it after an uneven one."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def nearest(word: str, known: Iterable[str]) -> str:
    """ " Did you mean 'x'?", or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" Did you mean '{close[0]}'?" if close else ""
