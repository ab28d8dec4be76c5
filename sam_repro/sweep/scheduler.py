"""Runs tasks on slots until all are done or failed, beside any other scheduler on the same results folder."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from sam_repro.errors import DISK_FULL, INTERRUPTED
from sam_repro.runs import lease as leases
from sam_repro.runs.outcome import finished, in_words
from sam_repro.sweep.child import STOPPED, Child, tail
from sam_repro.sweep.live import View
from sam_repro.sweep.queue import queue, unqueue
from sam_repro.sweep.slots import Slot
from sam_repro.sweep.work import Task

FAILED = 1
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_TICK = 0.1
_LOOK_AGAIN = 1.0  # seconds between two looks at a run that somebody else trains
_RETRY, _RETRY_AT_MOST = 2.0, 300.0  # seconds before a run that stopped is started again, doubled each time


class Scheduler:
    """`patience`: seconds after which it leaves a run to whoever trains it; without slots it only watches."""

    def __init__(
        self, tasks: Sequence[Task], slots: Sequence[Slot], stale: float, view: View, patience: float = math.inf
    ) -> None:
        self.waiting = list(tasks)
        self.slots, self.view = list(slots), view
        self.watch = leases.Watch(stale)
        self.beat_every = min(30.0, stale / 5)
        self.running = list[Child]()
        self.failed = list[Task]()
        self.gives_way = time.monotonic() + patience
        self.stops = self.interrupts = 0  # signals that asked us to end; of them, Ctrl-C
        self.said = self.disk_full = False
        # A run that failed before is tried again; one that fails elsewhere while we live is not.
        self.tried = {task.id: last.number for task in tasks if (last := leases.latest(task.run))}
        self.not_before = dict[str, float]()
        self.retry_after = dict[str, float]()

    def run(self, tick: Callable[[], None] = lambda: None) -> int:
        """0: all done; 1: a run failed; 74: the disk is full; 75: stopped by a signal. `tick`: called now and then."""
        beat = 0.0
        with self._listening():
            try:
                while self.running or (self.waiting and not self.stops):
                    if self.stops:
                        self._pass_on()
                    for child in list(self.running):
                        self._look_after(child)
                    if time.monotonic() >= beat:
                        self._beat()
                        beat = time.monotonic() + self.beat_every
                    if not self.stops:
                        self._fill()
                    tick()
                    self.view.refresh(self.running, len(self.waiting))
                    time.sleep(_TICK)
            finally:
                for child in self.running:  # only if we crash ourselves
                    child.ask_to_stop()
                for task in self.waiting:
                    unqueue(task.run)
        if self.disk_full:
            return DISK_FULL
        return INTERRUPTED if self.waiting and self.stops else FAILED if self.failed else 0

    def _fill(self) -> None:
        """Start what can be started."""
        used = [child.slot for child in self.running]
        free = [slot for number, slot in enumerate(self.slots) if not _taken(slot, self.slots[:number], used)]
        for task in list(self.waiting):
            if self.stops or (self.slots and not free):
                return
            if time.monotonic() < self.not_before.get(task.id, 0.0) or self._ended_elsewhere(task):
                continue
            lease = self.watch.acquire(task.run, leases.STARTING) if free else None
            if lease is None:
                self.not_before[task.id] = time.monotonic() + _LOOK_AGAIN
                if time.monotonic() > self.gives_way:
                    self._drop(task)
                    self.view.say(f"left    {task.name} ({task.id}): somebody else trains it")
            elif task.done():  # by somebody else, between our two looks
                lease.end(leases.DONE)
                self._drop(task)
                self._say_done_elsewhere(task)
            else:
                self._drop(task)
                self.running.append(Child(task, free.pop(0), lease))
                self.view.started(self.running[-1])

    def _ended_elsewhere(self, task: Task) -> bool:
        if task.done():
            self._drop(task)
            self._say_done_elsewhere(task)
            return True
        last = leases.latest(task.run)
        if last is None or last.state != leases.FAILED or last.number <= self.tried.get(task.id, 0):
            return False
        self.give_up(task, f"failed on {last.content.get('host')}")
        return True

    def _say_done_elsewhere(self, task: Task) -> None:
        summary = finished(task.run)
        self.view.done(task, f"{in_words(summary)}, trained elsewhere" if summary else "trained elsewhere")

    def give_up(self, task: Task, why: str) -> None:
        """A run that failed elsewhere."""
        if task in self.waiting:
            self._drop(task)
            self.failed.append(task)
            self.view.failed(task, why, tail(task.log))

    def _look_after(self, child: Child) -> None:
        code = child.process.poll()
        if code is None:
            return
        self.running.remove(child)
        task, summary = child.task, finished(child.task.run)
        if child.abandoned:
            self.waiting.append(task)
        elif code == 0 and summary is not None:
            self.view.done(child.task, in_words(summary))
        elif code in STOPPED or (child.asked and code in (FAILED, -signal.SIGKILL)):
            # Asked while it was starting up, it may end by whatever was half ready; the next start will tell.
            child.ended(leases.STOPPED)
            self._later(task)
            self.view.stopped(child)
        else:
            self._failed(child, code)

    def _failed(self, child: Child, code: int) -> None:
        said = [line for line in child.tail() if line.strip()] or ["it said nothing"]
        child.ended(leases.FAILED, said[-1].strip())
        self.failed.append(child.task)
        how = f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
        self.view.failed(child.task, how, child.tail())
        if code == DISK_FULL and not self.stops:
            self.view.say("the disk is full: nothing more is started")
            self.disk_full = True
            self.stops += 1

    def _later(self, task: Task) -> None:
        """The run was stopped, or somebody else was faster: again, ever more patiently."""
        wait = self.retry_after.get(task.id, _RETRY)
        self.retry_after[task.id] = min(2 * wait, _RETRY_AT_MOST)
        self.not_before[task.id] = time.monotonic() + wait
        self.waiting.append(task)

    def _beat(self) -> None:
        for child in self.running:
            if not child.beat() and not child.abandoned:
                # We were taken for dead. The run is somebody else's now, its folder too: not a byte more from us.
                child.abandoned = True
                child.kill()
        if not self.stops:
            for task in self.waiting:
                queue(task.run)

    def _drop(self, task: Task) -> None:
        self.waiting.remove(task)
        unqueue(task.run)

    @contextmanager
    def _listening(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._stop) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler or signal.SIG_DFL)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stops += 1
        self.interrupts += number == signal.SIGINT

    def _pass_on(self) -> None:
        """Each run is asked once to save and end; a second Ctrl-C does not wait for that."""
        if not self.said:
            self.said = True
            self.view.stopping(len(self.running))
        for child in self.running:
            if self.interrupts > 1:
                child.kill()
            elif not child.asked:
                child.ask_to_stop()


def _taken(slot: Slot, before: Sequence[Slot], used: Sequence[Slot]) -> bool:
    """Slots on one GPU are equal: as many of them are taken as runs are on it."""
    return before.count(slot) < used.count(slot)
