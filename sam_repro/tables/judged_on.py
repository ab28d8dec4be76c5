"""Metrics that no training records: `sam-repro evaluate` adds them to the line of a finished run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Metric -> what it is judged on, as `evaluate on=` names it.
TEST_SETS = {
    "imagenet_accuracy": "imagenet",
    "imagenet_real_accuracy": "real",
    "imagenet_v2_accuracy": "v2",
    "imagenet_r_accuracy": "r",
    "imagenet_c_accuracy": "c",
}


def lacking(metric: str, entry: Mapping[str, Any] | None) -> str | None:
    """The test set on which a run that was trained is still to be judged; a collapsed run is judged on none."""
    if entry is None or entry["status"] != "done" or metric in entry["metrics"]:
        return None
    return TEST_SETS.get(metric)
