"""How a run ended: the marks of its folder. Imports no torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DONE = "DONE"
LOCK = ".lock"
EVALUATIONS = "evaluations.json"  # on other test sets, by `sam_repro.evaluate`


def finished(folder: Path) -> dict[str, Any] | None:
    """The summary of a finished run, or None. One that does not say how the run ended is none: it was altered."""
    if not (folder / DONE).exists():
        return None
    try:
        summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
        in_words(summary)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return summary if {"last", "best"} <= summary.keys() else None


def already(summary: dict[str, Any]) -> str:
    return f"already done: {in_words(summary)}. force=true trains it again"


def in_words(summary: dict[str, Any]) -> str:
    """A finished run in one line."""
    if summary["status"] == "collapsed":
        return f"collapsed at step {summary['collapsed_step']}"
    last, best = summary["last"], summary["best"]
    return (f"test accuracy {last['test_accuracy']:.2f} % at the last epoch, "
            f"{best['test_accuracy']:.2f} % at the best (epoch {best['epoch']})")  # fmt: skip
