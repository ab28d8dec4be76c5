"""What the two answers of docs/statistics.md promise, simulated: `python tests/renew.py verdicts` writes its table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy

from sam_repro.files.atomic import write_atomic
from sam_repro.tables.verdicts import AGREES, DIFFERS, SAME, group, level, point, welch

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"
HEAD = "| what is true | answer | bar | share of the repetitions |\n| --- | --- | --- | --- |\n"
REPETITIONS = 4000
SIGMAS = (0.05, 0.15, 0.3)
# Three deviations of a share of 5 % in so many repetitions: for bars that the truth stands at.
SLACK = 3 * math.sqrt(0.05 * 0.95 / REPETITIONS)


@dataclass(frozen=True)
class Promise:
    truth: str
    answer: str
    bar: float  # at most, or at least where it is above a half
    slack: float
    shares: dict[str, float]  # by the deviation of runs

    def holds(self) -> bool:
        if self.bar > 0.5:
            return all(share >= self.bar for share in self.shares.values())
        return all(share <= self.bar + self.slack for share in self.shares.values())

    def line(self) -> str:
        bar = f"at {'least' if self.bar > 0.5 else 'most'} {100 * self.bar:g} %"
        shares = ", ".join(f"{sigma}: {100 * share:.1f} %" for sigma, share in self.shares.items())
        return f"| {self.truth} | {self.answer} | {bar} | {shares} |\n"


def levels(shift: float, sigma: float, n: int, margin: float = 0.5) -> Counter[str]:
    pairs = zip(_draws(1, 90.0, sigma, n), _draws(2, 90.0 + shift, sigma, n), strict=True)
    return Counter(level(group(theirs), group(ours), margin).verdict for theirs, ours in pairs)


def points(effect: float, sigma: float, n: int, claimed: float) -> Counter[str]:
    pairs = zip(_draws(3, 90.0 + effect, sigma, n), _draws(4, 90.0, sigma, n), strict=True)
    return Counter(point(welch(group(a), group(b)), claimed).verdict for a, b in pairs)


@cache
def promises() -> list[Promise]:
    return list(_simulated())


def _simulated() -> Iterator[Promise]:
    perfect, shifted = "a perfect replication, n = ", "a shift of two margins, n = "
    for n in (3, 5):
        shares = {_short(s): _share(levels(0.0, s, n), DIFFERS) for s in SIGMAS}
        yield Promise(f"{perfect}{n}", DIFFERS, 0.05, 0.0, shares)
        shares = {_short(s): _share(levels(0.0, s, n, margin=0.0), DIFFERS) for s in SIGMAS}
        yield Promise(f"the same with no margin at all, n = {n}", DIFFERS, 0.05, SLACK, shares)
    for n in (3, 5):
        shares = {_short(s): _share(levels(1.0, s, n), AGREES) for s in SIGMAS}
        yield Promise(f"{shifted}{n}", AGREES, 0.05, 0.0, shares)
    for n in (3, 5):
        shares = {".15": _share(points(0.0, 0.15, n, claimed=1.0), SAME)}
        yield Promise(f"an effect that is gone (1 point claimed), n = {n}", SAME, 0.025, SLACK, shares)
    yield Promise(f"{perfect}5", AGREES, 0.95, 0.0, {".15": _share(levels(0.0, 0.15, 5), AGREES)})
    shares = {".19": _share(points(0.64, 0.19, 5, claimed=0.64), SAME)}
    yield Promise("an effect of .64 points, n = 5", SAME, 0.95, 0.0, shares)


def table() -> str:
    return HEAD + "".join(promise.line() for promise in promises())


def renew() -> None:
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(HEAD)
    after = rest[rest.index("\n\n") + 1 :]
    write_atomic(PAGE, before + table() + after)


def _draws(seed: int, mean: float, sigma: float, n: int) -> list[list[float]]:
    return numpy.random.default_rng(seed).normal(mean, sigma, (REPETITIONS, n)).tolist()  # type: ignore[no-any-return]


def _share(found: Counter[str], answer: str) -> float:
    return found[answer] / REPETITIONS


def _short(sigma: float) -> str:
    return f"{sigma:g}".lstrip("0")
