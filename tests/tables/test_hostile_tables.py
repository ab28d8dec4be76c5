"""Table files that are none: one line for each, and the other tables go on."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from commands import within

from sam_repro import CONFIGS
from sam_repro.errors import UserError
from sam_repro.report import commands
from sam_repro.report.__main__ import main
from sam_repro.tables import spec
from sam_repro.tables.chosen import named, readable

GOOD = "title: x\nsource: {paper: a, where: b}\nmetric: m\nn: 1\ncolumns: {a: {}}\nrows: {r: {}}\n"
HOSTILE = {
    "a set for a number": GOOD.replace("n: 1", "n: !!set {}"),
    "a list for a title": GOOD.replace("title: x", "title: [x]"),
    "a list among overrides": GOOD + "overrides: [[a=b]]\n",
    "a number for a mapping": GOOD.replace("columns: {a: {}}", "columns: 3"),
    "a number for a row": GOOD.replace("r: {}", "r: 3"),
    "a number for claims": GOOD.replace("r: {}", "r: {claims: 3}"),
    "a number for what succeeded": GOOD.replace("r: {}", "r: {succeeded: 3}"),
    "a list for footnotes' place": GOOD + "footnotes: 3\n",
    "nothing at all": "",
    "a list": "- 1\n",
    "a million seeds": GOOD + "seeds: 1000000000\n",
    "aliases": "a: &a [x, x]\nb: &b [*a, *a]\n" + GOOD,
    "deep nesting": GOOD + "footnotes: " + "[" * 5000,
    "a key that is a list": GOOD + "? [a, b]\n: 1\n",
    "a point of numbers": GOOD + "points: [[1, {}]]\n",
    "a miniature that is none": GOOD + "miniature: {rows: 3}\n",
    "a list that it extends": "extends: [asam/2]\n",
    "itself that it extends": "extends: asam/9\n",
}


def put(configs: Path, content: bytes) -> None:
    (configs / "table" / "asam").mkdir(parents=True, exist_ok=True)
    (configs / "table" / "asam" / "9.yaml").write_bytes(content)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_whatever_stands_in_a_table_is_one_line(text: str, tmp_path: Path) -> None:
    put(tmp_path, text.encode())
    with pytest.raises(UserError) as caught:
        spec.load("asam/9", tmp_path)
    assert str(caught.value).startswith("table asam/9")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_bad_letters_are_one_line(tmp_path: Path) -> None:
    put(tmp_path, b"title: \xff\n")
    with pytest.raises(UserError, match="no text in UTF-8"):
        spec.load("asam/9", tmp_path)


def test_a_slip_in_one_table_stops_that_table_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("table/asam", "table/rsam"):
        shutil.copytree(CONFIGS / folder, tmp_path / folder)
    put(tmp_path, b"titel: x\n")
    assert [len(found) for found in readable(spec.names(tmp_path), tmp_path)] == [len(spec.names(tmp_path)) - 1, 1]
    monkeypatch.setattr(commands, "readable", lambda refs, **more: readable(refs, tmp_path, **more))
    monkeypatch.setattr(commands, "named", lambda word: named(word, tmp_path))
    monkeypatch.setattr(spec.names, "__defaults__", (tmp_path,))
    assert main(["list"]) == 2
    out, err = capsys.readouterr()
    assert "asam/2" in out
    assert "rsam/1" in out
    assert err == f"error: {err.removeprefix('error: ').strip()}\n"
    assert err.startswith("error: table asam/9: unknown key 'titel'")
    assert main(["claims", "asam/2"]) == 0, "another table has nothing to do with it"
    assert main(["claims", "asam/9"]) == 2


def test_a_paper_is_all_its_tables() -> None:
    assert named("rsam") == [ref for ref in spec.names() if ref.startswith("rsam/")]
    assert named("asam/2") == ["asam/2"]
    with pytest.raises(UserError, match=r"'asam/99': did you mean '\S+'\? The tables of asam are asam/1, asam/2, "):
        named("asam/99")
    with pytest.raises(UserError, match="did you mean 'asam/2'"):
        named("asam2")


@pytest.mark.slow
def test_mutated_tables_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    """Real tables with lines lost, doubled, moved or swapped for hostile ones, and bytes flipped."""
    chance = random.Random(0)
    pieces = [
        b"!!set {a}",
        b"[1, [2]]",
        b"{}",
        b"3",
        b"null",
        b"1e999",
        b"'",
        b"\xff",
        b"&a [*a]",
        b"!!python/object:os",
    ]
    files = sorted(CONFIGS.glob("table/*/*.yaml"))
    for _ in range(3000):
        lines = chance.choice(files).read_bytes().split(b"\n")
        for _ in range(chance.randint(1, 3)):
            at, line = chance.randrange(len(lines)), chance.choice(lines)
            key = lines[at].partition(b":")[0]
            lines[at] = chance.choice([b"", line, key + b": " + chance.choice(pieces), lines[at].replace(b":", b"", 1)])
        put(tmp_path, b"\n".join(lines))
        with within(20, lines):
            _, mistakes = readable(["asam/9"], tmp_path)  # a traceback of anything else ends the test
        assert not any("\n" in mistake for mistake in mistakes)
