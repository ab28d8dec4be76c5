"""What a process may use of a machine: its share of the cores, and GPUs that somebody granted."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
from pathlib import Path

import pytest
from commands import TINY, Cli, command, wait_for

from sam_repro import machine
from sam_repro.data.workers import worker_count
from sam_repro.errors import USER_ERROR, UserError
from sam_repro.sweep import child
from sam_repro.sweep.evaluations import command as evaluation
from sam_repro.sweep.launchers.slurm import CORES, Job, asks_for_gpus, launcher_parameters
from sam_repro.sweep.slots import slots
from sam_repro.sweep.work import Task

QUOTA = machine.quota


@pytest.fixture(autouse=True)
def nobody_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (machine.SHARE, "SLURM_CPUS_PER_TASK", "CUDA_VISIBLE_DEVICES", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    monkeypatch.setattr(machine, "quota", lambda: 1000)


def group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("_DOT_", ".")).write_text(text)


@pytest.mark.parametrize(
    ("own", "above", "cores"),
    [("max 100000", "max 100000", None), ("400000 100000", "max 100000", 4), ("max 100000", "250000 100000", 3),
     ("800000 100000", "150000 100000", 2), ("50000 100000", "max 100000", 1)],
)  # fmt: skip
def test_a_containers_quota_counts(tmp_path: Path, own: str, above: str, cores: int | None) -> None:
    told = tmp_path / "self"
    told.write_text("0::/pods/mine\n")
    group(tmp_path / "sys/pods", cpu_DOT_max=above + "\n")
    group(tmp_path / "sys/pods/mine", cpu_DOT_max=own + "\n")
    found = QUOTA(told, tmp_path / "sys")
    assert found == cores if cores else found > 10_000


def test_a_quota_of_the_first_version_and_of_a_path_outside_of_the_container(tmp_path: Path) -> None:
    (tmp_path / "self").write_text("5:memory:/other\n4:cpu,cpuacct:/docker/4f\n0::/\n")
    group(tmp_path / "sys/cpu", cpu_DOT_cfs_quota_us="600000\n", cpu_DOT_cfs_period_us="100000\n")
    assert QUOTA(tmp_path / "self", tmp_path / "sys") == 6
    assert QUOTA(tmp_path / "none", tmp_path / "sys") > 10_000


def test_the_least_of_affinity_quota_and_the_jobs_share_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.cores() == 64
    monkeypatch.setattr(machine, "quota", lambda: 16)
    assert machine.cores() == 16
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "8")
    assert machine.cores() == 8
    monkeypatch.setenv(machine.SHARE, "4")
    assert machine.cores() == 4


def task(tmp_path: Path, *overrides: str) -> Task:
    return Task("0123456789ab", "row/column", 0, tuple(overrides), tmp_path)


def test_sixteen_runs_on_eight_gpus_decode_with_the_cores_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = slots("0-7", per_gpu=2, cpu_slots=1, ranks=1)
    workers = 0
    for place in places:
        with monkeypatch.context() as patch:
            for name, value in child.environment(place).items():
                patch.setenv(name, value)
            workers += worker_count(None)
    assert workers == 64
    (place,) = slots("0-3", per_gpu=1, cpu_slots=1, ranks=4)
    monkeypatch.setenv(machine.SHARE, child.environment(place)[machine.SHARE])
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert worker_count(None) == 16


def test_who_grants_a_gpu_asks_for_it(tmp_path: Path) -> None:
    gpu, cpu = slots("0", 1, 1, 1)[0], slots(None, 1, 1, 1)[0]
    assert "runtime.device=cuda" in child.command(task(tmp_path), gpu)
    assert "runtime.device=cuda" in evaluation(task(tmp_path), ["cifar10"], gpu)
    for words in (child.command(task(tmp_path), cpu), child.command(task(tmp_path, "runtime.device=cpu"), gpu)):
        assert "runtime.device=cuda" not in words


def test_gpus_that_are_not_there_are_refused_before_a_run_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sam_repro.sweep.slots.gpus", lambda: 4)
    assert len(slots("0-3", 1, 1, 1)) == 4
    with pytest.raises(UserError, match=r"gpus=0-7: this machine has 4 GPUs"):
        slots("0-7", 1, 1, 1)


def test_a_job_of_slurm_that_asked_for_gpus_trains_on_them_with_its_own_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asks_for_gpus({"gpus_per_node": "1"})
    assert asks_for_gpus({"gres": "gpu:a100:2"})
    assert not asks_for_gpus({"gpus_per_node": "0", "partition": "gpu"})
    parameters = launcher_parameters({"cpus_per_task": "8", "setup": "[module load cuda]"})
    assert parameters["slurm_setup"] == ["module load cuda", CORES]
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "8")
    place = pickle.loads(pickle.dumps(Job(300, 2, True))).slot()
    assert (place.gpu, place.threads) == (True, 4)
    assert not Job(300, 2, False).slot().gpu
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "1")
    assert Job(300, 2, False).slot().gpu


@pytest.mark.slow
def test_a_second_task_of_a_bare_srun_is_told_what_to_do(cli: Cli, tmp_path: Path) -> None:
    first = subprocess.Popen(command(*TINY), cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: any(tmp_path.glob("results/runs/*/metrics.jsonl")), first)
        first.send_signal(signal.SIGSTOP)
        second = cli(*TINY, env={"SLURM_STEP_NUM_TASKS": "8", "SLURM_PROCID": "3"})
        assert second.returncode == USER_ERROR
        assert second.stderr.count("\n") == 1
        assert "runtime.ranks=8" in second.stderr
    finally:
        first.kill()
        first.communicate()


@pytest.mark.parametrize(
    ("text", "slow"),
    [
        ("flags\t\t: fpu avx512f avx512_bf16\n", False),
        ("flags : fpu amx_bf16\n", False),
        ("flags\t: fpu avx512f\n", True),
        ("Features\t: fp asimd bf16\n", False),
        ("Features\t: fp asimd\n", True),
        ("vendor_id\t: none\n", False),
    ],
)
def test_a_processor_says_whether_it_computes_bf16(tmp_path: Path, text: str, slow: bool) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert machine.bf16_in_software(tmp_path / "cpuinfo") is slow
    assert not machine.bf16_in_software(tmp_path / "none")
