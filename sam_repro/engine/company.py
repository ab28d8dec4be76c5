"""How ranks end together: one has a mistake, dies or hangs, and none waits for it in vain.

Beside the group that adds up gradients the ranks share the store through which they met. A thread of each counts its
heartbeat there and watches its neighbour's. Whoever ends alone leaves the exit code first; the others find it within a
second or two and end with it, wherever they are: a process that waits in a collective can't be woken otherwise, and to
destroy the group is a collective itself. Nothing is lost by it: what is on the disk is what a kill would leave.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NoReturn

import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore

from sam_repro.errors import complain, end

TICK = 1.0  # seconds
SILENCE = 12  # ticks without a neighbour's heartbeat; its thread beats through steps of any length
GONE = 4  # ticks without one, where a collective has failed already
LOST = 1  # the exit code where a rank was killed or hangs
MEETING = "meeting{}"  # the part of the store that the ranks of a process' n-th run have
_OVER = "over"


class Company(threading.Thread):
    def __init__(self, store: Any, rank: int, world: int) -> None:
        super().__init__(name="company", daemon=True)
        self.store = store.clone()  # a connection of its own: a wait of the group's would hold it up
        self.store.set_timeout(timedelta(seconds=60))
        self.rank, self.world = rank, world
        self.closed, self.leaving = threading.Event(), False
        self.speaks = threading.Lock()
        self.start()

    def run(self) -> None:
        neighbour, heard, silent = (self.rank + 1) % self.world, -1, 0
        while not self.closed.wait(TICK):
            try:
                self.store.add(f"beat/{self.rank}", 1)
                self.obey()
                beat = self.store.add(f"beat/{neighbour}", 0)
            except RuntimeError:  # the store is gone, and with it the process that started the ranks
                if self.leaving or self.closed.is_set():
                    return
                end(LOST)
            heard, silent = beat, silent + 1 if beat == heard else 0
            if silent >= SILENCE and not self.closed.is_set():
                self.give_up(f"rank {neighbour} has not answered for {silent * TICK:.0f} s", deaf=1)

    def obey(self) -> None:
        """End as another rank has told."""
        if not self.closed.is_set() and self.store.check([_OVER]):
            code = json.loads(self.store.get(_OVER))["code"]
            self.store.add("obeyed", 1)
            end(code)

    def first(self, code: int) -> bool:
        """Whether this rank is the first to end; it tells the others its code, and may tell the user why."""
        with self.speaks:
            mine = json.dumps({"code": code, "rank": self.rank})
            try:
                told: bytes = self.store.compare_set(_OVER, "", mine)
            except RuntimeError:
                return True
        return told == mine.encode()

    def leave(self, code: int, deaf: int = 0) -> NoReturn:
        """End alone, the first of all: all others that can have heard of it, or three seconds have passed."""
        self.closed.set()
        ends = time.monotonic() + 3 * TICK
        try:
            while self.store.add("obeyed", 0) < self.world - 1 - deaf and time.monotonic() < ends:
                time.sleep(0.05)
        except RuntimeError:
            pass
        end(code)

    def end(self, code: int, tell: Callable[[], object], deaf: int = 0) -> NoReturn:
        """End this rank and with it all. Of several that end at once the first tells the user why."""
        if self.first(code):
            tell()
            self.leave(code, deaf)
        self.closed.set()
        told = json.loads(self.store.get(_OVER))["code"]
        self.store.add("obeyed", 1)
        end(told)

    def crashed(self, error: BaseException) -> NoReturn:
        """By a mistake of ours, or because of another rank."""
        if of_the_group(error):
            self.after_a_failed_collective()
        text = "".join(traceback.format_exception(error))
        self.end(LOST, lambda: print(text, end="", file=sys.stderr))

    def give_up(self, why: str, deaf: int) -> NoReturn:
        said = f"{why}; what was saved is kept, the same command goes on from it"
        self.end(LOST, lambda: complain(said, every_rank=True), deaf)

    def after_a_failed_collective(self) -> NoReturn:
        """Another rank has ended: as it told, or because it was killed."""
        try:
            before = self._beats()
            for _ in range(GONE):
                time.sleep(TICK)
                self.obey()
            after = self._beats()
        except RuntimeError:
            end(LOST)
        gone = [str(rank) for rank in range(self.world) if before[rank] == after[rank] and rank != self.rank]
        self.give_up(f"rank {', '.join(gone)} has gone" if gone else "the ranks have lost each other", deaf=len(gone))

    def _beats(self) -> list[int]:
        return [self.store.add(f"beat/{rank}", 0) for rank in range(self.world)]

    def part(self) -> None:
        """The ranks are about to leave in good order, and the one that keeps the store may be the fastest."""
        self.leaving = True

    def dismiss(self) -> None:
        """All ranks leave in good order."""
        self.closed.set()


def told(store: Any) -> int | None:
    """The exit code that a rank of a process' only run has left for the others."""
    store = PrefixStore(MEETING.format(0), store)
    return int(json.loads(store.get(_OVER))["code"]) if store.check([_OVER]) else None


def of_the_group(error: BaseException) -> bool:
    """Whether a collective failed because of another rank. gloo's errors are plain ones; their text has its name."""
    named = isinstance(error, RuntimeError) and any(word in str(error) for word in ("gloo", "NCCL", "Connection"))
    return isinstance(error, dist.DistError) or named
