"""Who trains a run: claim files, so that any number of schedulers on one results folder train each run once.

    results/runs/<id>/claim.1.json, claim.2.json, ...   one a start, made with O_EXCL and never removed
    results/runs/<id>/claim.json                        a link to the one that counts, for `status`

The claim with the highest number counts. Only its owner writes to it: touches it while it lives (the heartbeat) and
writes how it ended. Whoever finds it ended, or dead, may create the *next number*, which the file system grants to
one of them; so a takeover is a creation too, and no claim of a living owner is ever moved, locked or replaced. Nothing
here needs locks, which shared file systems often lack, or equal clocks.

A running claim is dead if its owner was a process of this machine that is gone, or if its heartbeat has not changed for
`stale` seconds of the watcher's own clock. An owner that was only asleep sees the higher number and lets go.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from sam_repro.record import write_atomic
from sam_repro.tables.status import CLAIM, read_json

QUEUED, RUNNING, STOPPED, FAILED, DONE = "queued", "running", "stopped", "failed", "done"
_NAME = re.compile(r"claim\.([1-9]\d*)\.json")
_QUEUE = "claim.0.json"  # only says that some scheduler has the run on its list


@dataclass(frozen=True)
class Claim:
    folder: Path
    number: int
    content: dict[str, Any]

    @property
    def path(self) -> Path:
        return self.folder / f"claim.{self.number}.json"

    @property
    def state(self) -> str:
        # Its owner has created it and not written to it yet, or died in between.
        return str(self.content.get("state", RUNNING))

    def beat(self) -> bool:
        """Tell that the owner lives. Whether the claim is still the owner's."""
        with suppress(OSError):  # a file system that is away for a moment
            os.utime(self.path)
        return not (self.folder / f"claim.{self.number + 1}.json").exists()

    def end(self, state: str, error: str = "") -> None:
        """Say how it ended. The next claim may be made from here on."""
        content = self.content | {"state": state} | ({"error": error} if error else {})
        write_atomic(self.path, json.dumps(content) + "\n")


def latest(folder: Path) -> Claim | None:
    """The claim that counts."""
    with suppress(FileNotFoundError):
        numbers = [int(match[1]) for name in os.listdir(folder) if (match := _NAME.fullmatch(name))]
        if numbers:
            number = max(numbers)
            return Claim(folder, number, read_json(folder / f"claim.{number}.json"))
    return None


@dataclass
class Watch:
    """Knows which claims are dead. A scheduler keeps one for as long as it lives."""

    stale: float
    seen: dict[Path, tuple[int, float]] = field(default_factory=dict)  # heartbeat, and when it was first seen

    def dead(self, claim: Claim) -> bool:
        if _place() is not None and claim.content.get("place") == _place() and not _lives(claim.content):
            return True
        try:
            heartbeat = claim.path.stat().st_mtime_ns
        except OSError:
            return False
        known = self.seen.get(claim.path)
        if known is None or known[0] != heartbeat:
            self.seen[claim.path] = (heartbeat, time.monotonic())
            return False
        return time.monotonic() - known[1] > self.stale

    def acquire(self, folder: Path) -> Claim | None:
        """The run is ours to train, or None: somebody else's."""
        last = latest(folder)
        if last is not None and last.state == RUNNING and not self.dead(last):
            return None
        claim = Claim(folder, last.number + 1 if last else 1, _owner())
        folder.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(claim.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            return None
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(json.dumps(claim.content) + "\n")
        _show(folder, claim.path.name)
        return claim


def queue(folder: Path) -> None:
    """Show the run as on a scheduler's list; again and again, since the mark fades like a heartbeat."""
    mark = folder / _QUEUE
    if mark.exists():
        os.utime(mark)
        return
    folder.mkdir(parents=True, exist_ok=True)
    mark.write_text(json.dumps(_owner() | {"state": QUEUED}) + "\n", encoding="utf-8")
    last = latest(folder)
    if last is None or last.state != RUNNING:
        _show(folder, _QUEUE)


def unqueue(folder: Path) -> None:
    """Take the mark away, and the folder that was made for it."""
    with suppress(OSError):
        (folder / _QUEUE).unlink()
    with suppress(OSError):
        if os.readlink(folder / CLAIM) == _QUEUE:
            last = latest(folder)
            if last is None:
                (folder / CLAIM).unlink()
                folder.rmdir()
            else:
                _show(folder, last.path.name)


def _show(folder: Path, name: str) -> None:
    """Point `claim.json` there. On a file system without links `status` still sees the run's own files."""
    temporary = folder / f".{CLAIM}.{socket.gethostname()}-{os.getpid()}"
    with suppress(OSError):
        temporary.symlink_to(name)
        temporary.replace(folder / CLAIM)


def _owner() -> dict[str, Any]:
    me = os.getpid()
    return {"state": RUNNING, "host": socket.gethostname(), "process": me, "born": _born(me), "place": _place()}


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
