"""A column more for a command, and a file that extends a table."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from report.samples import finish
from tables.test_miniature import TABLE

from sam_repro.config.compose import compose
from sam_repro.config.identity import run_id
from sam_repro.errors import UserError
from sam_repro.report.__main__ import main
from sam_repro.tables import spec
from sam_repro.tables.extend import Column, column
from sam_repro.tables.plan import plan

MINE = "mine:method=sam,method.rho=0.07"


def put(configs: Path, name: str, **content: object) -> None:
    file = configs / "table" / f"{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(content, sort_keys=False))


def test_commas_separate_and_quotes_and_brackets_hold_together() -> None:
    assert column(MINE) == Column("mine", ("method=sam", "method.rho=0.07"))
    assert column("x:dataset.mean=[0.1,0.2,0.3],track.name='a, b',a={b:1,c:2}").overrides == (
        "dataset.mean=[0.1,0.2,0.3]", "track.name='a, b'", "a={b:1,c:2}",
    )  # fmt: skip
    assert column("x:dataset.root=/a:b").overrides == ("dataset.root=/a:b",)


@pytest.mark.parametrize(
    "text", ["mine", "mine:", ":method=sam", "../x:method=sam", "x:method", "x:a=[1", "x:a='b", "x:a=1,,b=2", "x:=1"]
)
def test_what_is_no_column_is_one_line(text: str) -> None:
    with pytest.raises(UserError, match="column=") as caught:
        column(text)
    assert "\n" not in str(caught.value)


def test_a_column_is_one_more_of_the_table_and_of_its_miniature() -> None:
    table, more = spec.load("asam/6"), spec.load("asam/6", added=column(MINE))
    assert (more.ref, more.paper) == ("asam/6+mine", "asam")
    assert [line.id for line in more.columns] == [*(line.id for line in table.columns), "mine"]
    cell = more.cell("40", "mine")
    assert cell.overrides[0] == "+experiment=asam_cifar10_resnet32_noise"
    assert cell.overrides[1:3] == ("method=sam", "method.rho=0.07")
    assert cell.claim.mean is None
    small = more.at("mini")
    assert small.cell("40", "mine").overrides[-4:-2] == ("method=sam", "method.rho=0.07")
    runs = {p.cell.column: p.runs for p in plan([more])["asam/6+mine"] if p.cell.row == "40"}
    assert runs["mine"][0].id == run_id(compose((*cell.overrides, "seed=0")))
    shared = {p.cell.column: p.runs for p in plan([table])["asam/6"] if p.cell.row == "40"}
    assert runs["asam"] == shared["asam"], "the others are the runs of the shared ledger"


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(UserError, match="column=sam: table asam/6 has such a column"):
        spec.load("asam/6", added=column("sam:method=plain"))


def test_it_stands_beside_the_claims_and_the_shared_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = {p.cell.column: p for p in plan([spec.load("asam/6", added=column(MINE))])["asam/6+mine"]}
    for name, top in (("sgd", 68.3), ("mine", 70.0)):  # of the last row
        finish(tmp_path, cells[name], {0: top, 1: top + 0.1, 2: top + 0.2})
    assert main(["render", "asam/6", f"column={MINE}", "--results-dir", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "| 80% | 68.35 ± 0.85 → 68.40 ± 0.10 |" in out
    assert "| – → 70.10 ± 0.10 |" in out
    assert sorted(path.name for path in (tmp_path / "tables/asam").iterdir()) == [
        f"6+mine.{kind}" for kind in ("csv", "json", "md", "tex")
    ]
    assert main(["render", f"column={MINE}", "--results-dir", str(tmp_path)]) == 2
    assert "name the table" in capsys.readouterr().err


def test_a_column_that_can_not_be_composed_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "asam/6", "column=mine:method=zam", "--results-dir", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_file_extends_a_table(tmp_path: Path) -> None:
    put(tmp_path, "p/1", **TABLE)

    def mine(rho: float) -> dict[str, object]:
        return {"mine": {"label": "Mine", "overrides": ["method=sam", f"method.rho={rho}"]}}

    put(tmp_path, "own/1", extends="p/1", seeds=2, columns=mine(0.07), miniature={"columns": mine(0.2)})
    table = spec.load("own/1", tmp_path)
    assert [line.label for line in table.columns] == ["SGD", "SAM", "Mine"]
    assert table.cell("a", "sam").claim.mean == 91.0
    assert {cell.seeds for cell in table.cells} == {(0, 1)}
    assert [line.id for line in table.at("mini").columns] == ["sgd", "sam", "mine"]
    assert "method.rho=0.07" in table.cell("a", "mine").overrides
    assert "method.rho=0.2" in table.at("mini").cell("a", "mine").overrides


def test_what_it_extends_must_be_there(tmp_path: Path) -> None:
    put(tmp_path, "own/1", extends="own/2")
    with pytest.raises(UserError, match="table own/1 extends the unknown table 'own/2'"):
        spec.load("own/1", tmp_path)
    put(tmp_path, "own/2", extends="own/1")
    with pytest.raises(UserError, match="it extends itself, by way of own/1, own/2"):
        spec.load("own/1", tmp_path)
