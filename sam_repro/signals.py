"""The signals that ask a run to save and stop: SIGTERM, SIGUSR1, SIGUSR2 and Ctrl-C. Imports no torch.

A handler only notes that it was asked. So a signal during start-up or the final writes is as good as one during
training: the run stops at its next step, with a checkpoint, or is done before that.
"""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

STOPPING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT)

# What was received, in order. A multirun looks here before it starts its next member.
received: list[int] = []

_before: dict[int, Any] = {}


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
