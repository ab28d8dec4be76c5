"""Whether a row's committed numbers come out again: its first seed is trained anew and laid beside the ledger.

On the machine and versions that trained it the bits are the same. Elsewhere rounding makes it another draw, which lies
in the 99 % prediction interval of the committed runs, mean ± t(0.995, n - 1) * std * sqrt(1 + 1/n), 99 times in 100.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam_repro.errors import UserError
from sam_repro.files import lines
from sam_repro.record.metrics import without_times
from sam_repro.runs import archive, ledger
from sam_repro.runs.entry import Entry
from sam_repro.runs.faults import usable
from sam_repro.sweep.live import View
from sam_repro.sweep.scheduler import Scheduler
from sam_repro.sweep.slots import slots
from sam_repro.sweep.work import Task, missing, work
from sam_repro.tables.plan import PAPER

COVERAGE = 0.99
STALE = 300.0  # seconds without a sign of life, after which a run counts as dead


@dataclass(frozen=True)
class Compared:
    task: Task
    metric: str
    committed: float
    again: float
    same_bits: bool
    interval: tuple[float, float] | None  # for a new run, from the committed ones; None of fewer than two

    @property
    def holds(self) -> bool:
        return self.same_bits or (self.interval is not None and self.interval[0] <= self.again <= self.interval[1])


def reproduce(
    table: str, row: str, budget: str, extra: Sequence[str], committed: Path, scratch: Path
) -> list[Compared]:
    """Train the row's first seed in `scratch`, two runs at once; stopped and started again it goes on there."""
    tasks = work([table], budget, [f"{row}/*"], extra, scratch).tasks
    entries = {entry["run_id"]: entry for entry in usable(ledger.read(committed)[0])[0]}
    known = [task for task in tasks if task.id in entries]
    first = [task for task in known if task.seed == 0]
    if not first:
        where = table if budget == PAPER else f"{table} at the {budget} budget"
        raise UserError(f"row {row} of {where} has no first seed in {committed / ledger.FILE}: nothing to reproduce")
    todo = missing(first, scratch)
    with View(len(first), len(first) - len(todo)) as view:
        code = Scheduler(todo, slots(None, 1, min(2, len(first)), 1), STALE, view).run()
    if code:
        raise UserError(f"a run ended with exit code {code}: its log is in {scratch / 'logs'}; start the command again")
    again = {entry["run_id"]: entry for entry in usable(ledger.read(scratch)[0])[0]}
    return [_compared(task, known, entries, again[task.id], committed, scratch) for task in first]


def _compared(
    task: Task, known: Sequence[Task], entries: Mapping[str, Entry], again: Entry, committed: Path, scratch: Path
) -> Compared:
    metric = next(iter(entries[task.id]["metrics"]))
    before, after = (archive.read(folder, task.id) or [] for folder in (committed, scratch))
    same = bool(before) and _written(before) == _written(after)
    values = [_last(entries[other.id], metric) for other in known if other.cell == task.cell]
    value = _last(again, metric)
    return Compared(task, metric, _last(entries[task.id], metric), value, same, _prediction(values))


def _written(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """As lines of a file: a loss that is no number equals none, its letters do."""
    return [lines.encode(without_times(record)) for record in records]


def _last(entry: Entry, metric: str) -> float:
    value = entry["metrics"][metric]["last"]
    return math.nan if value is None else value


def _prediction(values: Sequence[float]) -> tuple[float, float] | None:
    n = len(values)
    if n < 2:
        return None
    from scipy.special import stdtrit

    mean = math.fsum(values) / n
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = float(stdtrit(n - 1, 0.5 + COVERAGE / 2)) * std * math.sqrt(1 + 1 / n)
    return mean - half, mean + half
