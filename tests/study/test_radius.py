"""Figures over a value of the method, and over the size of the batch that perturbs: from what runs recorded alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from report.samples import finish

from sam_repro.errors import UserError
from sam_repro.report.studies import Stored
from sam_repro.study import frame
from sam_repro.tables import spec, studies
from sam_repro.tables.plan import plan
from sam_repro.words import parse

SIZES = ["64", "128", "256", "512"]


def measured(name: str, results: Path, *words: str) -> Stored:
    return frame.run(studies.load(name), parse([f"results_dir={results}", "budget=mini", *words], {}))


def trained(results: Path, ref: str, top: dict[str, float]) -> None:
    """Three runs a cell, a tenth of a point apart, whose best epochs are what `top` says of the row."""
    for cell in plan([spec.load(ref).at("mini")], "mini")[ref]:
        found = {seed: top[cell.cell.row] + 0.1 * seed for seed in range(3)}
        finish(results, cell, found, folders=True)


def test_accuracy_over_the_batch_that_perturbs(tmp_path: Path) -> None:
    trained(tmp_path, "fsam/figA1", dict(zip(SIZES, (80.0, 79.0, 78.0, 77.0), strict=True)))
    stored = measured("ascent", tmp_path)
    assert (stored.panels[0].x.name, stored.panels[0].x.log) == ("samples that give the perturbation", True)
    assert stored.panels[0].series[0].x == [64.0, 128.0, 256.0, 512.0]
    assert stored.panels[0].series[0].y == pytest.approx([80.1, 79.1, 78.1, 77.1])
    assert "In miniature: resnet_cifar of depth 8 on embedded, 8 epochs; " in stored.caption
    assert "n = 3 runs a point" in stored.caption
    assert stored.claims["said_1"].holds
    assert (tmp_path / "figures/fsam_figA1_sizes.mini/figure.pdf").exists()
    assert measured("ascent", tmp_path, "epoch=last").panels[0].series[0].y < stored.panels[0].series[0].y


def test_a_rise_is_not_a_fall(tmp_path: Path) -> None:
    trained(tmp_path, "fsam/figA1", dict(zip(SIZES, (77.0, 78.0, 79.0, 80.0), strict=True)))
    assert measured("ascent", tmp_path).claims["said_1"].holds is False


def test_a_curve_for_each_column_and_claims_that_its_table_states(tmp_path: Path) -> None:
    trained(tmp_path, "asam/fig4_cifar10", {"0.001": 60.0, "0.01": 62.0, "0.1": 64.0, "1.0": 63.0})
    stored = measured("radius", tmp_path)
    assert stored.panels[0].series[0].label == "element-wise, p = 2"
    assert len(stored.panels[0].series) == 4
    assert stored.claims["said_2"].holds, "all columns are alike here"
    assert stored.claims["said_3"].holds is None, "no difference shows nothing"
    with pytest.raises(UserError, match="whose rows are the values"):
        measured("radius", tmp_path, f"run={stored.runs[0]['id']}")
