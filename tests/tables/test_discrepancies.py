"""docs/discrepancies.yaml: its form, and that what it says of the configuration is what composing gives."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from sam_repro.config.compose_many import compose_all
from sam_repro.config.identity import as_values
from sam_repro.config.schema import Config
from sam_repro.errors import UserError
from sam_repro.tables import spec
from sam_repro.tables.discrepancies import Check, concerning, load

ROW: dict[str, Any] = {
    "id": "a",
    "paper": "asam",
    "topic": "method",
    "says": "one",
    "code": "two",
    "ours": "three",
    "official": None,
    "matters": "here",
    "seen": {"paper": "section 1", "code": "file.py"},
    "checks": [{"overrides": ["method=asam"], "default": {"method.eta": 0.01}}],
}


def read(tmp_path: Path, *rows: dict[str, Any]) -> Any:
    file = tmp_path / "discrepancies.yaml"
    file.write_text(yaml.safe_dump(list(rows)))
    return load(file)


def composed(overrides: tuple[str, ...], keys: dict[str, Any]) -> dict[str, Any]:
    if not keys:
        return {}
    config = compose_all([overrides])[overrides]
    assert isinstance(config, Config), config
    found, values = {}, as_values(config)
    for key in keys:
        node = values
        for part in key.split("."):
            node = node[part]
        found[key] = node
    return found


def checks() -> list[Any]:
    return [pytest.param(check, id=f"{row.id}-{n}") for row in load().values() for n, check in enumerate(row.checks)]


@pytest.mark.parametrize("check", checks())
def test_a_row_says_of_the_configuration_what_composing_gives(check: Check) -> None:
    assert composed(check.overrides, check.default) == check.default
    official = (*check.overrides, "profile=official")
    assert composed(official, check.official) == check.official


def test_what_differs_under_the_official_profile_is_said_to() -> None:
    """A row whose checks show a difference says which in prose, and one that says a difference in values checks it."""
    for row in load().values():
        differs = any(check.official != check.default for check in row.checks if check.official)
        assert not differs or row.official, f"{row.id}: `official` is null, but its checks differ"
        assert not row.official or differs or row.topic == "text", f"{row.id}: no check shows what `official` says"


@pytest.mark.parametrize("missing", sorted(ROW.keys() - {"checks"}))
def test_a_row_is_complete(tmp_path: Path, missing: str) -> None:
    with pytest.raises(UserError, match=f"{missing} is missing"):
        read(tmp_path, {key: value for key, value in ROW.items() if key != missing})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"says": ""}, "says: must be a text"),
        ({"ours": 0.01}, "ours: must be a text"),
        ({"paper": "asma"}, "paper must be one of"),
        ({"topic": "metod"}, "topic must be one of"),
        ({"note": "x"}, "unknown key 'note'"),
        ({"code": None}, "go together"),
        ({"code": None, "seen": {}}, "names neither"),
        ({"seen": {"paper": "section 1", "file": "x"}}, "unknown key 'file'"),
        ({"checks": {"a": 1}}, "checks must be a list"),
        ({"checks": [{"overrides": ["method"], "default": {"a": 1}}]}, "overrides must be a list of key=value"),
        ({"checks": [{"overrides": ["method=asam"]}]}, "default is missing"),
    ],
)
def test_a_wrong_row_is_told_by_its_name(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=r"discrepancies.yaml row a") as told:
        read(tmp_path, {**ROW, **changed})
    assert message in str(told.value)


def test_an_id_names_one_row(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'a' twice"):
        read(tmp_path, ROW, ROW)


def test_rows_are_found_by_their_ids_in_the_order_of_the_file(tmp_path: Path) -> None:
    rows = read(tmp_path, ROW, {**ROW, "id": "b"})
    assert [row.id for row in concerning(["b", "a", "b"], rows)] == ["a", "b"]
    with pytest.raises(UserError, match="no row 'c'"):
        concerning(["c"], rows)


def test_tables_name_rows_that_exist_and_leave_out_none_that_concerns_them() -> None:
    tables = spec.load_all()
    rows = load()
    for table in tables:
        assert concerning(table.concerning(), rows) or table.not_run, f"{table.ref} names no row"
    named = {name for table in tables for name in table.concerning()}
    assert rows.keys() - named == {
        "asam-v1-algorithm-1", "asam-toy-radius", "fsam-second-ocr",  # texts without a table
        "asam-theorem-2-eta", "rsam-theorem-1", "fsam-theorems",
    }  # fmt: skip


def test_a_cell_has_the_rows_of_its_table_its_row_and_its_column() -> None:
    table = spec.load("asam/2")
    cell, plain_cell = table.concerning("vgg19_bn", "asam"), table.concerning("resnet20", "sgd")
    assert {"precision", "asam-densenet-vgg-stems", "asam-eta"} <= set(cell)
    assert "precision" in plain_cell
    assert not {"asam-densenet-vgg-stems", "asam-eta"} & set(plain_cell)
    assert len(cell) == len(set(cell))
