"""Runs beside each other: those of the ledger and those that only have a folder, and what tells them apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sam_repro.config.compose import compose
from sam_repro.config.identity import as_values, science
from sam_repro.config.schema import Config
from sam_repro.errors import UserError, hint, nearest
from sam_repro.record import metrics
from sam_repro.runs import ledger
from sam_repro.runs.entry import results as results_of
from sam_repro.runs.faults import usable
from sam_repro.runs.run import Run, stored_runs
from sam_repro.runs.state import state_of
from sam_repro.tasks.described import described
from sam_repro.tasks.metric import Metric

STATUSES = ("done", "collapsed", "running", "queued", "failed", "missing")
# What a filter may say beside the fields of the configuration.
FACTS = ("run", "status", "method", "dataset", "model", "seed", "budget")


@dataclass(frozen=True)
class Shown:
    """A run, of which nothing needs to be known but its id."""

    run: Run
    status: str  # one of STATUSES
    method: str
    budget: str
    fields: Mapping[str, Any]  # dotted: what of its configuration is no default
    metrics: tuple[Metric, ...]  # those that are results
    results: Mapping[str, Mapping[str, Any]]  # metric -> last, best, best_epoch; picked, picked_epoch
    passes: float | None = None
    seconds: float | None = None
    finished: str | None = None
    note: str = ""

    def value(self, field: str) -> Any:
        return self.fields.get(field, _defaults().get(field))


def collect(results: Path) -> list[Shown]:
    """Every run of a results folder: as it ended, the first first, then those that have not."""
    entries = usable(ledger.read(results)[0])[0]
    ended = {entry["run_id"] for entry in entries}
    return [_ended(entry, results) for entry in entries] + [
        of_folder(run) for run in stored_runs(results) if run.id not in ended
    ]


def chosen(shown: Iterable[Shown], filters: Mapping[str, Any]) -> list[Shown]:
    """Those of which every filter is true: status=failed, method=sam, seed=0, base_optimizer.lr=0.1, ..."""
    shown = list(shown)
    for key in filters:
        if key not in FACTS and key not in _defaults() and not any(key in one.fields for one in shown):
            raise UserError(f"{key}: nothing of a run is called so.{nearest(key, [*FACTS, *_defaults()])}")
    if (status := filters.get("status", STATUSES[0])) not in STATUSES:
        raise UserError(f"status={status}: {hint(str(status), STATUSES)}")
    if not str(seed := filters.get("seed", 0)).removeprefix("-").isdecimal():
        raise UserError(f"seed={seed} is no whole number")
    return [one for one in shown if all(_is(one, key, wanted) for key, wanted in filters.items())]


def differing(shown: Sequence[Shown]) -> list[str]:
    """The fields in which these runs differ; the seed is shown by itself."""
    fields = sorted({field for one in shown for field in one.fields} - {"seed"})
    return [field for field in fields if len({repr(one.value(field)) for one in shown}) > 1]


def labels(shown: Sequence[Shown], *, seeds: bool = True) -> list[str]:
    """Each run's method, and what else tells it from the others; without the seed, repetitions are called alike."""
    fields = differing(shown)
    told_apart = ["seed"] if seeds and len({one.value("seed") for one in shown}) > 1 else []
    found = []
    for one in shown:
        told = [*(field for field in fields if not _goes_without_saying(field, one, shown)), *told_apart]
        found.append(", ".join([one.method, *(f"{_short(field, told)}={one.value(field)}" for field in told)]))
    return found


def _goes_without_saying(field: str, one: Shown, shown: Sequence[Shown]) -> bool:
    """What goes with the method or the data set needs no words, unless runs of the same one differ in it."""
    match field.partition(".")[0]:
        case "method":
            alike = [other for other in shown if other.method == one.method]
        case "dataset" if field != "dataset.name":
            alike = [other for other in shown if other.value("dataset.name") == one.value("dataset.name")]
        case _:
            return False
    return len({repr(other.value(field)) for other in alike}) == 1


