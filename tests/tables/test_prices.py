"""What a discrepancy costs: rows of own tables against their baselines, as the ledger has them."""

import json
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from report.samples import all_files, made

from sam_repro.report import discrepancies_view, render_md
from sam_repro.report.__main__ import main
from sam_repro.runs import ledger
from sam_repro.runs.faults import usable
from sam_repro.tables import discrepancies, spec
from sam_repro.tables.plan import plan
from sam_repro.tables.points import by_chance, points
from sam_repro.tables.prices import prices
from sam_repro.tables.results import Joined, join
from sam_repro.tables.verdicts import ONE_RUN, Difference

TABLE = spec.load("ours/prices")
PLANNED = plan([TABLE])["ours/prices"]


def joined(results: Path) -> Joined:
    return join(TABLE, PLANNED, {line["run_id"]: line for line in usable(ledger.read(results)[0])[0]}, "paper", results)


def fill(results: Path) -> None:
    """ASAM's default, five runs; eta 0 worse in each pair by .9 to 1.1, Nesterov's three so far, about the same."""
    runs = {planned.cell.row: planned.runs for planned in PLANNED}
    tops = {
        "asam": {seed: 70.0 + seed for seed in range(5)},
        "asam-eta": {seed: 69.0 + 0.9 * seed for seed in range(5)},
        "asam-nesterov": {0: 70.4, 1: 70.8, 2: 72.1},
    }
    for row, of_seed in tops.items():
        for seed, top in of_seed.items():
            made(results, *runs[row][seed].overrides, top=top)


def test_a_price_is_the_change_less_its_default_seed_by_seed(tmp_path: Path) -> None:
    assert prices([joined(tmp_path)]) == {}
    fill(tmp_path)
    found = prices([joined(tmp_path)])
    assert found.keys() == {"asam-eta", "asam-momentum"}
    (price,) = found["asam-eta"]
    assert (price.runs, price.planned, price.difference.rule) == (5, 5, "paired by seed")
    assert price.difference.value == pytest.approx(-1.2, abs=0.02)
    assert price.difference.high is not None
    assert price.difference.high < 0
    assert found["asam-momentum"][0].runs == 3


def test_an_own_question_has_no_claimed_sign(tmp_path: Path) -> None:
    fill(tmp_path)
    shown = points(joined(tmp_path))
    assert [point.holds for point in shown] == [True, False], "a change that lowers counts as one that raises"
    assert by_chance(shown) == pytest.approx(0.1)
    one_run = replace(shown[0], point=replace(shown[0].point, difference=Difference(1.0, None, None, None, ONE_RUN)))
    assert by_chance([*shown, one_run]) == pytest.approx(0.1), "without an interval no sign shows by chance either"
    text = render_md.render(joined(tmp_path))
    assert "ASAM, eta 0, less ASAM, the default: -1.20" in text
    assert ": lower\n" in text
    assert ": undecided so far\n" in text
    assert "paper's point" not in text
    assert "→" not in text, "no claim stands before a measurement"


def test_a_row_says_its_price_in_every_form(tmp_path: Path) -> None:
    fill(tmp_path)
    found, rows = prices([joined(tmp_path)]), discrepancies.load()
    said = discrepancies_view.measured(found["asam-eta"])
    assert said.startswith("-1.20 % [")
    assert "ASAM, eta 0, less ASAM, the default (5 of 5 runs, paired by seed, ours/prices)" in said
    assert said in discrepancies_view.section(list(rows.values()), found)
    for form, wanted in ((["--json"], '"changed": "ASAM, eta 0"'), ([], "measured  -1.20 %")):
        out = StringIO()
        with redirect_stdout(out):
            assert main(["discrepancies", "asam/2", *form, "--results-dir", str(tmp_path)]) == 0
        assert wanted in out.getvalue()
        assert not form or json.loads(out.getvalue())
    assert all_files(tmp_path), "reading writes nothing"
