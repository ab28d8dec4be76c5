"""The ledger loses nothing: not to other writers, killed ones, damage, full disks or merges."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from commands import disk_of

from sam_repro.errors import UserError
from sam_repro.runs import ledger


def line(run_id: str, finished: str, **more: Any) -> dict[str, Any]:
    return {"version": ledger.VERSION, "run_id": run_id, "finished": finished, **more}


def put(folder: Path, *entries: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    for entry in entries:
        ledger.append(folder, entry)
    return folder / ledger.FILE


@pytest.mark.slow
def test_eight_writers_and_one_killed_in_the_middle(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from sam_repro.runs import ledger\n"
        "for number in range(200):\n"
        "    ledger.append(sys.argv[1], {'run_id': f'{sys.argv[2]}-{number}', 'filler': 'x' * 2000})\n"
        "    print(number, flush=True)\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path), str(i)], stdout=subprocess.PIPE, text=True)
        for i in range(8)
    ]
    victim = writers[3]
    assert victim.stdout is not None
    while victim.stdout.readline() != "60\n":
        pass
    victim.send_signal(signal.SIGKILL)
    said = 61 + len(victim.stdout.read().split())
    assert victim.wait() == -signal.SIGKILL
    assert [writer.wait() for writer in writers if writer is not victim] == [0] * 7

    entries, problems = ledger.read(tmp_path)
    counts = Counter(entry["run_id"].partition("-")[0] for entry in entries)
    assert {writer: counts[writer] for writer in "0124567"} == dict.fromkeys("0124567", 200)
    # What it had finished writing is there; of the one in its hands at most a damaged line.
    assert said <= counts["3"] <= said + 1 < 200
    assert len(problems) <= 1
    assert all(len(entry["filler"]) == 2000 for entry in entries)


def test_a_torn_tail_costs_its_own_line_only(tmp_path: Path) -> None:
    path = put(tmp_path, {"run_id": "a"})
    with open(path, "ab") as file:
        file.write(b'{"version": 1, "run_id": "torn", "fin')
    put(tmp_path, {"run_id": "b"})
    entries, problems = ledger.read(tmp_path)
    assert [entry["run_id"] for entry in entries] == ["a", "b"]
    assert problems == [f"{path} line 2 is damaged and skipped (JSONDecodeError)"]


@pytest.mark.parametrize(
    "damage",
    [
        b"\x00\x00\x00\x00",
        b"\xff\xfe\xfd",
        b"[1, 2]",
        b"3",
        b'{"version": 1, "run_id": "x"}',
        b'{"version": "new", "run_id": "x", "finished": "2026"}',
        b'{"version": 1, "run_id": 7, "finished": "2026"}',
        b"<<<<<<< HEAD",
        b"[" * 100_000,
    ],
)
def test_a_damaged_line_is_reported_and_skipped(tmp_path: Path, damage: bytes) -> None:
    path = put(tmp_path, {"run_id": "a"}, {"run_id": "b"})
    first, second = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([first, damage, second, b""]))
    entries, problems = ledger.read(tmp_path)
    assert [entry["run_id"] for entry in entries] == ["a", "b"]
    assert len(problems) == 1
    assert str(path) in problems[0]


def test_the_last_line_of_a_run_counts_whatever_its_clock_said(tmp_path: Path) -> None:
    put(
        tmp_path,
        line("a", "2026-01-02T00:00:00+00:00", last=2),
        line("a", "2099-01-03T00:00:00+00:00", last=3),
        line("b", "2026-01-01T00:00:00+00:00", last=9),
        line("a", "2026-01-01T00:00:00+00:00", last=1),
    )
    entries, problems = ledger.read(tmp_path)
    assert sorted((entry["run_id"], entry["last"]) for entry in entries) == [("a", 1), ("b", 9)]
    assert problems == []


GOOD = {
    "run_id": "a", "config": {}, "seed": 1, "budget": "mini", "status": "done", "passes": 1.0, "seconds": 1.0,
    "metrics": {"test_accuracy": {"last": 80.0, "best": 81.0, "best_epoch": 2}}, "recipe_version": 1, "hardware": {},
}  # fmt: skip


@pytest.mark.parametrize("spoiled", [{"status": "Done"}, {"finished": "9999"}, {"seconds": "x"}, {"metrics": 3}])
def test_a_line_that_cannot_be_used_hides_none_that_can(tmp_path: Path, spoiled: dict[str, Any]) -> None:
    put(tmp_path, GOOD, GOOD | spoiled)
    (entry,), problems = ledger.read(tmp_path)
    assert entry["metrics"] == GOOD["metrics"]
    assert len(problems) == 1
    assert f"has {next(iter(spoiled))}=" in problems[0]


def test_an_imported_line_never_replaces_ones_own(tmp_path: Path) -> None:
    other = {**GOOD, "metrics": {"test_accuracy": {"last": 99.0, "best": 99.0, "best_epoch": 1}}}
    theirs = put(tmp_path / "theirs", other | {"finished": "2099-01-01T00:00:00+00:00"}, other | {"run_id": "b"})
    put(tmp_path / "mine", GOOD)
    added, problems = ledger.merge(tmp_path / "mine", theirs)
    assert added == 2
    assert problems == [f"run a has another result in {theirs}: the one that was here counts"]
    found = {entry["run_id"]: entry["metrics"]["test_accuracy"]["last"] for entry in ledger.read(tmp_path / "mine")[0]}
    assert found == {"a": 80.0, "b": 99.0}
    assert ledger.merge(tmp_path / "mine", theirs) == (0, [])
    # Training it here makes it one's own; evaluating it does not.
    assert ledger.amend(tmp_path / "mine", "b", lambda before: before)
    put(tmp_path / "mine", {**GOOD, "run_id": "b"})
    ledger.merge(tmp_path / "mine", put(tmp_path / "third", {**other, "run_id": "b", "seed": 2}))
    assert {entry["run_id"]: entry["seed"] for entry in ledger.read(tmp_path / "mine")[0]} == {"a": 1, "b": 1}
    assert {e["metrics"]["test_accuracy"]["last"] for e in ledger.read(tmp_path / "mine")[0]} == {80.0}


def test_an_altered_number_is_noticed(tmp_path: Path) -> None:
    path = put(tmp_path / "mine", GOOD, GOOD | {"run_id": "b", "passes": float("nan"), "budget": "ü\ud800"})
    assert ledger.altered(tmp_path / "mine") == []
    path.write_text(path.read_text().replace("80.0", "90.0", 1))
    assert ledger.altered(tmp_path / "mine") == ["a line of run a was altered after it was written"]
    assert "was altered" in ledger.read(tmp_path / "mine")[1][0]
    # Taking the line over does not make it good.
    assert "was altered" in " ".join(ledger.merge(tmp_path / "other", path)[1])
    assert len(ledger.altered(tmp_path / "other")) == 1


def test_a_file_system_without_locks_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    put(tmp_path, GOOD, GOOD | {"run_id": "b"})
    ledger.probe(tmp_path)
    assert [entry["run_id"] for entry in ledger.read(tmp_path)[0]] == ["a", "b"]


def test_a_lock_that_fails_otherwise_is_found_before_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    ledger.probe(tmp_path)
    monkeypatch.setattr(fcntl, "flock", broken)
    with pytest.raises(OSError, match="Input/output error"):
        ledger.probe(tmp_path)


def test_what_is_no_file_is_found_before_the_training(tmp_path: Path) -> None:
    ledger.probe(tmp_path / "new")
    for make in (Path.mkdir, os.mkfifo):
        results = tmp_path / make.__name__
        results.mkdir()
        make(results / ledger.FILE)
        with pytest.raises(UserError, match=r"can't write .*ledger\.jsonl"):
            ledger.probe(results)


def test_what_is_not_given_is_filled_in(tmp_path: Path) -> None:
    put(tmp_path, {"run_id": "a", "last": float("nan")})
    (entry,), _ = ledger.read(tmp_path)
    assert entry["version"] == ledger.VERSION
    assert entry["finished"].endswith("+00:00")
    assert repr(entry["last"]) == "nan"


def test_no_ledger_is_an_empty_ledger(tmp_path: Path) -> None:
    assert ledger.read(tmp_path / "none") == ([], [])
    assert os.listdir(tmp_path) == []


def test_merging_is_idempotent_and_keeps_the_newest(tmp_path: Path) -> None:
    old = GOOD | line("a", "2026-01-01T00:00:00+00:00", last=1)
    new = GOOD | line("a", "2026-01-02T00:00:00+00:00", last=2)
    mine = put(tmp_path / "mine", new)
    other = put(tmp_path / "other", old, new, GOOD | line("b", "2026-01-01T00:00:00+00:00", last=float("inf")))
    with open(other, "ab") as file:
        file.write(b'{"torn')
    added, problems = ledger.merge(tmp_path / "mine", other)
    assert added == 2
    assert problems == [f"{other} line 4 is damaged and skipped (JSONDecodeError)"]
    once = mine.read_bytes()
    assert ledger.merge(tmp_path / "mine", other)[0] == 0
    assert ledger.merge(tmp_path / "mine", mine)[0] == 0
    assert mine.read_bytes() == once
    assert {entry["run_id"]: entry["last"] for entry in ledger.read(tmp_path / "mine")[0]} == {
        "a": 2,
        "b": float("inf"),
    }


def test_a_line_that_is_no_entry_is_refused_by_its_number(tmp_path: Path) -> None:
    """What can't be used is not taken over; a run's id names files, so it is no path."""
    path = {"run_id": "../../x"}
    theirs = put(tmp_path / "theirs", GOOD, GOOD | {"run_id": "b", "status": "Done"}, GOOD | path, {"run_id": "c"})
    added, problems = ledger.merge(tmp_path / "mine", theirs)
    assert added == 1
    assert [problem.removeprefix(f"{theirs} ").partition(":")[0] for problem in problems] == [
        "line 2",
        "line 3",
        "line 4",
    ]
    assert all(problem.endswith("refused") for problem in problems)
    assert [entry["run_id"] for entry in ledger.read(tmp_path / "mine")[0]] == ["a"]


def test_a_newer_version_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    mine, other = put(tmp_path / "mine", {"run_id": "a"}), put(tmp_path / "other", {"run_id": "b"})
    with open(other, "a") as file:
        file.write(json.dumps(line("c", "2026") | {"version": ledger.VERSION + 1}) + "\n")
    before = mine.read_bytes()
    for action in (lambda: ledger.read(tmp_path / "other"), lambda: ledger.merge(tmp_path / "mine", other)):
        with pytest.raises(UserError, match=r"version 2, .* update sam-repro") as caught:
            action()
        assert "\n" not in str(caught.value)
    assert mine.read_bytes() == before


def test_a_results_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for results in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(UserError, match=r"can't write .*ledger\.jsonl.*results_dir"):
            ledger.append(results, {"run_id": "a"})
    (tmp_path / "results" / ledger.FILE).mkdir(parents=True)
    with pytest.raises(UserError, match=r"can't read the ledger .*ledger\.jsonl"):
        ledger.read(tmp_path / "results")
    with pytest.raises(UserError, match="is not there"):
        ledger.merge(tmp_path, tmp_path / "nowhere.jsonl")


FILL = (
    "import sys\n"
    "from sam_repro.runs import ledger\n"
    "for number in range(10_000):\n"
    "    try:\n"
    "        ledger.append(sys.argv[1], {'run_id': str(number), 'filler': 'x' * 3000})\n"
    "    except OSError as error:\n"
    "        print(number, error.strerror)\n"
    "        break\n"
)


def fill(results: Path, before: str = "") -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", before + FILL, str(results)], capture_output=True, text=True, check=True
    )
    number, _, reason = done.stdout.strip().partition(" ")
    return int(number), reason


def test_a_full_disk_is_an_error_and_leaves_whole_lines(tmp_path: Path) -> None:
    # A limit on the size of files stops a write in the middle, as a full disk does, and needs no rights.
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
    number, reason = fill(tmp_path, limit)
    assert reason == "File too large"
    entries, problems = ledger.read(tmp_path)
    assert problems == []
    assert [entry["run_id"] for entry in entries] == [str(i) for i in range(number)]
    assert (tmp_path / ledger.FILE).read_bytes().endswith(b"}\n")


def test_a_real_full_disk(tmp_path: Path) -> None:
    with disk_of(tmp_path, "64k"):
        number, reason = fill(tmp_path)
        assert reason == "No space left on device"
        entries, problems = ledger.read(tmp_path)
        assert (len(entries), problems) == (number, [])
        assert number > 10


def test_a_ledger_that_was_replaced_while_a_writer_waited(tmp_path: Path) -> None:
    path = put(tmp_path, {"run_id": "a"})
    append = "import sys; from sam_repro.runs import ledger; ledger.append(sys.argv[1], {'run_id': 'late'})"
    with ledger._locked(path):
        writer = subprocess.Popen([sys.executable, "-c", append, str(tmp_path)])
        time.sleep(0.5)
        assert writer.poll() is None
        replacement = tmp_path / "pulled"
        replacement.write_text(json.dumps(line("pulled", "2026-01-01T00:00:00+00:00")) + "\n")
        os.replace(replacement, path)
    assert writer.wait() == 0
    assert [entry["run_id"] for entry in ledger.read(tmp_path)[0]] == ["pulled", "late"]


def test_torch_stays_out() -> None:
    script = "import sys; import sam_repro.runs.ledger; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
