"""The cells of a table, each from its row, its column and what is its own, and the pairs that it is about."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sam_repro.errors import UserError, hint
from sam_repro.files.strict import Fields, shown
from sam_repro.tables.table import OWN, Cell, Claim, Pair, layered

_MOST_SEEDS = 1000


def cell_of(
    ref: str, table: Fields, row: tuple[str, Fields], column: tuple[str, Fields], own: Mapping[str, Any]
) -> Cell:
    (row_id, r), (column_id, c) = row, column
    where = f"table {ref} cell {row_id}/{column_id}"
    n = r["n"] if "n" in r else table.get("n")
    succeeded = (r.get("succeeded") or {}).get(column_id)
    if succeeded is not None and not isinstance(succeeded, int):
        raise UserError(f"{where}: succeeded must be a whole number, is {shown(succeeded)}")
    claim = _claim(where, (r.get("claims") or {}).get(column_id), table.get("kind", "printed"), n, succeeded)
    metric = r.get("metric") or c.get("metric") or table.get("metric")
    if not isinstance(metric, str):
        raise UserError(f"{where}: no metric, neither of the table nor of its row or column")
    seeds = r.get("seeds", table.get("seeds", n))
    if not isinstance(seeds, int) or not 1 <= seeds <= _MOST_SEEDS:
        raise UserError(f"{where}: seeds must be a whole number from 1 to {_MOST_SEEDS}, is {shown(seeds)}")
    baseline: tuple[str, str] | None = None
    if r.get("baseline") is not None:
        baseline = (str(r["baseline"]), column_id)
    elif table.get("baseline") is not None:
        baseline = (row_id, str(table["baseline"]))
    if baseline and (baseline[0] not in table["rows"] or baseline[1] not in table["columns"]):
        raise UserError(f"{where}: its baseline {'/'.join(baseline)} is no cell of the table")
    experiment = r.get("experiment") or table.get("experiment")
    named = [f"+experiment={experiment}"] if experiment else None
    layers = [named, table.get("overrides"), c.get("overrides"), r.get("overrides"), own.get(f"{row_id}/{column_id}")]
    return Cell(
        table=ref,
        row=row_id,
        column=column_id,
        claim=claim,
        metric=metric,
        unit=str(r.get("unit") or c.get("unit") or table.get("unit", "")),
        seeds=tuple(range(seeds)),
        overrides=_overrides(where, layers),
        baseline=None if baseline == (row_id, column_id) else baseline,
    )


_NUMBER = re.compile(r"(-?\d+(?:\.(\d+))?)(?:\s*±\s*(<)?(\d+(?:\.\d+)?))?")


def _claim(where: str, text: Any, kind: str, n: int | None, succeeded: int | None) -> Claim:
    if text is None:
        return Claim(OWN if kind == OWN else "missing")
    if kind == OWN:
        raise UserError(f"{where}: a table of kind own has no claims")
    if not isinstance(text, str):
        raise UserError(f"{where}: write the claim {shown(text)} in quotes, as the paper prints it")
    match = _NUMBER.fullmatch(text.strip())
    if not match:
        raise UserError(f"{where}: the claim {text!r} is not of the form 91.00 or 91.00 ± 0.13")
    mean, decimals, bound, std = match.groups()
    return Claim(
        kind, float(mean), float(std) if std else None, bool(bound), len(decimals or ""), n, succeeded, text.strip()
    )


def _overrides(where: str, layers: Iterable[Any]) -> tuple[str, ...]:
    layers = list(layers)
    for layer in layers:
        if not isinstance(layer or [], list) or not all(isinstance(x, str) and "=" in x for x in layer or []):
            raise UserError(f"{where}: overrides must be a list of key=value, is {shown(layer)}")
    return layered(*(layer or [] for layer in layers))


def pairs_of(
    where: str, found: Any, rows: Collection[str], columns: Collection[str], cells: Iterable[Cell]
) -> tuple[Pair, ...]:
    """A pair of columns is one of cells in every row, a pair of rows one in every column."""
    if not isinstance(found, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in found):
        raise UserError(
            f"{where}: points must be a list of [better column, worse column], or of rows, is {shown(found)}"
        )
    of_columns, of_rows = list[tuple[str, str]](), list[tuple[str, str]]()
    for better, worse in ([str(name) for name in pair] for pair in found):
        of_both = better in rows and worse in rows
        for name in (better, worse):
            if not of_both and name not in columns:
                raise UserError(f"{where}: points names the column {name!r}: {hint(name, columns)}")
        (of_rows if of_both else of_columns).append((better, worse))
    places = [((row, better), (row, worse)) for row in rows for better, worse in of_columns]
    places += [((better, column), (worse, column)) for column in columns for better, worse in of_rows]
    means = {(cell.row, cell.column): cell.claim.mean for cell in cells}
    return tuple(Pair(better, worse, _minus(means[better], means[worse])) for better, worse in places)


def _minus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other
