"""In what state a run's folder is, from its lease and the scheduler's mark."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from sam_repro.record.folder import RunFolder
from sam_repro.runs.lease import FAILED, STALE, latest


class State(NamedTuple):
    name: str  # finished, running, queued, failed or missing
    heartbeat: float | None = None  # seconds since the last sign of life, of a run that is running
    note: str = ""


def state_of(run: RunFolder, now: float | None = None) -> State:
    if not run.path.is_dir():
        return State("missing")
    if run.done.exists():
        return State("finished")
    lease = latest(run)
    if lease is not None and lease.held and not lease.gone() and (age := _young(lease.path, now)) is not None:
        return State("running", age, str(lease.content.get("host", "")))
    if _young(run.queued, now) is not None:
        return State("queued")
    if lease is not None and lease.state == FAILED:
        return State("failed", note=str(lease.content.get("error", "")))
    return State("missing", note="started and stopped: it goes on from its checkpoint")


def _young(file: Path, now: float | None) -> float | None:
    """The seconds since it was written or touched, if it was within the time that a heartbeat counts."""
    try:
        age = max(0.0, (time.time() if now is None else now) - file.stat().st_mtime)
    except OSError:
        return None
    return age if age < STALE else None
