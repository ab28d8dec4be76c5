"""Whether stored results are what they say: run ids computed anew, older recipes and other code pointed out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from sam_repro.config.identity import RECIPE_VERSION, run_id
from sam_repro.config.schema import Config
from sam_repro.runs import ledger
from sam_repro.runs.entry import Entry

CONFIG = "config.yaml"


@dataclass(frozen=True)
class Finding:
    text: str
    wrong: bool  # the stored configuration gives another run id; the rest is only older


def check(entries: list[Entry], results: Path) -> list[Finding]:
    """Of the ledger's lines, then of the run folders."""
    found = [Finding(text, True) for text in ledger.altered(results)]
    found += [finding for entry in entries for finding in _entry(entry)]
    for folder in sorted((results / "runs").glob("*/")):
        found += _folder(folder)
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


def _folder(folder: Path) -> Iterable[Finding]:
    try:
        stored: Any = OmegaConf.load(folder / CONFIG)
    except FileNotFoundError:
        return
    except (OSError, YAMLError, OmegaConfBaseException) as error:
        yield Finding(f"{folder}: {CONFIG} can't be read ({type(error).__name__})", True)
        return
    fresh = _id_of(stored)
    if fresh is None:
        yield Finding(f"{folder}: its configuration does not fit this code's schema", True)
    elif fresh != folder.name:
        # An older recipe hashes differently too; the ledger, which knows the version, tells the two apart.
        yield Finding(f"{folder}: its configuration gives {fresh} now: altered, or of an older recipe version", False)


def _id_of(stored: Any) -> str | None:
    try:
        stored = OmegaConf.create(stored)
        images = stored.dataset.pop("images") if OmegaConf.select(stored, "dataset.images") else None
        config = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(Config), stored))
        assert isinstance(config, Config)
        return run_id(config, images)
    except (OSError, ValueError, OmegaConfBaseException):
        return None


def _code(entries: list[Entry]) -> Iterable[Finding]:
    """One line for each version of the code that is not this checkout's."""
    from sam_repro.record.environment import git_state

    here = (git_state() or {}).get("sha")
    of_code = Counter((entry.get("git") or {}).get("sha") for entry in entries)
    for sha, runs in sorted(of_code.items(), key=lambda item: str(item[0])):
        if here and sha != here:
            yield Finding(
                f"{runs} runs were made by {f'commit {sha[:10]}' if sha else 'unknown code'}, this is {here[:10]}",
                False,
            )
    changed = sum(bool((entry.get("git") or {}).get("dirty")) for entry in entries)
    if changed:
        yield Finding(f"{changed} runs were made in a checkout with uncommitted changes", False)
