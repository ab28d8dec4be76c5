"""What a table still costs, told before anything is spent."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sam_repro.errors import UserError
from sam_repro.report import text as words
from sam_repro.runs.entry import Entry
from sam_repro.tables.cost import cost, device_facts
from sam_repro.tables.plan import PAPER, Planned
from sam_repro.tables.status import state_of
from sam_repro.tables.wanted import Wanted


def summarise(
    chosen: Mapping[str, list[Planned]],
    everything: Mapping[str, list[Planned]],
    entries: Mapping[str, Entry],
    results: Path,
    device: str,
) -> dict[str, Any]:
    """The cells of some tables with their costs, and the totals over the distinct runs that are still to be done."""
    memory = device_facts(device)[2]
    tables_of = dict[str, set[str]]()
    for ref, cells in everything.items():
        for cell in cells:
            for run in cell.runs:
                tables_of.setdefault(run.id, set()).add(ref)
    total = {"runs": 0, "steps": 0, "passes": 0.0, "flops": 0.0, "hours": 0.0, "unknown_cost": 0}
    counted, out = set[str](), []
    for ref, cells in chosen.items():
        for planned in cells:
            states = [state_of(run, entries.get(run.id), results, metric=planned.cell.metric) for run in planned.runs]
            todo = [item.run for item in states if item.state not in ("done", "collapsed")]
            judging = sum(item.trained for item in states)
            spent = cost(planned.config) if planned.config else None
            hours = spent.hours(device) if spent else None
            training = [item.run for item in states if item.run in todo and not item.trained]
            fresh = [run for run in training if run.id not in counted]
            counted |= {run.id for run in fresh}
            if spent:
                total["runs"] += len(fresh)
                total["steps"] += len(fresh) * spent.steps
                total["passes"] += len(fresh) * spent.passes
                total["flops"] += len(fresh) * (spent.flops or 0.0)
                total["hours"] += len(fresh) * (hours or 0.0)
                total["unknown_cost"] += len(fresh) * (hours is None)
            out.append(
                {
                    "table": ref,
                    "row": planned.cell.row,
                    "column": planned.cell.column,
                    "runs": len(planned.runs),
                    "to_do": len(todo),
                    "to_judge": judging,
                    "shared_with": sorted({t for run in planned.runs for t in tables_of[run.id]} - {ref}),
                    "run_ids": [run.id for run in planned.runs],
                    "overrides": list(planned.cell.overrides),
                    "passes_a_run": spent and spent.passes,
                    "flops_a_run": spent and spent.flops,
                    "hours_a_run": hours,
                    "memory_gb": spent and spent.memory_gb,
                    "fits": None if not spent or spent.memory_gb is None else spent.memory_gb <= memory,
                    "why_not": planned.why,
                }
            )
    return {"device": device, "cells": out, "to_do": total}


def text(found: Mapping[str, Any], budget: str) -> str:
    head = ("table", "row", "column", "to do", "passes", "FLOPs", "hours", "GB", "shared with")
    rows = [head]
    for cell in found["cells"]:
        if cell["why_not"]:
            rows.append((cell["table"], cell["row"], cell["column"], "–", "", "", "", "", cell["why_not"]))
            continue
        memory = words.NONE if cell["memory_gb"] is None else f"{cell['memory_gb']:.1f}{'' if cell['fits'] else ' !'}"
        rows.append(
            (
                cell["table"],
                cell["row"],
                cell["column"],
                f"{cell['to_do']} of {cell['runs']}",
                words.large(cell["passes_a_run"]),
                words.large(cell["flops_a_run"]),
                _hours(cell["hours_a_run"]),
                memory,
                " ".join(cell["shared_with"]),
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(head) - 1)]
    lines = ["  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]]).rstrip() for row in rows]
    total = found["to_do"]
    unknown = f"; {total['unknown_cost']} runs of unknown cost" if total["unknown_cost"] else ""
    summary = (
        f"{total['runs']} runs to do at the {budget} budget: {words.large(total['passes'])} passes, "
        f"{words.large(total['flops'])}FLOP, {_hours(total['hours'])} hours on one {found['device']}, "
        f"estimated{unknown}"
    )
    return "\n".join([*lines, "", "Costs are of one run; ! is more memory than the device has.", summary]) + "\n"


def wire(rows: Sequence[Mapping[str, Any]], where: str, ranks: int, device: str) -> str:
    """How much of a step the ranks talk, a line for cells that are alike."""
    alike = dict[tuple[str, ...], list[str]]()
    for row in rows:
        said = (row["table"], row["row"], str(row["batch"]), *_exchanged(row["exchange"]))
        alike.setdefault(said, []).append(row["column"])
    head = ("table", "row", "batch", "all-reduces", "MB", "computes ms", "talks ms", "at most", "columns")
    lines = [head, *((*key, " ".join(columns)) for key, columns in alike.items())]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head) - 1)]
    text = ["  ".join([*(c.ljust(w) for c, w in zip(line, widths, strict=False)), line[-1]]).rstrip() for line in lines]
    title = f"A step of one run on {ranks} ranks, {where}, each of them one {device}; nothing overlaps:"
    note = f"{words.NONE}: the batch has no {ranks} equal shares, or nobody has measured the model."
    aside = "Runs side by side, one a GPU, say nothing to each other."
    return "\n".join([title, *text, f"{note} {aside}", ""])


def _exchanged(what: Mapping[str, Any] | None) -> tuple[str, ...]:
    if what is None:
        return (words.NONE,) * 5
    return (
        f"{what['collectives']:g}",
        f"{what['megabytes']:,.0f}",
        f"{1e3 * what['computing']:.1f}",
        f"{1e3 * what['talking']:.1f}",
        f"{100 * what['share']:.0f} %",
    )


def hours_of(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if not 0 < hours < math.inf:
        raise UserError(f"hours={text}: write a number of hours above 0, as in hours=8")
    return hours


def wanted(found: Sequence[Wanted], hours: float, device: str) -> str:
    """A line for each group of runs, its command under it."""
    lines = []
    for one in found:
        what = f"{one.verdicts} verdict{'s' if one.verdicts > 1 else ''}, {one.runs} runs, {one.hours:.2f} hours"
        cells = ",".join("/".join(cell) for cell in one.cells)
        budget = ("" if one.budget == PAPER else f" budget={one.budget}") + (" tune=true" if one.tune else "")
        lines.append(
            f"# {what}\n{shlex.join(['sam-repro', 'sweep', f'table={one.table}', f'cells={cells}'])}{budget}\n"
        )
    total, spent = sum(one.verdicts for one in found), sum(one.hours for one in found)
    return "".join(lines) + f"{total} verdicts in {spent:.2f} of {hours:g} hours on one {device}, estimated\n"


def _hours(value: float | None) -> str:
    return words.NONE if value is None else f"{value:.2f}" if value < 10 else f"{value:,.0f}"
