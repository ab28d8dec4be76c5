"""A paper is a folder of tables, with its name and year in one file."""

from pathlib import Path

import pytest

from sam_repro.errors import UserError
from sam_repro.tables import spec
from sam_repro.tables.papers import papers


def test_every_shipped_paper_has_a_name_and_they_stand_by_year() -> None:
    shipped = list(papers().values())
    assert shipped == sorted(shipped, key=lambda paper: paper.year)
    names = [paper.name for paper in shipped]
    assert [name for name in names if name in ("R-SAM", "F-SAM", "ASAM")] == ["ASAM", "R-SAM", "F-SAM"]
    assert {table.paper for table in spec.load_all()} <= papers().keys()


def write(configs: Path, name: str, text: str) -> None:
    file = configs / "table" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def test_a_new_paper_is_two_files_and_one_of_ones_own_needs_but_its_table(tmp_path: Path) -> None:
    table = "title: x\nsource: {paper: a, where: b}\nmetric: m\nn: 1\ncolumns: {a: {}}\nrows: {r: {}}\n"
    write(tmp_path, "vasso/paper.yaml", "name: VaSSO\nyear: 2023\n")
    write(tmp_path, "vasso/1.yaml", table)
    write(tmp_path, "mine/1.yaml", table)
    assert spec.names(tmp_path) == ["mine/1", "vasso/1"], "paper.yaml is no table"
    assert [paper.name for paper in papers(tmp_path).values()] == ["VaSSO", "mine"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: VaSSO\n", "vasso/paper.yaml: year is missing"),
        ("nam: VaSSO\nyear: 2023\n", "vasso/paper.yaml: unknown key 'nam': did you mean 'name'?"),
        ("name: VaSSO\nyear: soon\n", "vasso/paper.yaml: year can't be 'soon'"),
        ("name: [\n", "vasso/paper.yaml: "),
    ],
)
def test_a_broken_paper_is_one_line_and_its_tables_are_read(text: str, message: str, tmp_path: Path) -> None:
    write(tmp_path, "vasso/paper.yaml", text)
    with pytest.raises(UserError) as told:
        papers(tmp_path)
    assert message in str(told.value)
    assert "\n" not in str(told.value)
    assert spec.names(tmp_path) == []
