"""What a run recorded epoch by epoch: in its own folder, or in the curves that are kept of finished runs."""

from __future__ import annotations

from typing import Any

from sam_repro.errors import UserError
from sam_repro.record import metrics
from sam_repro.runs import archive
from sam_repro.runs.run import Run
from sam_repro.study.frame import Subject


def epochs(subject: Subject) -> list[dict[str, Any]]:
    run = Run.at(subject.results, subject.id)
    records = metrics.read(run.path) if run.metrics.exists() else archive.read(subject.results, subject.id) or []
    found = [dict(record) for record in records if record["kind"] == "epoch"]
    if not found:
        raise UserError(f"run={subject.id} recorded no epoch: start it again to let it go on")
    return found


def series(subject: Subject, metric: str) -> list[float]:
    """A metric's value at the end of each epoch."""
    records = epochs(subject)
    if lacking := [record["epoch"] for record in records if metric not in record]:
        known = ", ".join(name for name, value in records[0].items() if isinstance(value, float))
        raise UserError(f"metric={metric}: run {subject.id} has none at epoch {lacking[0]}; it recorded {known}")
    return [float(record[metric]) for record in records]
