"""Against numpy and scipy, which compute the same things by their own code."""

import math

import numpy
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from sam_repro.tables.statistics import Sample, sample

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
    assert sample([60.33] * 3) == Sample(3, 60.33, 0.0, None, None), "no spread is no interval"


def test_the_intervals_cover_as_promised() -> None:
    """2,000 draws of five: the true mean lies in 95 % of the intervals, give or take three deviations of that count."""
    draws = numpy.random.default_rng(0).normal(90, 0.3, (2000, 5))
    covered = sum(
        s.low <= 90 <= s.high for row in draws if (s := sample(list(row))) and s.low is not None and s.high is not None
    )
    assert abs(covered - 1900) < 3 * math.sqrt(2000 * 0.95 * 0.05)
