"""Which missing runs say most for so many hours: by the verdicts that they would decide, levels and points alike.

Where a cell's values are not chosen yet, the trials of its column in that row are among them.

A verdict needs all runs of its cell, or of the two cells of its pair; a cell planned with a single run never has one.
Of what fits into the hours that are left, the runs that decide most verdicts an hour are taken first.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sam_repro.runs.entry import Entry
from sam_repro.tables.cost import cost
from sam_repro.tables.plan import Planned
from sam_repro.tables.status import state_of
from sam_repro.tables.table import Place, Table
from sam_repro.tables.tuning import trials_of

Runs = frozenset[str]


@dataclass(frozen=True)
class Wanted:
    table: str
    budget: str
    cells: tuple[Place, ...]  # in the table's order
    verdicts: int  # that these runs decide
    runs: int
    hours: float
    tune: bool = False  # with the trials of these cells


@dataclass(frozen=True)
class Candidate:
    """A table at a budget: its cells, those that wait for a choice as `tuning.assumed` has them, and its trials."""

    table: Table
    budget: str
    cells: Sequence[Planned]
    trials: Sequence[Planned] = ()


@dataclass(frozen=True)
class _Open:
    """A table at a budget: what its cells lack, and the sets of cells that decide a verdict each."""

    table: Table
    budget: str
    lacks: Mapping[Place, Runs]
    questions: Sequence[tuple[Place, ...]]
    tuned: Collection[Place]  # the cells that lack a choice

    def needs(self, cells: Iterable[Place]) -> Runs:
        return frozenset().union(*(self.lacks[cell] for cell in cells))

    def candidates(self) -> list[tuple[Place, ...]]:
        rows = {row for cells in self.questions for row, _ in cells}
        whole = [tuple(c for c in self.lacks if c[0] == row and self.lacks[c]) for row in sorted(rows)]
        return [*self.questions, *(cells for cells in whole if cells)]


def wanted(
    candidates: Iterable[Candidate],
    entries: Mapping[str, Entry],
    results: Path,
    device: str,
    hours: float,
) -> list[Wanted]:
    """In the order in which they are to be trained."""
    price = dict[str, float]()
    tables = [_open(one, entries, results, device, price) for one in candidates]
    chosen, found = frozenset[str](), list[Wanted]()
    while True:
        best: tuple[float, Wanted, Runs] | None = None
        for one in tables:
            decided = sum(one.needs(q) <= chosen for q in one.questions)
            for cells in one.candidates():
                fresh = one.needs(cells) - chosen
                spent = math.fsum(price[run] for run in fresh)
                if not fresh or spent > hours:
                    continue
                gain = sum(one.needs(q) <= chosen | fresh for q in one.questions) - decided
                worth = gain / max(spent, 1e-6)
                if gain and (best is None or worth > best[0]):
                    lacking = tuple(cell for cell in one.lacks if cell in cells and one.lacks[cell] - chosen)
                    tune = any(cell in one.tuned for cell in lacking)
                    best = (worth, Wanted(one.table.ref, one.budget, lacking, gain, len(fresh), spent, tune), fresh)
        if best is None:
            return found
        found.append(best[1])
        chosen |= best[2]
        hours -= best[1].hours


def _open(one: Candidate, entries: Mapping[str, Entry], results: Path, device: str, price: dict[str, float]) -> _Open:
    def missing(cell: Planned) -> Runs | None:
        """None where nobody knows what they cost."""
        if (spent := cost(cell.config).hours(device) if cell.config else None) is None:
            return None
        states = [state_of(run, entries.get(run.id), results, metric=cell.cell.metric) for run in cell.runs]
        open_ = [item for item in states if item.state not in ("done", "collapsed", "running")]
        price.update({item.run.id: 0.0 if item.trained else spent for item in open_})
        return frozenset(item.run.id for item in open_)

    table = one.table
    tuned = {(cell.row, cell.column) for cell in table.cells if cell.why_not}
    trials = {(cell.cell.row, cell.cell.column): missing(cell) for cell in one.trials}
    lacks = dict[Place, Runs]()
    for cell in one.cells:
        row, column = place = cell.cell.row, cell.cell.column
        before = [trials[row, trial] for trial in trials_of(table, column)] if place in tuned else []
        runs = missing(cell) if len(cell.runs) > 1 else None
        if runs is not None and None not in before:
            lacks[place] = runs.union(*(found for found in before if found))
    levels = [((c.row, c.column),) for c in table.cells if c.claim.mean is not None]
    questions = [*levels, *((pair.better, pair.worse) for pair in table.pairs)]
    open_ = [q for q in questions if all(cell in lacks for cell in q) and any(lacks[cell] for cell in q)]
    return _Open(table, one.budget, lacks, open_, tuned)
