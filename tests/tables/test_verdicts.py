"""Against scipy's own tests, and by simulation of what the two answers promise."""

from __future__ import annotations

import numpy
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from tables import operating

from sam_repro.tables.verdicts import (
    AGREES,
    DIFFERS,
    UNDECIDED,
    Group,
    against_claim,
    by_seed,
    group,
    holm,
    level,
    success_p,
    welch,
)

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
    assume(numpy.std(differences) > 1e-3)
    found, expected = by_seed(one, other), scipy.stats.ttest_1samp(differences, 0.0)
    low, high = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-5, abs=1e-12)
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-6), pytest.approx(high, abs=1e-6))


@given(st.lists(st.integers(0, 10_000), min_size=2, max_size=5, unique=True))
def test_one_difference_is_no_spread_whatever_its_last_bits(hundredths: list[int]) -> None:
    """60.33 - 60.23 and 59.12 - 59.02 are not the same floating-point number."""
    one = {seed: (n + 10) / 100 for seed, n in enumerate(hundredths)}
    other = {seed: n / 100 for seed, n in enumerate(hundredths)}
    found = by_seed(one, other)
    assert (found.value, found.low, found.high) == (pytest.approx(0.1), None, None)


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


@pytest.mark.slow
def test_the_answers_keep_what_they_promise() -> None:
    broken = [promise.line() for promise in operating.promises() if not promise.holds()]
    assert not broken


@pytest.mark.slow
def test_the_page_prints_what_is_simulated() -> None:
    page = operating.PAGE.read_text(encoding="utf-8")
    assert operating.table() in page, "python tests/renew.py verdicts"
    assert f"{operating.REPETITIONS:,} repetitions" in page
