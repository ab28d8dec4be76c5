"""Which runs decide most verdicts for the time."""

from __future__ import annotations

from pathlib import Path

import pytest
from report.samples import finish
from tables.test_miniature import load

from sam_repro.report.__main__ import main
from sam_repro.tables.choosing import of_ledger
from sam_repro.tables.cost import cost
from sam_repro.tables.plan import plan
from sam_repro.tables.wanted import Candidate, Wanted, wanted

ROWS = {
    "a": {"claims": {"sgd": "90.00 ± 0.10", "sam": "91.00 ± 0.10"}},
    "b": {"claims": {"sgd": "90.00 ± 0.10"}, "overrides": ["schedule.epochs=300"]},
}
COLUMNS = {"sgd": {"overrides": ["method=plain"]}, "sam": {"overrides": ["method=sam"]}}


def asked(folder: Path, hours: float) -> list[Wanted]:
    table = load(folder, rows=ROWS, columns=COLUMNS, miniature=None)
    return wanted([Candidate(table, "paper", plan([table])["p/1"])], of_ledger(folder), folder, "a100", hours)


def test_cheap_questions_come_first_and_a_pair_answers_its_levels_too(tmp_path: Path) -> None:
    found = asked(tmp_path, 1000.0)
    rows = [cell[0] for one in found for cell in one.cells]
    assert rows == sorted(rows), "300 epochs come last"
    cheap = [one for one in found if one.cells[0][0] == "a"]
    assert (sum(one.verdicts for one in cheap), sum(one.runs for one in cheap)) == (3, 6)
    assert sum(one.verdicts for one in found) == 5
    assert asked(tmp_path, 1.01 * sum(one.hours for one in cheap)) == cheap, "what does not fit is left out"
    assert asked(tmp_path, 1e-9) == []


def test_runs_that_are_there_cost_nothing(tmp_path: Path) -> None:
    table = load(tmp_path, rows=ROWS, columns=COLUMNS, miniature=None)
    cells = {(p.cell.row, p.cell.column): p for p in plan([table])["p/1"]}
    finish(tmp_path, cells["a", "sgd"], {0: 90.0, 1: 90.1, 2: 90.2})
    first = asked(tmp_path, 1000.0)[0]
    assert (first.cells, first.verdicts, first.runs) == ((("a", "sam"),), 2, 3)
    config = cells["a", "sam"].config
    assert config is not None
    assert first.hours == pytest.approx(3 * (cost(config).hours("a100") or 0.0))


@pytest.mark.parametrize(
    "words", [["wanted"], ["wanted", "hours=x"], ["wanted", "hours=0"], ["wanted", "hours=8", "asam/2"]]
)
def test_mistakes_are_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.count("\n") == 1
