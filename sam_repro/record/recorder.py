"""The one object through which the engine tells what happens in a run."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from sam_repro.config.schema import TrackConfig
from sam_repro.files import lines
from sam_repro.files.atomic import remove_leftovers, write_atomic
from sam_repro.record.console import Console
from sam_repro.record.folder import RunFolder
from sam_repro.record.metrics import MetricsLog
from sam_repro.record.tracker import Tracker, start_tracker
from sam_repro.tasks.metric import Metric


class Recorder:
    """Writes metrics.jsonl first; console and W&B mirror it and can't stop a run.

    On every rank but the main one all of it does nothing, so that the engine need not ask. A fresh run starts with
    `rewind(0)`, a resumed one with `rewind(offset)` of its checkpoint. As a context manager it leaves the terminal
    and W&B in order whatever happens.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        config: Mapping[str, Any],
        track: TrackConfig,
        run_id: str,
        *,
        main: bool,
        total_steps: int,
        epochs: int,
        metric: Metric,
        out: TextIO | None = None,
    ) -> None:
        self.files = RunFolder(Path(folder))
        self._main, self._every, self._total = main, track.every, total_steps
        self._closed = False
        self._said: set[str] = set()
        if not main:
            return
        self.files.path.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.files.path)
        self._metrics = MetricsLog(self.files.path)
        self._console = Console(total_steps, epochs, metric, out)
        self._tracker: Tracker | None = start_tracker(self.files.path, config, track, run_id, self.say)

    def due(self, step: int) -> bool:
        """Whether this step (counted from 1) gets a record: the first, every `track.every`-th and the last.

        The same on all ranks and after a resume. For other steps the engine need not wait for the device.
        """
        return step == 1 or step % self._every == 0 or step == self._total

    def advance(self, step: int) -> None:
        """Move the progress bar. Cheap: may be called after every step."""
        if self._main:
            self._console.advance(step)

    def step(self, record: Mapping[str, Any]) -> None:
        """Record a step; the fields are those of `sam_repro.record.metrics`, without `kind`."""
        self._record("step", record)

    def epoch(self, record: Mapping[str, Any]) -> None:
        """Record the end of an epoch; the fields are those of `sam_repro.record.metrics`, without `kind`."""
        self._record("epoch", record)

    def event(self, name: str, **fields: Any) -> None:
        """Record what happened to the training and would again: "collapsed", "skipped". Goes to metrics.jsonl."""
        if self._main:
            record = {"kind": "event", "name": name, **fields}
            self._metrics.append(record)
            if self._tracker is not None:
                self._tracker.log(record)
            self._announce(name, fields)

    def incident(self, name: str, **fields: Any) -> None:
        """Record what happened to this process: "resumed", "interrupted", "fell_back". Goes to events.jsonl.

        Kept out of metrics.jsonl, which is the same for a run that was interrupted and one that was not.
        """
        if not self._main:
            return
        entry = {"name": name, **fields, "process": os.getpid(), "unix_time": round(time.time(), 3)}
        descriptor = lines.open_to_append(self.files.events)
        try:
            lines.append(descriptor, lines.encode(entry))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._announce(name, fields)

    def say(self, text: str) -> None:
        """Show a line to the user, above the progress bar if there is one."""
        if self._main:
            self._console.say(text)

    def flush(self) -> int:
        """Make metrics.jsonl durable; its length, which a checkpoint keeps for `rewind`. 0 on other ranks."""
        return self._metrics.flush() if self._main else 0

    def rewind(self, offset: int) -> None:
        """Forget the records after a checkpoint's `flush`; 0 forgets all."""
        if self._main:
            self._metrics.rewind(offset)

    def close(self, content: Mapping[str, Any] | None = None) -> None:
        """End the recording; a given summary becomes summary.json. A second call does nothing."""
        if not self._main or self._closed:
            return
        self._closed = True
        try:
            self._metrics.close()
            if content is not None:
                write_atomic(self.files.summary, lines.encode_indented(content))
        finally:
            if self._tracker is not None:
                self._tracker.close(content)
            self._console.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _record(self, kind: str, record: Mapping[str, Any]) -> None:
        if not self._main:
            return
        full = {"kind": kind, **record}
        self._metrics.append(full)
        self._console.record(full)
        if self._tracker is not None:
            self._tracker.log(full)

    def _announce(self, name: str, fields: Mapping[str, Any]) -> None:
        """Show the first event of a name; a run may skip thousands of steps."""
        if name not in self._said:
            self._said.add(name)
            self._console.say(" ".join([f"{name}:", *(f"{key}={value}" for key, value in fields.items())]))
