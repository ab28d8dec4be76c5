"""In what state each run of a cell is, from the ledger and the run folders.

done, collapsed   the ledger has its result
running           somebody holds its lease, and gave a sign of life within the last minutes
queued            a scheduler has it on its list
failed            its lease says so
missing           none of these; also a run whose heart stopped, or which is trained and still to be judged
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam_repro.files import read
from sam_repro.files.read import DamagedError
from sam_repro.runs.entry import Entry
from sam_repro.runs.run import Run as Stored
from sam_repro.runs.state import state_of as folder_state
from sam_repro.tables.judged_on import lacking
from sam_repro.tables.plan import Planned, Run

STATES = ("missing", "queued", "running", "failed", "collapsed", "done")


@dataclass(frozen=True)
class RunState:
    run: Run
    state: str
    heartbeat: float | None = None  # seconds since the last sign of life, of a run that is running
    note: str = ""
    trained: bool = False  # and still to be judged


def state_of(
    run: Run, entry: Mapping[str, Any] | None, results: Path, now: float | None = None, metric: str = ""
) -> RunState:
    """`metric`: what a cell wants of the run, which may take more than its training."""
    if entry is not None:
        if (test_set := lacking(metric, entry)) is not None:
            return RunState(run, "missing", note=f"trained; to be judged on {test_set}", trained=True)
        return RunState(run, str(entry["status"]))
    found = folder_state(Stored.at(results, run.id), now)
    if found.name == "finished":
        return RunState(
            run, "missing", note="finished, but its line in the ledger is lost: start it once more to write it"
        )
    return RunState(run, *found)


def states(planned: Iterable[Planned], entries: Mapping[str, Entry], results: Path) -> list[RunState]:
    """Of the distinct runs of some cells, in the cells' order."""
    now = time.time()
    found = dict[str, RunState]()
    for cell in planned:
        for run in cell.runs:
            if run.id not in found or found[run.id].state == "done":
                found[run.id] = state_of(run, entries.get(run.id), results, now, cell.cell.metric)
    return list(found.values())


def counts(found: Iterable[RunState]) -> dict[str, int]:
    counted = Counter(item.state for item in found)
    return {state: counted[state] for state in STATES}


def read_json(path: Path) -> dict[str, Any]:
    try:
        data = read.read_json(path)
    except (FileNotFoundError, DamagedError):
        return {}
    return data if isinstance(data, dict) else {}
