"""A finished run's line that the ledger has lost (a torn file, another ledger), made anew from the run's folder.

A run's line is written before its DONE, so a folder with DONE whose run the ledger does not know is such a case.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sam_repro.errors import UserError
from sam_repro.files.read import DamagedError, read_json
from sam_repro.record import metrics
from sam_repro.runs import archive, ledger
from sam_repro.runs.entry import Entry, entry_of
from sam_repro.runs.faults import fault, usable
from sam_repro.runs.outcome import finished
from sam_repro.runs.run import Run


def known(results: Path) -> set[str]:
    """The runs that have a usable line."""
    return {entry["run_id"] for entry in usable(ledger.read(results)[0])[0]}


def restore(run: Run) -> bool:
    """Write the line of a finished run unless the ledger has it; whether it was written."""
    if run.id in known(run.results):
        return False
    entry = _entry(run)
    if entry is None:
        return False
    archive.keep(run)
    ledger.append(run.results, entry)
    return True


def _entry(run: Run) -> Entry | None:
    """None if the folder does not say enough: then only training it again (force=true) gives a result."""
    summary = finished(run)
    try:
        config = run.stored()
        stored = Run.of(replace(config, results_dir=str(run.results)), run.overrides)
        env = read_json(run.env)
        records = metrics.read(run.path)
    except (OSError, UserError):
        return None
    if summary is None or stored.id != run.id:
        return None
    if not records or records[-1].get("step") != summary.get("step"):
        return None  # torn: its end is lost
    try:
        entry = entry_of(stored, config, records, summary, env)
    except (LookupError, TypeError, ValueError, AttributeError):
        return None  # of the summary or the environment a part is missing, or is another's
    evaluated = _evaluations(run.evaluations)
    entry["metrics"] |= {name: {"last": v, "best": v, "best_epoch": None} for name, v in evaluated.items()}
    return None if fault(entry) else entry


def _evaluations(file: Path) -> dict[str, float]:
    try:
        found = read_json(file)
    except (FileNotFoundError, DamagedError):
        return {}
    return found if isinstance(found, dict) else {}
