"""What a run, or a published folder of one, scored on other test sets than its own: evaluations.json and the ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sam_repro.errors import UserError
from sam_repro.files.atomic import write_atomic
from sam_repro.runs import ledger
from sam_repro.runs.faults import usable
from sam_repro.runs.run import Run


def keep(run: Run, found: dict[str, float]) -> bool:
    """In the run folder and, if the run has a line in the ledger, as a new line of it; False if that lacks.

    Both under the ledger's lock: evaluations of one run on several sets may end together, and none may lose a number.
    """
    file = run.evaluations
    if not run.done.exists():  # a published folder, which no ledger knows
        write_atomic(file, json.dumps(earlier(file) | found, indent=2) + "\n")
        return True

    def add(entry: ledger.Entry | None) -> ledger.Entry | None:
        known = earlier(file) | found
        write_atomic(file, json.dumps(known, indent=2) + "\n")
        if entry is None or not usable([entry])[0]:
            return None  # starting the run writes a line for it in either case
        # Earlier ones too: the line may have been lost and written anew since.
        metrics = {name: {"last": value, "best": value, "best_epoch": None} for name, value in known.items()}
        return {**entry, "metrics": {**entry["metrics"], **metrics}}

    return ledger.amend(run.results, run.id, add)


def earlier(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text()) if file.exists() else {}
    except ValueError as error:
        raise UserError(f"{file} is damaged ({error}): delete it and evaluate again") from error
    if not isinstance(found, dict):
        raise UserError(f"{file} is damaged (no object of numbers): delete it and evaluate again")
    return found
