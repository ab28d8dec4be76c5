"""Claims: whatever happens, one owner at a time. The oracle is a kernel lock, which dies with its holder."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import random
import signal
import socket
import time
from pathlib import Path

import pytest

from sam_repro.sweep import claims
from sam_repro.sweep.claims import Claim, Watch, latest
from sam_repro.tables.plan import Run
from sam_repro.tables.status import state_of

RUN = Run("abc", 0, ())
SPAWN = multiprocessing.get_context("fork")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs" / RUN.id


def state(folder: Path) -> str:
    return state_of(RUN, None, folder.parents[1]).state


def test_one_owner_then_the_next(folder: Path) -> None:
    mine, other = Watch(60), Watch(60)
    claim = mine.acquire(folder)
    assert claim is not None
    assert other.acquire(folder) is None
    assert mine.acquire(folder) is None
    assert claim.beat()
    claim.end(claims.STOPPED)
    following = other.acquire(folder)
    assert following is not None
    assert following.number == claim.number + 1
    assert not claim.beat()


def test_status_reads_the_claims(folder: Path) -> None:
    claims.queue(folder)
    assert state(folder) == "queued"
    claim = Watch(60).acquire(folder)
    assert claim is not None
    claims.unqueue(folder)
    assert state(folder) == "running"
    claim.end(claims.FAILED, "it broke")
    found = state_of(RUN, None, folder.parents[1])
    assert (found.state, found.note) == ("failed", "it broke")
    claims.queue(folder)
    assert state(folder) == "queued"
    claims.unqueue(folder)
    assert state(folder) == "failed"


def test_a_queue_mark_leaves_nothing_behind(folder: Path) -> None:
    claims.queue(folder)
    claims.queue(folder)
    claims.unqueue(folder)
    assert not folder.exists()
    claims.unqueue(folder)


def elsewhere(folder: Path, text: str | None = None) -> Claim:
    """A claim made on another machine."""
    folder.mkdir(parents=True, exist_ok=True)
    owner = {"state": "running", "host": "far", "process": os.getpid(), "born": 1, "place": "far"}
    claim = Claim(folder, 1, owner)
    claim.path.write_text(json.dumps(owner) if text is None else text)
    return claim


@pytest.mark.parametrize("text", [None, "", '{"state": "runn'])
def test_a_claim_of_elsewhere_is_dead_when_its_heart_stops_by_the_watchers_own_clock(
    folder: Path, text: str | None
) -> None:
    claim = elsewhere(folder, text)
    os.utime(claim.path, (1e9, 1e9))  # its machine's clock is years behind: nobody minds
    watch = Watch(0.3)
    assert watch.acquire(folder) is None
    for second in range(4):
        time.sleep(0.15)
        os.utime(claim.path, (1e9, 1e9 + second + 1))
        assert watch.acquire(folder) is None
        assert watch.acquire(folder) is None
    time.sleep(0.4)
    taken = watch.acquire(folder)
    assert taken is not None
    assert taken.number == 2
    assert not claim.beat()  # if it wakes up it learns that it has lost


def test_a_dead_process_of_this_machine_is_known_at_once_and_its_number_may_be_used_again(folder: Path) -> None:
    watch = Watch(3600)
    claim = Watch(3600).acquire(folder)
    assert claim is not None
    assert claim.content["host"] == socket.gethostname()
    assert watch.acquire(folder) is None
    claim.path.write_text(json.dumps(claim.content | {"born": claim.content["born"] - 1}))
    assert watch.acquire(folder) is not None


def _contend(folder: Path, oracle: Path, seed: int, overlaps: Path, ends: float) -> None:
    draw, watch = random.Random(seed), Watch(3600)
    with open(oracle, "r+") as lock:
        while time.monotonic() < ends:
            claim = watch.acquire(folder)
            if claim is None:
                continue
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # A killed holder's lock may outlive it by a moment: only a living one is an overlap.
                holder = oracle.read_text()
                if claims._born(holder) is not None:
                    overlaps.write_text(f"claim {claim.number} of {os.getpid()}, while {holder} held the lock")
                fcntl.flock(lock, fcntl.LOCK_EX)
            lock.seek(0)
            lock.write(str(os.getpid()))
            lock.truncate()
            lock.flush()
            time.sleep(draw.random() * 0.002)
            if draw.random() < 0.05:
                os.kill(os.getpid(), signal.SIGKILL)  # dead, its claim unended
            fcntl.flock(lock, fcntl.LOCK_UN)
            claim.end(claims.STOPPED)


def test_contenders_that_die_never_hold_it_twice(folder: Path, tmp_path: Path) -> None:
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
    assert sorted(int(p.name.split(".")[1]) for p in folder.glob("claim.*.json")) == list(range(1, last.number + 1))
