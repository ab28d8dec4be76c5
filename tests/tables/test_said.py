"""What papers say in words: each type of claim against scipy, its form, its place in the views."""

from __future__ import annotations

from collections.abc import Mapping

import numpy
import pytest
import scipy.stats

from sam_repro.errors import UserError
from sam_repro.tables import spec
from sam_repro.tables.said import NOT_RUN, OPPOSITE, SHOWN, Answer, Ran, judged, read
from sam_repro.tables.verdicts import UNDECIDED

ROWS, COLUMNS = ["small", "middle", "large"], ["sam", "asam"]
Runs = Mapping[tuple[str, str], list[float]]


def answer(claim: Mapping[str, object], runs: Runs, margin: float = 0.5, ran: Ran | None = None) -> Answer:
    (said,) = read("table p/1", [{"words": "as the paper has it", **claim}], ROWS, COLUMNS)
    return judged(said, lambda row, column: dict(enumerate(runs.get((row, column), []))), margin, ran=ran)


def around(*means: float) -> Runs:
    """Five runs a cell: of SAM by row, then of ASAM."""
    places = [(row, column) for column in COLUMNS for row in ROWS]
    draw = numpy.random.default_rng(0)
    return {place: list(draw.normal(mean, 0.1, 5)) for place, mean in zip(places, means, strict=True)}


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ({"above": ["asam", "sam"]}, UNDECIDED),
        ({"above": ["asam", "sam"], "at": ["small", "middle"]}, SHOWN),
        ({"below": ["asam", "sam"], "at": ["small"]}, OPPOSITE),
        ({"below": ["asam", "sam"]}, OPPOSITE),
        ({"above": ["small", "large"], "at": ["asam"]}, SHOWN),
        ({"best": ["asam", "sam"]}, SHOWN),
        ({"best": ["sam", "asam"]}, OPPOSITE),
        ({"alike": ["sam", "asam"], "at": ["large"]}, SHOWN),
        ({"alike": ["sam", "asam"], "at": ["small"]}, OPPOSITE),
        ({"falls": ["asam"]}, SHOWN),
        ({"rises": ["asam"]}, OPPOSITE),
        ({"falls": ["sam"]}, UNDECIDED),
        ({"falls": ["asam", "sam"]}, UNDECIDED),
    ],
    ids=str,
)
def test_each_kind_of_claim(claim: dict[str, object], verdict: str) -> None:
    assert answer(claim, around(90.0, 90.0, 90.0, 92.0, 91.0, 90.0)).verdict == verdict


def test_a_trend_is_scipys_regression() -> None:
    runs = around(90.0, 90.0, 90.0, 92.0, 91.2, 90.1)
    ((_, found),) = answer({"falls": ["asam"]}, runs).parts
    steps = [step for step, row in enumerate(ROWS) for _ in runs[row, "asam"]]
    line = scipy.stats.linregress(steps, [value for row in ROWS for value in runs[row, "asam"]])
    half = scipy.stats.t.ppf(0.975, len(steps) - 2) * line.stderr
    assert found.low is not None
    assert (found.value, found.low, found.p) == pytest.approx((line.slope, line.slope - half, line.pvalue))


def test_what_has_not_run_shows_nothing() -> None:
    assert answer({"above": ["asam", "sam"]}, {}).verdict == NOT_RUN
    part = {place: values for place, values in around(90, 90, 90, 92, 92, 92).items() if place[0] == "small"}
    assert answer({"above": ["asam", "sam"]}, part).verdict == UNDECIDED, "two rows are missing"
    assert answer({"falls": ["asam"]}, part).verdict == NOT_RUN, "one row has no slope"


@pytest.mark.parametrize("claim", [{"best": ["asam", "sam"]}, {"best": ["sam", "asam"]}, {"falls": ["asam"]}])
def test_a_best_row_or_a_trend_is_undecided_until_every_row_has_run(claim: dict[str, object]) -> None:
    runs = dict(around(90.0, 90.0, 90.0, 92.0, 91.0, 90.0))
    assert answer(claim, runs).verdict != UNDECIDED
    del runs["large", "asam"]
    assert answer(claim, runs).verdict == UNDECIDED
    failed = answer(claim, runs, ran=lambda row, column: True)
    assert failed.verdict != UNDECIDED, "a row of which all runs failed has run"


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        ({}, "say one of above"),
        ({"above": ["asam", "sam"], "below": ["asam", "sam"]}, "say one of above"),
        ({"above": ["asam"]}, "2 names or more"),
        ({"above": ["asam", "sgd"]}, "names 'sgd'"),
        ({"above": ["asam", "sam"], "at": ["tiny"]}, "names 'tiny'"),
        ({"rises": "asam"}, "rises can't be 'asam'"),
        ({"higher": ["asam", "sam"]}, "unknown key 'higher'"),
    ],
    ids=str,
)
def test_a_mistake_is_one_line(claim: dict[str, object], says: str) -> None:
    with pytest.raises(UserError, match="table p/1 said 1") as mistake:
        answer(claim, {})
    assert says in str(mistake.value)


def test_the_papers_figures_state_what_they_say() -> None:
    said = {table.ref: [one.kind for one in table.said] for table in spec.load_all() if table.said}
    assert said["asam/fig4_cifar10"] == ["above", "alike", "best", "alike"]
    assert said["fsam/figA1"] == ["falls"]
    assert {"rsam/fig3b", "rsam/fig3c"} <= said.keys()
