"""What a sweep shows: a live table on a terminal, a line for each event elsewhere; failures at once, with their log.

A terminal that goes away ends the output, never the runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Self

from sam_repro.files.lines import decode
from sam_repro.runs.run import Run

if TYPE_CHECKING:
    from sam_repro.sweep.child import Child
    from sam_repro.sweep.work import Task

_REFRESH = 1.0  # seconds
_ROWS = 30


class View:
    def __init__(self, total: int, done: int, live: bool | None = None) -> None:
        self.total, self.done_before = total, done
        self.finished = self.failures = 0
        self.table = _LiveTable() if (sys.stdout.isatty() if live is None else live) else None
        self.shown = 0.0
        self.gone = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.table is not None:
            with suppress(OSError, ValueError):
                self.table.stop()

    def started(self, child: Child) -> None:
        self.say(f"start   {child.task.name} ({child.task.id}) on {child.slot.name}, log {child.task.log}")

    def done(self, task: Task, words: str) -> None:
        self.finished += 1
        self.say(f"done    {task.name} ({task.id}): {words} [{self._count()}]")

    def stopped(self, child: Child) -> None:
        self.say(f"stopped {child.task.name} ({child.task.id}): it goes on where it was")

    def failed(self, task: Task, how: str, tail: Sequence[str]) -> None:
        self.failures += 1
        self.say(
            "\n".join([f"FAILED  {task.name} ({task.id}): {how}; the end of {task.log}:"] + [f"  | {t}" for t in tail])
        )

    def stopping(self, running: int) -> None:
        self.say(f"stopping: {running} runs save and end; a second Ctrl-C kills them. The same command goes on later")

    def say(self, text: str) -> None:
        self._guard(lambda: self.table.say(text) if self.table is not None else print(text, flush=True))

    def refresh(self, running: Sequence[Child], waiting: int) -> None:
        """Redraw, now and then."""
        if self.table is None or time.monotonic() - self.shown < _REFRESH:
            return
        self.shown = time.monotonic()
        title = f"{self._count()}, {len(running)} running, {waiting} waiting, {self.failures} failed"
        table = self.table
        self._guard(lambda: table.draw(title, running))

    def _count(self) -> str:
        return f"{self.done_before + self.finished}/{self.total} done"

    def _guard(self, show: Callable[[], Any]) -> None:
        if not self.gone:
            try:
                show()
            except (OSError, ValueError):  # ValueError: it was closed
                self.gone = True


class _LiveTable:
    def __init__(self) -> None:
        from rich.live import Live

        # No thread of its own: the scheduler forks.
        self.live = Live(auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False)
        self.live.start()

    def say(self, text: str) -> None:
        self.live.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def draw(self, title: str, running: Sequence[Child]) -> None:
        from rich.table import Table

        table = Table("cell", "seed", "run", "where", "epoch", "result", "minutes", title=title, title_justify="left")
        for child in running[:_ROWS]:
            epoch, result = progress(child.task)
            minutes = f"{(time.monotonic() - child.began) / 60:.1f}"
            table.add_row(child.task.cell, str(child.task.seed), child.task.id, child.slot.name, epoch, result, minutes)
        self.live.update(table, refresh=True)

    def stop(self) -> None:
        self.live.stop()


def progress(task: Task) -> tuple[str, str]:
    """The running epoch and the last value of the primary metric, from the end of metrics.jsonl."""
    epoch = result = ""
    with suppress(OSError), open(task.run.metrics, "rb") as file:
        file.seek(max(0, file.seek(0, 2) - 4096))
        for line in file.read().split(b"\n"):
            with suppress(ValueError):  # the first line is cut, the last may be half written
                record = decode(line)
                epoch = str(record.get("epoch", epoch))
                if record.get("kind") == "epoch" and isinstance(value := record.get(_primary(task.run)), float):
                    result = f"{value:.2f}"
    return epoch, result


@cache
def _primary(run: Run) -> str:
    return run.metrics_described()[0].name
