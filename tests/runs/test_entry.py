"""What the trainer writes of a run is what the tables read."""

import json
from pathlib import Path

import pytest
from report.samples import ENV, epochs

from sam_repro.config.compose import compose
from sam_repro.config.identity import run_id
from sam_repro.record.summary import summarise
from sam_repro.runs import archive, ledger
from sam_repro.runs.entry import entry_of
from sam_repro.runs.faults import usable
from sam_repro.runs.run import Run
from sam_repro.tasks.classification.declared import of_images

CONFIG = compose(["seed=3", "budget=mini"])


def entry(records: list[dict], status: str = "done") -> dict:
    summary = summarise(records, status, metrics=of_images(10), passes=10.0, wall_seconds=5.0)
    return dict(entry_of(Run.of(CONFIG, ["seed=3", "budget=mini"]), CONFIG, records, summary, ENV))


def test_a_run_comes_back_as_it_was_written(tmp_path: Path) -> None:
    written = entry(epochs(80.0, 3))
    ledger.append(tmp_path, written)
    (read,), problems = ledger.read(tmp_path)
    (kept,), faults = usable([read])
    assert not problems
    assert not faults
    assert {key: kept[key] for key in written} == written
    assert (kept["run_id"], kept["seed"], kept["budget"]) == (run_id(CONFIG), 3, "mini")


def test_where_it_ran_is_left_out() -> None:
    summary = summarise(epochs(80.0, 3), "done", metrics=of_images(10), passes=10.0, wall_seconds=5.0)
    words = ["seed=3", "dataset.root=/home/me", "+track.entity=me", "results_dir=/mnt", "++model.weights=/w.pt"]
    assert entry_of(Run.of(CONFIG, words), CONFIG, epochs(80.0, 3), summary, ENV)["overrides"] == ["seed=3"]


def test_each_metric_has_its_own_best() -> None:
    records = epochs(80.0, 0)
    records[4]["test_top5"] = 99.5
    metrics = entry(records)["metrics"]
    assert metrics["test_accuracy"]["best"] == 80.0
    assert metrics["test_accuracy"]["best_epoch"] == 11
    assert metrics["test_top5"] == {"last": records[-1]["test_top5"], "best": 99.5, "best_epoch": 5}


def test_the_first_of_equal_epochs_is_the_best() -> None:
    records = epochs(80.0, 0)
    for record in records:
        record["test_accuracy"] = 50.0
    assert entry(records)["metrics"]["test_accuracy"]["best_epoch"] == 1


def test_a_run_that_collapsed_before_its_first_epoch() -> None:
    written = entry([{"kind": "event", "name": "collapsed", "step": 7}], "collapsed")
    assert written["metrics"] == {}
    assert written["collapsed_step"] == 7
    assert usable([written])[1] == []


def test_not_a_number_is_never_the_best() -> None:
    records = epochs(80.0, 0)
    records[-1]["test_accuracy"] = float("nan")
    metric = entry(records, "collapsed")["metrics"]["test_accuracy"]
    assert metric == {"last": None, "best": 80.0, "best_epoch": 11}


def test_each_metric_is_taken_at_the_one_epoch_that_validation_picks() -> None:
    records = epochs(80.0, 0)
    for record in records:
        record["validation_accuracy"] = 90.0 if record["epoch"] == 7 else 60.0
    metrics = entry(records)["metrics"]
    for name in ("test_accuracy", "test_top5"):
        assert (metrics[name]["picked"], metrics[name]["picked_epoch"]) == (records[6][name], 7)
        assert metrics[name]["last"] == records[-1][name]
    assert "picked" not in entry(epochs(80.0, 0))["metrics"]["test_accuracy"]
    assert archive.disagreements(entry(records), records) == []  # type: ignore[arg-type]
    records[6]["test_accuracy"] += 1
    assert archive.disagreements(entry(epochs(80.0, 0)), records) != []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "key", ["config", "seed", "budget", "status", "metrics", "passes", "seconds", "recipe_version"]
)
@pytest.mark.parametrize("value", [None, "x" * 3, [], {"test_accuracy": {"last": "high"}}, True])
def test_a_line_that_is_no_entry_is_named_and_skipped(key: str, value: object) -> None:
    good, bad = entry(epochs(80.0, 0)), entry(epochs(80.0, 0))
    if json.dumps(value) == json.dumps(bad[key]) or (key in ("budget",) and isinstance(value, str)):
        return
    if key == "config" and isinstance(value, dict):
        return
    bad[key] = value
    kept, faults = usable([bad, good])
    assert kept == [good]
    assert len(faults) == 1
    assert good["run_id"] in faults[0]


HUGE = "9" * 400
DEEP = "[" * 60 + "]" * 60


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("packages", "null"),
        ("packages", '["torch"]'),
        ("packages/torch", '"\\udc00"'),
        ("git", '"0123abc"'),
        ("git/sha", "[1]"),
        ("git/sha", "7"),
        ("hardware/gpus", "2"),
        ("hardware/gpus", '[{"name": "A100"}]'),
        ("hardware/cpu", '"\\ud800"'),
        ("hardware", '{"\\ud800": 1}'),
        ("metrics/test_accuracy", '{"last": 90.0}'),
        ("metrics/test_accuracy", '{"best": 90.0}'),
        ("metrics/test_accuracy/best", HUGE),
        ("metrics/test_accuracy/best", "1e308"),
        ("seconds", "NaN"),
        ("seconds", "1e999"),
        ("seconds", HUGE),
        ("passes", "Infinity"),
        ("passes", "-1e999"),
        ("passes", HUGE),
        ("seed", HUGE),
        ("config/loop", '{"lr": ' + HUGE + "}"),
        ("config/loop", DEEP),
        ("config/dataset", '{"images": ["a"]}'),
        ("finished", "7"),
        ("finished", '"9999"'),
        ("finished", '"2026-13-01T00:00:00"'),
        ("overrides", '"seed=3"'),
        ("overrides", '["seed=3", 4]'),
        ("run_id", "[1]"),
        ("run_id", "null"),
        ("budget", '"a\\ud800"'),
    ],
)
def test_an_odd_value_is_named_and_its_line_skipped(place: str, value: str) -> None:
    good = entry(epochs(80.0, 0))
    bad = json.loads(json.dumps(good))
    *parents, key = place.split("/")
    part = bad
    for parent in parents:
        part = part[parent]
    part[key] = json.loads(value)
    kept, faults = usable([bad, good])
    assert kept == [good]
    assert len(faults) == 1
    assert len(faults[0]) < 250, "a line, whatever its value is"
    assert "skipped" in faults[0]
    if place != "run_id":
        assert good["run_id"] in faults[0]


def test_a_run_may_not_know_what_it_spent() -> None:
    written = entry(epochs(80.0, 0)) | {"passes": float("nan")}
    assert usable([written]) == ([written], [])


@pytest.mark.parametrize("key", ["packages", "git", "overrides", "finished"])
def test_what_no_table_needs_may_be_missing(key: str) -> None:
    written = entry(epochs(80.0, 0))
    written.pop(key, None)
    assert usable([written]) == ([written], [])


def test_a_complaint_is_one_line() -> None:
    bad = entry(epochs(80.0, 0)) | {"run_id": "a\nb", "seconds": "x\n" * 1000}
    (fault,) = usable([bad])[1]
    assert "\n" not in fault
    assert len(fault) < 250


def test_a_missing_key_is_named() -> None:
    bad = entry(epochs(80.0, 0))
    del bad["seconds"]
    assert "has no seconds" in usable([bad])[1][0]
