"""Leases: whatever happens, one owner at a time. The oracle is a kernel lock, which dies with its holder."""

from __future__ import annotations

import errno
import fcntl
import json
import multiprocessing
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sam_repro.record.folder import RunFolder
from sam_repro.runs import lease as leases
from sam_repro.runs.lease import Lease, Watch, latest
from sam_repro.sweep.queue import queue, unqueue
from sam_repro.tables.plan import Run
from sam_repro.tables.status import state_of

RUN = Run("abc", 0, ())
SPAWN = multiprocessing.get_context("fork")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "runs" / RUN.id)


def state(folder: RunFolder) -> str:
    return state_of(RUN, None, folder.path.parents[1]).state


def test_one_owner_then_the_next(folder: RunFolder) -> None:
    mine, other = Watch(60), Watch(60)
    lease = mine.acquire(folder)
    assert lease is not None
    assert other.acquire(folder) is None
    assert mine.acquire(folder) is None
    assert lease.beat()
    lease.end(leases.STOPPED)
    following = other.acquire(folder)
    assert following is not None
    assert following.number == lease.number + 1
    assert not lease.beat()


def test_status_reads_the_leases(folder: RunFolder) -> None:
    queue(folder)
    assert state(folder) == "queued"
    lease = Watch(60).acquire(folder)
    assert lease is not None
    unqueue(folder)
    assert state(folder) == "running"
    lease.end(leases.FAILED, "it broke")
    found = state_of(RUN, None, folder.path.parents[1])
    assert (found.state, found.note) == ("failed", "it broke")
    queue(folder)
    assert state(folder) == "queued"
    unqueue(folder)
    assert state(folder) == "failed"


def test_a_queue_mark_leaves_nothing_behind(folder: RunFolder) -> None:
    queue(folder)
    queue(folder)
    unqueue(folder)
    assert not folder.path.exists()
    unqueue(folder)


def elsewhere(folder: RunFolder, text: str | None = None) -> Lease:
    """A lease made on another machine."""
    folder.path.mkdir(parents=True, exist_ok=True)
    owner = {"state": "running", "host": "far", "process": os.getpid(), "born": 1, "place": "far"}
    lease = Lease(folder, 1, owner)
    lease.path.write_text(json.dumps(owner) if text is None else text)
    return lease


@pytest.mark.parametrize("text", [None, "", '{"state": "runn'])
def test_a_lease_of_elsewhere_is_dead_when_its_heart_stops_by_the_watchers_own_clock(
    folder: RunFolder, text: str | None
) -> None:
    lease = elsewhere(folder, text)
    os.utime(lease.path, (1e9, 1e9))  # its machine's clock is years behind: nobody minds
    watch = Watch(0.3)
    assert watch.acquire(folder) is None
    for second in range(4):
        time.sleep(0.15)
        os.utime(lease.path, (1e9, 1e9 + second + 1))
        assert watch.acquire(folder) is None
        assert watch.acquire(folder) is None
    time.sleep(0.4)
    taken = watch.acquire(folder)
    assert taken is not None
    assert taken.number == 2
    assert not lease.beat()  # if it wakes up it learns that it has lost


def test_a_dead_process_of_this_machine_is_known_at_once_and_its_number_may_be_used_again(folder: RunFolder) -> None:
    watch = Watch(3600)
    lease = Watch(3600).acquire(folder)
    assert lease is not None
    assert lease.content["host"] == socket.gethostname()
    assert watch.acquire(folder) is None
    lease.path.write_text(json.dumps(lease.content | {"born": lease.content["born"] - 1}))
    assert watch.acquire(folder) is not None


def _contend(folder: RunFolder, oracle: Path, seed: int, overlaps: Path, ends: float) -> None:
    draw, watch = random.Random(seed), Watch(3600)
    with open(oracle, "r+") as lock:
        while time.monotonic() < ends:
            lease = watch.acquire(folder)
            if lease is None:
                continue
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # A killed holder's lock may outlive it by a moment: only a living one is an overlap.
                holder = oracle.read_text()
                if leases._born(holder) is not None:
                    overlaps.write_text(f"lease {lease.number} of {os.getpid()}, while {holder} held the lock")
                fcntl.flock(lock, fcntl.LOCK_EX)
            lock.seek(0)
            lock.write(str(os.getpid()))
            lock.truncate()
            lock.flush()
            time.sleep(draw.random() * 0.002)
            if draw.random() < 0.05:
                os.kill(os.getpid(), signal.SIGKILL)  # dead, its lease unended
            fcntl.flock(lock, fcntl.LOCK_UN)
            lease.end(leases.STOPPED)


