"""Who trains a run: one lease, so that any number of processes on one results folder train each run once.

    results/runs/<id>/lease.1.json, lease.2.json, ...   one a start, made with O_EXCL, never removed once written

The lease with the highest number counts. Only its owner writes to it: touches it while it lives (the heartbeat) and
writes how it ended. Whoever finds it ended, or dead, may create the *next number*, which the file system grants to
one of them; so a takeover is a creation too, and no lease of a living owner is ever moved, locked or replaced. Nothing
here needs locks, which shared file systems often lack, or equal clocks.

The owner is the process that trains. A scheduler that starts one takes a lease too, "starting", so that no other
scheduler starts the same run meanwhile; the process that it started, which is told the number, takes the next one.

A lease is dead if its owner was a process of this machine that is gone, or if its heartbeat has not changed for `stale`
seconds of the watcher's own clock. An owner that was only asleep sees the higher number and lets go.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from sam_repro.files.atomic import write_atomic
from sam_repro.files.read import DamagedError, read_json
from sam_repro.record.folder import RunFolder

STARTING, RUNNING, STOPPED, FAILED, DONE = "starting", "running", "stopped", "failed", "done"
STALE = 300.0  # seconds without a heartbeat after which an owner counts as dead
HANDED = "SAM_REPRO_LEASE"  # the number that a scheduler's child takes over
_BEAT = 0.5  # seconds between two heartbeats of a process that trains; a sweep may be told a `stale` of two
_LOOK = 0.5


@dataclass(frozen=True)
class Lease:
    run: RunFolder
    number: int
    content: dict[str, Any]

    @property
    def path(self) -> Path:
        return self.run.lease(self.number)

    @property
    def state(self) -> str:
        # Its owner has created it and not written to it yet, or died in between.
        return str(self.content.get("state", RUNNING))

    @property
    def held(self) -> bool:
        """By its word: its owner may be dead."""
        return self.state in (STARTING, RUNNING)

    @property
    def here(self) -> bool:
        """Whether its owner is, or was, a process that can be looked for."""
        return _place() is not None and self.content.get("place") == _place()

    def gone(self) -> bool:
        """Whether its owner is known to be dead."""
        return self.here and not _lives(self.content)

    def beat(self) -> bool:
        """Tell that the owner lives. Whether the lease is still the owner's."""
        with suppress(OSError):  # a file system that is away for a moment
            os.utime(self.path)
        # `Path.exists` would raise then, and this heart would stop for good.
        return not os.path.exists(self.run.lease(self.number + 1))

    def end(self, state: str, error: str = "") -> None:
        """Say how it ended. The next lease may be made from here on."""
        content = self.content | {"state": state} | ({"error": error} if error else {})
        write_atomic(self.path, json.dumps(content) + "\n")


def latest(run: RunFolder) -> Lease | None:
    """The lease that counts."""
    number = max(run.lease_numbers(), default=None)
    if number is None:
        return None
    try:
        content = read_json(run.lease(number))
    except (FileNotFoundError, DamagedError):
        content = {}
    return Lease(run, number, content if isinstance(content, dict) else {})


@dataclass
class Watch:
    """Knows which leases are dead. A scheduler keeps one for as long as it lives."""

    stale: float = STALE
    seen: dict[Path, tuple[int, float, bool]] = field(default_factory=dict)  # heartbeat, first seen when, ever changed

    def dead(self, lease: Lease) -> bool:
        if lease.gone():
            return True
        try:
            heartbeat = lease.path.stat().st_mtime_ns
        except OSError:
            return False
        known = self.seen.get(lease.path)
        if known is None or known[0] != heartbeat:
            self.seen[lease.path] = (heartbeat, time.monotonic(), known is not None)
            return False
        return time.monotonic() - known[1] > self.stale

    def lives(self, lease: Lease) -> bool:
        """Whether its owner is known to live: it is a process of this machine, or its heart has beaten since."""
        known = self.seen.get(lease.path)
        return (lease.here and not lease.gone()) or (known is not None and known[2])

    def acquire(self, run: RunFolder, state: str = RUNNING, handed: int | None = None) -> Lease | None:
        """The run is ours, or None: somebody else's. `handed`: the number of a lease that was taken for us."""
        last = latest(run)
        ours = last is not None and last.state == STARTING and last.number == handed
        if last is not None and last.held and not ours and not self.dead(last):
            return None
        content = _owner() | {"state": state} | ({"handed": handed} if ours else {})
        lease = Lease(run, last.number + 1 if last else 1, content)
        run.path.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(lease.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            return None
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(json.dumps(lease.content) + "\n")
        except OSError:  # of a full disk: an empty lease would count as somebody's until it is stale
            lease.path.unlink(missing_ok=True)
            raise
        return lease


def to_train(run: RunFolder, give_up: Callable[[], bool], say: Callable[[str], None]) -> Lease | None:
    """The lease for this process to train, or None: another process has it.

    Of an owner on another machine only the heart tells whether it lives, so this may wait for a beat of it, or until
    it counts as dead.
    """
    handed, said = os.environ.get(HANDED, ""), False
    watch = Watch()
    while (lease := watch.acquire(run, handed=int(handed) if handed.isdecimal() else None)) is None:
        last = latest(run)
        if give_up() or (last is not None and last.held and watch.lives(last)):
            return None
        if not said and last is not None:
            said = True
            host = last.content.get("host", "a machine it does not name")
            say(f"trained on {host}, it says: looking for a sign of life, {STALE:.0f} s at most")
        time.sleep(_LOOK)
    return lease


@contextmanager
def kept(lease: Lease, lost: Callable[[], None], every: float = _BEAT) -> Iterator[None]:
    """Its heart beats in a thread of this process. `lost` is called there if another process has taken it over."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(every):
            if not lease.beat():
                lost()
                return

    heart = threading.Thread(target=beat, name="lease", daemon=True)
    heart.start()
    try:
        yield
    finally:
        done.set()
        heart.join()


def _owner() -> dict[str, Any]:
    me = os.getpid()
    return {"host": socket.gethostname(), "process": me, "born": _born(me), "place": _place()}


def _lives(owner: dict[str, Any]) -> bool:
    """A process with that number is another one if it was not born then."""
    return owner.get("born") is not None and _born(owner.get("process")) == owner["born"]


def _born(process: Any) -> int | None:
    """When it started, in the kernel's ticks since boot, which no clock moves; None: there is no such process."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])  # a zombie lives no more


@cache
def _place() -> str | None:
    """Where a process number means something: one boot of one machine, one container. Host names are not unique."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}:{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return None
