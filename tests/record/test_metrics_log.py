"""metrics.jsonl: valid JSON whatever the numbers, durable, and cut back to the byte on a resume."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam_repro.errors import UserError
from sam_repro.files import lines
from sam_repro.record.metrics import MetricsLog, misfit, read, without_times

texts = st.text(max_size=8).filter(lambda text: text not in ("NaN", "Infinity", "-Infinity"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
records = st.dictionaries(texts, values, max_size=5)

FILE = "metrics.jsonl"


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


@given(records)
def test_a_line_is_strict_json_and_comes_back_to_the_bit(record: dict[str, Any]) -> None:
    line = lines.encode(record)
    assert line.count("\n") == 1
    json.loads(line, parse_constant=refuse)
    assert repr(lines.decode(line)) == repr(record)  # repr: NaN is not equal to itself, and -0.0 is to 0.0


@given(records, st.data())
def test_a_torn_line_is_never_taken_for_a_whole_one(record: dict[str, Any], data: st.DataObject) -> None:
    line = lines.encode(record).encode().rstrip(b"\n")
    cut = data.draw(st.integers(0, len(line) - 1))
    with pytest.raises(ValueError):  # noqa: PT011 - json's own subclass, with messages of its own
        lines.decode(line[:cut])


def test_keys_have_one_order_and_known_ones_come_first(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path)
    log.append({"zeta": 1, "lr": 0.1, "alpha": 2, "step": 3, "kind": "step", "loss": math.nan, "time": math.inf})
    log.append({"alpha": 2, "kind": "step", "time": -math.inf, "step": 3, "loss": 1e-07, "lr": 0.1, "zeta": 1})
    log.close()
    assert (tmp_path / FILE).read_text() == (
        '{"kind": "step", "step": 3, "loss": "NaN", "lr": 0.1, "time": "Infinity", "alpha": 2, "zeta": 1}\n'
        '{"kind": "step", "step": 3, "loss": 1e-07, "lr": 0.1, "time": "-Infinity", "alpha": 2, "zeta": 1}\n'
    )
    assert math.isnan(read(tmp_path)[0]["loss"])


def test_an_interrupted_log_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    for name in ("whole", "interrupted"):
        (tmp_path / name).mkdir()
    script = [{"kind": "step", "step": step, "loss": 2.0 / step} for step in range(1, 11)]
    whole = MetricsLog(tmp_path / "whole")
    for record in script:
        whole.append(record)
    first = MetricsLog(tmp_path / "interrupted")
    for record in script[:4]:
        first.append(record)
    offset = first.flush()
    for record in script[4:7]:
        first.append(record)
    with open(tmp_path / "interrupted" / FILE, "ab") as file:
        file.write(b'{"kind": "step", "st')
    second = MetricsLog(tmp_path / "interrupted")
    assert read(tmp_path / "interrupted") == script[:7]
    second.rewind(offset)
    assert read(tmp_path / "interrupted") == script[:4]
    for record in script[4:]:
        second.append(record)
    assert (tmp_path / "interrupted" / FILE).read_bytes() == (tmp_path / "whole" / FILE).read_bytes()
    assert second.flush() == whole.flush() == os.path.getsize(tmp_path / "whole" / FILE)


def test_a_killed_writer_keeps_all_it_said_it_had_flushed(tmp_path: Path) -> None:
    script = (
        "import itertools, sys\n"
        "from sam_repro.record.metrics import MetricsLog\n"
        "log = MetricsLog(sys.argv[1])\n"
        "for step in itertools.count(1):\n"
        "    log.append({'kind': 'step', 'step': step, 'filler': 'x' * 5000})\n"
        "    if step % 20 == 0:\n"
        "        print(step, log.flush(), flush=True)\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    writer.stdout.readline()
    time.sleep(0.1)
    writer.send_signal(signal.SIGKILL)
    step, offset = (int(word) for word in writer.stdout.read().splitlines()[-1].split())
    writer.wait()
    seen = [record["step"] for record in read(tmp_path)]
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) >= step
    log = MetricsLog(tmp_path)
    log.rewind(offset)
    assert [record["step"] for record in read(tmp_path)] == list(range(1, step + 1))


def test_a_log_shorter_than_its_checkpoint_is_refused(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path)
    log.append({"kind": "step", "step": 1})
    with pytest.raises(UserError, match=r"metrics\.jsonl .* altered"):
        log.rewind(log.flush() + 1)


def test_a_log_that_does_not_fit_its_checkpoint_is_found_before_the_training(tmp_path: Path) -> None:
    first, second, torn = b'{"kind": "step", "step": 1}\n', b'{"kind": "step", "step": 2}\n', b'{"kind": "st'
    offset = len(first + second)
    for content, problem in (
        (first + second, ""),
        (first + second + torn, ""),  # after the checkpoint: `rewind` forgets it
        (first, "has 28 bytes, its checkpoint saw 56"),
        (first + b"?" + second[1:], "line 2 is damaged"),
        (first + b" " + second, "line 2 is damaged"),  # longer than what the checkpoint saw
        (second[1:] + second + second, "line 1 is damaged"),
    ):
        (tmp_path / FILE).write_bytes(content)
        found = misfit(tmp_path, offset)
        assert problem in found
        assert bool(problem) == bool(found)
    (tmp_path / FILE).unlink()
    assert misfit(tmp_path, 0) == ""
    assert "has 0 bytes" in misfit(tmp_path, offset)


def test_damage_before_the_last_line_is_refused_not_hidden(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b'{"kind": "step", "st\n{"kind": "step", "step": 2}\n')
    with pytest.raises(UserError, match="line 1 is damaged"):
        read(tmp_path)
    (tmp_path / FILE).write_bytes(b'{"kind": "step", "st\n{"kind": "step", "step": 2}')
    with pytest.raises(UserError, match="line 1 is damaged"):
        read(tmp_path)
    (tmp_path / FILE).write_bytes(b'{"kind": "step", "step": 1}\n\xff\xfe{"ki')
    assert read(tmp_path) == [{"kind": "step", "step": 1}]


def test_no_log_is_an_empty_log(tmp_path: Path) -> None:
    assert read(tmp_path) == []


def test_without_times_goes_into_nested_objects() -> None:
    summary = {"status": "done", "wall_seconds": 3.0, "last": {"step": 4, "seconds": 1.0, "time": 2.0}}
    assert without_times(summary) == {"status": "done", "last": {"step": 4}}


def test_a_full_disk_is_an_error_and_leaves_whole_lines(small_disk: Path) -> None:
    log = MetricsLog(small_disk)

    def fill() -> None:
        for step in range(10_000):
            log.append({"kind": "step", "step": step, "filler": "x" * 300})

    with pytest.raises(OSError, match="No space left"):
        fill()
    content = (small_disk / FILE).read_bytes()
    assert content.endswith(b"\n")
    assert len(read(small_disk)) == content.count(b"\n") > 100


@pytest.mark.parametrize("place", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_fits_no_checkpoint(tmp_path: Path, place: Callable[[Path], None]) -> None:
    place(tmp_path / "metrics.jsonl")
    assert misfit(tmp_path, 10) == f"{tmp_path / 'metrics.jsonl'} is no file"
    with pytest.raises(UserError, match="is no file"):
        read(tmp_path)
