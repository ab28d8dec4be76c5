"""Values that a table leaves free: trials on a validation split, and the file of what they chose."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report.samples import finish
from tables.test_extend import put
from tables.test_miniature import TABLE

from sam_repro import CONFIGS, cli
from sam_repro.errors import UserError
from sam_repro.report import plan_view
from sam_repro.runs.faults import usable
from sam_repro.tables import choosing, spec
from sam_repro.tables.cost import cost
from sam_repro.tables.plan import plan
from sam_repro.tables.table import Table
from sam_repro.tables.tuning import assumed, choices_file
from sam_repro.tables.wanted import Candidate, wanted

TUNE: dict[str, Any] = {
    "seeds": [100, 101],
    "rule": "best mean",
    "columns": {
        "sgd": {"base_optimizer.lr": [0.1, 0.2, 0.3]},
        "sam": [[f"method.rho={rho}"] for rho in (0.1, 0.2, 0.3)],
    },
}
# Two noisy trials a value, in the grid's order: the second is best, the first within its standard error.
TRIED = [(59.0, 60.0), (58.0, 63.0), (50.0, 51.0)]


def load(configs: Path, **tune: object) -> Table:
    put(configs, "p/1", **TABLE, tune=TUNE | tune)
    return spec.load("p/1", configs)


def try_all(table: Table, results: Path) -> None:
    assert table.trials is not None
    for number, cell in enumerate(plan([table.trials])[table.trials.ref]):
        finish(results, cell, dict(zip((100, 101), TRIED[number % 3], strict=True)))


def chosen(table: Table, results: Path) -> choosing.Chosen:
    return choosing.choose(table, "paper", choosing.of_ledger(results), results)


def test_the_committed_choices_are_what_the_committed_ledger_says(tmp_path: Path) -> None:
    """The hand-run trials of the miniature are exactly those of its `tune:`; the command makes this file of them."""
    small = spec.load("asam/6").at("mini")
    results = CONFIGS.parent / "results"
    found = choosing.choose(small, "mini", choosing.of_ledger(results), results)
    assert found.choices["0"] == {
        "sgd": ("base_optimizer.lr=0.2", "base_optimizer.weight_decay=0.002"),
        "sam": ("method.rho=0.2",),
        "asam": ("method.rho=1",),
    }
    assert found.choices["40"]["sam"] == ("method.rho=0.1",)
    committed = choices_file("asam/6", CONFIGS, miniature=True).read_bytes()
    assert choosing.write(small, found, tmp_path).read_bytes() == committed, "run `report choose asam/6 budget=mini`"
    assert small.cell("40", "sgd_long").overrides[-2:] == found.choices["40"]["sgd"], "it takes the other's choice"


def test_a_cell_without_a_choice_is_not_trained(tmp_path: Path) -> None:
    table = load(tmp_path)
    assert {cell.why for cell in plan([table])["p/1"]} == {"its values are not chosen yet; sweep it with tune=true"}


def test_trials_are_judged_on_a_validation_split_with_seeds_of_their_own(tmp_path: Path) -> None:
    table = load(tmp_path)
    assert table.trials is not None
    cells = plan([table.trials])["p/1.trials"]
    assert len(cells) == 6
    assert {run.seed for cell in cells for run in cell.runs} == {100, 101}
    assert all(cell.config and cell.config.dataset.evaluate_on.value == "validation" for cell in cells)


@pytest.mark.parametrize(("rule", "place"), [("best mean", 1), ("one standard error", 0)])
def test_the_rule_decides(tmp_path: Path, rule: str, place: int) -> None:
    table = load(tmp_path, rule=rule)
    try_all(table, tmp_path)
    found = chosen(table, tmp_path)
    assert found.choices["a"] == {
        "sgd": (f"base_optimizer.lr={[0.1, 0.2, 0.3][place]}",),
        "sam": (f"method.rho={[0.1, 0.2, 0.3][place]}",),
    }
    choosing.write(table, found, tmp_path)
    again = spec.load("p/1", tmp_path)
    assert again.cell("a", "sam").overrides[-1] == found.choices["a"]["sam"][0]
    assert [len(cell.runs) for cell in plan([again])["p/1"]] == [3, 3]


def test_the_trials_are_wanted_with_the_runs_that_wait_for_their_choice(tmp_path: Path) -> None:
    table = load(tmp_path)
    assert table.trials is not None
    cells, trials = plan([assumed(table)])[table.ref], plan([table.trials])[table.trials.ref]
    assert all(cell.config for cell in cells)
    candidate = Candidate(table, "paper", cells, trials)
    (found,) = wanted([candidate], {}, tmp_path, "a100", 1000.0)
    assert (found.verdicts, found.runs, found.tune) == (3, 12 + 6, True), "two levels and a point, all in one"
    assert set(found.cells) == {("a", "sgd"), ("a", "sam")}
    each = [cost(cell.config).hours("a100") for cell in (*cells, *trials) for _ in cell.runs if cell.config]
    assert found.hours == pytest.approx(sum(hours or 0.0 for hours in each))
    assert "sweep table=p/1 cells=a/sgd,a/sam tune=true" in plan_view.wanted([found], 1000.0, "a100")
    part = wanted([candidate], {}, tmp_path, "a100", 0.99 * found.hours)
    assert [one.cells for one in part] in ([(("a", "sgd"),)], [(("a", "sam"),)]), "a column waits for its own trials"
    try_all(table, tmp_path)
    (left,) = wanted([candidate], choosing.of_ledger(tmp_path), tmp_path, "a100", 1000.0)
    assert (left.runs, left.tune) == (6, True), "the choice is still to be made"


def test_a_column_whose_trials_have_not_all_ended_waits(tmp_path: Path) -> None:
    """And keeps no other one waiting: the ledger lacks the last trial, which is SAM's."""
    table = load(tmp_path)
    try_all(table, tmp_path)
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_text("".join(ledger.read_text().splitlines(keepends=True)[:-1]))
    found = chosen(table, tmp_path)
    assert found == choosing.Chosen({"a": {"sgd": ("base_optimizer.lr=0.2",)}}, {"a": (11, 12)})
    choosing.write(table, found, tmp_path)
    assert [len(cell.runs) for cell in plan([spec.load("p/1", tmp_path)])["p/1"]] == [3, 0]


