"""Which lines of a ledger can be used, and what is wrong with the others: a line may come from anywhere."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, cast

from sam_repro.config.identity import CONTENTS
from sam_repro.runs.entry import ENDED, Entry
from sam_repro.tasks.described import described

_NUMBER = (int, float)
_NEEDED: dict[str, type | tuple[type, ...]] = {
    "run_id": str,
    "config": dict,
    "seed": int,
    "budget": str,
    "status": str,
    "metrics": dict,
    "passes": _NUMBER,
    "seconds": _NUMBER,
    "recipe_version": int,
    "hardware": dict,
}
_OPTIONAL: dict[str, type | tuple[type, ...]] = {
    "finished": str,
    "overrides": list,
    "packages": dict,
    "git": (dict, type(None)),
    "described": list,
    "method": str,
    "weights_sha256": str,
}
_LARGEST = 1e100  # no number of a run comes near it; squares and sums of larger ones leave the range of floats
_DEEPEST = 20  # levels; a configuration has three, and what reads it recurses
_SURROGATE = re.compile("[\ud800-\udfff]")  # JSON can spell half a character, no file can hold it


def usable(lines: Iterable[Mapping[str, Any]]) -> tuple[list[Entry], list[str]]:
    """The lines that are entries, and one sentence for each that isn't.

    What passes here can be rendered and verified: a line may come from anywhere, and one bad line must not stop the
    tables of all others.
    """
    kept, complaints = list[Entry](), list[str]()
    for line in lines:
        if problem := fault(line):
            complaints.append(f"the ledger's line of run {shown(line)} {problem}: skipped")
        else:
            kept.append(cast(Entry, dict(line)))
    return kept, complaints


def shown(line: Mapping[str, Any]) -> str:
    """The run's id, for a sentence: a line may name its run as it likes."""
    name = line.get("run_id")
    return name if isinstance(name, str) and name.isalnum() and name.isascii() else _short(name)


def fault(line: Mapping[str, Any]) -> str | None:
    """Why a line can't be used. Unknown keys are no fault."""
    if odd := _odd(line):
        return odd
    for key, kind in (_NEEDED | _OPTIONAL).items():
        if key not in line:
            if key in _OPTIONAL:
                continue
            return f"has no {key}"
        if not isinstance(line[key], kind) or isinstance(line[key], bool):
            return f"has {key}={_short(line[key])}"
    if "finished" in line and not _moment(line["finished"]):
        return f"has finished={_short(line['finished'])}"
    if line["status"] not in ENDED:
        return f"has status={_short(line['status'])}"
    # A run may not know what it spent: `sam_repro.tables.results.total_passes` leaves it out.
    if not _finite(line["passes"]) and not math.isnan(line["passes"]):
        return f"has passes={line['passes']}"
    if not _finite(line["seconds"]):
        return f"has seconds={line['seconds']}"
    for name, metric in line["metrics"].items():
        if (
            not isinstance(metric, dict)
            or not {"last", "best"} <= metric.keys()
            or not all(metric.get(k) is None or _finite(metric[k]) for k in ("last", "best", "picked", "picked_epoch"))
        ):
            return f"has metric {_short(name)}={_short(metric)}"
    try:
        described(line)
    except ValueError as error:
        return f"has metrics that it does not describe: {_short(str(error))}"
    return _inner_fault(line)


def _inner_fault(line: Mapping[str, Any]) -> str | None:
    """Of the values inside the parts, those that somebody computes with."""
    dataset = line["config"].get("dataset")
    texts = {"git.sha": (line.get("git") or {}).get("sha")}
    for name in CONTENTS.values():
        texts[f"config.dataset.{name}"] = dataset.get(name) if isinstance(dataset, dict) else None
    for key, text in texts.items():
        if not isinstance(text, str | None):
            return f"has {key}={_short(text)}"
    for key, names in (("overrides", line.get("overrides", [])), ("hardware.gpus", line["hardware"].get("gpus"))):
        if not isinstance(names, list | None) or not all(isinstance(name, str) for name in names or ()):
            return f"has {key}={_short(names)}"
    return None


def _odd(value: object, depth: int = 0) -> str | None:
    """What is valid JSON and still no value that a program can handle."""
    if depth > _DEEPEST:
        return "is nested too deep"
    if isinstance(value, str):
        return "has text that is no Unicode" if _SURROGATE.search(value) else None
    if isinstance(value, int):
        return "has a number of too many digits" if abs(value) > _LARGEST else None
    inner: Iterable[object] = ()
    if isinstance(value, Mapping):
        inner = (*value.keys(), *value.values())
    elif isinstance(value, list):
        inner = value
    return next(filter(None, (_odd(item, depth + 1) for item in inner)), None)


def _moment(text: str) -> bool:
    """Whether a text is a moment in ISO 8601."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _finite(value: object) -> bool:
    return isinstance(value, _NUMBER) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
