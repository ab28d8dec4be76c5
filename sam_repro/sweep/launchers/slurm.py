"""`launcher=slurm`: a table's missing runs as one Slurm array, a job a run, through submitit.

Inside a job runs the same scheduler as on a workstation, with one task and one slot: the lease, the log, the failure
and the end are the same. A job that is preempted or reaches its time limit (USR2, USR1 or TERM) lets its run save, goes
back into the queue and goes on later.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import dataclass, fields
from io import StringIO
from pathlib import Path
from typing import Any

import yaml

import sam_repro
from sam_repro.errors import INTERRUPTED, UserError, nearest
from sam_repro.machine import cores, granted_gpus
from sam_repro.sweep.live import View
from sam_repro.sweep.options import Options
from sam_repro.sweep.requeue import requeue
from sam_repro.sweep.scheduler import Scheduler
from sam_repro.sweep.slots import Slot
from sam_repro.sweep.work import Task

HERE = False
_LOOK = 10.0  # seconds between two looks at the queue
_ENDED = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"}
# From 22.05 on srun takes no task's cores from its job, and all ranks would share one.
CORES = '[ -z "$SLURM_CPUS_PER_TASK" ] || export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"'
_PATIENCE = 60.0  # seconds for Slurm's commands, which hang on a sick cluster


@dataclass
class Job:
    """What a job of the array does with its task. submitit pickles it, and calls `checkpoint` to requeue."""

    stale: float
    ranks: int
    gpus: bool  # asked for, so that to train without one would be a mistake

    def __call__(self, task: Task) -> None:
        with View(1, 0) as view:
            # After a crash of its node it may find its own lease of before, and waits until that is stale.
            code = Scheduler([task], [self.slot()], self.stale, view, patience=1.5 * self.stale).run()
        if code == INTERRUPTED:
            requeue()
        if code:
            raise SystemExit(code)

    def slot(self) -> Slot:
        threads = max(1, cores() // self.ranks)
        return Slot(f"job {os.environ.get('SLURM_JOB_ID')}", threads, gpu=self.gpus or granted_gpus())

    def checkpoint(self, task: Task) -> Any:
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, task)


def check(options: Options) -> None:
    if options.gpus is not None or options.slots > 1 or options.per_gpu > 1:
        raise UserError("launcher=slurm: leave gpus and slots out, Slurm gives hydra.launcher.gpus_per_node=1")
    launcher_parameters(options.submit)


def launch(tasks: Sequence[Task], options: Options, view: View) -> int:
    """Send the tasks off and watch them until all have ended."""
    import submitit

    parameters = launcher_parameters(options.submit)
    checkout = str(Path(sam_repro.__file__).parents[1])  # it need not be installed; sbatch hands on the environment
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [checkout, os.environ.get("PYTHONPATH")]))
    timeouts = parameters.pop("slurm_max_num_timeout")
    with submitting(options.results / "slurm") as folder:
        try:
            executor = submitit.AutoExecutor(folder / "%j", "slurm", slurm_max_num_timeout=timeouts)
            executor.update_parameters(**parameters)
            jobs = executor.map_array(Job(options.stale, options.ranks, asks_for_gpus(options.submit)), tasks)
        except (RuntimeError, submitit.core.utils.FailedJobError) as error:
            raise UserError(f"launcher=slurm: {' '.join(str(error).split())}") from error
    array = jobs[0].job_id.split("_")[0]
    view.say(f"{len(jobs)} runs are jobs of Slurm array {array}; Ctrl-C ends the watching, `scancel {array}` the jobs")
    return watch({job.job_id: task for job, task in zip(jobs, tasks, strict=True)}, options.stale, view)


@contextmanager
def submitting(folder: Path) -> Iterator[Path]:
    """A folder of this submission's own, for other sweeps may send off theirs. Of one that Slurm refuses nothing stays,
    and it is told once: submitit repeats Slurm's words to the terminal while it collects them."""
    mine, said = Path(tempfile.mkdtemp(dir=private(folder), prefix=time.strftime("%Y%m%d-%H%M%S-"))), StringIO()
    try:
        with redirect_stderr(said):
            yield mine
    except UserError:
        shutil.rmtree(mine)
        with suppress(OSError):  # other submissions lie in there
            folder.rmdir()
        raise
    print(said.getvalue(), end="", file=sys.stderr)  # what Slurm has to say of jobs that it takes


def asks_for_gpus(given: dict[str, str]) -> bool:
    counts = (given.get(f"gpus_per_{of}", "0") for of in ("node", "task"))
    return any(count not in ("0", "null") for count in counts) or "gpu" in given.get("gres", "")


def private(folder: Path) -> Path:
    """Jobs read pickles from there, which are code: nobody else may put one in."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise UserError(f"{folder} is a link or another user's, and jobs run what lies in it: take another results_dir")
    folder.chmod(0o700)
    return folder


def launcher_parameters(given: dict[str, str]) -> dict[str, Any]:
    """hydra.launcher.* as submitit wants it: the Hydra plugin's names, its defaults where nothing is given."""
    from hydra_plugins.hydra_submitit_launcher.config import BaseQueueConf, SlurmQueueConf  # type: ignore[import-untyped]

    ours = {"submitit_folder", "_target_"}
    known = {field.name for field in fields(SlurmQueueConf)} - ours
    for key in given:
        if key not in known:
            close = nearest(f"hydra.launcher.{key}", [f"hydra.launcher.{one}" for one in known])
            raise UserError(f"hydra.launcher.{key}: there is no such key.{close}")
    # A run goes on where it was, so that reaching the time limit is no reason to give it up.
    values: dict[str, Any] = {"name": "sam_repro", "max_num_timeout": 1000}
    try:
        values |= {key: yaml.safe_load(text) for key, text in given.items()}
    except yaml.YAMLError as error:
        raise UserError(f"hydra.launcher: {error}") from error
    if values.get("tasks_per_node", 1) != 1 or values.get("nodes", 1) != 1:
        raise UserError("hydra.launcher: a run of a sweep is one task on one node; runtime.ranks=8 makes its processes")
    values["setup"] = [*(values.get("setup") or []), CORES]
    base = {field.name for field in fields(BaseQueueConf)}
    return {key if key in base else f"slurm_{key}": value for key, value in values.items()}


def watch(jobs: dict[str, Task], stale: float, view: View) -> int:
    """Show how each run ends. A scheduler without slots sees that in their folders; Slurm knows only who has left."""
    watcher = Scheduler(list(jobs.values()), [], stale, view)
    array = next(iter(jobs)).split("_")[0]
    looked, left_before = time.monotonic(), set[str]()

    def tick() -> None:
        nonlocal looked, left_before
        if time.monotonic() - looked < _LOOK:
            return
        looked = time.monotonic()
        active = in_queue(array)
        left = set() if active is None else set(jobs) - active
        for job in left & left_before:  # twice, since its last files may come late
            watcher.give_up(jobs[job], f"job {job} left Slurm without a result; scontrol show job {job} may say why")
        left_before = left

    return watcher.run(tick)


def in_queue(array: str) -> set[str] | None:
    """The jobs of an array that wait or run; None if Slurm does not say."""
    # Asked for by number, jobs that have ended are listed too, for some minutes.
    command = ["squeue", "--noheader", "--array", "--format=%i %T", f"--jobs={array}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return set() if "Invalid job id" in done.stderr else None
    states = dict(line.split() for line in done.stdout.splitlines())
    return {job for job, state in states.items() if state not in _ENDED}
