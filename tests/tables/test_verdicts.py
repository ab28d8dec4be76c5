"""Against scipy's own tests, and by simulation of what the two answers promise."""

from __future__ import annotations

import math
from collections import Counter

import numpy
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from sam_repro.tables.verdicts import (
    AGREES,
    DIFFERS,
    SAME,
    UNDECIDED,
    Group,
    against_claim,
    by_seed,
    group,
    holm,
    level,
    point,
    success_p,
    welch,
)

REPETITIONS = 4000
spread_out = st.lists(st.floats(0, 100), min_size=2, max_size=9).filter(lambda values: numpy.std(values) > 1e-3)


@given(spread_out, spread_out)
def test_welch_is_scipys(ours: list[float], theirs: list[float]) -> None:
    found = welch(group(ours), group(theirs))
    expected = scipy.stats.ttest_ind(ours, theirs, equal_var=False)
    low, high = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)
    assert (found.low, found.high) == (pytest.approx(low, rel=1e-6), pytest.approx(high, rel=1e-6))


@given(spread_out)
def test_pairs_are_scipys(values: list[float]) -> None:
    one = dict(enumerate(values))
    other = {seed: value * 0.5 + seed % 3 for seed, value in one.items()}
    differences = [one[seed] - other[seed] for seed in one]
    if numpy.std(differences) < 1e-6:
        return
    found, expected = by_seed(one, other), scipy.stats.ttest_1samp(differences, 0.0)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)


@given(st.integers(1, 9), st.integers(1, 9), st.data())
def test_success_rates_are_fishers(n: int, m: int, data: st.DataObject) -> None:
    k, j = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))
    expected = scipy.stats.fisher_exact([[k, n - k], [j, m - j]]).pvalue
    assert success_p((k, n), (j, m)) == pytest.approx(expected, rel=1e-9)


def test_one_run_decides_no_level() -> None:
    assert level(Group(90.0, 0.1, 5), group([80.0])).verdict == UNDECIDED


def test_noise_never_helps() -> None:
    """A wide interval that holds the claim is no agreement, and a miss within the claim's own spread is no failure."""
    assert level(Group(70.0, 1.0, 5), group([68.0, 72.0])).verdict == UNDECIDED
    assert level(Group(70.0, 1.0, 5), group([74.2, 75.3])).verdict == DIFFERS
    assert level(Group(72.0, 1.0, 5), group([73.0, 73.03, 73.06])).verdict == UNDECIDED
    assert level(Group(93.82, 0.17, 5), group([93.7, 93.9, 93.8, 93.85, 93.75])).verdict == AGREES
    assert level(Group(93.82, 0.17, 5), group([91.7, 91.9, 91.8])).verdict == DIFFERS


def test_what_the_paper_leaves_out_widens_the_interval() -> None:
    ours = group([93.7, 93.9, 93.8])
    widths = []
    for claim in (Group(93.8, 0.1, 5), Group(93.8, 0.1, None), Group(93.8, None, None)):
        found = against_claim(claim, ours)
        assert found.low is not None
        assert found.high is not None
        widths.append(found.high - found.low)
    assert widths[0] < min(widths[1:])
    assert against_claim(Group(93.8, None, 1), group([93.7, 93.7])).low is None


def test_equal_values_have_no_spread_however_their_mean_rounds() -> None:
    """math.fsum([60.33] * 6) / 6 is not 60.33."""
    for std in (None, 0.0):
        for n in (None, 1, 5):
            found = level(Group(59.75, std, n), group([60.33] * 6), margin=1.0)
            assert (found.verdict, found.difference.low) == (UNDECIDED, None)
            assert "no interval" in found.difference.rule


def test_holm_is_stepwise() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == [True, False, False, True]
    assert holm([0.04]) == [True]
    assert holm([]) == []


def draws(seed: int, mean: float, sigma: float, n: int) -> list[list[float]]:
    return numpy.random.default_rng(seed).normal(mean, sigma, (REPETITIONS, n)).tolist()


def share(found: Counter[str], answer: str) -> float:
    return found[answer] / REPETITIONS


def levels(shift: float, sigma: float, n_claimed: int, n: int, margin: float = 0.5) -> Counter[str]:
    pairs = zip(draws(1, 90.0, sigma, n_claimed), draws(2, 90.0 + shift, sigma, n), strict=True)
    return Counter(level(group(theirs), group(ours), margin).verdict for theirs, ours in pairs)


def points(effect: float, sigma: float, n: int, claimed: float) -> Counter[str]:
    pairs = zip(draws(3, 90.0 + effect, sigma, n), draws(4, 90.0, sigma, n), strict=True)
    return Counter(point(welch(group(a), group(b)), claimed).verdict for a, b in pairs)


# Three deviations of a share of 2.5 or 5 % in so many repetitions.
SLACK = 3 * math.sqrt(0.05 * 0.95 / REPETITIONS)


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.05, 0.15, 0.3])
@pytest.mark.parametrize("n", [3, 5])
def test_a_perfect_replication_rarely_differs(sigma: float, n: int) -> None:
    assert share(levels(0.0, sigma, n, n), DIFFERS) <= 0.05
    assert share(levels(0.0, sigma, n, n, margin=0.0), DIFFERS) <= 0.05 + SLACK, "even with no margin at all"


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.05, 0.15, 0.3])
@pytest.mark.parametrize("n", [3, 5])
def test_a_shift_of_two_margins_rarely_agrees(sigma: float, n: int) -> None:
    assert share(levels(1.0, sigma, n, n), AGREES) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 5])
def test_a_lost_effect_is_rarely_shown(n: int) -> None:
    assert share(points(0.0, 0.15, n, claimed=1.0), SAME) <= 0.025 + SLACK


@pytest.mark.slow
def test_power() -> None:
    assert share(levels(0.0, 0.15, 5, 5), AGREES) >= 0.95
    assert share(points(0.64, 0.19, 5, claimed=0.64), SAME) >= 0.95
