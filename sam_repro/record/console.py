"""What the user sees while a run trains: one progress bar on a terminal, a line an epoch elsewhere.

A terminal that goes away (a closed window, `| head`) ends the output, never the training.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

from sam_repro.record.metrics import PER_SECOND
from sam_repro.tasks.metric import Metric

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Console:
    """Shows records as they come. `advance` may be called every step: it is cheap and prints nothing by itself."""

    def __init__(self, total_steps: int, epochs: int, metric: Metric, out: TextIO | None = None) -> None:
        self._total, self._epochs, self._metric = total_steps, epochs, metric
        self._out = out if out is not None else sys.stdout
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._fields: dict[str, Any] = {"epoch": "", "loss": "", "metric": "", "speed": ""}
        self._said_first = False
        self._first: tuple[int, float] | None = None
        self._gone = False

    def advance(self, step: int) -> None:
        """The run has done that many steps."""
        if self._first is None:
            self._first = (step, time.monotonic())
        self._guard(self._advance, step)

    def record(self, record: Mapping[str, Any]) -> None:
        """Show a step's or an epoch's record."""
        self.advance(record["step"])
        self._guard(self._record, record)

    def say(self, text: str) -> None:
        """One line, above the bar if there is one."""
        self._guard(self._say, text)

    def close(self) -> None:
        """Leave the terminal as it was. A second call does nothing."""
        progress, self._progress = self._progress, None
        if progress is not None:
            self._guard(lambda _: progress.stop(), None)

    def _guard(self, show: Any, argument: Any) -> None:
        if self._gone:
            return
        try:
            show(argument)
        except (OSError, ValueError) as error:  # ValueError: it was closed
            if isinstance(error, ValueError) and not self._out.closed:
                raise
            self._gone = True
            # Else Python would stumble over the unwritten rest when it exits, and end with an error code of its own.
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._out.fileno())

    def _advance(self, step: int) -> None:
        if not self._out.isatty() or os.environ.get("TERM") in ("dumb", "unknown"):
            return
        if self._progress is None:
            self._start(step)
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=step)

    def _start(self, step: int) -> None:
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.table import Column

        texts = [TextColumn(f"{{task.fields[{name}]}}", table_column=Column(no_wrap=True)) for name in self._fields]
        self._progress = Progress(
            texts[0],
            BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=4)),
            TaskProgressColumn(),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            *texts[1:],
            console=RichConsole(file=self._out),
            expand=True,
            refresh_per_second=4,  # drawn by a thread that shares a core with the training
            speed_estimate_period=120.0,
        )
        self._task = self._progress.add_task("", total=self._total, completed=step, **self._fields)
        self._progress.start()

    def _record(self, record: Mapping[str, Any]) -> None:
        self._fields["epoch"] = f"epoch {record['epoch']}/{self._epochs}"
        loss = record.get("loss", record.get("train_loss"))
        if loss is not None:
            self._fields["loss"] = f"loss {loss:.3f}"
        if (value := record.get(self._metric.name)) is not None:
            self._fields["metric"] = f"{self._metric.name.partition('_')[0]} {self._metric.text(value)}"
        for key, value in record.items():
            if key.endswith(PER_SECOND) and value is not None and math.isfinite(value):
                self._fields["speed"] = f"{value:.0f} {key.removesuffix(PER_SECOND)}/s"
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, **self._fields)
        elif record["kind"] == "epoch" or not self._said_first:
            self._said_first = True
            parts = [
                f"step {record['step']}/{self._total}",
                *list(self._fields.values())[1:],
                self._eta(record["step"]),
            ]
            self._say("  ".join([self._fields["epoch"], *filter(None, parts)]))

    def _say(self, text: str) -> None:
        if self._progress is not None:
            self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            self._out.write(text + "\n")
            self._out.flush()

    def _eta(self, step: int) -> str:
        """The time that remains, by the speed since this process began."""
        if self._first is None or step <= self._first[0]:
            return ""
        seconds = (time.monotonic() - self._first[1]) / (step - self._first[0]) * max(0, self._total - step)
        minutes, seconds = divmod(round(seconds), 60)
        return f"ETA {minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
