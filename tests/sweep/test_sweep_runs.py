"""Sweeps with real processes: two at once, killed, interrupted, with a cell that fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import ROOT, disk_of, wait_for

from sam_repro.record.folder import RunFolder
from sam_repro.runs.lease import latest
from sam_repro.sweep.work import work

# The columns of a table's row as runs of a second or two.
TINY = [
    "table=asam/2", "budget=smoke", "dataset=embedded", "model=resnet8", "model.width=4", "track=none", "track.every=1",
    "budget.train_images=64", "budget.test_images=64", "runtime.threads=1", "runtime.precision=fp32",
]  # fmt: skip
PAIR = "cells=resnet20/sgd,resnet20/sam"
ONE = "cells=resnet20/sam"
LONGER = ["budget.max_epochs=60", "runtime.checkpoint_minutes=0.02"]


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(ROOT / "scripts" / "sweep.py"), *TINY, *words]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def end(process: subprocess.Popen[str], seconds: float = 120) -> tuple[int, str]:
    output, _ = process.communicate(timeout=seconds)
    return process.returncode, output


def ledger(folder: Path) -> list[str]:
    return [json.loads(line)["run_id"] for line in (folder / "results" / "ledger.jsonl").read_text().splitlines()]


def steps(folder: Path) -> int:
    return sum(f.read_text().count('"kind": "step"') for f in folder.glob("results/runs/*/metrics.jsonl"))


def incidents(folder: Path) -> list[str]:
    files = folder.glob("results/runs/*/events.jsonl")
    return [json.loads(line)["name"] for file in files for line in file.read_text().splitlines()]


@pytest.mark.slow
def test_two_schedulers_train_each_run_once_and_a_third_finds_nothing_to_do(tmp_path: Path) -> None:
    both = [start(tmp_path, PAIR), start(tmp_path, PAIR)]
    ended = [end(process) for process in both]
    assert [code for code, _ in ended] == [0, 0], ended
    output = "".join(text for _, text in ended)
    assert len(set(ledger(tmp_path))) == len(ledger(tmp_path)) == 2
    assert output.count("\nstart ") == 2
    assert output.count("trained elsewhere") == 2  # each of them saw both runs done
    assert "2 of 2 runs trained" in ended[0][1]
    code, text = end(start(tmp_path, PAIR))
    assert (code, text.splitlines()[-1]) == (0, "2 runs, 2 done, 0 to train")
    assert len(list((tmp_path / "results" / "logs").iterdir())) == 2


@pytest.mark.slow
def test_killed_then_taken_over_then_interrupted_then_finished(tmp_path: Path) -> None:
    first = start(tmp_path, ONE, *LONGER)
    wait_for(lambda: steps(tmp_path) > 10, first)
    first.kill()
    first.communicate()
    second = start(tmp_path, ONE, *LONGER)  # may find the run still saving, and waits for it
    wait_for(lambda: "resumed" in incidents(tmp_path), second)
    reached = steps(tmp_path)
    wait_for(lambda: steps(tmp_path) > reached + 5, second)
    second.send_signal(signal.SIGINT)
    code, text = end(second)
    assert code == 75, text
    assert "save and end" in text
    assert "Traceback" not in text
    (run,) = tmp_path.glob("results/runs/*")
    lease = latest(RunFolder(run))
    assert lease is not None
    assert lease.state == "stopped"
    assert not list(tmp_path.glob("results/runs/*/DONE"))
    code, text = end(start(tmp_path, ONE, *LONGER))
    assert code == 0, text
    assert incidents(tmp_path) == ["interrupted", "resumed"] * 2
    assert len(ledger(tmp_path)) == 1
    assert steps(tmp_path) == 120  # two an epoch, none lost, none twice


@pytest.mark.slow
def test_a_failing_cell_is_shown_with_its_log_and_the_others_are_trained(tmp_path: Path) -> None:
    (task,) = work(["asam/2"], "smoke", ["resnet20/sam"], TINY[2:], tmp_path / "results").tasks
    broken = task.id
    in_the_way = tmp_path / "results" / "runs" / broken / "metrics.jsonl"
    in_the_way.mkdir(parents=True)
    code, text = end(start(tmp_path, PAIR, "slots=2"))
    assert code == 1, text
    assert f"FAILED  asam/2 resnet20 sam seed 0 ({broken}): exit code 2" in text
    assert f"  | error: {in_the_way.relative_to(tmp_path)} is no file" in text
    assert "1 of 2 runs trained, 1 left" in text
    lease = latest(RunFolder(in_the_way.parent))
    assert lease is not None
    assert lease.state == "failed"
    assert "metrics.jsonl is no file" in lease.content["error"]
    in_the_way.rmdir()
    code, text = end(start(tmp_path, PAIR))
    assert code == 0, text
    assert text.count("\nstart ") == 1
    assert len(set(ledger(tmp_path))) == 2


@pytest.mark.slow
def test_who_stops_reading_does_not_change_how_it_ends(tmp_path: Path) -> None:
    (task,) = work(["asam/2"], "smoke", ["resnet20/sam"], TINY[2:], tmp_path / "results").tasks
    (task.folder / "metrics.jsonl").mkdir(parents=True)
    sweep = start(tmp_path, ONE)
    assert sweep.stdout is not None
    sweep.stdout.readline()
    sweep.stdout.close()
    assert sweep.wait(timeout=60) == 1


@pytest.mark.slow
def test_a_full_disk_ends_a_sweep_with_its_own_code(tmp_path: Path) -> None:
    with disk_of(tmp_path / "results", "200k"):
        code, text = end(start(tmp_path, PAIR, "slots=1", "model.width=32"))
        assert code == 74, text
        assert "the disk is full: nothing more is started" in text
        assert "0 of 2 runs trained, 2 left" in text


@pytest.mark.slow
def test_a_sleeping_owner_is_taken_for_dead_and_lets_go_when_it_wakes(tmp_path: Path) -> None:
    """Its run is stopped with it, as when a whole machine sleeps."""
    first = start(tmp_path, ONE, *LONGER, "stale=2", "budget.max_epochs=200")
    wait_for(lambda: steps(tmp_path) > 10, first)
    # Another boot of another machine: nobody can look whether the process lives.
    (lease,) = tmp_path.glob("results/runs/*/lease.2.json")
    lease.write_text(json.dumps(json.loads(lease.read_text()) | {"place": "far"}))
    (child,) = [int(pid) for pid in Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split()]
    for process in (first.pid, child):
        os.kill(process, signal.SIGSTOP)
    second = start(tmp_path, ONE, *LONGER, "stale=2", "budget.max_epochs=200")
    wait_for(lambda: (lease.parent / "lease.4.json").exists(), second)
    os.kill(first.pid, signal.SIGCONT)
    wait_for(lambda: not Path(f"/proc/{child}").exists(), second)  # killed, not saved: the folder is the other's
    first_ended, second_ended = end(first, 300), end(second, 300)
    assert (first_ended[0], second_ended[0]) == (0, 0), (first_ended, second_ended)
    assert "trained elsewhere" in first_ended[1]
    assert len(ledger(tmp_path)) == 1
    assert steps(tmp_path) == 400


@pytest.mark.slow
def test_a_second_interrupt_does_not_wait(tmp_path: Path) -> None:
    process = start(tmp_path, ONE, *LONGER, "budget.max_epochs=4000")
    wait_for(lambda: steps(tmp_path) > 4, process)
    (child,) = [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    os.kill(child, signal.SIGSTOP)  # it can't save
    process.send_signal(signal.SIGINT)
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert end(process, 20)[0] == 75
    assert not Path(f"/proc/{child}").exists()
