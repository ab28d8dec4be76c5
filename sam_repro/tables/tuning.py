"""`tune:` of a table: the values that its columns leave free, tried on a validation split before the table is trained.

    tune:
      seeds: [100]               # of the trials: others than the table's own
      rule: best mean            # or one standard error: the first of the grid that is within one of the best
      columns:
        sgd: {base_optimizer.lr: [0.1, 0.2], base_optimizer.weight_decay: [0.0005, 0.002]}  # every combination
        sgd_long: sgd            # takes that column's choice
        sam: [[method.rho=0.1, method.alpha=0.2], ...]  # or each trial written out

Every column has the same number of trials, in every row. A trial is a run of the cell with these values, judged by the
table's statistic on the validation split and never on test data. What was chosen stands in a file of its own, made from
the ledger (`sam_repro.tables.choosing`); a cell without a choice is not trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from sam_repro.errors import UserError, hint
from sam_repro.files.read import DamagedError, read_yaml
from sam_repro.files.strict import Fields, mapping, shown, typed_keys
from sam_repro.tables.table import Cell, Claim, Line, Overrides, Table, Tune, layered

BEST_MEAN, STANDARD_ERROR = "best mean", "one standard error"
VALIDATION = "dataset.evaluate_on=validation"
_KEYS = {"seeds": list, "rule": str, "columns": dict}
Choices = Mapping[str, Mapping[str, Overrides]]  # row -> column -> what was chosen


def choices_file(ref: str, configs: Path, *, miniature: bool) -> Path:
    """configs/table/asam/choices/6.mini.yaml"""
    paper, _, number = ref.partition("/")
    return configs / "table" / paper / "choices" / f"{number}{'.mini' if miniature else ''}.yaml"


def with_choices(ref: str, data: Fields, configs: Path) -> Fields:
    """The fields of a table's file with what was chosen for it and for its miniature."""
    if "chosen" in data:
        raise UserError(
            f"table {ref}: choices stand in {choices_file(ref, configs, miniature=False)}, not in the table"
        )
    out = dict(data)
    if data.get("tune"):
        out["chosen"] = read_choices(choices_file(ref, configs, miniature=False))
    small = data.get("miniature")
    if isinstance(small, dict) and small.get("tune"):
        out["miniature"] = {**small, "chosen": read_choices(choices_file(ref, configs, miniature=True))}
    return out


def read_choices(file: Path) -> Fields:
    try:
        return mapping(file.name, read_yaml(file))
    except FileNotFoundError:
        return {}
    except DamagedError as error:
        raise UserError(str(error)) from None


def tuned(table: Table, fields: Fields) -> Table:
    """The table with its trials, its cells with the values that were chosen."""
    if not fields.get("tune"):
        return table
    where = f"table {table.ref}"
    tune = _tune(where, fields["tune"], table)
    chosen = _choices(where, fields.get("chosen") or {}, tune)

    def with_choice(cell: Cell) -> Cell:
        if cell.column not in (*tune.columns, *tune.like):
            return cell
        values = chosen.get(cell.row, {}).get(tune.like.get(cell.column, cell.column))
        if values is None:
            return replace(cell, why_not="its values are not chosen yet; sweep it with tune=true")
        return replace(cell, overrides=layered(cell.overrides, values))

    cells = tuple(with_choice(cell) for cell in table.cells)
    return replace(table, cells=cells, tune=tune, trials=_trials(table, tune))


def assumed(table: Table) -> Table:
    """With the first trial's values in the cells that wait for a choice, so that what they cost can be told before."""
    if table.tune is None:
        return table
    tune = table.tune

    def with_first(cell: Cell) -> Cell:
        if not cell.why_not:
            return cell
        values = tune.columns[tune.like.get(cell.column, cell.column)][0]
        return replace(cell, overrides=layered(cell.overrides, values), why_not=None)

    return replace(table, cells=tuple(with_first(cell) for cell in table.cells))


def trials_of(table: Table, column: str) -> list[str]:
    """The columns of its trials that choose for a column, which may take another one's choice."""
    if table.tune is None:
        return []
    tuned = table.tune.like.get(column, column)
    return [trial_column(tuned, values) for values in table.tune.columns.get(tuned, ())]


