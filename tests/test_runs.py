"""Runs from the command line: kill, resume, stop, collapse, collide."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest
from commands import ROOT, TINY, Cli, command
from image_folders import photograph
from nursery import Nursery, Started

from sam_repro.record.folder import RunFolder
from sam_repro.record.metrics import read, without_times
from sam_repro.runs.lease import latest
from sam_repro.runs.outcome import finished
from sam_repro.runs.run import Run

LONG = ["schedule.epochs=3000", "budget.max_epochs=3000"]


def the_run(folder: Path) -> Path:
    (run,) = (folder / "results" / "runs").iterdir()
    return run


def fresh(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """As a user starts it: a Python of its own, which spawns its ranks."""
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(
        command(*TINY, *arguments),
        cwd=folder,
        env=os.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(condition: object, process: subprocess.Popen[str] | Started, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.005)


def steps_done(folder: Path) -> int:
    files = list(folder.glob("results/runs/*/metrics.jsonl"))
    return files[0].read_text().count('"step", "step"') if files else 0


def wait_until_free(run: Path, seconds: float = 60) -> None:
    ends = time.monotonic() + seconds
    while (lease := latest(RunFolder(run))) is not None and lease.held and not lease.gone():
        assert time.monotonic() < ends, "it took too long"
        time.sleep(0.01)


def is_lease(file: Path) -> bool:
    return file.name.startswith("lease.")


def same_result(a: Path, b: Path) -> None:
    assert (the_run(a) / "weights.safetensors").read_bytes() == (the_run(b) / "weights.safetensors").read_bytes()
    assert [without_times(r) for r in read(the_run(a))] == [without_times(r) for r in read(the_run(b))]


def kill_and_resume(tmp_path: Path, nursery: Nursery, *arguments: str, kills: int = 2, seed: int = 0) -> None:
    """Kill -9 at random moments, start again until it is done; compare with a run left alone."""
    arguments = (*TINY, *arguments, "budget.max_epochs=4", "runtime.checkpoint_steps=3")
    done = nursery.call(tmp_path, *arguments, timeout=300)
    assert done.returncode == 0, done.stderr
    killed, draw = tmp_path / "killed", random.Random(seed)
    for _ in range(kills):
        process = nursery.start(killed, *arguments)
        target = steps_done(killed) + draw.randint(1, 5)
        while process.poll() is None and steps_done(killed) < target:
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        # Its ranks notice that their parent is gone, save, and let go of the run.
        for run in killed.glob("results/runs/*"):
            wait_until_free(run)
    last = nursery.start(killed, *arguments)
    out, err = last.communicate(timeout=300)
    assert last.returncode == 0, err
    same_result(tmp_path, killed)
    if "already done" not in out:
        assert "resumed" in out


def test_kill_and_resume_is_bit_exact(tmp_path: Path, nursery: Nursery) -> None:
    kill_and_resume(tmp_path, nursery, "method=fsam", "loop.probe_steps=1")


# Those that keep something from pass to pass or from step to step, and the two that all others are made of; the rest
# is a proof.
KILLED = ["plain", "sam", "rsam", "fasam", "sam_full", "sam_noise", "looksam", "esam"]
KILLED_TOO = ["asam", "gsam", "rgsam", "fishersam", "sam_db", "lpf_sgd"]


@pytest.mark.parametrize(
    "method",
    [
        *(pytest.param(name, marks=pytest.mark.slow) for name in KILLED),
        *(pytest.param(name, marks=pytest.mark.proof) for name in KILLED_TOO),
    ],
)
def test_kill_and_resume_is_bit_exact_for_every_method(tmp_path: Path, nursery: Nursery, method: str) -> None:
    kill_and_resume(tmp_path, nursery, f"method={method}", seed=len(method))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["sam", "fsam", "looksam"])
def test_kill_and_resume_is_bit_exact_on_two_ranks(tmp_path: Path, nursery: Nursery, method: str) -> None:
    kill_and_resume(tmp_path, nursery, f"method={method}", "method.m=8", "runtime.ranks=2")


@pytest.mark.slow
@pytest.mark.parametrize(
    "overrides",
    [
        ["base_optimizer=adamw"],
        ["base_optimizer=rmsprop"],
        ["runtime.precision=bf16", "augment=basic_cutout"],
        ["runtime.precision=fp16"],
        ["loop.micro_batch=8", "model=wrn_16_8", "model.depth=10", "model.width=1", "model.dropout=0.2"],
    ],
)
def test_kill_and_resume_is_bit_exact_in_other_settings(tmp_path: Path, nursery: Nursery, overrides: list[str]) -> None:
    kill_and_resume(tmp_path, nursery, "method=asam", *overrides)


def test_the_first_lines_name_the_run_and_a_finished_run_trains_nothing(tmp_path: Path, cli: Cli) -> None:
    first = cli(*TINY)
    run = the_run(tmp_path)
    assert first.stdout.splitlines()[0] == f"run {run.name} in results/runs/{run.name}"
    assert {f.name for f in run.iterdir()} >= {
        "config.yaml", "env.json", "described.json", "metrics.jsonl", "summary.json", "weights.safetensors", "DONE",
    }  # fmt: skip
    summary = json.loads((run / "summary.json").read_text())
    assert summary["status"] == "done"
    assert summary["last"]["epoch"] == 2
    assert not (run / "checkpoints").exists()
    began = {f: f.stat().st_mtime_ns for f in run.iterdir()}
    again = cli(*TINY)
    assert again.returncode == 0
    assert "already done" in again.stdout
    assert {f: f.stat().st_mtime_ns for f in run.iterdir()} == began
    forced = cli(*TINY, "force=true")
    assert "already done" not in forced.stdout
    assert (run / "DONE").stat().st_mtime_ns > began[run / "DONE"]
    ledger = (tmp_path / "results" / "ledger.jsonl").read_text().splitlines()
    assert [json.loads(line)["run_id"] for line in ledger] == [run.name] * 2


def test_a_changed_config_is_another_run(tmp_path: Path, cli: Cli) -> None:
    cli(*TINY, "budget.max_epochs=1")
    cli(*TINY, "budget.max_epochs=1", "seed=1")
    assert len(list((tmp_path / "results" / "runs").iterdir())) == 2


@pytest.mark.parametrize(("number", "ranks"), [(signal.SIGTERM, 1), (signal.SIGUSR1, 2)])
def test_a_signal_saves_and_exits_with_75(tmp_path: Path, cli: Cli, number: int, ranks: int, nursery: Nursery) -> None:
    process = nursery.start(tmp_path, *TINY, *LONG, f"runtime.ranks={ranks}")
    wait_for(lambda: steps_done(tmp_path) >= 2, process)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 75, (out, err)
    assert "Traceback" not in err
    (checkpoint,) = list((the_run(tmp_path) / "checkpoints").iterdir())[-1:]
    assert (checkpoint / "manifest.json").exists()
    assert int(checkpoint.name) >= 2
    assert not (the_run(tmp_path) / "DONE").exists()


def test_a_log_that_does_not_fit_its_checkpoint_is_refused_at_once_and_force_starts_anew(
    tmp_path: Path, cli: Cli, nursery: Nursery
) -> None:
    process = nursery.start(tmp_path, *TINY, *LONG, "runtime.checkpoint_steps=3")
    wait_for(lambda: list(tmp_path.glob("results/runs/*/checkpoints/*/manifest.json")), process)
    process.terminate()
    assert process.wait(timeout=60) == 75
    log = the_run(tmp_path) / "metrics.jsonl"
    first, second, *rest = log.read_text().splitlines(keepends=True)
    for content, problem in (("".join([first, "?" + second[1:], *rest]), "line 2 is damaged"), ("", "has 0 bytes")):
        log.write_text(content)
        before = {f: f.stat().st_mtime_ns for f in the_run(tmp_path).rglob("*") if not is_lease(f)}
        done = cli(*TINY, *LONG, "runtime.checkpoint_steps=3")
        assert done.returncode == 2, done.stderr
        assert problem in done.stderr
        assert "retrain with force=true" in done.stderr
        assert done.stderr.count("\n") == 1
        assert {
            f: f.stat().st_mtime_ns for f in the_run(tmp_path).rglob("*") if not f.name.startswith("lease.")
        } == before
    process = nursery.start(tmp_path, *TINY, *LONG, "runtime.checkpoint_steps=3", "force=true")
    wait_for(lambda: steps_done(tmp_path) >= 4, process)
    process.terminate()
    assert process.wait(timeout=60) == 75
    assert [r["step"] for r in read(the_run(tmp_path)) if r["kind"] == "step"][:4] == [1, 2, 3, 4]
    events = [json.loads(line)["name"] for line in (the_run(tmp_path) / "events.jsonl").read_text().splitlines()]
    assert events == ["started_anew", "interrupted"]


@pytest.mark.parametrize("summary", ["{}", "[]", "", '{"status": "done", "last": null, "best": null}'])
def test_a_summary_that_does_not_say_how_the_run_ended_is_none(tmp_path: Path, summary: str) -> None:
    (tmp_path / "DONE").touch()
    (tmp_path / "summary.json").write_text(summary)
    assert finished(Run(tmp_path)) is None
    (tmp_path / "summary.json").write_text('{"status": "collapsed", "collapsed_step": 3, "last": null, "best": null}')
    assert finished(Run(tmp_path)) is not None


def test_an_ascent_batch_larger_than_the_training_set_is_one_line(tmp_path: Path, cli: Cli) -> None:
    done = cli(*TINY, "method=sam_larger", "method.ascent_batch=65", "budget.max_steps=1")
    assert done.returncode == 2, done.stderr
    assert done.stderr == "error: method.ascent_batch=65 exceeds the 64 training images: lower it\n"
    assert not (tmp_path / "results").exists()


def test_the_rehearsal_removes_only_what_it_made(tmp_path: Path) -> None:
    """With stand-ins for make, which makes what the real one does, and for id, so that nothing is installed."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "run").write_bytes((ROOT / ".ci" / "run").read_bytes())
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, script in (("make", "mkdir -p .venv results/runs/new results/demo"), ("id", "echo 1000")):
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    (tmp_path / ".venv").mkdir()
    (tmp_path / "results" / "runs" / "mine").mkdir(parents=True)
    for kept in (True, False):
        done = subprocess.run(
            ["bash", str(tmp_path / ".ci" / "run")], env=os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"},
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert (tmp_path / ".venv").exists() is kept
        assert (tmp_path / "results" / "runs" / "mine").exists() is kept
        assert not (tmp_path / "results" / "demo").exists()
        shutil.rmtree(tmp_path / ".venv", ignore_errors=True)
        shutil.rmtree(tmp_path / "results")


def test_a_collapsed_run_is_recorded_and_no_crash(tmp_path: Path, cli: Cli) -> None:
    done = cli(*TINY, "base_optimizer.lr=1e5", "budget.max_epochs=3")
    assert done.returncode == 0, done.stderr
    assert "collapsed" in done.stdout
    summary = json.loads((the_run(tmp_path) / "summary.json").read_text())
    assert summary["status"] == "collapsed"
    events = [r for r in read(the_run(tmp_path)) if r["kind"] == "event" and r["name"] == "collapsed"]
    assert [e["step"] for e in events] == [summary["collapsed_step"]]
    assert json.loads((tmp_path / "results" / "ledger.jsonl").read_text())["status"] == "collapsed"


def test_what_a_collapsed_run_leaves_does_not_depend_on_who_looked_when(tmp_path: Path, cli: Cli) -> None:
    words = [*TINY, "base_optimizer.lr=1e5", "budget.max_epochs=3", "loop.batch_size=8"]
    ways = {"soon": ["track.every=1"], "late": ["track.every=50"], "saved": ["runtime.checkpoint_steps=7"]}
    for name, way in ways.items():
        done = cli(*words, *way, f"results_dir={name}")
        assert done.returncode == 0, done.stderr
    lines = [json.loads((tmp_path / name / "ledger.jsonl").read_text()) for name in ways]
    assert len({line["run_id"] for line in lines}) == 1
    assert lines[0]["collapsed_step"] < 7
    for line in lines:
        assert (line["collapsed_step"], line["passes"]) == (lines[0]["collapsed_step"], 2 * lines[0]["collapsed_step"])
        assert "weights_sha256" not in line
    found = [json.loads(next((tmp_path / name).glob("runs/*/summary.json")).read_text()) for name in ways]
    assert {summary["step"] for summary in found} == {lines[0]["collapsed_step"]}


def test_a_last_update_that_ruins_the_weights_is_a_collapse(tmp_path: Path, cli: Cli) -> None:
    """Both losses of its training are numbers; that of the evaluation is none."""
    done = cli(*TINY, "method=plain", "base_optimizer.lr=1e6", "budget.max_steps=2", "budget.max_epochs=1")
    assert done.returncode == 0, done.stderr
    summary = json.loads((the_run(tmp_path) / "summary.json").read_text())
    assert (summary["status"], summary["collapsed_step"], summary["step"]) == ("collapsed", 2, 2)


def test_a_finished_run_whose_summary_is_damaged_is_no_finished_one_when_it_is_trained_again(
    tmp_path: Path, cli: Cli, nursery: Nursery
) -> None:
    assert cli(*TINY, "schedule.epochs=40", "budget.max_epochs=40").returncode == 0
    (the_run(tmp_path) / "summary.json").write_text("{")
    (tmp_path / "results" / "ledger.jsonl").unlink()
    process = nursery.start(tmp_path, *TINY, "schedule.epochs=40", "budget.max_epochs=40")
    wait_for(lambda: not (the_run(tmp_path) / "DONE").exists(), process)
    assert process.wait(timeout=60) == 0
    assert finished(Run(the_run(tmp_path))) is not None
    assert len((tmp_path / "results" / "ledger.jsonl").read_text().splitlines()) == 1


def test_a_collapsed_run_may_go_on(tmp_path: Path, cli: Cli) -> None:
    done = cli(*TINY, "base_optimizer.lr=1e5", "budget.max_epochs=3", "on_divergence=continue")
    assert done.returncode == 0, done.stderr
    summary = json.loads((the_run(tmp_path) / "summary.json").read_text())
    assert summary["status"] == "collapsed"
    assert summary["epoch"] == 3


def test_a_full_disk_is_a_clear_line_and_the_run_goes_on_when_there_is_room(tmp_path: Path, cli: Cli) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        arguments = [*TINY, "results_dir=disk", "model.width=8", "schedule.epochs=20", "budget.max_epochs=20"]
        full = cli(*arguments, "runtime.ranks=2", "method.m=8")
        assert full.returncode == 74, (full.stdout, full.stderr)
        assert "is full" in full.stdout
        assert "Traceback" not in full.stderr
        (run,) = (disk / "runs").iterdir()
        assert list(run.glob("checkpoints/*/manifest.json"))
        subprocess.run(["mount", "-o", "remount,size=9m", str(disk)], check=True)
        again = cli(*arguments, "runtime.ranks=2", "method.m=8")
        assert again.returncode == 0, again.stderr
        assert "resumed" in again.stdout
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_two_processes_never_train_one_run(tmp_path: Path, cli: Cli, nursery: Nursery) -> None:
    process = nursery.start(tmp_path, *TINY, *LONG)
    wait_for(lambda: steps_done(tmp_path) >= 1, process)
    second = cli(*TINY, *LONG)
    process.kill()
    process.communicate()
    assert second.returncode == 75, second.stderr
    assert "another process" in second.stdout


def test_of_two_that_start_at_once_one_trains_and_a_killed_one_is_followed_at_once(
    tmp_path: Path, cli: Cli, nursery: Nursery
) -> None:
    both = [nursery.start(tmp_path, *TINY, *LONG), nursery.start(tmp_path, *TINY, *LONG)]
    while all(process.poll() is None for process in both):
        time.sleep(0.01)
    (loser,) = [process for process in both if process.poll() is not None]
    (winner,) = [process for process in both if process is not loser]
    out, err = loser.communicate(timeout=60)
    assert loser.returncode == 75, err
    assert "another process is training this run" in out
    wait_for(lambda: steps_done(tmp_path) >= 2, winner)
    assert latest(RunFolder(the_run(tmp_path))).content["process"] == winner.pid
    winner.kill()
    winner.communicate()
    after = nursery.start(tmp_path, *TINY, *LONG)
    wait_for(lambda: latest(RunFolder(the_run(tmp_path))).content.get("process") == after.pid, after)
    wait_for(lambda: steps_done(tmp_path) >= 3, after)
    after.terminate()
    assert after.wait(timeout=60) == 75
    assert latest(RunFolder(the_run(tmp_path))).state == "stopped"


@pytest.mark.slow
def test_a_rank_that_dies_takes_the_run_down_at_once(tmp_path: Path) -> None:
    import psutil

    process = fresh(tmp_path, *LONG, "runtime.ranks=2")
    wait_for(lambda: steps_done(tmp_path) >= 1, process)
    ranks = [c for c in psutil.Process(process.pid).children() if "spawn_main" in " ".join(c.cmdline())]
    assert len(ranks) == 2
    began = time.monotonic()
    ranks[1].kill()
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 30
    assert process.returncode == 1
    assert "rank 1" in err
    assert not any(r.is_running() and r.status() != psutil.STATUS_ZOMBIE for r in ranks)


def test_missing_data_is_one_line_from_any_rank(tmp_path: Path, cli: Cli) -> None:
    for ranks in (1, 2):
        done = cli("+experiment=asam_cifar100_wrn", "track=none", f"runtime.ranks={ranks}")
        assert done.returncode == 2, done.stderr
        assert done.stderr.count("error:") == 1
        assert "Traceback" not in done.stderr
        assert "sam-repro fetch cifar100" in done.stderr
        assert "dataset.root" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_torchrun_works_too(tmp_path: Path) -> None:
    done = torchrun(tmp_path, "method.m=8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("done: test accuracy") == 1
    assert (the_run(tmp_path) / "DONE").exists()


def torchrun(folder: Path, *arguments: str, ranks: int = 2) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}", "--rdzv-backend=c10d"]
    return subprocess.run(
        [*command, "--rdzv-endpoint=localhost:0", "-m", "sam_repro", *TINY, *arguments],
        cwd=folder, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.slow
def test_torchrun_ends_on_a_finished_run_and_refuses_ranks_without_a_shard(tmp_path: Path, cli: Cli) -> None:
    assert cli(*TINY, "method.m=8").returncode == 0
    again = torchrun(tmp_path, "method.m=8")
    assert again.returncode == 0, again.stderr
    assert again.stdout.count("already done") == 1
    refused = torchrun(tmp_path, "method.m=16")
    assert refused.returncode != 0
    # torchrun ends the other ranks as soon as one has ended: which of them still says it is chance.
    assert re.search(r"^error: (rank 1: )?runtime.ranks is 2 and must divide the 1 shards", refused.stderr, re.M)


@pytest.mark.slow
def test_the_debug_configs(tmp_path: Path, cli: Cli) -> None:
    small = [a for a in TINY if not a.startswith(("budget", "track.every"))]
    overfit = cli(
        *small,
        "model.width=16",
        "debug=overfit",
        "results_dir=overfit",
        "schedule.epochs=3",
        "budget.train_images=640",
        timeout=300,
    )
    assert overfit.returncode == 0, overfit.stderr
    (run,) = (tmp_path / "overfit/runs").iterdir()
    epochs = [r for r in read(run) if r["kind"] == "epoch"]
    assert epochs[-1]["train_loss"] < 0.05 < epochs[0]["train_loss"]
    assert cli(*small, "debug=limit", "results_dir=limit").returncode == 0
    (run,) = (tmp_path / "limit/runs").iterdir()
    assert sum(r["kind"] == "step" for r in read(run)) == 10
    profile = cli(*small, "debug=profile", "results_dir=profile", "runtime.ranks=2", "loop.micro_batch=8", "method=sam")
    assert profile.returncode == 0, profile.stderr
    (run,) = (tmp_path / "profile/runs").iterdir()
    assert json.loads((run / "trace.json").read_text())["traceEvents"]
    # A pass each; beside the gradients of 4 bytes a parameter go five numbers at most.
    size = json.loads((run / "summary.json").read_text())["parameters"] * 2 * 4 / 1e6
    (said,) = re.findall(r"^a step: 2 all-reduces, ([\d.]+) MB, between 2 ranks$", profile.stdout, re.MULTILINE)
    assert float(said) == pytest.approx(size, abs=2e-3)


@pytest.mark.slow
def test_a_resume_on_other_ranks_goes_on_with_the_same_shards(tmp_path: Path, cli: Cli, nursery: Nursery) -> None:
    """One rank, two ranks, one rank: F-SAM's averages follow their shards, and the result is the undisturbed one's."""
    arguments = ["method=fsam", "method.m=4", "schedule.epochs=60", "budget.max_epochs=60"]
    assert cli(*TINY, *arguments, timeout=300).returncode == 0
    moved = tmp_path / "moved"
    for ranks, until in ((1, 40), (2, 90)):
        process = nursery.start(moved, *TINY, *arguments, f"runtime.ranks={ranks}")
        wait_for(lambda until=until: steps_done(moved) >= until, process)
        process.terminate()
        out, err = process.communicate(timeout=60)
        assert process.returncode == 75, (out, err)
    process = nursery.start(moved, *TINY, *arguments)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    straight, turned = (read(the_run(f)) for f in (tmp_path, moved))
    assert [r.get("step") for r in straight] == [r.get("step") for r in turned]
    # Chaos makes the rounding of other sums grow; in the first steps after each move it has not yet.
    for a, b in zip(straight, turned, strict=True):
        if a["kind"] == "step" and a["step"] < 60:
            assert b["loss"] == pytest.approx(a["loss"], rel=2e-2), a["step"]


@pytest.mark.slow
def test_a_forced_run_that_was_stopped_goes_on(tmp_path: Path, cli: Cli, nursery: Nursery) -> None:
    long = ["schedule.epochs=40", "budget.max_epochs=40"]
    assert cli(*TINY, *long, timeout=300).returncode == 0
    process = nursery.start(tmp_path, *TINY, *long, "force=true")
    wait_for(lambda: not (the_run(tmp_path) / "DONE").exists() and steps_done(tmp_path) >= 20, process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 75
    again = cli(*TINY, *long, "force=true", timeout=300)
    assert again.returncode == 0
    assert "resumed" in again.stdout


@pytest.mark.slow
def test_divergence_in_fp16_is_a_collapse_too(tmp_path: Path, cli: Cli) -> None:
    done = cli(*TINY, "runtime.precision=fp16", "base_optimizer.lr=1e5", "schedule.epochs=20", "budget.max_epochs=20")
    assert done.returncode == 0, done.stderr
    assert json.loads((the_run(tmp_path) / "summary.json").read_text())["status"] == "collapsed"


@pytest.mark.slow
def test_a_signal_to_the_group_of_a_streamed_run_saves_too(tmp_path: Path) -> None:
    arguments = ["dataset.stream=true", "dataset.workers=1", *LONG]
    process = subprocess.Popen(
        command(*TINY, *arguments), cwd=tmp_path, start_new_session=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(lambda: steps_done(tmp_path) >= 3, process)
    os.killpg(process.pid, signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 75, (out, err)


def test_local_ranks_stream_through_workers_of_their_own(tmp_path: Path, cli: Cli) -> None:
    found = []
    for workers in (0, 1):
        results = f"results_dir={tmp_path}/{workers}"
        done = cli(*TINY, "dataset.stream=true", f"dataset.workers={workers}", "runtime.ranks=2", "method.m=8", results)
        assert done.returncode == 0, done.stderr
        (weights,) = (tmp_path / str(workers)).glob("runs/*/weights.safetensors")
        found.append(weights.read_bytes())
    assert found[0] == found[1]


@pytest.mark.slow
def test_what_each_rank_could_not_read_is_on_record(tmp_path: Path, cli: Cli) -> None:
    for half, number in product(("train", "test"), range(16)):
        photograph(tmp_path / f"data/{half}/{number % 2}/{number:02}.png", seed=number)
    broken = [tmp_path / f"data/test/0/{name}.png" for name in ("00", "02")]  # the first two: one for each rank
    for path in broken:
        path.write_bytes(b"")
    folder = ["dataset=folder", f"dataset.root={tmp_path}/data", "dataset.stream=true", "dataset.skip_unreadable=1"]
    done = cli(*TINY, *folder, "dataset.workers=0", "runtime.ranks=2", "method.m=8")
    assert done.returncode == 0, done.stderr
    found = json.loads((the_run(tmp_path) / "summary.json").read_text())["data"]["unreadable"]
    assert [line.split()[0] for line in found] == [str(path) for path in broken]


@pytest.mark.slow
def test_a_multirun_of_two_rank_jobs_does_not_clash(tmp_path: Path) -> None:
    both = [fresh(tmp_path, f"seed={seeds}", "runtime.ranks=2", "method.m=8", "budget.max_epochs=1", "-m")
            for seeds in ("0,1", "2,3")]  # fmt: skip
    for process in both:
        out, err = process.communicate(timeout=200)
        assert process.returncode == 0, (out, err)
    assert len(list((tmp_path / "results" / "runs").glob("*/DONE"))) == 4


def test_a_multirun_goes_on_after_a_failure_and_says_so(tmp_path: Path, cli: Cli) -> None:
    done = cli("-m", *TINY, "method.rho=0.1,-1,0.2", "budget.max_epochs=1")
    assert done.returncode == 2
    assert "method.rho" in done.stderr
    assert len(list((tmp_path / "results" / "runs").glob("*/DONE"))) == 2


@pytest.mark.slow
def test_same_config_same_bits_on_a_cpu(tmp_path: Path, cli: Cli) -> None:
    for level in ("off", "seeded", "bitwise"):
        results = []
        for name in ("a", "b"):
            folder = f"{level}_{name}"
            done = cli(*TINY, "runtime.precision=bf16", f"runtime.determinism={level}", f"results_dir={folder}")
            assert done.returncode == 0, done.stderr
            (run,) = (tmp_path / folder / "runs").iterdir()
            results.append((run / "weights.safetensors").read_bytes())
        assert results[0] == results[1], level
