"""What a run is judged by, as data: whoever shows, compares or counts results reads it here and knows no task."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any


def on_validation(name: str) -> str:
    """test_accuracy -> validation_accuracy"""
    return f"validation_{name.removeprefix('test_')}"


@dataclass(frozen=True)
class Metric:
    """A key of the epoch records. The first of a run's metrics is the primary one: its best epoch is the run's."""

    name: str
    unit: str = ""
    higher_is_better: bool = True
    chance: float | None = None  # what guessing gives
    result: bool = False  # kept in the ledger, for the tables

    def sane(self) -> bool:
        """Whether each field is of its type; one that was read may hold anything."""
        texts, truths = (self.name, self.unit), (self.higher_is_better, self.result)
        return (
            all(isinstance(text, str) for text in texts)
            and all(isinstance(truth, bool) for truth in truths)
            and isinstance(self.chance, int | float | None)
        )

    @property
    def words(self) -> str:
        return self.name.replace("_", " ")

    @property
    def title(self) -> str:
        """ "test accuracy, %" """
        return f"{self.words}, {self.unit}" if self.unit else self.words

    def text(self, value: float) -> str:
        """ "93.10 %" """
        return f"{value:.2f} {self.unit}".rstrip()

    def better(self, one: float, other: float) -> bool:
        return one > other if self.higher_is_better else one < other

    def best(self, records: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """Of epoch records the one with the best finite value, the first of equals as the papers' "maximum" is."""
        found: Mapping[str, Any] | None = None
        for record in records:
            value = record.get(self.name)
            if value is None or not math.isfinite(value):
                continue
            if found is None or self.better(value, found[self.name]):
                found = record
        return found

    def on_validation(self) -> Metric:
        """The same of the held-out part, which a run with dataset.evaluate_on=both judges beside its test set."""
        return replace(self, name=on_validation(self.name))

    def picked(self, records: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """Of epoch records the one that is best on the held-out part; None where there is none."""
        return self.on_validation().best(records)

    def at_chance(self, value: float, factor: float) -> bool:
        """Whether it is no better than `factor` times what guessing gives.

        Of few classes that is far from guessing (75 % of two): a share is at chance within a tenth of what there is
        between guessing and 100 % at most. Where less is better, zero is the best and not the worst: there guessing
        itself counts.
        """
        if self.chance is None:
            return False
        if not self.higher_is_better:
            return value >= self.chance
        most = factor * self.chance
        return value <= (min(most, 0.9 * self.chance + 10) if self.unit == "%" else most)
