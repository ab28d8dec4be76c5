"""What some runs say: mean, spread, interval, paired difference, and how that compares with a claim.

Standard deviations are of the sample (divided by n - 1), as the papers' mean ± std of a few runs is read. Intervals
are Student's: mean ± t(0.975, n - 1) * std / sqrt(n).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from sam_repro.tables.spec import Claim

COVERAGE = 0.95


@dataclass(frozen=True)
class Sample:
    n: int
    mean: float
    std: float | None  # None of a single run
    low: float | None  # the 95 % interval of the mean
    high: float | None


@dataclass(frozen=True)
class Verdict:
    """How a measurement stands to its claim. Only `reproduced` may be shown as a success."""

    kind: str  # reproduced, within_interval, off, partial, other_budget, collapsed, no_claim, not_run
    text: str
    delta: float | None = None  # measured minus claimed


def sample(values: Sequence[float]) -> Sample | None:
    """None of no values."""
    n = len(values)
    if n == 0:
        return None
    mean = math.fsum(values) / n
    if n == 1:
        return Sample(1, mean, None, None, None)
    std = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    half = _t(n - 1) * std / math.sqrt(n)
    return Sample(n, mean, std, mean - half, mean + half)


def paired(values: Mapping[int, float], baseline: Mapping[int, float]) -> Sample | None:
    """The difference to the baseline seed by seed, over the seeds that both have."""
    return sample([values[seed] - baseline[seed] for seed in sorted(values.keys() & baseline.keys())])


def verdict(claim: Claim, measured: Sample | None, *, finished: int, planned: int, budget: str) -> Verdict:
    """
    reproduced       all planned runs ended and the mean is within the paper's printed deviation of the claim
                     (where none is printed: within half a unit of the claim's last digit)
    within interval  not that, but the claim lies in our mean's 95 % interval
    off by x         neither
    k of n collapsed a larger share of the runs failed than the paper's (none, where it is silent): the mean of the rest
                     is not what it claims
    A cell whose runs have not all ended is called by its count, one at another budget than the paper's by its budget:
    neither is a statement about the paper.
    """
    if measured is None:
        if finished:
            return Verdict("collapsed", f"all {finished} runs collapsed")
        return Verdict("not_run", "not run")
    if claim.mean is None:
        return Verdict("no_claim", "no claim to compare with")
    delta = measured.mean - claim.mean
    difference = f"{delta:+.{claim.decimals}f}"
    if budget != "paper":
        return Verdict("other_budget", f"{difference}, {budget} budget", delta)
    if finished < planned:
        return Verdict("partial", f"{difference} so far, {finished} of {planned} runs", delta)
    wanted = 1.0 if claim.succeeded is None or not claim.n else claim.succeeded / claim.n
    if measured.n < wanted * finished - 1e-9:
        lost = f"{finished - measured.n} of {finished} runs collapsed"
        return Verdict("collapsed", f"{lost} ({difference} the rest)", delta)
    half_unit = 0.5 * 10.0**-claim.decimals
    if abs(delta) <= max(claim.std or 0.0, half_unit) + 1e-9:
        return Verdict("reproduced", f"reproduced ({difference})", delta)
    if measured.low is not None and measured.high is not None and measured.low <= claim.mean <= measured.high:
        return Verdict("within_interval", f"within interval ({difference})", delta)
    return Verdict("off", f"off by {difference}", delta)


@cache
def _t(degrees: int) -> float:
    from scipy.special import stdtrit  # 0.15 s to import: only where there is something to compute

    return float(stdtrit(degrees, 0.5 + COVERAGE / 2))
