"""From the trials in a ledger to a table's choices: configs/table/<paper>/choices/<table>[.mini].yaml."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import yaml

from sam_repro import CONFIGS
from sam_repro.errors import UserError
from sam_repro.files.atomic import write_atomic
from sam_repro.runs import ledger
from sam_repro.runs.entry import Entry
from sam_repro.runs.faults import usable
from sam_repro.tables.plan import PAPER, plan
from sam_repro.tables.results import Joined, Result, join
from sam_repro.tables.statistics import sample
from sam_repro.tables.table import Overrides, Place, Table, Tune
from sam_repro.tables.tuning import STANDARD_ERROR, Choices, choices_file, read_choices, trial_column


@dataclass(frozen=True)
class Chosen:
    choices: Choices  # of each column whose trials have all ended in a row
    waiting: Mapping[str, tuple[int, int]]  # rows with a trial that has not: how many have, of so many
    hopeless: tuple[Place, ...] = ()  # whose trials all failed: there is nothing to choose among

    def open(self) -> list[str]:
        """What is left undone, a line each."""
        waiting = [f"{row}: {ended} of {wanted} trials have ended" for row, (ended, wanted) in self.waiting.items()]
        return waiting + [f"{row}/{column}: all trials failed, so none is chosen" for row, column in self.hopeless]


def choosable(table: Table, budget: str) -> None:
    """Choices are those of the budget that the table is trained at: the paper's, or its miniature's."""
    if budget != PAPER and not table.is_miniature:
        raise UserError(
            f"budget={budget}: table {table.ref} is tuned at the paper's budget alone, and trials of another one "
            "choose nothing; leave out budget=, or tune="
        )


def choose(table: Table, budget: str, entries: Mapping[str, Entry], results: Path) -> Chosen:
    """What a tuned table's trials say: a choice for every cell whose trials have all ended, so that a table of many
    columns is trained column by column."""
    assert table.tune is not None
    assert table.trials is not None
    planned = plan([table.trials], budget)[table.trials.ref]
    joined = join(table.trials, planned, entries, budget, results)
    sign = 1.0 if joined.higher_is_better(planned[0].cell.metric) else -1.0
    choices, waiting, hopeless = dict[str, dict[str, Overrides]](), dict[str, tuple[int, int]](), list[Place]()
    for row in table.rows:
        mine = [result for result in joined.results if result.cell.row == row.id]
        ended, wanted = sum(result.finished for result in mine), sum(result.planned for result in mine)
        if not wanted or ended < wanted:
            waiting[row.id] = (ended, wanted)
        for column in table.tune.columns:
            if not _complete(joined, row.id, column, table.tune):
                continue
            if (best := _of_column(joined, row.id, column, table.tune, sign)) is None:
                hopeless.append((row.id, column))
            else:
                choices.setdefault(row.id, {})[column] = best
    return Chosen(choices, waiting, tuple(hopeless))


def _complete(joined: Joined, row: str, column: str, tune: Tune) -> bool:
    trials = [joined.result(row, trial_column(column, trial)) for trial in tune.columns[column]]
    return all(0 < trial.planned == trial.finished for trial in trials)


def of_ledger(results: Path) -> dict[str, Entry]:
    """The line of each run that counts; whoever reads for a view tells of the damaged ones."""
    return {entry["run_id"]: entry for entry in usable(ledger.read(results)[0])[0]}


def _of_column(joined: Joined, row: str, column: str, tune: Tune, sign: float) -> Overrides | None:
    """The first of the grid whose mean is best, or is within a standard error of that; None where every trial has a
    failed run."""
    grid = tune.columns[column]
    values = [_values(joined.result(row, trial_column(column, trial)), sign) for trial in grid]
    means = [math.fsum(of_trial) / len(of_trial) for of_trial in values]
    best = max(range(len(grid)), key=lambda place: means[place])  # the first of equals
    if means[best] == -math.inf:
        return None
    within = 0.0
    if tune.rule == STANDARD_ERROR:
        found = sample(values[best])
        within = (found.std or 0.0) / math.sqrt(found.n) if found else 0.0
    return next(trial for trial, mean in zip(grid, means, strict=True) if mean >= means[best] - within)


def _values(result: Result, sign: float) -> Sequence[float]:
    failed = [-math.inf] * (result.finished - result.succeeded)
    return [sign * value for value in result.values.values()] + failed


def write(table: Table, chosen: Chosen, configs: Path = CONFIGS) -> Path:
    """Beside what was chosen before: another ledger, which has not all of the trials, takes nothing away."""
    assert table.tune is not None
    file = choices_file(table.ref, configs, miniature=table.is_miniature)
    budget = " budget=mini" if table.is_miniature else ""
    content = dict[str, dict[str, list[str]]]()
    before = read_choices(file)
    for row, (column, grid) in product((line.id for line in table.rows), table.tune.columns.items()):
        kept = (before.get(row) or {}).get(column)
        of = chosen.choices.get(row, {}).get(column) or (tuple(kept) if kept else None)
        if of in grid and (row, column) not in chosen.hopeless:
            content.setdefault(row, {})[column] = list(of)
    made = f"# Made from the ledger by `sam-repro report choose {table.ref}{budget}`"
    head = f"{made}: {table.tune.rule}, on validation data.\n"
    text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=200, allow_unicode=True)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, head + text)
    except OSError as error:
        raise UserError(f"can't write {file}: {os.strerror(error.errno or 0)}") from error
    return file
