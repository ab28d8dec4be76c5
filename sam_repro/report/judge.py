"""`sam-repro report judge`: verdicts for numbers from anywhere. A line of JSON in, a line of JSON out.

    {"claimed": 93.82, "std": 0.17, "n": 5, "measured": [93.7, 93.9, 93.8], "margin": 0.5}

std is the deviation of a single run of the claim and n their number, null where the paper is silent; margin may be left
out. The answer: verdict, difference (measured minus claimed), interval, margin, mean, deviation and number of what was
measured, and the rule that gave the interval.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

from sam_repro.errors import UserError, nearest
from sam_repro.files.strict import shown
from sam_repro.tables.verdicts import MARGIN, Group, group, level

KEYS = ("claimed", "std", "n", "measured", "margin")
_MOST_RUNS = 1_000_000


def judge(lines: Iterable[str]) -> Iterator[str]:
    """An answer for every line that is not blank; the first that can't be read ends it, named by its number."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield json.dumps(_verdict(f"line {number}", line))


def _verdict(where: str, line: str) -> dict[str, Any]:
    try:
        asked = json.loads(line, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where} is no JSON ({error})") from None
    if not isinstance(asked, dict):
        raise UserError(f"{where} must be an object with {', '.join(KEYS)}")
    for key in asked:
        if key not in KEYS:
            raise UserError(f"{where}: unknown key {shown(key)}.{nearest(key, KEYS)}")
    measured = asked.get("measured")
    if not isinstance(measured, list) or not measured:
        raise UserError(f"{where}: measured must be a list of at least one number")
    values = [_number(where, "measured", value) for value in measured]
    margin = MARGIN if asked.get("margin") is None else _number(where, "margin", asked["margin"], low=0.0)
    std = None if asked.get("std") is None else _number(where, "std", asked["std"], low=0.0)
    n = asked.get("n")
    if n is not None and (not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= _MOST_RUNS):
        raise UserError(f"{where}: n must be a whole number from 1 to {_MOST_RUNS:,} or null, is {shown(n)}")
    claim = Group(_number(where, "claimed", asked.get("claimed")), std, n)
    found = level(claim, group(values), margin)
    difference = found.difference
    return {
        "verdict": found.verdict,
        "difference": difference.value,
        "interval": None if difference.low is None else [difference.low, difference.high],
        "margin": margin,
        "mean": found.measured.mean,
        "std": found.measured.std,
        "n": found.measured.n,
        "rule": difference.rule,
    }


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A key that is said twice has two values: which one was meant nobody knows."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _number(where: str, key: str, value: object, low: float = -math.inf) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    if not usable or not abs(value) <= 1e100 or value < low:  # type: ignore[operator,arg-type]
        at_least = "" if low == -math.inf else f" of at least {low:g}"
        raise UserError(f"{where}: {key} must be a finite number{at_least}, is {shown(value)}")
    return float(value)  # type: ignore[arg-type]
