"""How a run ended: the marks of its folder. Imports no torch."""

from __future__ import annotations

from typing import Any

from sam_repro.files.read import read_json
from sam_repro.record.folder import RunFolder
from sam_repro.tasks.described import described


def finished(run: RunFolder) -> dict[str, Any] | None:
    """The summary of a finished run, or None. One that does not say how the run ended is none: it was altered."""
    if not run.done.exists():
        return None
    try:
        summary: dict[str, Any] = read_json(run.summary)
        in_words(summary)
    except (FileNotFoundError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        return None
    return summary if {"last", "best"} <= summary.keys() else None


def already(summary: dict[str, Any]) -> str:
    return f"already done: {in_words(summary)}. force=true trains it again"


def objective(run: RunFolder) -> float | None:
    """What a sweeper gets of a run: its primary metric at the last epoch, never the best epoch's, which is chosen too.

    It is the validation split's where the run has one beside the test set, so that the test set chooses nothing. A run
    that collapsed is worth what guessing gives: a radius so large is to be avoided, and is no failure to start.
    """
    summary = finished(run)
    if summary is None:
        return None
    metric = described(summary)[0]
    if summary["status"] == "collapsed":
        return metric.chance
    last = summary["last"]
    value: float | None = last.get(metric.on_validation().name, last[metric.name])
    return value


def in_words(summary: dict[str, Any]) -> str:
    """A finished run in one line."""
    if summary["status"] == "collapsed":
        return f"collapsed at step {summary['collapsed_step']}"
    metric, last, best = described(summary)[0], summary["last"], summary["best"]
    told = [
        f"{metric.words} {metric.text(last[metric.name])} at the last epoch",
        f"{metric.text(best[metric.name])} at the best (epoch {best['epoch']})",
    ]
    if (picked := summary.get("picked")) is not None:
        told.append(f"{metric.text(picked[metric.name])} at the one picked on validation (epoch {picked['epoch']})")
    return ", ".join(told)
