"""summary.json: what a run came to, computed from the records of metrics.jsonl."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sam_repro.tasks.described import recorded
from sam_repro.tasks.metric import Metric

STATUSES = ("done", "collapsed")


def summarise(
    records: Iterable[Mapping[str, Any]],
    status: str,
    *,
    metrics: Sequence[Metric],
    passes: float,
    wall_seconds: float | None = None,
    unit: str = "images",
    **facts: Any,
) -> dict[str, Any]:
    """The content of summary.json.

    status          one of STATUSES; "collapsed" is a run whose loss became NaN or infinite
    step, epoch     how far it came
    last, best      the epoch record of the last epoch, and of the one that is best by the primary metric,
                    without kind; null if no epoch ended
    picked          the record of the epoch that is best on the validation split, where the run has one beside the test
                    set (dataset.evaluate_on=both)
    described       what its metrics are (sam_repro.tasks.described)
    collapsed_step  of the first event "collapsed"; null if none
    skipped_steps   how many events "skipped" there are (fp16 overflow)
    passes          forward-backward passes spent, in units of one pass over one batch
    wall_seconds    trained, summed over interruptions: given, or the last record's `time`
    images_per_s    median over the step records; tokens_per_s where the task counts tokens
    facts           whatever else belongs to the run (parameters, realised label noise, ...), as it is
    """
    assert status in STATUSES, status
    seen = list(records)
    epochs = [record for record in seen if record["kind"] == "epoch"]
    events = [record for record in seen if record["kind"] == "event"]
    speed = f"{unit}_per_s"
    rates = [rate for record in seen if (rate := record.get(speed)) is not None and math.isfinite(rate)]
    times = [record["time"] for record in seen if record.get("time") is not None]
    collapsed = [record for record in events if record["name"] == "collapsed"]
    best = metrics[0].best(epochs) or next(iter(epochs), None)
    picked = metrics[0].picked(epochs)
    return {
        "status": status,
        "step": seen[-1].get("step", 0) if seen else 0,
        "epoch": epochs[-1]["epoch"] if epochs else 0,
        "last": _result(epochs[-1]) if epochs else None,
        "best": _result(best) if best else None,
        **({"picked": _result(picked)} if picked else {}),
        "described": recorded(metrics),
        "collapsed_step": collapsed[0].get("step") if collapsed else None,
        "skipped_steps": sum(record["name"] == "skipped" for record in events),
        "passes": passes,
        "wall_seconds": wall_seconds if wall_seconds is not None else times[-1] if times else 0.0,
        speed: statistics.median(rates) if rates else None,
        **facts,
    }


def _result(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != "kind"}
