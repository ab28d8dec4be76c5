"""Weights & Biases beside metrics.jsonl, in a way that can't stop or slow a run.

A thread of its own talks to the real client, since every call into it may wait for the client's service process: the
training only puts records into a queue. Whatever goes wrong there is told in one line, once, and tracking goes off;
the run and its metrics.jsonl go on. Ending waits a bounded time.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sam_repro.config.schema import TrackConfig, WandbMode
from sam_repro.config.schema import Tracker as Kind
from sam_repro.files import lines
from sam_repro.record.folder import RunFolder
from sam_repro.record.labels import labels

# Seconds that the end of a run waits for W&B: writing files is quick, an upload may not be.
PATIENCE = {WandbMode.offline: 20.0, WandbMode.online: 90.0}
# An interrupted run has a scheduler's grace period to end in, 30 s as a rule. What was not uploaded is in the files.
PATIENCE_INTERRUPTED = 8.0
# Records that may wait while the service starts or hangs; some megabytes.
_WAITING = 10_000
_INDEX = ("kind", "name", "step")

Warn = Callable[[str], None]


class Tracker:
    """Mirrors records to one W&B run whose id is the run's id; a resumed run continues it."""

    def __init__(
        self, folder: Path, config: Mapping[str, Any], track: TrackConfig, run_id: str, warn: Warn, client: Any
    ) -> None:
        self._folder, self._config, self._track, self._run_id = folder, config, track, run_id
        self._warn, self._client = warn, client
        self._off, self._live = False, False
        self._queue: queue.Queue[dict[str, Any] | None] = queue.Queue(_WAITING)
        self._summary: Mapping[str, Any] | None = None
        self._thread = threading.Thread(target=self._work, name="wandb", daemon=True)
        self._thread.start()

    def log(self, record: Mapping[str, Any]) -> None:
        """Hand over a record of metrics.jsonl."""
        if self._off:
            return
        try:
            self._queue.put_nowait(dict(record))
        except queue.Full:
            self._fail("its service does not answer")

    def close(self, summary: Mapping[str, Any] | None) -> None:
        """End the W&B run, as crashed if there is no summary; waits a bounded time."""
        patience = PATIENCE[self._track.mode]
        if summary is None:
            patience = min(patience, PATIENCE_INTERRUPTED)
        self._summary = summary
        with suppress(queue.Full):
            self._queue.put(None, timeout=patience)
        self._thread.join(patience)
        if self._thread.is_alive():
            self._fail(f"its service did not end within {patience:.0f} s")
            kill_service()  # else the client would wait for it when Python exits
            self._thread.join(5.0)

    def _work(self) -> None:
        try:
            run = self._start()
            while (record := self._queue.get()) is not None:
                if not self._off:
                    run.log(_fields(record), step=self._row(record))
            if self._summary is not None:
                run.summary.update(lines.to_json(self._summary))  # W&B makes a nested NaN null
            run.finish(exit_code=0 if self._summary is not None else 1)
        except BaseException as error:  # a library's sys.exit, too, must not leave the queue to fill up
            self._fail(f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}")
            kill_service()
        finally:
            # Now, in this thread, so that nothing is left to wait for when Python exits.
            with suppress(BaseException):
                self._client.teardown()

    def _start(self) -> Any:
        client, mode = self._client, self._track.mode
        client.setup(self._settings())
        if mode is WandbMode.online:
            try:
                if not client.login(prompt=False, verify=False):
                    raise PermissionError("no account on this machine (`wandb login` sets one up)")
                return self._init("online")
            except Exception as error:
                reason = next(iter(str(error).splitlines()), type(error).__name__)
                self._warn(f"W&B is offline: {reason}; `wandb sync` uploads the run later")
                client.teardown()  # a start that failed may still hold the run's id
                client.setup(self._settings())
        return self._init("offline")

    def _init(self, mode: str) -> Any:
        self._live = mode == "online"
        run = self._client.init(
            project=self._track.project,
            entity=self._track.entity,
            id=self._run_id,
            **labels(self._config),
            resume="allow",
            mode=mode,
            dir=os.fspath(self._folder),
            config=lines.to_json(self._config),
            settings=self._settings(),
        )
        for kind in ("step", "epoch"):
            run.define_metric(f"{kind}/*", step_metric=kind)
        if not Path(run.dir).resolve().is_relative_to(self._folder.resolve()):
            self._warn(f"W&B can't write to {RunFolder(self._folder).wandb}, it writes to {run.dir}")
        return run

    def _row(self, record: Mapping[str, Any]) -> int | None:
        """Rows of W&B's table go by steps, so that an upload later puts the files of several starts behind each other.

        Live, W&B drops what comes before a row that it has: a run that is trained again adds rows instead.
        """
        return None if self._live else record.get("step")

    def _settings(self) -> Any:
        # Less than `close` waits for, so that there is time to fall back to offline.
        limit = PATIENCE[self._track.mode] / 2
        return self._client.Settings(silent=True, quiet=True, console="off", init_timeout=limit, finish_timeout=limit)

    def _fail(self, reason: str) -> None:
        if not self._off:
            self._off = True
            self._warn(f"W&B is off, the run goes on: {reason}")


def start_tracker(
    folder: Path, config: Mapping[str, Any], track: TrackConfig, run_id: str, warn: Warn
) -> Tracker | None:
    """A tracker if the configuration wants one and the client can be imported."""
    if track.name is not Kind.wandb or track.mode is WandbMode.disabled:
        return None
    try:
        import wandb
    except Exception as error:  # a broken installation raises anything
        warn(f"W&B is off, the run goes on: its client can't be imported ({type(error).__name__}: {error})")
        return None
    return Tracker(folder, config, track, run_id, warn, wandb)


def kill_service() -> None:
    """End W&B's service processes that this process started, if it has any."""
    import psutil

    with suppress(psutil.Error):
        for child in psutil.Process().children():
            with suppress(psutil.Error):
                if child.name().startswith("wandb-core"):
                    child.kill()
                    child.wait(5.0)


def _fields(record: Mapping[str, Any]) -> dict[str, Any]:
    """`step/loss`, `epoch/test_accuracy`, `event/collapsed`: W&B groups its panels by what is before the slash."""
    if record["kind"] == "event":
        return {f"event/{record['name']}": 1}
    axes = {
        key: record[key] for key in (("step", "epoch") if record["kind"] == "epoch" else ("step",)) if key in record
    }
    return axes | {f"{record['kind']}/{key}": value for key, value in record.items() if key not in _INDEX}
