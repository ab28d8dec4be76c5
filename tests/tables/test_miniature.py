"""A table's miniature: what it takes over, what it trains, and what it judges."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from sam_repro.config.compose import compose
from sam_repro.config.identity import run_id
from sam_repro.errors import UserError
from sam_repro.report import render_md
from sam_repro.tables import spec
from sam_repro.tables.cost import cost
from sam_repro.tables.plan import plan
from sam_repro.tables.points import points
from sam_repro.tables.results import join
from sam_repro.tables.table import Table
from sam_repro.tables.tuning import assumed

TABLE = {
    "title": "T",
    "source": {"paper": "P", "where": "table 1"},
    "metric": "test_accuracy",
    "unit": "%",
    "n": 3,
    "columns": {"sgd": {"label": "SGD"}, "sam": {"label": "SAM"}},
    "rows": {"a": {"label": "A", "claims": {"sgd": "90.00 ± 0.10", "sam": "91.00 ± 0.10"}}},
    "points": [["sam", "sgd"]],
    "miniature": {
        "seeds": 2,
        "overrides": ["schedule.epochs=1"],
        "columns": {"sgd": {"overrides": ["method=plain"]}, "sam": {"overrides": ["method=sam"]}},
        "rows": {"a": {"overrides": ["dataset.label_noise.rate=0.4", "dataset.label_noise.seed={seed}"]}},
    },
}


def load(folder: Path, **changes: object) -> Table:
    (folder / "table/p").mkdir(parents=True, exist_ok=True)
    (folder / "table/p/1.yaml").write_text(yaml.safe_dump(TABLE | changes, sort_keys=False))
    return spec.load("p/1", folder)


def test_it_takes_over_what_it_does_not_say(tmp_path: Path) -> None:
    table = load(tmp_path)
    small = table.at("mini")
    assert (table.at("paper"), table.at("smoke")) == (table, table)
    assert small.is_miniature
    assert (small.title, small.source, small.statistic) == (table.title, table.source, "last")
    assert [line.label for line in (*small.rows, *small.columns)] == ["A", "SGD", "SAM"]
    assert [pair.claimed for pair in small.pairs] == [pytest.approx(1.0)], "the paper's difference, to be seen beside"
    assert all(cell.claim.mean is None for cell in small.cells), "it has no levels to judge"


def test_a_printed_difference_stands_beside_the_column_that_stands_for_the_papers(tmp_path: Path) -> None:
    small = {**TABLE["miniature"], "points": [["sam", "sgd"], ["sam", "sgd_long"]]}
    small["columns"] = {**small["columns"], "sgd_long": {"label": "long", "overrides": ["method=plain"]}}
    beside = load(tmp_path, miniature={**small, "stands_for": {"sgd_long": "sgd"}}).at("mini").pairs
    assert [pair.claimed for pair in beside] == [None, pytest.approx(1.0)]
    for wrong, mistake in [({"long": "sgd"}, "no column 'long'"), ({"sgd_long": "adam"}, "no column 'adam'")]:
        with pytest.raises(UserError, match=f"stands_for.*{mistake}"):
            load(tmp_path, miniature={**small, "stands_for": wrong})


def test_its_runs_are_those_that_its_overrides_train(tmp_path: Path) -> None:
    small = load(tmp_path).at("mini")
    (cell,) = [c for c in plan([small], "mini")["p/1"] if c.cell.column == "sam"]
    assert [run.overrides[-2:] for run in cell.runs] == [
        ("dataset.label_noise.seed=0", "seed=0"),
        ("dataset.label_noise.seed=1", "seed=1"),
    ]
    assert [run.id for run in cell.runs] == [run_id(compose(run.overrides)) for run in cell.runs]


def test_every_published_table_has_a_miniature_or_says_why_not() -> None:
    silent = [table.ref for table in spec.load_all() if bool(table.miniature) == bool(table.no_miniature)]
    assert not silent, "write miniature: or no_miniature:, and not both"


def test_every_row_and_column_of_a_table_is_in_its_miniature_or_left_out_with_a_reason() -> None:
    for table in (table for table in spec.load_all() if table.miniature):
        small = table.at("mini")
        there = {line.id for line in (*small.rows, *small.columns)}
        absent = [line.label for line in (*table.rows, *table.columns) if line.id not in there]
        assert [label for label, _ in small.without] == absent, table.ref


@pytest.mark.parametrize(
    ("without", "mistake"), [({"c": "why"}, "no row or column 'c'"), ({"a": ""}, "say why"), (["a"], "can't be")]
)
def test_what_is_left_out_is_a_row_of_the_table_and_has_a_reason(tmp_path: Path, without: object, mistake: str) -> None:
    with pytest.raises(UserError, match=mistake):
        load(tmp_path, miniature={**TABLE["miniature"], "without": without})


def test_what_is_left_out_stands_under_it(tmp_path: Path) -> None:
    rows = {**TABLE["rows"], "b": {"label": "B"}, "c": {"label": "C"}}
    small = load(tmp_path, rows=rows, miniature={**TABLE["miniature"], "without": {"b": "too big.", "c": "too big"}})
    small = small.at("mini")
    shown = render_md.render(join(small, plan([small], "mini")["p/1"], {}, "mini", tmp_path))
    assert "- Left out of the miniature: B, C: too big.\n" in shown


def test_all_miniatures_and_their_trials_end_within_twelve_hours_on_two_cores() -> None:
    """Cells without a choice yet with the first trial's values: no run of a column takes longer than another."""
    parts = [part for table in spec.load_all() if table.miniature for part in table.with_trials("mini")]
    hours = dict[str, float]()
    for ref, cells in plan([assumed(part) for part in parts], "mini").items():
        for cell in cells:
            assert cell.config is not None, (ref, cell.cell)
            spent = replace(cost(cell.config), threads=1).hours("cpu")
            assert spent is not None, (ref, cell.cell)
            hours |= dict.fromkeys((run.id for run in cell.runs), spent)
    assert sum(hours.values()) / 2 <= 12


