"""How a run ends: exit codes and the marks of a run folder. Imports no torch."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

# Exit codes, as in sysexits.h where it has one. 0: done (a collapsed run too); 1: a crash, with its traceback.
USER_ERROR = 2
DISK_FULL = 74
INTERRUPTED = 75  # stopped by a signal with its checkpoint saved, or another process trains this run: try again

DONE = "DONE"
LOCK = ".lock"
EVALUATIONS = "evaluations.json"  # on other test sets, by `sam_repro.evaluate`


def end(code: int) -> NoReturn:
    """End a rank's process. Without the interpreter's own end: gloo's threads may abort it after an uneven one."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


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
