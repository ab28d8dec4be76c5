"""Inside a job of submitit: what happens to a run that was asked to stop and has saved."""

from __future__ import annotations

import os
import signal
import subprocess

_PATIENCE = 30.0  # seconds for scontrol


class RunFailed(Exception):
    """A run in a remote job ended with this exit code; the process that launched it learns of it by this exception."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def in_job() -> bool:
    """Whether this process is a job of submitit, as the Hydra launcher and `launcher=slurm` start them."""
    return "SUBMITIT_EXECUTOR" in os.environ


def requeue() -> None:
    """Put this job back into the queue and end; it comes back with the same arguments and goes on where the run was.

    That is what submitit does at its signal, USR2. Training listens to that signal itself, so that it can save first;
    now submitit has its handler back and is told. A job that Slurm is ending already (cancelled, or requeued by Slurm
    itself) is left alone: then this returns.
    """
    if not _ending():
        name = os.environ.get("SUBMITIT_PREEMPT_SIGNAL", "USR2")
        signal.raise_signal(signal.Signals[f"SIG{name}"])


def _ending() -> bool:
    """`scancel` sends the same TERM as a preemption does, but the job is no longer running then."""
    job = os.environ.get("SLURM_JOB_ID")
    if job is None:
        return False
    try:
        command = ["scontrol", "--oneliner", "show", "job", job]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "JobState=" in done.stdout and "JobState=RUNNING" not in done.stdout
