"""Against numpy and scipy, which compute the same things by their own code."""

import math

import numpy
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from sam_repro.tables.spec import Claim
from sam_repro.tables.statistics import Sample, paired, sample, verdict

accuracies = st.floats(0, 100, allow_nan=False)


@given(st.lists(accuracies, min_size=2, max_size=20))
def test_mean_deviation_interval(values: list[float]) -> None:
    ours = sample(values)
    assert ours is not None
    assert ours.n == len(values)
    assert ours.mean == pytest.approx(numpy.mean(values), abs=1e-9)
    assert ours.std == pytest.approx(numpy.std(values, ddof=1), abs=1e-9)
    spread = numpy.std(values, ddof=1) / math.sqrt(len(values))
    if spread > 1e-9:
        low, high = scipy.stats.t.interval(0.95, len(values) - 1, loc=numpy.mean(values), scale=spread)
        assert (ours.low, ours.high) == (pytest.approx(low, abs=1e-7), pytest.approx(high, abs=1e-7))


def test_few_values() -> None:
    assert sample([]) is None
    assert sample([93.5]) == Sample(1, 93.5, None, None, None)


@given(
    st.dictionaries(st.integers(0, 9), accuracies, min_size=3),
    st.dictionaries(st.integers(0, 9), accuracies, min_size=3),
)
def test_paired_difference(ours: dict[int, float], baseline: dict[int, float]) -> None:
    common = sorted(set(ours) & set(baseline))
    found = paired(ours, baseline)
    if not common:
        assert found is None
        return
    assert found is not None
    assert found.n == len(common)
    assert found.mean == pytest.approx(numpy.mean([ours[s] - baseline[s] for s in common]), abs=1e-9)
    a, b = [ours[s] for s in common], [baseline[s] for s in common]
    if len(common) > 1 and numpy.std(numpy.subtract(a, b)) > 1e-6:
        low, high = scipy.stats.ttest_rel(a, b).confidence_interval(0.95)
        assert (found.low, found.high) == (pytest.approx(low, abs=1e-6), pytest.approx(high, abs=1e-6))


def test_the_intervals_cover_as_promised() -> None:
    """2,000 draws of five: the true mean lies in 95 % of the intervals, give or take three deviations of that count."""
    draws = numpy.random.default_rng(0).normal(90, 0.3, (2000, 5))
    covered = sum(
        s.low <= 90 <= s.high for row in draws if (s := sample(list(row))) and s.low is not None and s.high is not None
    )
    assert abs(covered - 1900) < 3 * math.sqrt(2000 * 0.95 * 0.05)


CLAIM = Claim("printed", 95.42, 0.16, n=5)


def said(values: list[float], claim: Claim = CLAIM, planned: int | None = None, budget: str = "paper") -> str:
    return verdict(claim, sample(values), finished=len(values), planned=planned or len(values), budget=budget).kind


def test_verdicts() -> None:
    assert said([95.40, 95.50, 95.45]) == "reproduced"
    assert said([95.58]) == "reproduced"
    assert said([95.59]) == "off"
    assert said([95.0, 94.0, 96.5]) == "within_interval"
    assert said([93.01, 93.0, 93.02]) == "off"
    assert said([], planned=3) == "not_run"
    assert said([95.42], planned=5) == "partial"
    assert said([95.42], Claim("missing")) == "no_claim"
    assert verdict(CLAIM, None, finished=3, planned=3, budget="paper").kind == "collapsed"


def test_a_mean_of_the_runs_that_are_left_reproduces_nothing() -> None:
    def of(succeeded: int, finished: int, claim: Claim) -> str:
        return verdict(claim, sample([95.42] * succeeded), finished=finished, planned=finished, budget="paper").kind

    assert of(4, 5, CLAIM) == "collapsed"
    assert of(5, 5, CLAIM) == "reproduced"
    of_three = Claim("printed", 95.42, 0.16, n=5, succeeded=3)
    assert [of(k, 5, of_three) for k in (1, 2, 3, 4)] == ["collapsed", "collapsed", "reproduced", "reproduced"]


def test_without_a_printed_deviation_the_last_digit_decides() -> None:
    claim = Claim("printed", 80.7, None, decimals=1)
    assert said([80.74], claim) == "reproduced"
    assert said([80.76], claim) == "off"


@given(accuracies, st.sampled_from(["mini", "smoke", "anything"]), st.integers(1, 5))
def test_no_other_budget_reproduces(value: float, budget: str, n: int) -> None:
    """However near the value is: a shorter run says nothing on the paper's."""
    assert said([value] * n, budget=budget) == "other_budget"
    assert said([95.42] * n, budget=budget) == "other_budget"


@given(st.lists(accuracies, min_size=1, max_size=4))
def test_an_unfinished_cell_reproduces_nothing(values: list[float]) -> None:
    assert said(values, planned=5) == "partial"
