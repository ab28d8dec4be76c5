"""One run as a process of its own: `python -m sam_repro OVERRIDES`, its output in a log."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import sam_repro
from sam_repro.errors import INTERRUPTED
from sam_repro.machine import SHARE
from sam_repro.record.labels import GROUP, TAGS
from sam_repro.runs.lease import HANDED, Lease, latest
from sam_repro.sweep.slots import Slot
from sam_repro.sweep.work import Task

# A signal that came before the run listened to it ends it as well; it has lost nothing.
STOPPED = (INTERRUPTED, -signal.SIGTERM, -signal.SIGUSR1, -signal.SIGUSR2, -signal.SIGINT)
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None  # loaded before the fork
_TAIL = 15  # lines


class Child:
    def __init__(self, task: Task, slot: Slot, lease: Lease) -> None:
        self.task, self.slot, self.lease = task, slot, lease
        self.began = time.monotonic()
        self.asked = False  # to save and end
        self.abandoned = False  # somebody has taken the run over
        task.log.parent.mkdir(parents=True, exist_ok=True)
        with open(task.log, "ab") as log:
            self.log_from = log.tell()
            self.process = subprocess.Popen(
                command(task, slot),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment(slot) | labelled(task) | {HANDED: str(lease.number)},
                start_new_session=True,  # Ctrl-C is for the scheduler, which asks its runs to save
                preexec_fn=_end_with_scheduler,  # safe: the scheduler has one thread
            )

    def beat(self) -> bool:
        """Keep the lease until the process has its own. Whether the run is still this process's or ours."""
        last = latest(self.task.run)
        return self.lease.beat() or last is None or last.content.get("handed") == self.lease.number

    def ended(self, state: str, error: str = "") -> None:
        """Say how it ended, unless the process said so itself or the run is another's by now."""
        last = latest(self.task.run)
        if last is not None and last.held and self.lease.number in (last.number, last.content.get("handed")):
            last.end(state, error)

    def ask_to_stop(self) -> None:
        """Save and end. To the run's own process: its helpers must live until it has saved."""
        self.asked = True
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def tail(self) -> list[str]:
        return tail(self.task.log, self.log_from)


def tail(path: Path, start: int = 0) -> list[str]:
    """The last lines of a log; of those after `start`, where this start of the run began to write."""
    with suppress(OSError), open(path, "rb") as log:
        log.seek(max(start, os.fstat(log.fileno()).st_size - 10_000))
        return log.read().decode(errors="replace").splitlines()[-_TAIL:]
    return []


def command(task: Task, slot: Slot) -> list[str]:
    given = {override.partition("=")[0] for override in task.overrides}
    place = {"runtime.threads": slot.threads} | ({"runtime.device": "cuda"} if slot.gpu else {})
    words = [f"{key}={value}" for key, value in place.items() if key not in given]
    return [sys.executable, "-m", "sam_repro", *task.overrides, *words, f"results_dir={task.results}"]


def environment(slot: Slot) -> dict[str, str]:
    checkout = str(Path(sam_repro.__file__).parents[1])  # it need not be installed
    path = os.pathsep.join(filter(None, [checkout, os.environ.get("PYTHONPATH")]))
    share = {} if slot.cores is None else {SHARE: str(slot.cores)}
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **share, **slot.env}


def labelled(task: Task) -> dict[str, str]:
    """Where W&B files the run: in the group of its cell, tagged with its table, unless the user says otherwise."""
    table, _, _ = task.cell.partition(" ")
    tags = [tag for tag in os.environ.get(TAGS, "").split(",") if tag]
    return {GROUP: os.environ.get(GROUP) or task.cell, TAGS: ",".join([*tags, table])}


def _end_with_scheduler() -> None:
    """A run whose scheduler was killed saves and ends: nobody would hear how it ends."""
    # Slurm sends USR2 to every process of a job; the scheduler passes it on as TERM.
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
