"""Which missing runs say most for so many hours: by the verdicts that they would decide, levels and points alike.

A verdict needs all runs of its cell, or of the two cells of its pair; a cell planned with a single run never has one.
Of what fits into the hours that are left, the runs that decide most verdicts an hour are taken first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sam_repro.runs.entry import Entry
from sam_repro.tables.cost import cost
from sam_repro.tables.plan import Planned
from sam_repro.tables.status import state_of
from sam_repro.tables.table import Place, Table

Runs = frozenset[str]


@dataclass(frozen=True)
class Wanted:
    table: str
    budget: str
    cells: tuple[Place, ...]  # in the table's order
    verdicts: int  # that these runs decide
    runs: int
    hours: float


@dataclass(frozen=True)
class _Open:
    """A table at a budget: what its cells lack, and the sets of cells that decide a verdict each."""

    table: Table
    budget: str
    lacks: Mapping[Place, Runs]
    questions: Sequence[tuple[Place, ...]]

    def needs(self, cells: Iterable[Place]) -> Runs:
        return frozenset().union(*(self.lacks[cell] for cell in cells))

    def candidates(self) -> list[tuple[Place, ...]]:
        rows = {row for cells in self.questions for row, _ in cells}
        whole = [tuple(c for c in self.lacks if c[0] == row and self.lacks[c]) for row in sorted(rows)]
        return [*self.questions, *(cells for cells in whole if cells)]


def wanted(
    planned: Iterable[tuple[Table, str, Sequence[Planned]]],
    entries: Mapping[str, Entry],
    results: Path,
    device: str,
    hours: float,
) -> list[Wanted]:
    """In the order in which they are to be trained."""
    price = dict[str, float]()
    tables = [_open(table, budget, cells, entries, results, device, price) for table, budget, cells in planned]
    chosen, found = frozenset[str](), list[Wanted]()
    while True:
        best: tuple[float, Wanted, Runs] | None = None
        for one in tables:
            decided = sum(one.needs(q) <= chosen for q in one.questions)
            for cells in one.candidates():
                fresh = one.needs(cells) - chosen
                spent = sum(price[run] for run in fresh)
                if not fresh or spent > hours:
                    continue
                gain = sum(one.needs(q) <= chosen | fresh for q in one.questions) - decided
                worth = gain / max(spent, 1e-6)
                if gain and (best is None or worth > best[0]):
                    lacking = tuple(cell for cell in one.lacks if cell in cells and one.lacks[cell] - chosen)
                    best = (worth, Wanted(one.table.ref, one.budget, lacking, gain, len(fresh), spent), fresh)
        if best is None:
            return found
        found.append(best[1])
        chosen |= best[2]
        hours -= best[1].hours


def _open(
    table: Table,
    budget: str,
    cells: Sequence[Planned],
    entries: Mapping[str, Entry],
    results: Path,
    device: str,
    price: dict[str, float],
) -> _Open:
    lacks = dict[Place, Runs]()
    for cell in cells:
        spent = cost(cell.config).hours(device) if cell.config else None
        if spent is None or len(cell.runs) < 2:
            continue
        states = [state_of(run, entries.get(run.id), results, metric=cell.cell.metric) for run in cell.runs]
        missing = [item for item in states if item.state not in ("done", "collapsed", "running")]
        lacks[cell.cell.row, cell.cell.column] = frozenset(item.run.id for item in missing)
        price |= {item.run.id: 0.0 if item.trained else spent for item in missing}
    levels = [((c.row, c.column),) for c in table.cells if c.claim.mean is not None]
    questions = [*levels, *((pair.better, pair.worse) for pair in table.pairs)]
    open_ = [q for q in questions if all(cell in lacks for cell in q) and any(lacks[cell] for cell in q)]
    return _Open(table, budget, lacks, open_)
