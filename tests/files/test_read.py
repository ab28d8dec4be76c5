"""Whatever stands in a file's place, its reader gets the content or one line, at once."""

import os
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sam_repro.files import lines
from sam_repro.files.read import MOST, DamagedError, read_bytes, read_json, read_text, read_yaml
from sam_repro.record import metrics

READERS = (read_bytes, read_text, read_json, read_yaml, lines.read_lines)
BOMB = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in pairwise("abcdefghi"))


def linked_to_itself(path: Path) -> None:
    path.symlink_to(path)


def sparse(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(MOST + 1)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("place", [Path.mkdir, os.mkfifo, linked_to_itself, sparse])
def test_what_is_no_file_is_one_line(tmp_path: Path, reader: Callable[..., Any], place: Callable[[Path], None]) -> None:
    path = tmp_path / "file"
    place(path)
    if reader is lines.read_lines and place is sparse:
        assert lines.read_lines(path) == ([], [f"{path} line 1 is damaged and skipped (ValueError)"])
        return
    with pytest.raises(DamagedError) as caught:
        reader(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("reader", READERS[:-1])
def test_nothing_is_not_damaged(tmp_path: Path, reader: Callable[..., Any]) -> None:
    with pytest.raises(FileNotFoundError):
        reader(tmp_path / "none")
    with pytest.raises(DamagedError):
        reader(f"{tmp_path}/\0")


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[" * 100_000, b"9" * 5000, b"", b'{"a": 1}\0', b"[1,\n2\n"])
def test_damaged_json(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DamagedError) as caught:
        read_json(tmp_path / "file")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300 + len(str(tmp_path))


@pytest.mark.parametrize(
    "content",
    [
        BOMB,
        "a: &a [*a]",
        "[" * 100_000,
        "[" * 100,
        "- " * 5000,
        "{a: 1, a: 2}",
        "!!python/object/apply:os.system [true]",
        "{[1]: 2, {a: b}: 3}",
        "a: 2026-99-99",
        "a: !!int ''",
        "a: !!float x\x1b[2J",
        "\0",
    ],
)
def test_damaged_yaml(tmp_path: Path, content: str) -> None:
    (tmp_path / "file").write_text(content)
    before = time.process_time()
    with pytest.raises(DamagedError) as caught:
        read_yaml(tmp_path / "file")
    assert str(caught.value).isprintable()
    assert time.process_time() - before < 5


def test_whole_files_come_back(tmp_path: Path) -> None:
    (tmp_path / "file").write_text('{"a": [1, {"b": "ü"}]}')
    (tmp_path / "link").symlink_to("file")
    for name in ("file", "link"):
        assert read_json(tmp_path / name) == read_yaml(tmp_path / name) == {"a": [1, {"b": "ü"}]}


def test_a_line_that_is_too_long_costs_itself_only(tmp_path: Path) -> None:
    path = tmp_path / "file"
    filler = b'{"a": "' + b"x" * (5 * lines.MOST) + b'"}\n'
    path.write_bytes(b'{"a": 1}\n' + filler + b'{"a": 2}\n' + filler[:-1])
    records, problems = lines.read_lines(path)
    assert records == [{"a": 1}, {"a": 2}]
    assert [problem.partition("line ")[2] for problem in problems] == [
        "2 is damaged and skipped (ValueError)",
        "4 is damaged and skipped (ValueError)",
    ]


def test_a_line_nested_too_deep_is_damaged_as_any_other(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nested too deep"):
        lines.decode(b"[" * 100_000)
    (tmp_path / "metrics.jsonl").write_bytes(b"[" * 100_000)  # its last line, so that a killed writer may have left it
    assert metrics.read(tmp_path) == []
