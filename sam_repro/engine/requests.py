"""What the world asks of a running training: to save, or to save and stop."""

from __future__ import annotations

import signal
import time
from types import FrameType

NOTHING, SAVE, STOP = 0.0, 1.0, 1000.0  # summed over ranks, so that every rank learns of any other's

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)


class Interrupted(Exception):
    """A signal asked the run to stop; its checkpoint is written."""


class Requests:
    """SIGTERM, SIGUSR1 and Ctrl-C ask to save and stop, the clock asks to save. A second Ctrl-C stops at once."""

    def __init__(self, minutes: float, main: bool) -> None:
        self.seconds, self.main = minutes * 60, main
        self.stop = False
        self.saved_at = time.monotonic()
        self.before = {s: signal.signal(s, self._on_signal) for s in SIGNALS}

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self.stop:
            raise KeyboardInterrupt
        self.stop = True

    def now(self) -> float:
        if self.stop:
            return STOP
        return SAVE if self.main and time.monotonic() - self.saved_at > self.seconds else NOTHING

    def saved(self) -> None:
        self.saved_at = time.monotonic()

    def release(self) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler or signal.SIG_DFL)
