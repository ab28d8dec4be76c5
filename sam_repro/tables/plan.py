"""From a table's cells to runs: compose each cell's configuration once, give it the seeds, and ask for the run ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sam_repro.config.compose_many import compose_all
from sam_repro.config.identity import ids_of_seeds
from sam_repro.config.schema import Config
from sam_repro.errors import UserError
from sam_repro.tables.miniature import SEED, of_seed
from sam_repro.tables.table import Cell, Overrides, Table

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
    """Every cell of some tables with its runs, by the table's name. A miniature's runs are trained as written."""
    tables = [table.at(budget) for table in tables]

    def overrides_of(table: Table, cell: Cell) -> Overrides:
        return cell.overrides if budget == PAPER or table.is_miniature else (*cell.overrides, f"budget={budget}")

    cells = [
        (table, cell, overrides_of(table, cell)) for table in tables for cell in table.cells if _trained(table, cell)
    ]
    composed = compose_all(
        of_seed(overrides, seed) for _, cell, overrides in cells for seed in _templates(overrides, cell.seeds)
    )
    known = dict[tuple[Overrides, tuple[int, ...]], tuple[Run, ...]]()

    def planned(table: Table, cell: Cell) -> Planned:
        if not _trained(table, cell):
            return Planned(cell, None, (), table.not_run or cell.why_not)
        overrides = overrides_of(table, cell)
        config = composed[of_seed(overrides, cell.seeds[0])]
        if isinstance(config, UserError):
            return Planned(cell, None, (), str(config), broken=True)
        seeds = cell.seeds[: config.budget.seeds]
        if (overrides, seeds) not in known:
            known[overrides, seeds] = tuple(_runs(composed, overrides, seeds))
        return Planned(cell, config, known[overrides, seeds])

    return {table.ref: [planned(table, cell) for cell in table.cells] for table in tables}


def _trained(table: Table, cell: Cell) -> bool:
    return not table.not_run and not cell.why_not


def _templates(overrides: Overrides, seeds: tuple[int, ...]) -> tuple[int, ...]:
    """The seeds whose configurations differ in more than the seed; composing takes time."""
    return seeds if any(SEED in override for override in overrides) else seeds[:1]


def _runs(
    composed: Mapping[Overrides, Config | UserError], overrides: Overrides, seeds: tuple[int, ...]
) -> Iterator[Run]:
    templates = _templates(overrides, seeds)
    for first in templates:
        mine, same = of_seed(overrides, first), seeds if len(templates) == 1 else (first,)
        config = composed[mine]
        assert isinstance(config, Config), "seeds differ in a value and not in what is wrong with them"
        for seed, name in zip(same, ids_of_seeds(config, same), strict=True):
            yield Run(name, seed, (*mine, f"seed={seed}"))
