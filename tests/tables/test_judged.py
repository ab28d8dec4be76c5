"""A cell's verdict: what may be called a success, and what never."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam_repro.tables.judged import verdict
from sam_repro.tables.table import Claim

CLAIM = Claim("printed", 95.42, 0.16, n=5)
accuracies = st.floats(0, 100, allow_nan=False)


def said(values: list[float], claim: Claim = CLAIM, planned: int | None = None, budget: str = "paper") -> str:
    n = len(values)
    return verdict(claim, values, finished=n, planned=planned or n, budget=budget, margin=0.5).kind


def test_verdicts() -> None:
    assert said([95.40, 95.50, 95.45]) == "agrees"
    assert said([95.58]) == "undecided", "one run has no spread"
    assert said([95.0, 94.0, 96.5]) == "undecided", "noise makes nothing agree"
    assert said([93.01, 93.0, 93.02]) == "differs"
    assert said([], planned=3) == "not_run"
    assert said([95.42], planned=5) == "partial"
    assert said([95.42], Claim("missing")) == "no_claim"
    found = verdict(CLAIM, [95.40, 95.50, 95.45], finished=3, planned=3, budget="paper", margin=0.5)
    assert found.text.startswith("agrees (+0.03 [")


def test_a_tables_margin_decides() -> None:
    values = [95.30, 95.40, 95.35]
    kinds = [verdict(CLAIM, values, finished=3, planned=3, budget="paper", margin=m).kind for m in (0.5, 0.05)]
    assert kinds == ["agrees", "undecided"]


def test_what_the_paper_leaves_out_is_said() -> None:
    values = [95.40, 95.50, 95.45]
    of_one = verdict(Claim("printed", 95.4, 0.1), values, finished=3, planned=3, budget="paper", margin=0.5)
    assert "number of runs unknown: taken for one" in of_one.text
    alone = verdict(Claim("printed", 95.4), values, finished=3, planned=3, budget="paper", margin=0.5)
    assert "spread unknown" in alone.text


def of(succeeded: int, finished: int, claim: Claim) -> str:
    values = [95.42] * succeeded
    return verdict(claim, values, finished=finished, planned=finished, budget="paper", margin=0.5).kind


def test_a_mean_of_the_runs_that_are_left_reproduces_nothing() -> None:
    assert of(4, 5, CLAIM) == "undecided"
    assert of(5, 5, CLAIM) == "agrees"
    of_three = Claim("printed", 95.42, 0.16, n=5, succeeded=3)
    assert [of(k, 5, of_three) for k in (1, 2, 3, 4)] == ["undecided", "undecided", "agrees", "agrees"]


def test_rates_of_success_are_told_apart_by_an_exact_test() -> None:
    """Of five runs that all succeed in the paper none or one of ours does: 1 in 20 or rarer. Two may well be chance."""
    assert of(0, 5, CLAIM) == "differs"
    assert [of(k, 5, CLAIM) for k in (1, 2)] == ["differs", "undecided"]
    found = verdict(CLAIM, [], finished=5, planned=5, budget="paper", margin=0.5)
    assert found.success_p == pytest.approx(2 / 252)
    assert found.text == "differs (no run succeeded; 0 of 5 succeeded, claimed 5 of 5, p = 0.01)"


@given(accuracies, st.sampled_from(["mini", "smoke", "anything"]), st.integers(1, 5))
def test_no_other_budget_judges(value: float, budget: str, n: int) -> None:
    """However near the value is: a shorter run says nothing on the paper's."""
    assert said([value] * n, budget=budget) == "other_budget"
    assert said([95.42] * n, budget=budget) == "other_budget"


@given(st.lists(accuracies, min_size=1, max_size=4))
def test_an_unfinished_cell_is_not_judged(values: list[float]) -> None:
    assert said(values, planned=5) == "partial"
