"""Two questions to a measurement, each answered by an interval: docs/statistics.md has them in plain words.

the level   Is what was measured what the paper claims? Welch's interval of measured minus claimed, against a margin:
            `agrees` lies inside the margin, `differs` outside it, everything else is `undecided`.
the point   Does the method beat its baseline here as it does in the paper? Welch's interval of the difference of the
            two columns: `same sign shown` lies on the claimed side of 0, `opposite shown` on the other.

Both intervals hold the true difference in 95 of 100 repetitions, so noise can only make an answer undecided: it never
makes a claim look reproduced.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sam_repro.tables.statistics import COVERAGE, quantile

MARGIN = 0.5  # points of accuracy within which two results are the same for a reader's purposes
AGREES, DIFFERS, UNDECIDED = "agrees", "differs", "undecided"
SAME, OPPOSITE = "same sign shown", "opposite shown"
ONE_RUN, NO_SPREAD = "one run: no interval", "neither side has a spread: no interval"


@dataclass(frozen=True)
class Group:
    """Some runs: their mean, the deviation of a single run (divided by n - 1), their number. None: not known."""

    mean: float
    std: float | None
    n: int | None


@dataclass(frozen=True)
class Difference:
    """With its 95 % interval, None where no interval can be had; `rule` says what was assumed to get it."""

    value: float
    low: float | None
    high: float | None
    p: float | None  # of no difference, two-sided
    rule: str

    def said(self, places: int) -> str:
        """ "+5.47 [+4.41, +6.53]"."""
        inside = "" if self.low is None else f" [{self.low:+.{places}f}, {self.high:+.{places}f}]"
        return f"{self.value:+.{places}f}{inside}"


@dataclass(frozen=True)
class Level:
    verdict: str
    difference: Difference
    margin: float
    measured: Group


@dataclass(frozen=True)
class Point:
    verdict: str
    difference: Difference
    claimed: float


def group(values: Sequence[float]) -> Group:
    n = len(values)
    if n > 1 and min(values) == max(values):
        return Group(values[0], 0.0, n)  # rounding of their mean must not look like a spread
    mean = math.fsum(values) / n
    std = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1)) if n > 1 else None
    return Group(mean, std, n)


def level(claimed: Group, measured: Group, margin: float = MARGIN) -> Level:
    """Measured minus claimed. One run has no spread: it decides nothing."""
    found = against_claim(claimed, measured)
    return Level(within(found, margin), found, margin, measured)


def within(found: Difference, margin: float) -> str:
    if found.low is None or found.high is None:
        return UNDECIDED
    if -margin <= found.low and found.high <= margin:
        return AGREES
    return DIFFERS if found.low > margin or found.high < -margin else UNDECIDED


def against_claim(claimed: Group, measured: Group) -> Difference:
    """The interval, whatever the paper leaves out; each rule errs on the side of a wider one.

    Both known: Welch. No number of runs: the claim counts as one run of the deviation that it prints. No deviation: a
    run of the paper's is taken to spread as ours do.
    """
    value = measured.mean - claimed.mean
    if measured.n is None or measured.n < 2 or measured.std is None:
        return Difference(value, None, None, None, ONE_RUN)
    ours = measured.std**2 / measured.n
    if claimed.std is None:
        runs = claimed.n or 1
        rule = f"spread unknown: taken for {'one run' if runs == 1 else f'{runs} runs'} that spread as ours"
        return interval(value, ours + measured.std**2 / runs, measured.n - 1, rule)
    if claimed.n is None or claimed.n < 2:
        return interval(value, ours + claimed.std**2, measured.n - 1, "number of runs unknown: taken for one")
    return welch(measured, claimed)


def welch(one: Group, other: Group) -> Difference:
    """One minus the other, of two samples whose spreads may differ."""
    value = one.mean - other.mean
    if one.std is None or other.std is None or one.n is None or other.n is None:
        return Difference(value, None, None, None, ONE_RUN)
    a, b = one.std**2 / one.n, other.std**2 / other.n
    share = a / (a + b) if a + b else 0.5  # in shares, for a fourth power of a deviation leaves the range of floats
    degrees = 1 / (share**2 / (one.n - 1) + (1 - share) ** 2 / (other.n - 1))
    return interval(value, a + b, degrees, "Welch")


def minus(one: Mapping[int, float], other: Mapping[int, float], *, paired: bool = False) -> Difference | None:
    """Of two cells' values by seed; of common seeds where the table pairs them. None where there is nothing to take."""
    if paired:
        return by_seed(one, other) if one.keys() & other.keys() else None
    return welch(group(list(one.values())), group(list(other.values()))) if one and other else None


def by_seed(one: Mapping[int, float], other: Mapping[int, float]) -> Difference:
    """The same over common seeds, for a table that declares before its first run that it pairs them."""
    # 60.33 - 60.23 and 59.12 - 59.02 are one difference: their last bits are no spread.
    differences = group([round(one[seed] - other[seed], 9) for seed in sorted(one.keys() & other.keys())])
    if differences.n is None or differences.std is None:
        return Difference(differences.mean, None, None, None, ONE_RUN)
    return interval(differences.mean, differences.std**2 / differences.n, differences.n - 1, "paired by seed")


def point(found: Difference, claimed: float) -> Point:
    """Whether the sign of a claimed difference shows in a measured one."""
    if claimed == 0 or found.low is None or found.high is None or found.low <= 0 <= found.high:
        answer = UNDECIDED
    else:
        answer = SAME if (found.low > 0) == (claimed > 0) else OPPOSITE
    return Point(answer, found, claimed)


def success_p(claimed: tuple[int, int], measured: tuple[int, int]) -> float:
    """Fisher's exact test that two rates (succeeded, of so many runs) are one: two-sided p."""
    (k, n), (j, m) = claimed, measured

    def weight(first: int) -> int:
        return math.comb(n, first) * math.comb(m, k + j - first)

    low, high = max(0, k + j - m), min(n, k + j)
    seen = weight(k)
    return sum(w for i in range(low, high + 1) if (w := weight(i)) <= seen) / math.comb(n + m, k + j)


def holm(values: Sequence[float], level_: float = 1 - COVERAGE) -> list[bool]:
    """Which of several p-values stand after Holm's correction: the chance of even one false one is below the level."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    stands = [False] * len(values)
    for place, i in enumerate(order):
        if values[i] > level_ / (len(values) - place):
            break
        stands[i] = True
    return stands


def interval(value: float, variance: float, degrees: float, rule: str) -> Difference:
    if variance == 0:
        return Difference(value, None, None, None, NO_SPREAD)
    error = math.sqrt(variance)
    half = quantile(degrees) * error
    return Difference(value, value - half, value + half, _p(value / error, degrees), rule)


def _p(t: float, degrees: float) -> float:
    from scipy.special import stdtr

    return float(2 * stdtr(degrees, -abs(t)))