def row(one: Shown, fields: Sequence[str]) -> dict[str, Any]:
    """Flat, for a data frame or a table."""
    out: dict[str, Any] = {"run": one.run.id, "status": one.status, "method": one.method}
    out |= {field: one.value(field) for field in fields}
    out |= {"seed": one.value("seed"), "budget": one.budget}
    for metric in one.metrics:
        found = one.results.get(metric.name, {})
        kinds = ("last", "best", "best_epoch", *(kind for kind in ("picked", "picked_epoch") if kind in found))
        out |= {f"{metric.name}_{kind}": found.get(kind) for kind in kinds}
    return out | {
        "passes": one.passes,
        "seconds": one.seconds,
        "finished": one.finished,
        "note": one.note,
        "folder": str(one.run.path),
    }


def _ended(entry: Mapping[str, Any], results: Path) -> Shown:
    overrides = entry.get("overrides", [])
    run = Run.at(results, entry["run_id"], overrides)
    return Shown(
        run,
        entry["status"],
        entry.get("method") or _method_of(_naming(overrides)),
        entry["budget"],
        {**dotted(entry["config"]), "seed": entry["seed"]},
        tuple(m for m in described(entry) if m.result),
        entry["metrics"],
        entry["passes"],
        entry["seconds"],
        entry.get("finished"),
    )


def of_folder(run: Run) -> Shown:
    """A run as its own folder tells of it, whatever the ledger says."""
    state = state_of(run)
    try:
        config = run.stored()
        fields = dotted(science(config, content="unread"))
        described = tuple(metric for metric in run.metrics_described() if metric.result)
    except UserError:  # a folder that a scheduler made, or one that was damaged
        return Shown(run, state.name, "", "", {}, (), {}, note=state.note)
    epochs = list[dict[str, Any]]()
    with suppress(UserError):
        epochs = [record for record in metrics.read(run.path) if record["kind"] == "epoch"]
    results = results_of(described, epochs) if described else {}
    seconds = epochs[-1].get("time") if epochs else None
    return Shown(
        run,
        state.name,
        config.method.name,
        config.budget.name,
        {**fields, "seed": config.seed},
        described,
        results,
        None,
        seconds,
        None,
        state.note,
    )


def _is(one: Shown, key: str, wanted: Any) -> bool:
    match key:
        case "run":
            return one.run.id.startswith(str(wanted))
        case "status" | "method" | "budget":
            return bool(getattr(one, key) == str(wanted))
        case "dataset":
            return bool(one.value("dataset.name") == str(wanted))
        case "model":
            return str(wanted) in (one.value("model.architecture"), one.value("model.name"), _group(one, "model"))
    value = one.value(key)
    with suppress(TypeError, ValueError):
        return float(value) == float(wanted)
    return str(value).lower() == str(wanted).lower()


def _group(one: Shown, group: str) -> str | None:
    """The option of a config group that the run was started with."""
    chosen = [override.partition("=")[2] for override in one.run.overrides if override.startswith(f"{group}=")]
    return chosen[-1] if chosen else None


def _naming(overrides: Iterable[str]) -> tuple[str, ...]:
    """Those that choose a method, with all its fields or with a whole experiment."""
    return tuple(o for o in overrides if o.partition("=")[0].lstrip("+") in ("method", "experiment"))


@cache
def _method_of(naming: tuple[str, ...]) -> str:
    """The name of the method in a line from before lines had it: composed, which takes its time, once for all alike."""
    try:
        return compose(naming).method.name
    except UserError:
        return ""


@cache
def _defaults() -> dict[str, Any]:
    return dotted(as_values(Config()))


def dotted(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in tree.items():
        out |= dotted(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return out


def _short(field: str, fields: Sequence[str]) -> str:
    """The last word of a field, if no other field ends in it."""
    leaf = field.rpartition(".")[2]
    return field if leaf == "name" or sum(other.rpartition(".")[2] == leaf for other in fields) > 1 else leaf
