"""What a sweep has to do: the runs of some tables' cells, each once, and which of them are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from sam_repro.config.groups import options
from sam_repro.config.schema import Config
from sam_repro.errors import UserError, nearest
from sam_repro.runs.restore import known, restore
from sam_repro.runs.run import Run
from sam_repro.tables import spec
from sam_repro.tables.chosen import named
from sam_repro.tables.extend import Column
from sam_repro.tables.plan import Planned, plan
from sam_repro.tables.table import Cell, Table


@dataclass(frozen=True)
class Task:
    id: str
    cell: str  # the first of those that need the run: "asam/2 resnet20 sam"
    seed: int
    overrides: tuple[str, ...]
    results: Path

    @property
    def name(self) -> str:
        return f"{self.cell} seed {self.seed}"

    @property
    def run(self) -> Run:
        return Run.at(self.results, self.id, self.overrides)

    @property
    def folder(self) -> Path:
        return self.run.path

    @property
    def log(self) -> Path:
        return self.results / "logs" / f"{self.id}.log"

    def done(self) -> bool:
        return self.run.done.exists()


@dataclass(frozen=True)
class Work:
    tasks: list[Task]  # the first seed of every cell, then the second, ...: a whole table early
    notes: list[str]  # what the user should know
    metrics: Mapping[str, Sequence[str]]  # run -> what the cells want of it
    configs: Mapping[str, Config]  # run -> what it trains


def work(
    refs: Sequence[str],
    budget: str,
    patterns: Sequence[str],
    extra: Sequence[str],
    results: Path,
    added: Column | None = None,
    *,
    trials: bool = False,
) -> Work:
    """All runs of the tables, or of their trials; of those cells whose row/column matches; with extra overrides."""
    if budget not in options("budget"):
        raise UserError(f"budget={budget}: there is no such budget.{nearest(budget, options('budget'))}")
    loaded = [spec.load(ref, added=added).at(budget) for word in refs for ref in named(word)]
    tables = [_chosen(table, patterns) for table in (_trials(loaded, budget) if trials else loaded)]
    if not any(table.cells for table in tables):
        raise UserError(f"cells={','.join(patterns)}: no cell matches; write ROW/COLUMN, as in cells=resnet20/asam")
    planned = _planned([_with(table, extra) for table in tables], budget)
    untrained = {f"table {cell.cell.table}: {cell.why}" for cell in planned if cell.config is None}
    notes = sorted(untrained)
    runs = [(run, cell) for cell in planned for run in cell.runs]
    if not runs:
        raise UserError(f"there is nothing to train: {'; '.join(notes)}")
    if extra and not {run.id for run, _ in runs} <= {run.id for cell in _planned(tables, budget) for run in cell.runs}:
        notes.append("your overrides change what is trained: these runs are no cells of the published table")
    tasks = dict[str, Task]()
    for run, cell in sorted(runs, key=lambda item: item[0].seed):
        tasks.setdefault(run.id, Task(run.id, cell.cell.name, run.seed, run.overrides, results))
    metrics = dict[str, list[str]]()
    for run, cell in runs:
        metrics.setdefault(run.id, []).append(cell.cell.metric)
    configs = {run.id: cell.config for run, cell in runs if cell.config}
    return Work(list(tasks.values()), notes, metrics, configs)


def _trials(tables: Sequence[Table], budget: str) -> list[Table]:
    found = [table.trials for table in tables if table.trials]
    if not found:
        raise UserError(f"tune=true: nothing is tuned at budget={budget} in {', '.join(table.ref for table in tables)}")
    return found


def missing(tasks: Sequence[Task], results: Path) -> list[Task]:
    """Those that are neither finished here nor in the ledger, as another machine's imported runs are.

    A run that is finished here and not in the ledger, because its line was lost, gets its line again; where its folder
    does not say enough for that, starting it trains it again or tells what to do.
    """
    ended = known(results)
    return [task for task in tasks if task.id not in ended and not (task.done() and restore(task.run))]


def _planned(tables: list[Table], budget: str) -> list[Planned]:
    found = [cell for cells in plan(tables, budget).values() for cell in cells]
    for cell in found:
        if cell.broken:
            raise UserError(f"cell {cell.cell.name}: {cell.why}")
    return found


def _chosen(table: Table, patterns: Sequence[str]) -> Table:
    if not patterns:
        return table
    cells = [c for c in table.cells if any(fnmatchcase(_place(c), pattern) for pattern in patterns)]
    return replace(table, cells=tuple(cells))


def _place(cell: Cell) -> str:
    """row/column; of a trial the column that it is a trial of."""
    return f"{cell.row}/{cell.column.partition(' ')[0]}"


def _with(table: Table, extra: Sequence[str]) -> Table:
    """The table with the overrides in every cell; of two for one key the later stays: Hydra refuses a group twice."""
    cells = [
        replace(cell, overrides=tuple({o.partition("=")[0]: o for o in (*cell.overrides, *extra)}.values()))
        for cell in table.cells
    ]
    return replace(table, cells=tuple(cells))
