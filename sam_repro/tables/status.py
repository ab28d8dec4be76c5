"""In what state each run of a cell is, from the ledger and the run folders.

done, collapsed   the ledger has its result
failed            its claim says so
running           somebody holds its claim, or writes its metrics.jsonl, and did so within the last minutes
queued            a scheduler has it on its list
missing           none of these; also a run whose heart stopped
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam_repro.files import read
from sam_repro.files.lines import read_lines
from sam_repro.files.read import DamagedError
from sam_repro.runs.entry import Entry
from sam_repro.tables.plan import Planned, Run

STATES = ("missing", "queued", "running", "failed", "collapsed", "done")
CLAIM = "claim.json"  # in the run's folder: {"state": one of sam_repro.sweep.claims, "host": ..., "process": ...}
ENDED = ("stopped", "done")  # states of a claim whose owner has let go
HEARTBEAT_SECONDS = 300.0  # a claim is touched far more often while its owner lives
_OWN = ("metrics.jsonl", "events.jsonl")  # written by a living run
_SIGNS = (CLAIM, *_OWN)  # written, or touched
_SLACK_SECONDS = 5.0  # between clocks of one file system


@dataclass(frozen=True)
class RunState:
    run: Run
    state: str
    heartbeat: float | None = None  # seconds since the last sign of life, of a run that is running
    note: str = ""


def state_of(run: Run, entry: Mapping[str, Any] | None, results: Path, now: float | None = None) -> RunState:
    if entry is not None:
        return RunState(run, str(entry["status"]))
    folder = results / "runs" / run.id
    if not folder.is_dir():
        return RunState(run, "missing")
    if (folder / "DONE").exists():
        return RunState(
            run, "missing", note="finished, but its line in the ledger is lost: start it once more to write it"
        )
    claim = read_json(folder / CLAIM)
    if claim.get("state") == "failed":
        return RunState(run, "failed", note=str(claim.get("error", "")))
    ages = [age for name in _SIGNS if (age := _age(folder / name, now)) is not None]
    age = min(ages, default=None)
    if claim.get("state") == "queued" and age is not None and age < HEARTBEAT_SECONDS:
        return RunState(run, "queued")
    ended = _stopped(folder) or (claim.get("state") in ENDED and not _later(folder))
    if age is not None and age < HEARTBEAT_SECONDS and not ended:
        return RunState(run, "running", age, str(claim.get("host", "")))
    return RunState(run, "missing", note="started and stopped: it goes on from its checkpoint")


def states(planned: Iterable[Planned], entries: Mapping[str, Entry], results: Path) -> list[RunState]:
    """Of the distinct runs of some cells, in the cells' order."""
    now = time.time()
    runs = {run.id: run for cell in planned for run in cell.runs}
    return [state_of(run, entries.get(run.id), results, now) for run in runs.values()]


def counts(found: Iterable[RunState]) -> dict[str, int]:
    counted = Counter(item.state for item in found)
    return {state: counted[state] for state in STATES}


def _stopped(folder: Path) -> bool:
    """Whether the process ended in order after its last metrics: it wrote a summary, or that it was interrupted."""
    metrics = folder / "metrics.jsonl"
    if _older(metrics, folder / "summary.json"):
        return True
    try:
        events, _ = read_lines(folder / "events.jsonl")
    except DamagedError:
        return False
    return bool(events) and events[-1].get("name") == "interrupted" and _older(metrics, folder / "events.jsonl")


def _later(folder: Path) -> bool:
    """Whether the run writes again since its claim ended: started by hand, which makes no claim."""
    claimed = _age(folder / CLAIM, None)
    written = min((age for name in _OWN if (age := _age(folder / name, None)) is not None), default=None)
    return claimed is not None and written is not None and written + _SLACK_SECONDS < claimed


def _older(one: Path, other: Path) -> bool:
    try:
        return one.stat().st_mtime <= other.stat().st_mtime
    except OSError:
        return False


def _age(path: Path, now: float | None) -> float | None:
    try:
        return max(0.0, (time.time() if now is None else now) - path.stat().st_mtime)
    except OSError:
        return None


def read_json(path: Path) -> dict[str, Any]:
    try:
        data = read.read_json(path)
    except (FileNotFoundError, DamagedError):
        return {}
    return data if isinstance(data, dict) else {}
