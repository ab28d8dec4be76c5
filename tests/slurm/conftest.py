"""A real Slurm of one node, from Debian's packages: started in its own folder and on its own ports, stopped at the end.

`apt-get install slurmctld slurmd slurm-client munge` gives the programs. Nothing of the system's own Slurm or munge is
touched. No accounting database, so that states come from scontrol and squeue only.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue", "munged")
_CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmdPort={slurmd_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
GresTypes=gpu
ReturnToService=2
KillWait=20
SchedulerParameters=sched_interval=5,batch_sched_delay=0
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} Gres=gpu:2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> list[str]:
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


@dataclass
class Cluster:
    folder: Path
    host: str
    env: Mapping[str, str]

    def __call__(self, *command: str, timeout: float = 60, **options: object) -> subprocess.CompletedProcess[str]:
        """A Slurm command. With a time-out: srun hangs on a drained node."""
        return subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=timeout, **options)  # type: ignore[call-overload, no-any-return]

    def jobs(self) -> dict[str, str]:
        """The state of every job that Slurm remembers, array elements one by one."""
        lines = self("squeue", "--noheader", "--array", "--states=all", "--format=%i %T").stdout.splitlines()
        return dict(line.split() for line in lines)

    def wait(self, condition: Callable[[], object], seconds: float, what: str) -> None:
        ends = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < ends, f"waited {seconds} s for {what}\n{self.report()}"
            time.sleep(0.25)

    def empty(self) -> None:
        """End all jobs, and the processes of their steps, which outlive the daemons."""
        waiting = [job for job, state in self.jobs().items() if state in ("PENDING", "RUNNING")]
        if waiting:
            self("scancel", "--quiet", *waiting)
        self.wait(lambda: not list((self.folder / "spool").glob(f"{self.host}_*.*")), 60, "the steps to end")

    def report(self) -> str:
        """For a test that fails: what Slurm says of itself."""
        logs = [f"{name}:\n" + (self.folder / f"{name}.log").read_text()[-3000:] for name in ("slurmctld", "slurmd")]
        return "\n".join([self("squeue", "--states=all").stdout, self("scontrol", "show", "node").stdout, *logs])


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if missing():
        pytest.skip(f"no {', '.join(missing())}: apt-get install slurmctld slurmd slurm-client munge")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm", ignore_cleanup_errors=True)))
        yield start(folder, stack)


def start(folder: Path, stack: ExitStack) -> Cluster:
    """Munge, controller and node daemon in the foreground, as processes of ours that `stack` ends."""
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o600)
    ports = _free_ports(2)
    host = socket.gethostname().split(".")[0]
    conf = _CONF.format(folder=folder, host=host, cpus=os.cpu_count(), ctld_port=ports[0], slurmd_port=ports[1])
    (folder / "slurm.conf").write_text(conf)
    (folder / "gres.conf").write_text(f"NodeName={host} Name=gpu File=/dev/tty[1-2]\n")
    env = {k: v for k, v in os.environ.items() if not k.startswith("SLURM")}
    env |= {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": env["PATH"] + ":/usr/sbin:/sbin"}
    cluster = Cluster(folder, host, env)
    munge = ["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", f"--key-file={folder}/munge.key",
             f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log",
             f"--seed-file={folder}/munged.seed"]  # fmt: skip
    _daemon(stack, munge, cluster)
    cluster.wait((folder / "munge.socket").exists, 20, "munged")
    _daemon(stack, ["slurmctld", "-D"], cluster)
    _daemon(stack, ["slurmd", "-D", "-N", host], cluster)
    cluster.wait(lambda: "idle" in cluster("sinfo", "--noheader", "--format=%T").stdout, 60, "an idle node")
    stack.callback(cluster.empty)
    return cluster


def _daemon(stack: ExitStack, command: list[str], cluster: Cluster) -> None:
    with open(cluster.folder / f"{command[0]}.out", "w") as log:
        process = subprocess.Popen(
            command, env=cluster.env, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        )

    def stop() -> None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    stack.callback(stop)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
