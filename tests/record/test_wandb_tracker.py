"""W&B through its real client, read back with its own command; and W&B failing, which must stop nothing."""

import json
import math
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from sam_repro.config.schema import TrackConfig, WandbMode
from sam_repro.config.schema import Tracker as Kind
from sam_repro.record import tracker
from sam_repro.record.tracker import start_tracker
from sam_repro.sweep.child import labelled
from sam_repro.sweep.work import Task

STEP = {"kind": "step", "step": 1, "epoch": 1, "loss": 2.5, "lr": 0.1}
EPOCH = {"kind": "epoch", "step": 1, "epoch": 1, "test_accuracy": 10.0}


@pytest.fixture(autouse=True)
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nobody has an account, and no network."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NETRC", str(tmp_path / "home" / "netrc"))
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")


def inspect(run: Path, *options: str) -> Any:
    command = [sysconfig.get_path("scripts") + "/wandb", "leet", "inspect", "--json", *options, str(run)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(output) if options else [json.loads(line) for line in output.splitlines()]


def history(run: Path) -> list[dict[str, Any]]:
    rows = [record["history"]["item"] for record in inspect(run) if record["type"] == "history"]
    return [{key: value for key, value in row.items() if "/" in key or key == "_step"} for row in rows]


def services() -> list[str]:
    return [child.name() for child in psutil.Process().children() if child.name().startswith("wandb-core")]


def record_run(folder: Path, records: list[dict[str, Any]], summary: dict[str, Any] | None, **track: Any) -> list[str]:
    warnings: list[str] = []
    folder.mkdir(exist_ok=True)
    config = {"method": {"name": "asam", "rho": 0.5}, "eta": math.inf}
    run = start_tracker(folder, config, TrackConfig(project="proj", **track), "run-7", warnings.append)
    assert run is not None
    for record in records:
        run.log(record)
    run.close(summary)
    return warnings


@pytest.mark.slow
def test_an_offline_run_and_its_resumption_read_back(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    event = {"kind": "event", "name": "skipped", "step": 2}
    assert record_run(folder, [STEP, EPOCH, event], None) == []
    time.sleep(1.1)  # W&B names folders by the second
    summary = {"status": "done", "best": {"test_accuracy": 10.0, "test_loss": math.nan}}
    later = {"kind": "step", "step": 3, "epoch": 2, "loss": math.nan, "lr": 0.1}
    assert record_run(folder, [later], summary) == []

    first, second = sorted((folder / "wandb").glob("offline-run-*"))
    assert history(first) == [
        {"_step": 1, "step/epoch": 1, "step/loss": 2.5, "step/lr": 0.1, "epoch/epoch": 1, "epoch/test_accuracy": 10},
        {"_step": 2, "event/skipped": 1},
    ]
    assert history(second) == [{"_step": 3, "step/epoch": 2, "step/loss": "NaN", "step/lr": 0.1}]
    for run, code in ((first, 1), (second, 0)):
        seen = inspect(run, "--summary")
        assert (seen["run_id"], seen["project"], seen["exit_code"]) == ("run-7", "proj", code)
        assert seen["config"] == {"method": {"name": "asam", "rho": 0.5}, "eta": "Infinity"}
        (started,) = (record["run"] for record in inspect(run) if record["type"] == "run")
        assert started["resume"] is True
    assert seen["summary"]["status"] == "done"
    assert seen["summary"]["best"] == {"test_accuracy": 10, "test_loss": "NaN"}
    assert capfd.readouterr() == ("", "")
    assert services() == []


def test_a_person_finds_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, in the group of its seeds or of a table's cell that a sweep trains, by tags; charts have axes."""
    config = {"method": {"name": "asam"}, "model": {"architecture": "wrn", "depth": 28, "width": 10, "name": None},
              "dataset": {"name": "cifar100"}, "budget": {"name": "mini"}, "seed": 3}  # fmt: skip

    def started(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        folder.mkdir()
        run = start_tracker(folder, config, TrackConfig(), "run-7", lambda text: pytest.fail(text))
        assert run is not None
        run.log(STEP)
        run.log(EPOCH)
        run.close({"status": "done"})
        records = inspect(next((folder / "wandb").glob("offline-run-*")))
        (found,) = (record["run"] for record in records if record["type"] == "run")
        return found, records

    found, records = started(tmp_path / "alone")
    assert found["display_name"] == "asam wrn-28-10 cifar100 mini seed 3"
    assert found["run_group"] == "asam wrn-28-10 cifar100 mini"
    assert found["tags"] == ["asam", "wrn-28-10", "cifar100", "mini"]
    text = json.dumps([record for record in records if record["type"] == "metric"])
    assert "step/*" in text
    assert "epoch/*" in text
    (row,) = (record["history"]["item"] for record in records if record["type"] == "history")
    assert (row["step"], row["epoch"]) == (1, 1)

    cell = Task("run-7", "asam/2 wrn28_10 asam", 3, (), tmp_path)
    for name, value in labelled(cell).items():
        monkeypatch.setenv(name, value)
    found, _ = started(tmp_path / "table")
    assert found["run_group"] == "asam/2 wrn28_10 asam"
    assert found["tags"][0] == "asam/2"
    assert labelled(cell)["WANDB_RUN_GROUP"] == "asam/2 wrn28_10 asam"


def test_online_without_an_account_warns_once_and_records_offline(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    started = time.monotonic()
    warnings = record_run(tmp_path / "run", [STEP], {"status": "done"}, mode=WandbMode.online)
    assert time.monotonic() - started < 10
    assert warnings == [
        "W&B is offline: no account on this machine (`wandb login` sets one up); `wandb sync` uploads the run later"
    ]
    (run,) = (tmp_path / "run" / "wandb").glob("offline-run-*")
    assert history(run) == [{"_step": 1, "step/epoch": 1, "step/loss": 2.5, "step/lr": 0.1}]
    assert capfd.readouterr() == ("", "")


HANG = """
import logging, sys, time
from pathlib import Path
import psutil
from sam_repro.record import tracker
from sam_repro.config.schema import TrackConfig, WandbMode

logging.basicConfig(level="INFO")
tracker.PATIENCE = {WandbMode.offline: 2.0 if sys.argv[4] == "done" else 60.0}
tracker.PATIENCE_INTERRUPTED = 1.0
folder, step = Path(sys.argv[1]), 0
run = tracker.start_tracker(folder, {}, TrackConfig(), "run-7", print)
while not list(folder.glob("wandb/offline-run-*/*.wandb")):
    time.sleep(0.01)
if sys.argv[2] == "while logging":
    time.sleep(1.0)
(service,) = (child for child in psutil.Process().children() if child.name().startswith("wandb-core"))
service.suspend()
started = time.monotonic()
for step in range(1, int(sys.argv[3])):
    run.log({"kind": "step", "step": step, "epoch": 1, "filler": "x" * 2000})
assert time.monotonic() - started < 5
run.close({"status": "done"} if sys.argv[4] == "done" else None)
assert not psutil.Process().children()
"""


@pytest.mark.parametrize(
    ("moment", "steps", "end", "reason"),
    [
        ("while starting", 20_000, "done", "its service does not answer"),
        pytest.param("while logging", 20_000, "done", "its service does not answer", marks=pytest.mark.slow),
        pytest.param("while logging", 3, "done", "its service did not end within 2 s", marks=pytest.mark.slow),
        pytest.param("while logging", 3, "interrupted", "its service did not end within 1 s", marks=pytest.mark.slow),
    ],
)
def test_a_service_that_hangs_holds_nothing_up(tmp_path: Path, moment: str, steps: int, end: str, reason: str) -> None:
    command = [sys.executable, "-c", HANG, str(tmp_path), moment, str(steps), end]
    done = subprocess.run(command, capture_output=True, text=True, timeout=25, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"W&B is off, the run goes on: {reason}\n"


@pytest.mark.slow
def test_a_wandb_folder_that_cannot_be_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "wandb").write_text("in the way")
    (warning,) = record_run(tmp_path / "run", [STEP], {"status": "done"})
    assert warning.startswith("W&B ")
    assert "\n" not in warning
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("variables", [{"WANDB_MODE": "nonsense"}, {"WANDB_SERVICE": "2-unix-/nowhere"}])
def test_a_broken_environment_is_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    (warning,) = record_run(tmp_path / "run", [STEP], {"status": "done"})
    assert warning.startswith("W&B is off, the run goes on: ")
    assert "\n" not in warning


@pytest.mark.slow
def test_a_service_that_dies_is_one_warning(tmp_path: Path) -> None:
    warnings: list[str] = []
    run = start_tracker(tmp_path, {}, TrackConfig(), "run-7", warnings.append)
    assert run is not None
    run.log(STEP)
    while not services():
        time.sleep(0.01)
    time.sleep(1.0)
    tracker.kill_service()
    for step in range(2, 500):
        run.log({**STEP, "step": step})
    run.close({"status": "done"})
    (warning,) = warnings
    assert warning.startswith("W&B is off, the run goes on: ")


@pytest.mark.timing
@pytest.mark.slow
@pytest.mark.parametrize("network", ["refuses", "swallows"])
def test_online_without_a_network_records_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, network: str
) -> None:
    monkeypatch.setattr(tracker, "PATIENCE", {WandbMode.online: 10.0})
    silent = socket.create_server(("127.0.0.1", 0))
    if network == "swallows":
        monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
    monkeypatch.setenv("WANDB_API_KEY", "0123456789" * 4)
    started = time.monotonic()
    warnings: list[str] = []
    run = start_tracker(tmp_path, {}, TrackConfig(mode=WandbMode.online), "run-7", warnings.append)
    assert run is not None
    run.log(STEP)
    assert time.monotonic() - started < 1  # the training does not wait
    while not list(tmp_path.glob("wandb/offline-run-*")):
        assert time.monotonic() - started < 20
        time.sleep(0.1)
    run.close({"status": "done"})
    (warning,) = warnings
    assert warning.startswith("W&B is offline: ")
    assert "\n" not in warning
    (recorded,) = tmp_path.glob("wandb/offline-run-*")
    assert history(recorded) == [{"_step": 1, "step/epoch": 1, "step/loss": 2.5, "step/lr": 0.1}]
    silent.close()


def test_a_client_that_cannot_be_imported_is_one_warning(tmp_path: Path) -> None:
    (tmp_path / "broken" / "wandb").mkdir(parents=True)
    (tmp_path / "broken" / "wandb" / "__init__.py").write_text("raise OSError('broken installation')")
    script = (
        "from pathlib import Path; from sam_repro.record.tracker import start_tracker;"
        "from sam_repro.config.schema import TrackConfig;"
        "assert start_tracker(Path('.'), {}, TrackConfig(), 'x', print) is None"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "broken")}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == ("W&B is off, the run goes on: its client can't be imported (OSError: broken installation)\n")


@pytest.mark.parametrize("track", [TrackConfig(name=Kind.none), TrackConfig(mode=WandbMode.disabled)])
def test_no_tracking_starts_nothing(tmp_path: Path, track: TrackConfig) -> None:
    threads = threading.active_count()
    assert start_tracker(tmp_path, {}, track, "x", print) is None
    assert threading.active_count() == threads
    assert os.listdir(tmp_path) == []


def test_the_inspect_command_is_there() -> None:
    assert shutil.which("wandb", path=sysconfig.get_path("scripts")) is not None
