"""A table's `miniature:`: its question asked again on data and nets that a laptop trains in hours.

A miniature is written in the words of a table. Title, source, metric, unit and the pairs of columns that the table is
about are the table's where it does not say its own; so are the labels of rows and columns of the same name. It has no
claims: it judges the paper's point (is the one column better than the other?) and never a level.

`without` names the rows and columns of the table that it leaves out, each with the reason.

`stands_for: {sgd_long: sgd}` says that its sgd_long is what the paper's sgd is, where that is not the column of the
same name: the paper's printed differences to sgd then stand beside those to sgd_long.

`{seed}` in an override stands for the run's seed, where something else must move with it, as the corruption of labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sam_repro.errors import UserError, hint
from sam_repro.files.strict import Fields, mapping, shown
from sam_repro.tables.table import Pair, Place

INHERITED = ("title", "source", "metric", "unit", "points", "paired")
SEED = "{seed}"


def inherited(where: str, table: Fields) -> Fields:
    """The miniature's fields with what it takes over from its table."""
    small = {"statistic": "last", **{key: table[key] for key in INHERITED if key in table}}
    small |= mapping(where, table["miniature"])
    for lines in ("rows", "columns"):
        known = mapping(f"{where} {lines}", table.get(lines) or {})
        small[lines] = {
            name: _labelled(f"{where} {lines} {name}", line, known.get(name))
            for name, line in mapping(f"{where} {lines}", small.get(lines) or {}).items()
        }
    return {"n": None, "kind": "missing", **small}


def without(ref: str, small: Any, labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The labels of the table's rows and columns that its miniature leaves out, each with the reason."""
    found = list[tuple[str, str]]()
    for row, why in mapping(f"table {ref} miniature without", small.get("without") or {}).items():
        if str(row) not in labels:
            raise UserError(
                f"table {ref} miniature without: there is no row or column {row!r}: {hint(str(row), list(labels))}"
            )
        if not isinstance(why, str) or not why.strip():
            raise UserError(f"table {ref} miniature without {row}: say why it is left out, is {shown(why)}")
        found.append((labels[str(row)], why.strip().rstrip(".")))
    return tuple(found)


def claimed_of(ref: str, data: Fields, pairs: Iterable[Pair], small: Iterable[Pair]) -> tuple[Pair, ...]:
    """The miniature's pairs, each with the difference that the paper prints for what it stands for."""
    columns = {str(name) for name in data["miniature"].get("columns") or {}}
    where = f"table {ref} miniature stands_for"
    stand_ins = mapping(where, data["miniature"].get("stands_for") or {})
    for ours, theirs in stand_ins.items():
        if ours not in columns:
            raise UserError(f"{where}: the miniature has no column {ours!r}: {hint(str(ours), sorted(columns))}")
        if not isinstance(theirs, str) or theirs not in data["columns"]:
            known = [str(name) for name in data["columns"]]
            raise UserError(f"{where} {ours}: the table has no column {shown(theirs)}: {hint(str(theirs), known)}")

    def of_paper(place: Place) -> Place:
        row, column = place
        return row, stand_ins.get(column, "" if column in stand_ins.values() else column)

    printed = {(pair.better, pair.worse): pair.claimed for pair in pairs}
    return tuple(replace(one, claimed=printed.get((of_paper(one.better), of_paper(one.worse)))) for one in small)


def _labelled(where: str, line: Any, of_table: Any) -> Fields:
    own = mapping(where, line or {})
    label = of_table.get("label") if isinstance(of_table, dict) else None
    return {"label": label, **own} if label is not None else own


def of_seed(overrides: tuple[str, ...], seed: int) -> tuple[str, ...]:
    return tuple(override.replace(SEED, str(seed)) for override in overrides)
