"""The states of a table's runs, for a terminal and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sam_repro.runs.entry import Entry
from sam_repro.tables.plan import Planned
from sam_repro.tables.status import STATES, counts, states
from sam_repro.tables.table import Table


def collect(
    tables: list[Table], planned: Mapping[str, list[Planned]], entries: Mapping[str, Entry], results: Path
) -> dict[str, Any]:
    out = []
    for table in tables:
        cells = []
        for cell in planned[table.ref]:
            found = states([cell], entries, results)
            cells.append(
                {
                    "row": cell.cell.row,
                    "column": cell.cell.column,
                    **counts(found),
                    "why_not": cell.why,
                    "runs": [
                        {"id": s.run.id, "seed": s.run.seed, "state": s.state, "heartbeat": s.heartbeat, "note": s.note}
                        for s in found
                    ],
                }
            )
        out.append({"table": table.ref, **counts(states(planned[table.ref], entries, results)), "cells": cells})
    return {"tables": out}


def rows(found: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """What `status` found, a row a run; a cell without runs has one too, which says why."""
    nothing = {"id": None, "seed": None, "state": None, "heartbeat": None, "note": None}
    for table in found["tables"]:
        for cell in table["cells"]:
            place = {"table": table["table"], "row": cell["row"], "column": cell["column"]}
            yield from ({**place, **run, "why_not": cell["why_not"]} for run in cell["runs"] or [nothing])


def text(found: Mapping[str, Any], *, single: bool) -> str:
    """A line a table, or for a single table a line a cell and each run that is not simply missing or done."""
    first = "cell" if single else "table"
    lines = list[str]()
    for table in found["tables"]:
        items = table["cells"] if single else [table]
        width = max(len(_name(item)) for item in [*items, {"table": first}])
        if not lines:
            lines.append(f"{first:<{max(width, 14)}}  " + "  ".join(f"{state:>9}" for state in STATES))
        for item in items:
            numbers = "  ".join(f"{item[state] or '·':>9}" for state in STATES)
            lines.append(
                f"{_name(item):<{max(width, 14)}}  {numbers}" + (f"  {item['why_not']}" if item.get("why_not") else "")
            )
            for run in item.get("runs", ()):
                if run["state"] in ("running", "failed", "queued") or run["note"]:
                    beat = "" if run["heartbeat"] is None else f", last sign of life {run['heartbeat']:.0f} s ago"
                    lines.append(
                        f"  {run['id']} seed {run['seed']}: {run['state']}{beat}"
                        + (f" ({run['note']})" if run["note"] else "")
                    )
    return "\n".join(lines) + "\n"


def _name(item: Mapping[str, Any]) -> str:
    return str(item["table"]) if "table" in item else f"{item['row']} {item['column']}"