def test_a_collapsed_trial_is_never_chosen(tmp_path: Path) -> None:
    table = load(tmp_path)
    try_all(table, tmp_path)
    entries = dict(choosing.of_ledger(tmp_path))
    (best,) = [
        e["run_id"]
        for e in entries.values()
        if e["metrics"]["test_accuracy"]["best"] == 63.0 and "method.rho=0.2" in e["overrides"]
    ]
    (collapsed,), _ = usable([json.loads(json.dumps(entries[best])) | {"status": "collapsed"}])
    found = choosing.choose(table, "paper", entries | {best: collapsed}, tmp_path)
    assert found.choices["a"]["sam"] == ("method.rho=0.1",)


def test_where_all_trials_failed_none_is_chosen(tmp_path: Path) -> None:
    table = load(tmp_path)
    assert table.trials is not None
    for cell in plan([table.trials])[table.trials.ref]:
        finish(tmp_path, cell, dict.fromkeys((100, 101), None if "rho" in cell.cell.column else 60.0))
    found = chosen(table, tmp_path)
    assert (set(found.choices["a"]), found.hopeless) == ({"sgd"}, (("a", "sam"),))
    assert found.open() == ["a/sam: all trials failed, so none is chosen"]


def test_another_ledger_takes_no_choice_away(tmp_path: Path) -> None:
    table = load(tmp_path)
    try_all(table, tmp_path)
    file = choosing.write(table, chosen(table, tmp_path), tmp_path)
    before = file.read_bytes()
    assert b"method.rho" in before
    assert choosing.write(table, chosen(table, tmp_path / "empty"), tmp_path).read_bytes() == before


@pytest.mark.parametrize("budget", ["smoke", "mini"])
def test_trials_of_another_budget_choose_nothing(
    tmp_path: Path, budget: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """ours/methods has no miniature: trials of two steps would choose what its runs of hours train with."""
    file = choices_file("ours/methods", CONFIGS, miniature=False)
    before = file.read_bytes()
    for words in (["report", "choose", "ours/methods"], ["sweep", "table=ours/methods", "tune=true", "--dry-run"]):
        assert cli.main([*words, f"budget={budget}", f"results_dir={tmp_path}"]) == 2
        assert "tuned at the paper's budget alone" in capsys.readouterr().err
    assert file.read_bytes() == before


def test_a_choice_that_is_no_trial_any_more_is_none(tmp_path: Path) -> None:
    table = load(tmp_path)
    try_all(table, tmp_path)
    choosing.write(table, chosen(table, tmp_path), tmp_path)
    moved = load(tmp_path, columns=TUNE["columns"] | {"sam": {"method.rho": [1, 2, 3]}})
    assert [cell.why_not is None for cell in moved.cells] == [True, False]


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "unequal numbers": (
        {"columns": {"sgd": {"base_optimizer.lr": [0.1]}, "sam": {"method.rho": [1, 2]}}},
        "sgd 1, sam 2",
    ),
    "a seed of the table's": ({"seeds": [2, 100]}, "seed 2"),
    "a column": ({"columns": {"asam": {"method.rho": [1]}}}, "the column 'asam'"),
    "a rule": ({"rule": "best"}, "rule must be"),
    "one seed for an error": ({"rule": "one standard error", "seeds": [100]}, "at least two seeds"),
    "as one without trials": ({"columns": {"sgd": "sam"}}, "sam has no trials"),
    "an empty grid": ({"columns": {"sgd": {"base_optimizer.lr": []}}}, "write KEY: "),
    "no list of lists": ({"columns": {"sgd": ["method.rho=1"]}}, "write KEY: "),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line(mistake: str, tmp_path: Path) -> None:
    tune, words = MISTAKES[mistake]
    with pytest.raises(UserError, match=words):
        load(tmp_path, **tune)


def test_choices_are_not_written_by_hand(tmp_path: Path) -> None:
    put(tmp_path, "p/1", **TABLE, chosen={"a": {"sam": ["method.rho=1"]}})
    with pytest.raises(UserError, match="choices stand in"):
        spec.load("p/1", tmp_path)


def test_tuning_changes_no_other_table() -> None:
    table = spec.load("asam/6")
    assert table.tune is None
    assert replace(table, miniature=None).with_trials("paper") == [replace(table, miniature=None)]
