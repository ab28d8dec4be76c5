"""The descriptions of its metrics that a run records: when it starts, in its summary, and in its line in the ledger.

A record from before there were any has those of image classification, which was all there was. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from sam_repro.data.declared import DatasetConfig
from sam_repro.tasks.classification.declared import of_images
from sam_repro.tasks.metric import Metric


def recorded(metrics: Iterable[Metric]) -> list[dict[str, Any]]:
    """As a summary or a line of the ledger keeps them."""
    return [asdict(metric) for metric in metrics]


def described(record: Mapping[str, Any]) -> tuple[Metric, ...]:
    """The metrics of a summary or of a line of the ledger, the primary one first. Raises ValueError of an odd one."""
    try:
        if "described" in record:
            found = tuple(Metric(**description) for description in record["described"])
            if not found or not all(metric.sane() for metric in found):
                raise ValueError("of other types")
            return found
        dataset = record.get("config", {}).get("dataset", {})
        return of_images(dataset.get("classes", DatasetConfig().classes))
    except (TypeError, AttributeError, ValueError, ZeroDivisionError) as error:
        raise ValueError(f"its metrics are not described ({error})") from error
