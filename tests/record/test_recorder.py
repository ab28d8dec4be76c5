"""The object the engine talks to: what it writes, for whom, and what it survives."""

import io
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sam_repro.config.schema import TrackConfig, WandbMode
from sam_repro.config.schema import Tracker as Kind
from sam_repro.record import Recorder, summarise, write_atomic
from sam_repro.record.metrics import read
from sam_repro.tasks.classification.declared import of_images

QUIET = TrackConfig(name=Kind.none, every=5)
ACCURACY = of_images(10)[0]


def recorder(folder: Path, out: io.StringIO | None = None, **changes: Any) -> Recorder:
    options = {
        "track": QUIET,
        "run_id": "r",
        "main": True,
        "total_steps": 12,
        "epochs": 2,
        "metric": of_images(10)[0],
        **changes,
    }
    return Recorder(folder, {"seed": 0}, out=out or io.StringIO(), **options)


def step(number: int, loss: float = 1.0) -> dict[str, Any]:
    return {"step": number, "epoch": 1, "loss": loss, "time": 0.5}


def test_a_whole_run(tmp_path: Path) -> None:
    folder, out = tmp_path / "runs" / "r", io.StringIO()
    with recorder(folder, out) as record:
        record.rewind(0)
        record.step(step(1))
        record.event("skipped", step=2)
        record.event("skipped", step=3)
        record.epoch({"step": 12, "epoch": 1, "train_loss": 0.5, "test_accuracy": 50.0, "seconds": 3.0, "time": 4.0})
        assert record.flush() == os.path.getsize(folder / "metrics.jsonl")
        record.close(summarise(read(folder), "done", metrics=of_images(10), passes=24.0, noise=math.nan))
    assert [entry["kind"] for entry in read(folder)] == ["step", "event", "event", "epoch"]
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["status"], summary["best"]["test_accuracy"], summary["noise"]) == ("done", 50.0, "NaN")
    assert sorted(os.listdir(folder)) == ["metrics.jsonl", "summary.json"]
    assert [line.split("  ")[0] for line in out.getvalue().splitlines()] == [
        "epoch 1/2",
        "skipped: step=2",
        "epoch 1/2",
    ]


def test_steps_that_are_due(tmp_path: Path) -> None:
    for main in (True, False):
        assert [i for i in range(1, 13) if recorder(tmp_path, main=main).due(i)] == [1, 5, 10, 12]


def test_an_interruption_leaves_metrics_as_if_there_had_been_none(tmp_path: Path) -> None:
    with recorder(tmp_path / "whole") as whole:
        whole.step(step(1))
        whole.step(step(5))
    with recorder(tmp_path / "cut") as first:
        first.step(step(1))
        offset = first.flush()
        first.step(step(5, loss=7.0))
        first.incident("interrupted", signal="SIGTERM")
    with open(tmp_path / "cut" / "events.jsonl", "a") as file:
        file.write('{"torn')
    (tmp_path / "cut" / ".weights.safetensors.1-a.partial").write_text("of a writer that was killed")
    with recorder(tmp_path / "cut") as second:
        second.rewind(offset)
        second.incident("resumed", step=1)
        second.step(step(5))
    assert sorted(os.listdir(tmp_path / "cut")) == ["events.jsonl", "metrics.jsonl"]
    assert (tmp_path / "cut" / "metrics.jsonl").read_bytes() == (tmp_path / "whole" / "metrics.jsonl").read_bytes()
    lines = (tmp_path / "cut" / "events.jsonl").read_text().splitlines()
    assert lines[1] == '{"torn'
    assert [json.loads(lines[i])["name"] for i in (0, 2)] == ["interrupted", "resumed"]


def test_other_ranks_do_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Recorder(
        tmp_path / "r", {}, TrackConfig(), "r", main=False, total_steps=12, epochs=2, metric=of_images(10)[0]
    ) as record:
        record.rewind(5)
        record.step(step(1))
        record.epoch(step(1))
        record.event("collapsed", step=1)
        record.incident("resumed")
        record.advance(1)
        record.say("hello")
        assert record.flush() == 0
        record.close({"status": "done"})
    assert os.listdir(tmp_path) == []
    assert capfd.readouterr() == ("", "")


def test_metrics_are_written_before_they_are_shown(tmp_path: Path) -> None:
    class Looking(io.StringIO):
        def write(self, text: str) -> int:
            seen.append(len(read(tmp_path)))
            return super().write(text)

    seen: list[int] = []
    with recorder(tmp_path, Looking()) as record:
        record.step(step(1))
        record.epoch({"step": 12, "epoch": 1})
    assert seen == [1, 2]


def test_a_full_disk_reaches_the_engine_and_leaves_whole_records(small_disk: Path) -> None:
    def fill() -> None:
        with recorder(small_disk) as record:
            for number in range(1, 10_000):
                record.step(step(number))

    with pytest.raises(OSError, match="No space left"):
        fill()
    seen = read(small_disk)
    assert [entry["step"] for entry in seen] == list(range(1, len(seen) + 1))
    assert len(seen) > 100


RUN = """
import sys
from sam_repro.record import Recorder
from sam_repro.tasks.classification.declared import of_images
from sam_repro.config.schema import TrackConfig
sizes = {"total_steps": 3, "epochs": 1, "metric": of_images(10)[0]}
with Recorder(sys.argv[1], {"seed": 0}, TrackConfig(), "r", main=True, **sizes) as record:
    for step in (1, 2, 3):
        record.step({"step": step, "epoch": 1, "loss": 1.0})
    print("ready", flush=True)
    if sys.argv[2] == "wait":
        sys.stdin.read()
    if sys.argv[2] == "raise":
        raise SystemExit(7)
    record.close({"status": "done"})
assert "torch" not in sys.modules
"""


def test_a_run_with_the_default_tracking_ends_cleanly(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path), "end"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1:] == ["ready"]
    assert list(tmp_path.glob("wandb/offline-run-*-r"))


@pytest.mark.slow
def test_an_exception_keeps_its_exit_code(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path), "raise"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (7, "")


@pytest.mark.slow
def test_a_killed_run_takes_its_wandb_service_along(tmp_path: Path) -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", RUN, str(tmp_path), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    while run.stdout.readline() != "ready\n":
        pass
    run.send_signal(signal.SIGKILL)
    # The service holds the other end of the pipe: this returns when it is gone, too.
    assert run.communicate(timeout=15)[0] == ""
    assert [entry["step"] for entry in read(tmp_path)] == [1, 2, 3]


def test_offline_is_what_a_run_does_unless_told_otherwise() -> None:
    assert (TrackConfig().name, TrackConfig().mode) == (Kind.wandb, WandbMode.offline)


def test_the_package_offers_what_the_engine_needs(tmp_path: Path) -> None:
    write_atomic(tmp_path / "DONE", "")
    assert os.listdir(tmp_path) == ["DONE"]
