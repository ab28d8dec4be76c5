"""One line of the ledger: what a run leaves behind when it ends, written by the trainer, read by every table.

The newest line of a run counts as a whole: an evaluation that adds a metric appends the entry again with the metric
added. The ledger is meant to be shared, so an entry says nothing of where: no path, host or account.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from sam_repro.config.identity import RECIPE_VERSION
from sam_repro.config.schema import Config
from sam_repro.runs.digest import digest
from sam_repro.runs.run import Run
from sam_repro.tasks.described import described, recorded
from sam_repro.tasks.metric import Metric

ENDED = ("done", "collapsed")
WHERE = (
    "dataset.root",
    "results_dir",
    "model.weights",
    "track.project",
    "track.entity",
    "hydra.run.dir",
    "hydra.sweep.dir",
)


class Values(TypedDict):
    last: float | None  # after the last epoch; null if none ended
    best: float | None  # over the epochs, which is what the papers report
    best_epoch: int | None  # null also where the metric was taken once, at the end
    picked: NotRequired[float | None]  # at the epoch that is best on the validation split, if there is one
    picked_epoch: NotRequired[int]


class Entry(TypedDict):
    """`sam_repro.runs.ledger` adds `version` and `finished` to it."""

    run_id: str
    recipe_version: int
    overrides: list[str]  # what the run was started with, as typed, `+experiment=...` included and `WHERE` left out
    config: dict[str, Any]  # the science part of the configuration, as `sam_repro.config.identity.science` gives it
    seed: int
    budget: str  # paper, mini, smoke, ...
    status: str  # one of ENDED
    metrics: dict[str, Values]  # those that are results, and whatever an evaluation adds: imagenet_real_accuracy, ...
    passes: float  # forward-backward passes spent, in units of one pass over one batch
    seconds: float  # trained, summed over interruptions
    hardware: dict[str, Any]  # as in env.json: gpus, cpu, cores, memory_gb
    packages: dict[str, Any]  # name -> version
    git: dict[str, Any] | None  # sha, dirty
    described: NotRequired[list[dict[str, Any]]]  # what the metrics are (sam_repro.tasks.described)
    method: NotRequired[str]  # its name
    weights_sha256: NotRequired[str]  # of the weights after the last epoch
    collapsed_step: NotRequired[int | None]
    finished: NotRequired[str]  # ISO 8601, UTC
    version: NotRequired[int]  # of the ledger's format


def entry_of(
    run: Run,
    config: Config,
    records: Iterable[Mapping[str, Any]],
    summary: Mapping[str, Any],
    env: Mapping[str, Any],
) -> Entry:
    """The line of a run from its metrics.jsonl records, summary.json and env.json."""
    epochs = [record for record in records if record["kind"] == "epoch"]
    metrics = described({"config": run.science, **summary})
    entry: Entry = {
        "run_id": run.id,
        "recipe_version": RECIPE_VERSION,
        "overrides": [word for word in run.overrides if word.lstrip("+~").partition("=")[0] not in WHERE],
        "config": dict(run.science),
        "seed": config.seed,
        "budget": config.budget.name,
        "status": summary["status"],
        "metrics": results(metrics, epochs),
        "passes": summary["passes"],
        "seconds": summary["wall_seconds"],
        "hardware": dict(env["hardware"]),
        "packages": dict(env["packages"]),
        "git": env["git"],
        "collapsed_step": summary.get("collapsed_step"),
        "method": config.method.name,
        "described": recorded(metrics),
    }
    # A run that stops where it collapses is left with weights of some later step: of which, is chance.
    if summary["status"] == "done" and (weights := digest(run.weights)) is not None:
        entry["weights_sha256"] = weights
    return entry


def results(metrics: Sequence[Metric], epochs: Sequence[Mapping[str, Any]]) -> dict[str, Values]:
    """Of a run's epoch records, by name, those of its metrics that are results. The first metric is the primary one."""
    picked = metrics[0].picked(epochs)
    return {m.name: found for m in metrics if m.result and (found := values(m, epochs, picked)) is not None}


def values(
    metric: Metric, epochs: Sequence[Mapping[str, Any]], picked: Mapping[str, Any] | None = None
) -> Values | None:
    """Of a run's epoch records, or None if none has the metric. `picked`: the record of the epoch that was."""
    seen = [record[metric.name] for record in epochs if record.get(metric.name) is not None]
    if not seen:
        return None
    best = metric.best(epochs) or {}
    last = seen[-1] if math.isfinite(seen[-1]) else None
    found: Values = {"last": last, "best": best.get(metric.name), "best_epoch": best.get("epoch")}
    if picked is not None:
        value = picked.get(metric.name)
        found |= {
            "picked": value if value is not None and math.isfinite(value) else None,
            "picked_epoch": picked["epoch"],
        }
    return found