def trial_column(column: str, values: Overrides) -> str:
    return f"{column} {' '.join(values)}"


def _trials(table: Table, tune: Tune) -> Table:
    """A table of its own, a column a trial."""
    tried = [(column, values) for column, grid in tune.columns.items() for values in grid]
    labels = {line.id: line.label for line in table.columns}
    own = {(cell.row, cell.column): cell for cell in table.cells}
    cells = [
        replace(
            own[line.id, column],
            table=f"{table.ref}.trials",
            column=trial_column(column, values),
            claim=Claim("missing"),
            seeds=tune.seeds,
            overrides=layered(own[line.id, column].overrides, values, [VALIDATION]),
            baseline=None,
        )
        for line in table.rows
        for column, values in tried
    ]
    columns = tuple(Line(trial_column(c, v), f"{labels[c]}, {', '.join(v)}", None) for c, v in tried)
    # A trial sees the validation split alone, so the epoch that this picks is the one at which the trial is best.
    statistic = "best" if table.statistic == "picked" else table.statistic
    return replace(
        table,
        ref=f"{table.ref}.trials",
        statistic=statistic,
        columns=columns,
        cells=tuple(cells),
        pairs=(),
        footnotes=(),
    )


def _tune(where: str, data: Any, table: Table) -> Tune:
    fields = typed_keys(f"{where} tune", data, _KEYS, needed=_KEYS)  # type: ignore[arg-type]
    seeds, known = fields["seeds"], [line.id for line in table.columns]
    if not all(isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 for seed in seeds):
        raise UserError(f"{where} tune: seeds must be a list of whole numbers, is {shown(seeds)}")
    if used := set(seeds) & {seed for cell in table.cells for seed in cell.seeds}:
        raise UserError(f"{where} tune: the table trains with seed {min(used)}, too; trials need others")
    if fields["rule"] not in (BEST_MEAN, STANDARD_ERROR):
        raise UserError(f"{where} tune: rule must be {BEST_MEAN!r} or {STANDARD_ERROR!r}, is {fields['rule']!r}")
    if fields["rule"] == STANDARD_ERROR and len(seeds) < 2:
        raise UserError(f"{where} tune: {STANDARD_ERROR!r} needs at least two seeds")
    columns, like = dict[str, tuple[Overrides, ...]](), dict[str, str]()
    for column, grid in mapping(f"{where} tune columns", fields["columns"]).items():
        for name in (column, grid) if isinstance(grid, str) else (column,):
            if name not in known:
                raise UserError(f"{where} tune names the column {name!r}: {hint(name, known)}")
        if isinstance(grid, str):
            like[column] = grid
        else:
            columns[column] = _grid(f"{where} tune {column}", grid)
    for column, other in like.items():
        if other not in columns:
            raise UserError(f"{where} tune {column}: {other} has no trials whose choice it could take")
    if len({len(grid) for grid in columns.values()}) != 1:
        counted = ", ".join(f"{column} {len(grid)}" for column, grid in columns.items())
        raise UserError(f"{where} tune: every column needs as many trials as the others; there are {counted}")
    return Tune(fields["rule"], tuple(seeds), columns, like)


def _grid(where: str, data: Any) -> tuple[Overrides, ...]:
    if isinstance(data, dict) and data and all(isinstance(values, list) and values for values in data.values()):
        made = [[f"{key}={value}" for value in values] for key, values in data.items()]
        return tuple(product(*made))
    written = isinstance(data, list) and data and all(isinstance(trial, list) for trial in data)
    if not written or not all(isinstance(o, str) and "=" in o for trial in data for o in trial):
        raise UserError(f"{where}: write KEY: [VALUE, ...], or a list of lists of KEY=VALUE; it is {shown(data)}")
    return tuple(tuple(trial) for trial in data)


def _choices(where: str, data: Any, tune: Tune) -> Choices:
    """A choice that is no trial any more is none."""
    found = dict[str, dict[str, Overrides]]()
    for row, columns in mapping(f"{where} choices", data).items():
        for column, values in mapping(f"{where} choices {row}", columns).items():
            choice = tuple(values) if isinstance(values, list) else ()
            if choice in tune.columns.get(column, ()):
                found.setdefault(row, {})[column] = choice
    return found
