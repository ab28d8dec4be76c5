"""ASAM figure 4, R-SAM figures 3b and 3c: a metric over a value of the method, a curve for each column of a table.

    sam-repro study radius                    # WRN-16-8 on CIFAR-10: the cells of asam/fig4_cifar10

The rows of the table are the values. Means over the runs of a cell with 95 % intervals, of the best epoch or the last.
Claims are those that the table states (`said:`), judged by the same runs, in the order of the study's file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from sam_repro.errors import UserError, hint
from sam_repro.report.figures.panel import Axis, Panel, Series
from sam_repro.report.studies import Judged
from sam_repro.study.frame import RECORDS, Job, Measured, Subject
from sam_repro.study.recorded import series
from sam_repro.tables import said
from sam_repro.tables.statistics import sample
from sam_repro.tables.table import Table

RUNS = RECORDS
EPOCHS = ("best", "last")
VERDICTS = {said.SHOWN: True, said.OPPOSITE: False}


@dataclass
class Settings:
    metric: str = "test_accuracy"  # of which more is better
    epoch: str = "best"
    value: str = "ρ"  # what the rows are values of
    log: bool = True


def check(s: Settings) -> None:
    if s.epoch not in EPOCHS:
        raise UserError(f"epoch={s.epoch}: {hint(s.epoch, EPOCHS)}")


def measure(job: Job[Settings]) -> Measured:
    s, table = job.settings, job.table
    if table is None:
        raise UserError("runs: this study is of the cells of a table, whose rows are the values; leave runs= out")
    job.parts.expect(len(job.runs))
    found = dict[tuple[str, str], dict[int, float]]()
    for place, one in enumerate(job.runs):
        cell = found.setdefault((one.row, one.column), {})
        cell[place] = job.parts.get(one.id, partial(_value, one, s))
    lines, numbers = [], dict[str, object]()
    for column in table.columns:
        rows = [row for row in table.rows if (row.id, column.id) in found]
        samples = [sample(list(found[row.id, column.id].values())) for row in rows]
        known = [one for one in samples if one]
        at = [_number(row.id) for row in rows]
        several = any(one.low is not None for one in known)
        low, high = ([one.low for one in known], [one.high for one in known]) if several else (None, None)
        lines.append(Series(column.label, at, [one.mean for one in known], low, high))
        numbers[column.label] = {row.id: [one.mean, one.low, one.high] for row, one in zip(rows, known, strict=True)}
    runs = sorted({len(cell) for cell in found.values()})
    caption = (
        f"{s.metric.replace('_', ' ')} of the {s.epoch} epoch; n = {' to '.join(map(str, runs))} runs a point, "
        "mean and 95 % interval. A claim is decided where each of its intervals is on one side."
    )
    panel = Panel("curves", "", Axis(s.value, log=s.log), Axis(s.metric.replace("_", " "), table.cells[0].unit), lines)
    return Measured(numbers, [panel], _claims(table, found), caption)


def _value(one: Subject, s: Settings) -> float:
    values = series(one, s.metric)
    return max(values) if s.epoch == "best" else values[-1]


def _number(row: str) -> float:
    try:
        return float(row)
    except ValueError:
        raise UserError(f"row {row!r} is no number: this study wants a table whose rows are values") from None


def _claims(table: Table, found: Mapping[tuple[str, str], Mapping[int, float]]) -> dict[str, Judged]:
    claims = {}
    for number, one in enumerate(table.said, start=1):
        answer = said.judged(one, lambda row, column: found.get((row, column), {}), table.margin)
        parts = "; ".join(f"{' '.join(names)} {difference.said(2)}" for names, difference in answer.parts[:3])
        more = f"; and {len(answer.parts) - 3} more" if len(answer.parts) > 3 else ""
        claims[f"said_{number}"] = Judged(VERDICTS.get(answer.verdict), parts + more or answer.verdict)
    return claims
