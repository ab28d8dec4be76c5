"""What the world asks of a running training: to save, or to save and stop."""

from __future__ import annotations

import time

import torch
from torch import Tensor

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


class Answer:
    """What all ranks asked for in a step, on its way from the device. Nobody waits for it but who reads it."""

    def __init__(self, asked: Tensor) -> None:
        self.value = asked
        self.arrived: torch.cuda.Event | None = None
        if asked.device.type == "cuda":
            self.value = torch.empty((), pin_memory=True).copy_(asked, non_blocking=True)
            self.arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self.arrived.record()

    def read(self) -> float:
        if self.arrived is not None:
            self.arrived.synchronize()
        return float(self.value)


class Answers:
    """Reads them a step late, so that the host can queue a step while the device is at the one before.

    All ranks read the same ones at the same step, and so stop and save together.
    """

    def __init__(self) -> None:
        self.pending: list[float | Answer] = []

    def after(self, answer: float | Answer, now: bool) -> float:
        """The largest of what can be read after a step. now: its own answer, too, for it is waited for anyway."""
        self.pending.append(answer)
        late = 0 if now or not isinstance(answer, Answer) else 1
        ready, self.pending = self.pending[: len(self.pending) - late], self.pending[len(self.pending) - late :]
        return max((a.read() if isinstance(a, Answer) else a for a in ready), default=NOTHING)

    def forget(self) -> None:
        """What was asked before a checkpoint is answered by it; a signal goes on asking."""
        self.pending.clear()
