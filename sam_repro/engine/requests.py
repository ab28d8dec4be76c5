"""What the world asks of a running training: to save, or to save and stop."""

from __future__ import annotations

import time

from sam_repro import signals

NOTHING, SAVE, STOP = 0.0, 1.0, 1000.0  # summed over ranks, so that every rank learns of any other's


class Interrupted(Exception):
    """A signal asked the run to stop; its checkpoint is written."""


class Requests:
    """Signals ask to save and stop, the main rank's clock asks to save."""

    def __init__(self, minutes: float, main: bool) -> None:
        self.seconds, self.main = minutes * 60, main
        self.saved_at = time.monotonic()

    def now(self) -> float:
        if signals.received:
            return STOP
        return SAVE if self.main and time.monotonic() - self.saved_at > self.seconds else NOTHING

    def saved(self) -> None:
        self.saved_at = time.monotonic()
