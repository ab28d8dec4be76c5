"""How measures rank with the gap: by hand, and over a family of trained runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau

from sam_repro.errors import UserError
from sam_repro.study import correlation, frame
from sam_repro.study.correlation import Item
from sam_repro.tables import studies as specs
from sam_repro.words import parse


def family() -> list[Item]:
    """Two axes of two values. The measure follows the gap along `a`, and runs against it along `b`."""
    found = []
    for a in (0.0, 1.0):
        for b in (0.0, 1.0):
            found.append(Item(f"{a}{b}", measure=10 * a - b, gap=10 * a + b, axes={"a": a, "b": b}))
    return found


def test_granulated_coefficients_are_of_groups_that_differ_in_one_axis() -> None:
    assert correlation.granulated(family(), "a") == 1
    assert correlation.granulated(family(), "b") == -1
    assert correlation.psi(family()) == 0
    assert correlation.kendall(family()) == pytest.approx((4 - 2) / 6)
    assert correlation.granulated(family()[:1], "a") is None
    assert correlation.kendall([Item("x", 1.0, 2.0, {}), Item("y", 1.0, 3.0, {})]) is None, "all measures are equal"


def test_tau_is_scipys_with_ties() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 5, 30).astype(float), rng.integers(0, 7, 30).astype(float)
    items = [Item(str(i), a, b, {}) for i, (a, b) in enumerate(zip(x, y, strict=True))]
    assert correlation.kendall(items) == pytest.approx(kendalltau(x, y).statistic, abs=1e-12)


@pytest.mark.slow  # some thousand rank correlations
def test_checkpoints_of_a_run_are_drawn_together() -> None:
    """As many copies of each run's number say no more than one of each does."""
    runs = [Item(str(i), i + 3.0 * (i % 3), float(i), {}) for i in range(12)]
    copies = [Item(one.run, one.measure + j * 1e-6, one.gap, {}) for one in runs for j in range(10)]
    taken_apart = [Item(f"{one.run} {j}", one.measure, one.gap, {}) for j, one in enumerate(copies)]
    once, together, apart = (correlation.interval(x, correlation.kendall, seed=0) for x in (runs, copies, taken_apart))
    assert once
    assert together
    assert apart
    widths = [high - low for low, high in (once, together, apart)]
    assert widths[1] > 0.8 * widths[0]
    assert widths[2] < 0.6 * widths[1]
    assert once == correlation.interval(runs, correlation.kendall, seed=0)


def test_a_family_that_is_not_trained_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"24 of 24 runs have no weights .*sweep table=asam/fig2_family`"):
        frame.run(specs.load("sharpness"), parse([f"results_dir={tmp_path}"], {}))
