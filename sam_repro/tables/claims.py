"""Every claim of the papers as one flat list, for other programs."""

from __future__ import annotations

from typing import Any

from sam_repro.tables.table import OWN, Table


def claims(tables: list[Table]) -> list[dict[str, Any]]:
    """One object a cell. `mean` is null where the paper's number is not at hand (`kind` is then "missing").

    `footnotes` are those of its row, its column and the whole table.
    """
    own = {
        (table.ref, kind, line.id): line.footnote
        for table in tables
        for kind, lines in (("row", table.rows), ("column", table.columns))
        for line in lines
    }
    return [
        {
            "paper": table.paper,
            "table": table.number,
            "row": cell.row,
            "column": cell.column,
            "metric": cell.metric,
            "unit": cell.unit,
            "mean": cell.claim.mean,
            "std": cell.claim.std,
            "std_is_upper_bound": cell.claim.std_bound,
            "n": cell.claim.n,
            "succeeded": cell.claim.succeeded,
            "kind": cell.claim.kind,
            "source": table.source,
            "footnotes": [
                *filter(None, (own[table.ref, "row", cell.row], own[table.ref, "column", cell.column])),
                *table.footnotes,
            ],
        }
        for table in tables
        for cell in table.cells
        if cell.claim.kind != OWN
    ]
