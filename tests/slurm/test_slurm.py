"""On a real Slurm of one node: a table's jobs as an array, preempted and requeued; the plain launcher; elastic ranks.

Slurm starts a requeued job two minutes later at the earliest; the tests let it start at once, as an operator can.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from commands import ROOT, TINY, command

from sam_repro.record.metrics import read, without_times

if TYPE_CHECKING:
    from conftest import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.slurm]

TABLE = [
    "table=asam/2", "cells=resnet20/sgd,resnet20/asam", "budget=smoke", "dataset=embedded", "model=resnet8",
    *(word for word in TINY if not word.startswith("budget.max_epochs")), "track.every=50",
]  # fmt: skip
# Long enough to be caught in the middle; asam_cifar's recipe itself has 200 epochs.
LONG = ["schedule.epochs=2000", "schedule.plain_epochs=2000", "budget.max_epochs=500"]
JOB = ["hydra.launcher.cpus_per_task=1", "hydra.launcher.timeout_min=5"]


def background(cluster: Cluster, folder: Path, *words: str) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(
        words, cwd=folder, env=cluster.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def sweep(*words: str) -> list[str]:
    return [sys.executable, str(ROOT / "scripts" / "sweep.py"), *TABLE, *words]


def runs(folder: Path) -> dict[str, Path]:
    return {run.name: run for run in (folder / "results" / "runs").glob("*")}


def lines(folder: Path) -> int:
    return min((len(read(run)) for run in runs(folder).values() if (run / "metrics.jsonl").exists()), default=0)


def incidents(run: Path) -> list[str]:
    file = run / "events.jsonl"
    return [json.loads(line)["name"] for line in file.read_text().splitlines()] if file.exists() else []


def jobs_of(cluster: Cluster, before: set[str]) -> list[str]:
    return sorted(set(cluster.jobs()) - before)


def preempt_and_release(cluster: Cluster, job: str, folder: Path) -> None:
    """USR2, as Slurm sends it before a preemption or a time limit; then wait for the requeued job and let it start."""
    assert cluster("scancel", "--signal=USR2", job).returncode == 0
    cluster.wait(lambda: cluster.jobs().get(job) == "PENDING", 60, f"{job} to be requeued")
    assert any(incidents(run) == ["interrupted"] for run in runs(folder).values()), "it has not saved"
    assert "Restarts=1" in cluster("scontrol", "show", "job", job).stdout
    time.sleep(3)  # Slurm revokes a killed job's credentials by the second
    assert cluster("scontrol", "update", f"JobId={job}", "StartTime=now").returncode == 0


def assert_equal_results(one: Path, other: Path) -> None:
    assert runs(one)
    assert runs(one).keys() == runs(other).keys()
    for name, run in runs(one).items():
        twin = runs(other)[name]
        assert (run / "weights.safetensors").read_bytes() == (twin / "weights.safetensors").read_bytes()
        assert [without_times(r) for r in read(run)] == [without_times(r) for r in read(twin)]


def test_a_table_as_an_array_with_one_job_preempted_equals_the_local_sweep(cluster: Cluster, tmp_path: Path) -> None:
    before, far, here = set(cluster.jobs()), tmp_path / "far", tmp_path / "here"
    process = background(cluster, far, *sweep(*LONG, *JOB, "launcher=slurm"))
    cluster.wait(lambda: len(runs(far)) == 2 and lines(far) >= 20, 90, "both runs to train")
    (first, _) = jobs_of(cluster, before)
    assert first.endswith("_0")  # one array
    preempt_and_release(cluster, first, far)
    output, _ = process.communicate(timeout=180)
    assert process.returncode == 0, output + cluster.report()
    assert "2 of 2 runs trained" in output
    assert sorted(incidents(run) for run in runs(far).values()) == [[], ["interrupted", "resumed"]]
    local = background(cluster, here, *sweep(*LONG, "slots=2"))
    output, _ = local.communicate(timeout=180)
    assert local.returncode == 0, output
    assert_equal_results(far, here)


def test_the_plain_launcher_saves_requeues_and_resumes(cluster: Cluster, tmp_path: Path) -> None:
    before, far, here = set(cluster.jobs()), tmp_path / "far", tmp_path / "here"
    words = [*TINY, "budget.max_epochs=250", "schedule.epochs=250", "track.every=50", "method=asam"]
    launcher = ["-m", "hydra/launcher=submitit_slurm", *JOB, "hydra.launcher.max_num_timeout=5"]
    process = background(cluster, far, *command(*launcher, *words, "seed=0,1"))
    cluster.wait(lambda: len(runs(far)) == 2 and lines(far) >= 20, 90, "both runs to train")
    preempt_and_release(cluster, jobs_of(cluster, before)[1], far)
    output, _ = process.communicate(timeout=180)
    assert process.returncode == 0, output + cluster.report()
    assert sorted(incidents(run) for run in runs(far).values()) == [[], ["interrupted", "resumed"]]
    local = background(cluster, here, *command("-m", *words, "seed=0,1"))
    output, _ = local.communicate(timeout=180)
    assert local.returncode == 0, output
    assert_equal_results(far, here)


def test_a_cancelled_job_does_not_come_back(cluster: Cluster, tmp_path: Path) -> None:
    before = set(cluster.jobs())
    words = [*LONG, *JOB, "cells=resnet20/asam", "budget.max_epochs=2000", "launcher=slurm"]
    process = background(cluster, tmp_path, *sweep(*words))
    cluster.wait(lambda: lines(tmp_path) >= 20, 90, "the run to train")
    (job,) = jobs_of(cluster, before)
    assert cluster("scancel", job).returncode == 0
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1, output
    assert f"job {job} left Slurm without a result" in output
    assert cluster.jobs()[job] == "CANCELLED"
    (run,) = runs(tmp_path).values()
    assert incidents(run) == ["interrupted"]  # saved all the same


def test_what_slurm_refuses_is_one_line_and_leaves_nothing(cluster: Cluster, tmp_path: Path) -> None:
    words = ["cells=resnet20/sgd", "launcher=slurm", "hydra.launcher.partition=nowhere"]
    process = background(cluster, tmp_path, *sweep(*words))
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 2, output + cluster.report()
    assert [line for line in output.splitlines() if "error: " in line] == output.splitlines()[-1:]
    assert "invalid partition" in output
    assert not (tmp_path / "results" / "slurm").exists()


@pytest.mark.parametrize("plain", [False, True])
def test_a_mistake_in_a_job_reaches_the_user(cluster: Cluster, tmp_path: Path, plain: bool) -> None:
    words = ["dataset=cifar10", f"dataset.root={tmp_path}/nothing", *JOB]
    if plain:
        process = background(cluster, tmp_path, *command("-m", "hydra/launcher=submitit_slurm", *words, "seed=0"))
    else:
        process = background(cluster, tmp_path, *sweep(*words, "cells=resnet20/sgd", "launcher=slurm"))
    output, _ = process.communicate(timeout=120)
    assert process.returncode == (2 if plain else 1), output + cluster.report()
    assert f"{tmp_path}/nothing" in output
    assert sum("error: " in line and "dataset.root" in line for line in output.splitlines()) == 1
    assert "Traceback" not in output


def test_two_elastic_agents_of_one_job_are_the_two_ranks_of_a_local_run(cluster: Cluster, tmp_path: Path) -> None:
    """docs/cluster.md's command for several nodes, its two agents on one."""
    far, here = tmp_path / "far", tmp_path / "here"
    for folder in (far, here):
        folder.mkdir()
    words = [*TINY, "method=sam", "method.m=8"]
    agent = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d",
             "--rdzv-id=run", "--rdzv-endpoint=127.0.0.1:29517", "--max-restarts=0"]  # fmt: skip
    done = cluster("srun", "--ntasks=2", "--cpus-per-task=1", *agent, "-m", "sam_repro", *words, timeout=150, cwd=far)
    assert done.returncode == 0, done.stdout + done.stderr + cluster.report()
    local = subprocess.run(
        command(*words, "runtime.ranks=2"), cwd=here, env=cluster.env, capture_output=True, text=True, timeout=120
    )
    assert local.returncode == 0, local.stderr
    assert_equal_results(far, here)
