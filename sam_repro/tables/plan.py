"""From a table's cells to runs: compose each cell's configuration once, give it the seeds, and ask for the run ids."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sam_repro.config.compose_many import compose_all
from sam_repro.config.experiments import Overrides
from sam_repro.config.identity import run_id
from sam_repro.config.schema import Config
from sam_repro.errors import UserError
from sam_repro.tables.spec import Cell, Table

PAPER = "paper"


@dataclass(frozen=True)
class Run:
    id: str
    seed: int
    overrides: Overrides  # what `python -m sam_repro` takes to make it


@dataclass(frozen=True)
class Planned:
    """A cell and its runs. Without a configuration no run gives the cell, and `why` says why."""

    cell: Cell
    config: Config | None
    runs: tuple[Run, ...]
    why: str | None = None
    broken: bool = False  # the spec names something that does not exist


def plan(tables: list[Table], budget: str = PAPER) -> dict[str, list[Planned]]:
    """Every cell of some tables with its runs, by the table's name."""
    extra = () if budget == PAPER else (f"budget={budget}",)
    wanted = [(*cell.overrides, *extra) for table in tables if _trained(table) for cell in table.cells]
    composed = compose_all(wanted)
    known = dict[tuple[Overrides, int], tuple[Run, ...]]()

    def planned(table: Table, cell: Cell) -> Planned:
        if not _trained(table):
            return Planned(cell, None, (), table.not_run)
        overrides = (*cell.overrides, *extra)
        config = composed[overrides]
        if isinstance(config, UserError):
            return Planned(cell, None, (), str(config), broken=True)
        seeds = min(cell.seeds, config.budget.seeds or cell.seeds)
        if (overrides, seeds) not in known:
            known[overrides, seeds] = tuple(_run(config, overrides, seed) for seed in range(seeds))
        return Planned(cell, config, known[overrides, seeds])

    return {table.ref: [planned(table, cell) for cell in table.cells] for table in tables}


def _trained(table: Table) -> bool:
    return not table.not_run


def _run(config: Config, overrides: Overrides, seed: int) -> Run:
    return Run(run_id(replace(config, seed=seed)), seed, (*overrides, f"seed={seed}"))
