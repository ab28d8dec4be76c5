"""A finished run's line that the ledger has lost (a torn file, another ledger), made anew from the run's folder.

A run's line is written before its DONE, so a folder with DONE whose run the ledger does not know is such a case.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from sam_repro.config.identity import run_id
from sam_repro.config.schema import Config
from sam_repro.errors import UserError
from sam_repro.record import metrics
from sam_repro.runs import ledger
from sam_repro.runs.entry import Entry, entry_of, usable
from sam_repro.runs.outcome import EVALUATIONS, finished


def known(results: Path) -> set[str]:
    """The runs that have a usable line."""
    return {entry["run_id"] for entry in usable(ledger.read(results)[0])[0]}


def restore(folder: Path, results: Path, overrides: Sequence[str]) -> bool:
    """Write the line of a finished run unless the ledger has it; whether it was written."""
    if folder.name in known(results):
        return False
    entry = _entry(folder, overrides)
    if entry is None:
        return False
    ledger.append(results, entry)
    return True


def _entry(folder: Path, overrides: Sequence[str]) -> Entry | None:
    """None if the folder does not say enough: then only training it again (force=true) gives a result."""
    summary = finished(folder)
    try:
        stored: Any = OmegaConf.load(folder / "config.yaml")
        config = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(Config), stored))
        env = json.loads((folder / "env.json").read_text(encoding="utf-8"))
        records = metrics.read(folder)
    except (OSError, ValueError, YAMLError, OmegaConfBaseException, UserError):
        return None
    if summary is None or not isinstance(config, Config) or run_id(config) != folder.name:
        return None
    if not records or records[-1].get("step") != summary.get("step"):
        return None  # torn: its end is lost
    entry = entry_of(config, overrides, records, summary, env)
    evaluated = _evaluations(folder / EVALUATIONS)
    entry["metrics"] |= {name: {"last": v, "best": v, "best_epoch": None} for name, v in evaluated.items()}
    return entry


def _evaluations(file: Path) -> dict[str, float]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
