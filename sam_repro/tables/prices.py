"""What a discrepancy changes, as measured: own tables' rows that name it, less the rows that they are compared with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sam_repro.tables.plan import PAPER
from sam_repro.tables.results import Joined
from sam_repro.tables.verdicts import Difference


@dataclass(frozen=True)
class Price:
    """With the table that it comes from; `runs` of so many of the changed row have ended."""

    changed: str
    default: str
    difference: Difference
    unit: str
    runs: int
    planned: int
    table: str


def prices(tables: Iterable[Joined]) -> dict[str, list[Price]]:
    """By the row of docs/discrepancies.yaml that they concern; of what the ledger has runs of both sides."""
    found = dict[str, list[Price]]()
    for joined in tables:
        if not joined.table.own or joined.budget != PAPER:
            continue
        labels = {row.id: row.label for row in joined.table.rows}
        for row in joined.table.rows:
            for result in (result for result in joined.results if result.cell.row == row.id):
                if result.difference is None or result.cell.baseline is None or result.cell.baseline[0] == row.id:
                    continue  # columns of a row differ in their method, not in what the row changes
                price = Price(
                    row.label,
                    labels[result.cell.baseline[0]],
                    result.difference,
                    result.cell.unit,
                    result.finished,
                    result.planned,
                    joined.table.ref,
                )
                for name in row.discrepancies:
                    found.setdefault(name, []).append(price)
    return found