def test_a_pair_of_unknown_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="points names the column 'asam'"):
        load(tmp_path, points=[["asam", "sgd"]])
    with pytest.raises(UserError, match="points can"):
        load(tmp_path, points="sam, sgd")


def test_a_pair_of_rows_is_one_of_cells_in_every_column(tmp_path: Path) -> None:
    rows = {name: {"claims": {"sgd": claim, "sam": claim}} for name, claim in (("a", "90.00"), ("b", "92.00"))}
    table = load(tmp_path, rows=rows, points=[["b", "a"]], miniature=None)
    assert [(p.better, p.worse) for p in table.pairs] == [(("b", c), ("a", c)) for c in ("sgd", "sam")]
    assert [p.claimed for p in table.pairs] == [2.0, 2.0]


@pytest.mark.parametrize("margin", [0, -1, ".nan", True])
def test_a_margin_is_a_positive_number(tmp_path: Path, margin: object) -> None:
    with pytest.raises(UserError, match="margin"):
        load(tmp_path, margin=float("nan") if margin == ".nan" else margin)


@pytest.mark.parametrize(
    ("sam", "verdict", "holds"), [(80.0, "same sign shown", True), (60.0, "opposite shown", False)]
)
def test_it_judges_the_point(tmp_path: Path, sam: float, verdict: str, holds: bool) -> None:
    small = load(tmp_path).at("mini")
    planned = plan([small], "mini")["p/1"]
    entries = {}
    for cell in planned:
        for run in cell.runs:
            value = (sam if cell.cell.column == "sam" else 70.0) + 0.1 * run.seed
            metric = {"last": value, "best": value, "best_epoch": 1}
            facts = {"run_id": run.id, "status": "done", "budget": "paper", "hardware": {}, "recipe_version": 1}
            entries[run.id] = {**facts, "metrics": {"test_accuracy": metric}, "seconds": 1.0, "passes": 1.0}
    (shown,) = points(join(small, planned, entries, "mini", tmp_path))  # type: ignore[arg-type]
    assert (shown.point.verdict, shown.holds) == (verdict, holds)
    assert shown.point.difference.value == pytest.approx(sam - 70.0)
