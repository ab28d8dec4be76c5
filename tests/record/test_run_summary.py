"""summary.json against runs small enough to check by hand."""

import math
from typing import Any

from sam_repro.record.summary import summarise
from sam_repro.tasks.classification.declared import of_images

IMAGES = of_images(10)


def epoch(number: int, accuracy: float, **more: Any) -> dict[str, Any]:
    return {"kind": "epoch", "epoch": number, "step": 10 * number, "test_accuracy": accuracy, **more}


def test_last_and_best_epoch_and_the_first_of_equals() -> None:
    records = [epoch(1, 50.0), epoch(2, 70.0), epoch(3, 70.0), epoch(4, 60.0, time=8.5)]
    summary = summarise(records, "done", metrics=IMAGES, passes=80.0, parameters=123)
    assert summary["last"] == {"epoch": 4, "step": 40, "test_accuracy": 60.0, "time": 8.5}
    assert summary["best"] == {"epoch": 2, "step": 20, "test_accuracy": 70.0}
    assert (summary["step"], summary["epoch"], summary["status"], summary["passes"]) == (40, 4, "done", 80.0)
    assert (summary["wall_seconds"], summary["parameters"], summary["collapsed_step"]) == (8.5, 123, None)


def test_the_epoch_picked_on_validation_is_judged_on_test() -> None:
    held = {1: 71.0, 2: 69.0, 3: 72.0, 4: 72.0}
    tested = {1: 50.0, 2: 80.0, 3: 70.0, 4: 60.0}
    records = [epoch(n, tested[n], validation_accuracy=held[n]) for n in held]
    summary = summarise(records, "done", metrics=IMAGES, passes=80.0)
    assert [summary[kind]["epoch"] for kind in ("last", "best", "picked")] == [4, 2, 3]
    assert summary["picked"]["test_accuracy"] == 70.0
    assert "picked" not in summarise([epoch(1, 50.0)], "done", metrics=IMAGES, passes=20.0)


def test_a_collapsed_run_has_its_first_collapse_and_a_best_epoch_from_before() -> None:
    records = [
        epoch(1, 40.0),
        {"kind": "event", "name": "skipped", "step": 12},
        {"kind": "event", "name": "collapsed", "step": 15, "loss": math.nan},
        epoch(2, math.nan),
        {"kind": "event", "name": "collapsed", "step": 27, "loss": math.inf},
    ]
    summary = summarise(records, "collapsed", metrics=IMAGES, passes=30.0)
    assert summary["collapsed_step"] == 15
    assert summary["skipped_steps"] == 1
    assert summary["step"] == 27
    assert summary["best"]["epoch"] == 1
    assert math.isnan(summary["last"]["test_accuracy"])


def test_an_accuracy_that_is_not_a_number_is_never_the_best() -> None:
    assert summarise([epoch(1, math.nan), epoch(2, 10.0)], "done", metrics=IMAGES, passes=2.0)["best"]["epoch"] == 2


def test_a_run_without_a_single_epoch() -> None:
    summary = summarise([{"kind": "event", "name": "collapsed", "step": 1}], "collapsed", metrics=IMAGES, passes=2.0)
    assert summary["last"] is summary["best"] is summary["images_per_s"] is None
    assert (summary["collapsed_step"], summary["epoch"], summary["wall_seconds"]) == (1, 0, 0.0)


def test_throughput_is_the_median_of_the_steps_and_given_seconds_count() -> None:
    rates = (10.0, 1000.0, math.inf, 30.0, 20.0)
    records = [
        {"kind": "step", "step": step, "images_per_s": rate, "time": step} for step, rate in enumerate(rates, start=1)
    ]
    summary = summarise(records, "done", metrics=IMAGES, passes=1.0, wall_seconds=77.0)
    assert summary["images_per_s"] == 25.0
    assert summary["wall_seconds"] == 77.0
