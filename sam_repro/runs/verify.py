"""Whether stored results are what they say: ids and numbers computed anew, older recipes and other code pointed out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam_repro.config.identity import RECIPE_VERSION, run_id
from sam_repro.errors import UserError
from sam_repro.runs import archive, ledger
from sam_repro.runs.digest import digest
from sam_repro.runs.entry import Entry
from sam_repro.runs.run import Run, config_of, stored_runs


@dataclass(frozen=True)
class Finding:
    text: str
    wrong: bool  # a contradiction, as an id or a number that comes out otherwise; the rest is only older


def check(entries: list[Entry], results: Path) -> list[Finding]:
    """Of the ledger's lines, then of the run folders."""
    found = [Finding(text, True) for text in ledger.altered(results)]
    found += [
        finding for entry in entries for finding in (*_entry(entry), *_curve(entry, results), *_weights(entry, results))
    ]
    for run in stored_runs(results):
        found += _folder(run)
    return [*found, *_code(entries)]


def _entry(entry: Entry) -> Iterable[Finding]:
    name = f"run {entry['run_id']}"
    if entry["recipe_version"] != RECIPE_VERSION:
        yield Finding(
            f"{name}: recipe version {entry['recipe_version']}, this code has {RECIPE_VERSION}: train it anew",
            False,
        )
        return
    fresh = _id_of(entry["config"])
    if fresh is None:
        yield Finding(f"{name}: its stored configuration does not fit this code's schema", True)
    elif fresh != entry["run_id"]:
        yield Finding(f"{name}: its stored configuration gives {fresh}", True)


def _curve(entry: Entry, results: Path) -> Iterable[Finding]:
    """The line's numbers, computed anew from its curve. A run of before curves were kept has none."""
    name, records = f"run {entry['run_id']}", archive.read(results, entry["run_id"])
    if records is not None:
        yield from (Finding(f"{name}: {text}", True) for text in archive.disagreements(entry, records))
    elif archive.path(results, entry["run_id"]).exists():
        yield Finding(f"{name}: {archive.path(results, entry['run_id'])} is damaged", True)


def _weights(entry: Entry, results: Path) -> Iterable[Finding]:
    """Those in the run's folder, if they are there."""
    run = Run.at(results, entry["run_id"])
    told, found = entry.get("weights_sha256"), digest(run.weights) if run.done.exists() else None
    if told and found and told != found:
        yield Finding(f"run {entry['run_id']}: its {run.weights.name} is not what its line tells of", True)


def _folder(run: Run) -> Iterable[Finding]:
    folder = run.path
    if not run.config.exists():
        return
    try:
        stored = run.read_config()
    except UserError as error:
        cause = type(error.__cause__).__name__
        yield Finding(f"{folder}: {run.config.name} can't be read ({cause})", True)
        return
    fresh = _id_of(stored)
    if fresh is None:
        yield Finding(f"{folder}: its configuration does not fit this code's schema", True)
    elif fresh != folder.name:
        # An older recipe hashes differently too; the ledger, which knows the version, tells the two apart.
        yield Finding(f"{folder}: its configuration gives {fresh} now: altered, or of an older recipe version", False)


def _id_of(stored: Any) -> str | None:
    try:
        return run_id(*config_of(stored, ""))
    except (OSError, UserError):
        return None


def _code(entries: list[Entry]) -> Iterable[Finding]:
    """One line for each version of the code that is not this checkout's."""
    from sam_repro.record.environment import git_state, in_history

    here = (git_state() or {}).get("sha")
    of_code = Counter((entry.get("git") or {}).get("sha") for entry in entries)
    for sha, runs in sorted(of_code.items(), key=lambda item: str(item[0])):
        if here and sha != here:
            by = f"commit {sha[:10]}" if sha else "unknown code"
            where = "" if not sha or in_history(sha) else ", which is not in this history"
            yield Finding(f"{runs} runs were made by {by}{where}; this is {here[:10]}", False)
    changed = sum(bool((entry.get("git") or {}).get("dirty")) for entry in entries)
    if changed:
        yield Finding(f"{changed} runs were made in a checkout with uncommitted changes", False)
