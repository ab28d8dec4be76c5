"""The signals that ask a run to save and stop: SIGTERM, SIGUSR1, SIGUSR2 and Ctrl-C. Imports no torch.

A handler only notes that it was asked. So a signal during start-up or the final writes is as good as one during
training: the run stops at its next step, with a checkpoint, or is done before that. Until somebody listens, a process
has nothing to save, and a signal ends it as it ends any program.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from types import FrameType
from typing import Any

STOPPING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT)

# What was received, in order. A multirun looks here before it starts its next member.
received: list[int] = []

_before: dict[int, Any] = {}


def begin() -> None:
    """The first act of a process: a Ctrl-C during the imports, or a reader who leaves, is no error to report.

    Python would raise an exception in whatever line it is, and some turn that into another error or can't pass it on.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _open()
    sys.stdout, sys.stderr = _patient(sys.stdout), _patient(sys.stderr)


def listen() -> None:
    """From now on signals are noted. A second Ctrl-C stops at once."""
    for number in STOPPING:
        handler = signal.signal(number, _note)
        _before.setdefault(number, handler)


def release() -> None:
    """Give the signals back to whoever had them: a job of submitit requeues itself by its own handler."""
    for number, handler in _before.items():
        signal.signal(number, signal.SIG_DFL if handler is None else handler)
    _before.clear()


def _note(number: int, frame: FrameType | None) -> None:
    impatient = number == signal.SIGINT and signal.SIGINT in received
    received.append(number)
    if impatient:
        raise KeyboardInterrupt


def _open() -> None:
    """Who starts a command without one of the three files (`>&-`) wants nothing of it; Python has None in its place,
    and the next file that is opened would have its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest number that is free
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


class _Pipe(io.FileIO):
    """What is written after the reader has left (`| head`, a closed window) is lost, and the writer goes on."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in _LEFT:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            return len(data)


_LEFT = (errno.EPIPE, errno.EIO)  # EIO: of a terminal


def _patient(out: Any) -> Any:
    """The same file, through a `_Pipe`; one that is no file of the process's own stays as it is."""
    if out not in (sys.__stdout__, sys.__stderr__):
        return out
    out.flush()
    raw = io.BufferedWriter(_Pipe(out.fileno(), "w", closefd=False))
    return io.TextIOWrapper(
        raw, out.encoding, out.errors, line_buffering=out.line_buffering, write_through=out.write_through
    )
