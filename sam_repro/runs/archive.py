"""results/curves/<run id>.jsonl.gz: the metrics.jsonl of finished runs, small enough to be committed.

A run's folder holds weights and stays where it was trained; its line in the ledger and this file are what travels. The
page draws its curves from here, and `disagreements` computes a line's numbers anew.
"""

from __future__ import annotations

import gzip
import shutil
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sam_repro.files import lines
from sam_repro.files.atomic import open_atomic, write_atomic
from sam_repro.files.read import DamagedError, opened
from sam_repro.record import metrics
from sam_repro.runs.entry import Entry
from sam_repro.runs.entry import results as results_of
from sam_repro.runs.run import Run
from sam_repro.tasks.described import described

FOLDER = "curves"
MOST = 64 << 20  # bytes of an unpacked curve; a run of 300 epochs has some hundred thousand


def path(results: Path, run_id: str) -> Path:
    return results / FOLDER / f"{run_id}.jsonl.gz"


def keep(run: Run) -> None:
    """Store a finished run's records. The same records give the same bytes: the archive knows no time and no name."""
    target = path(run.results, run.id)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(target, gzip.compress(run.metrics.read_bytes(), mtime=0))


def read(results: Path, run_id: str) -> list[dict[str, Any]] | None:
    """The records; None where no curve is kept, or what is there is none."""
    try:
        with opened(path(results, run_id)) as file, gzip.open(file) as unpacked:
            records = [lines.decode(line) for line in unpacked.read(MOST).splitlines()]
            return records if all(map(metrics.sound, records)) else None
    except (OSError, EOFError, zlib.error, ValueError, RecursionError, DamagedError):
        return None


def fetch(results: Path, entry: Entry, other: Path) -> None:
    """Take over another results folder's curve of a run, if there is none here and that one agrees with the line."""
    target = path(results, entry["run_id"])
    if target.exists():
        return
    records = read(other, entry["run_id"])
    if records is not None and not disagreements(entry, records):
        target.parent.mkdir(parents=True, exist_ok=True)
        with opened(path(other, entry["run_id"])) as source, open_atomic(target) as copy:
            shutil.copyfileobj(source, copy)


def disagreements(entry: Entry, records: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a line says otherwise than its curve does. What an evaluation has added has no curve."""
    epochs = [record for record in records if record.get("kind") == "epoch"]
    computed_anew = results_of(described(entry), epochs)
    return [
        f"{name} is {entry['metrics'].get(name)}, its curve gives {computed}"
        for name, computed in computed_anew.items()
        if entry["metrics"].get(name) != computed
    ]
