"""One line of the ledger: what a run leaves behind when it ends, written by the trainer, read by every table.

The newest line of a run counts as a whole: an evaluation that adds a metric appends the entry again with the metric
added. Accuracies are in percent (0 ... 100), as the papers print them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NotRequired, TypedDict, cast

from sam_repro.identity import RECIPE_VERSION, run_id, science
from sam_repro.schema import Config

ENDED = ("done", "collapsed")
OF_A_RUN = ("test_accuracy", "test_top5")  # the epoch records that become metrics of the entry


class Metric(TypedDict):
    last: float | None  # after the last epoch; null if none ended
    best: float | None  # the maximum over the epochs, which is what the papers report
    best_epoch: int | None  # null also where the metric was taken once, at the end


class Entry(TypedDict):
    """`sam_repro.report.ledger` adds `version` and `finished` to it."""

    run_id: str
    recipe_version: int
    overrides: list[str]  # what the run was started with, `+experiment=...` included
    config: dict[str, Any]  # the science part of the configuration, as `sam_repro.identity.science` gives it
    seed: int
    budget: str  # paper, mini, smoke, ...
    status: str  # one of ENDED
    metrics: dict[str, Metric]  # OF_A_RUN, and whatever an evaluation adds: imagenet_real_accuracy, ...
    passes: float  # forward-backward passes spent, in units of one pass over one batch
    seconds: float  # trained, summed over interruptions
    hardware: dict[str, Any]  # as in env.json: gpus, cpu, cores, memory_gb
    packages: dict[str, Any]  # name -> version
    git: dict[str, Any] | None  # sha, dirty
    collapsed_step: NotRequired[int | None]
    finished: NotRequired[str]  # ISO 8601, UTC
    version: NotRequired[int]  # of the ledger's format


def entry_of(
    config: Config,
    overrides: Sequence[str],
    records: Iterable[Mapping[str, Any]],
    summary: Mapping[str, Any],
    env: Mapping[str, Any],
) -> Entry:
    """The line of a run from its metrics.jsonl records, summary.json and env.json."""
    epochs = [record for record in records if record["kind"] == "epoch"]
    return {
        "run_id": run_id(config),
        "recipe_version": RECIPE_VERSION,
        "overrides": list(overrides),
        "config": science(config),
        "seed": config.seed,
        "budget": config.budget.name,
        "status": summary["status"],
        "metrics": {name: metric for name in OF_A_RUN if (metric := _metric(name, epochs)) is not None},
        "passes": summary["passes"],
        "seconds": summary["wall_seconds"],
        "hardware": dict(env["hardware"]),
        "packages": dict(env["packages"]),
        "git": env["git"],
        "collapsed_step": summary.get("collapsed_step"),
    }


def _metric(name: str, epochs: Sequence[Mapping[str, Any]]) -> Metric | None:
    values = [(record["epoch"], record[name]) for record in epochs if record.get(name) is not None]
    if not values:
        return None
    finite = [(epoch, value) for epoch, value in values if math.isfinite(value)]
    best_epoch, best = max(finite, key=lambda item: (item[1], -item[0]), default=(None, None))
    last = values[-1][1]
    return {"last": last if math.isfinite(last) else None, "best": best, "best_epoch": best_epoch}


_NUMBER = (int, float)
_TYPES: dict[str, type | tuple[type, ...]] = {
    "config": dict, "seed": int, "budget": str, "status": str, "metrics": dict, "passes": _NUMBER, "seconds": _NUMBER,
    "recipe_version": int, "hardware": dict,
}  # fmt: skip


def usable(lines: Iterable[Mapping[str, Any]]) -> tuple[list[Entry], list[str]]:
    """The lines that are entries, and one sentence for each that isn't."""
    kept, complaints = list[Entry](), list[str]()
    for line in lines:
        if fault := _fault(line):
            complaints.append(f"the ledger's line of run {line.get('run_id')} {fault}: skipped")
        else:
            kept.append(cast(Entry, dict(line)))
    return kept, complaints


def _fault(line: Mapping[str, Any]) -> str | None:
    """Why a line can't be used. Unknown keys are no fault."""
    for key, kind in _TYPES.items():
        if key not in line:
            return f"has no {key}"
        if not isinstance(line[key], kind) or isinstance(line[key], bool):
            return f"has {key}={line[key]!r}"
    if line["status"] not in ENDED:
        return f"has status={line['status']!r}"
    for name, metric in line["metrics"].items():
        if not isinstance(metric, dict) or not all(
            metric.get(k) is None or _finite(metric[k]) for k in ("last", "best")
        ):
            return f"has metric {name}={metric!r}"
    return None


def _finite(value: object) -> bool:
    return isinstance(value, _NUMBER) and not isinstance(value, bool) and math.isfinite(value)
