"""A table's `miniature:`: its question asked again on data and nets that a laptop trains in hours.

A miniature is written in the words of a table. Title, source, metric, unit and the pairs of columns that the table is
about are the table's where it does not say its own; so are the labels of rows and columns of the same name. It has no
claims: it judges the paper's point (is the one column better than the other?) and never a level.

`without` names the rows and columns of the table that it leaves out, each with the reason.

`{seed}` in an override stands for the run's seed, where something else must move with it, as the corruption of labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sam_repro.errors import UserError, hint
from sam_repro.files.strict import Fields, mapping, shown

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


def _labelled(where: str, line: Any, of_table: Any) -> Fields:
    own = mapping(where, line or {})
    label = of_table.get("label") if isinstance(of_table, dict) else None
    return {"label": label, **own} if label is not None else own


def of_seed(overrides: tuple[str, ...], seed: int) -> tuple[str, ...]:
    return tuple(override.replace(SEED, str(seed)) for override in overrides)