def test_contenders_that_die_never_hold_it_twice(folder: RunFolder, tmp_path: Path) -> None:
    oracle, overlaps = tmp_path / "oracle", tmp_path / "overlaps"
    oracle.touch()
    ends, seed, workers, deaths = time.monotonic() + 2.5, 0, [], 0
    while time.monotonic() < ends:
        deaths += sum(worker.exitcode == -signal.SIGKILL for worker in workers)
        workers = [worker for worker in workers if worker.is_alive()]
        for _ in range(6 - len(workers)):
            seed += 1
            workers.append(SPAWN.Process(target=_contend, args=(folder, oracle, seed, overlaps, ends)))
            workers[-1].start()
        time.sleep(0.01)
    for worker in workers:
        worker.join(20)
    last = latest(folder)
    assert last is not None
    assert last.number > 20
    assert deaths > 0
    assert not overlaps.exists(), overlaps.read_text()
    assert sorted(int(p.name.split(".")[1]) for p in folder.path.glob("lease.*.json")) == list(
        range(1, last.number + 1)
    )


def test_what_a_scheduler_took_is_for_its_own_process_alone(folder: RunFolder) -> None:
    watch = Watch(60)
    started = watch.acquire(folder, leases.STARTING)
    assert started is not None
    assert state(folder) == "running"
    assert watch.acquire(folder) is None
    assert watch.acquire(folder, handed=started.number + 1) is None
    child = watch.acquire(folder, handed=started.number)
    assert child is not None
    assert (child.number, child.state) == (started.number + 1, leases.RUNNING)
    assert watch.acquire(folder, handed=started.number) is None


def test_who_loses_its_lease_is_told_in_its_heartbeat(folder: RunFolder) -> None:
    lease, told = Watch().acquire(folder), threading.Event()
    assert lease is not None
    with leases.kept(lease, told.set, every=0.05):
        before = lease.path.stat().st_mtime_ns
        assert not told.wait(0.3)
        assert lease.path.stat().st_mtime_ns > before
        folder.lease(lease.number + 1).touch()
        assert told.wait(5)


def test_a_heart_outlives_a_file_system_that_is_away(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    lease, told, asked, stat = Watch().acquire(folder), threading.Event(), threading.Event(), os.stat
    assert lease is not None
    following = folder.lease(lease.number + 1)

    def away(path: object, **how: bool) -> os.stat_result:
        if Path(str(path)) != following:
            return stat(path, **how)  # type: ignore[arg-type]
        asked.set()
        raise OSError(errno.ESTALE, "stale file handle")

    with leases.kept(lease, told.set, every=0.05):
        monkeypatch.setattr(os, "stat", away)
        assert asked.wait(5)
        monkeypatch.undo()
        following.touch()
        assert told.wait(5)


def test_a_full_disk_leaves_no_empty_lease(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(lease: object) -> str:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(leases.json, "dumps", full)
    with pytest.raises(OSError, match="no space left"):
        Watch().acquire(folder)
    monkeypatch.undo()
    lease = Watch().acquire(folder)
    assert lease is not None
    assert lease.number == 1


HEART = """
import os, sys, time
while True:
    os.utime(sys.argv[1])
    time.sleep(0.2)
"""


def test_a_start_waits_for_a_sign_of_life_from_another_host(folder: RunFolder) -> None:
    lease, said = elsewhere(folder), list[str]()
    heart = subprocess.Popen([sys.executable, "-c", HEART, str(lease.path)])
    try:
        assert leases.to_train(folder, lambda: False, said.append) is None
    finally:
        heart.kill()
        heart.wait()
    assert len(said) == 1
    assert "trained on far" in said[0]
    ends = time.monotonic() + 2
    assert leases.to_train(folder, lambda: time.monotonic() > ends, said.append) is None, "it may only sleep"
    assert Watch(0.2).acquire(folder) is None
