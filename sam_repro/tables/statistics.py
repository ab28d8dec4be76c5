"""What some runs say: mean, spread, interval.

Standard deviations are of the sample (divided by n - 1), as the papers' mean ± std of a few runs is read. Intervals
are Student's: mean ± t(0.975, n - 1) * std / sqrt(n).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

COVERAGE = 0.95


@dataclass(frozen=True)
class Sample:
    n: int
    mean: float
    std: float | None  # None of a single run
    low: float | None  # the 95 % interval of the mean; None of a single run, and of runs that all gave one value
    high: float | None


def sample(values: Sequence[float]) -> Sample | None:
    """None of no values."""
    n = len(values)
    if n == 0:
        return None
    if n == 1:
        return Sample(1, values[0], None, None, None)
    if min(values) == max(values):
        return Sample(n, values[0], 0.0, None, None)  # no spread is no interval, and its rounding is no spread
    mean = math.fsum(values) / n
    std = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    half = quantile(n - 1) * std / math.sqrt(n)
    return Sample(n, mean, std, mean - half, mean + half)


@cache
def quantile(degrees: float) -> float:
    """Student's: half of a 95 % interval in standard errors."""
    from scipy.special import stdtrit  # 0.15 s to import: only where there is something to compute

    return float(stdtrit(degrees, 0.5 + COVERAGE / 2))
