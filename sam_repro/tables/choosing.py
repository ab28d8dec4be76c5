"""From the trials in a ledger to a table's choices: configs/table/<paper>/choices/<table>[.mini].yaml."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from sam_repro import CONFIGS
from sam_repro.errors import UserError
from sam_repro.files.atomic import write_atomic
from sam_repro.runs import ledger
from sam_repro.runs.entry import Entry
from sam_repro.runs.faults import usable
from sam_repro.tables.plan import plan
from sam_repro.tables.results import Joined, Result, join
from sam_repro.tables.statistics import sample
from sam_repro.tables.table import Overrides, Table, Tune
from sam_repro.tables.tuning import STANDARD_ERROR, Choices, choices_file, trial_column


@dataclass(frozen=True)
class Chosen:
    choices: Choices  # of each column whose trials have all ended in a row
    waiting: Mapping[str, tuple[int, int]]  # rows with a trial that has not: how many have, of so many


def choose(table: Table, budget: str, entries: Mapping[str, Entry], results: Path) -> Chosen:
    """What a tuned table's trials say: a choice for every cell whose trials have all ended, so that a table of many
    columns is trained column by column."""
    assert table.tune is not None
    assert table.trials is not None
    planned = plan([table.trials], budget)[table.trials.ref]
    joined = join(table.trials, planned, entries, budget, results)
    sign = 1.0 if joined.higher_is_better(planned[0].cell.metric) else -1.0
    choices, waiting = dict[str, dict[str, Overrides]](), dict[str, tuple[int, int]]()
    for row in table.rows:
        mine = [result for result in joined.results if result.cell.row == row.id]
        ended, wanted = sum(result.finished for result in mine), sum(result.planned for result in mine)
        if not wanted or ended < wanted:
            waiting[row.id] = (ended, wanted)
        complete = [column for column in table.tune.columns if _complete(joined, row.id, column, table.tune)]
        if complete:
            choices[row.id] = {column: _of_column(joined, row.id, column, table.tune, sign) for column in complete}
    return Chosen(choices, waiting)


def _complete(joined: Joined, row: str, column: str, tune: Tune) -> bool:
    trials = [joined.result(row, trial_column(column, trial)) for trial in tune.columns[column]]
    return all(0 < trial.planned == trial.finished for trial in trials)


def of_ledger(results: Path) -> dict[str, Entry]:
    """The line of each run that counts; whoever reads for a view tells of the damaged ones."""
    return {entry["run_id"]: entry for entry in usable(ledger.read(results)[0])[0]}


def _of_column(joined: Joined, row: str, column: str, tune: Tune, sign: float) -> Overrides:
    """The first of the grid whose mean is best, or is within a standard error of that. Failed runs are worst."""
    grid = tune.columns[column]
    values = [_values(joined.result(row, trial_column(column, trial)), sign) for trial in grid]
    means = [math.fsum(of_trial) / len(of_trial) for of_trial in values]
    best = max(range(len(grid)), key=lambda place: means[place])  # the first of equals
    within = 0.0
    if tune.rule == STANDARD_ERROR and math.isfinite(means[best]):
        found = sample(values[best])
        within = (found.std or 0.0) / math.sqrt(found.n) if found else 0.0
    return next(trial for trial, mean in zip(grid, means, strict=True) if mean >= means[best] - within)


def _values(result: Result, sign: float) -> Sequence[float]:
    failed = [-math.inf] * (result.finished - result.succeeded)
    return [sign * value for value in result.values.values()] + failed


def write(table: Table, chosen: Chosen, configs: Path = CONFIGS) -> Path:
    assert table.tune is not None
    file = choices_file(table.ref, configs, miniature=table.is_miniature)
    budget = " budget=mini" if table.is_miniature else ""
    content = {row: {column: list(of) for column, of in columns.items()} for row, columns in chosen.choices.items()}
    made = f"# Made from the ledger by `sam-repro report choose {table.ref}{budget}`"
    head = f"{made}: {table.tune.rule}, on validation data.\n"
    text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=200, allow_unicode=True)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, head + text)
    except OSError as error:
        raise UserError(f"can't write {file}: {os.strerror(error.errno or 0)}") from error
    return file
