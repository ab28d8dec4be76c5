"""What a figure shows, as data: panels of a kind, their axes and series. It is stored beside the picture, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

DIGITS = 6  # of a number that is drawn; the measured ones are stored whole
Numbers = Sequence[float | None]
Mark = Literal["line", "points", "region", "stems"]


@dataclass(frozen=True)
class Axis:
    name: str
    unit: str = ""
    log: bool = False
    limits: Sequence[float] | None = None
    ticks: Sequence[str] = ()  # names of 0, 1, 2, ... where these are no numbers

    @property
    def label(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name


@dataclass(frozen=True)
class Series:
    """Points with their intervals. One label is one colour, dash and mark in all panels of a figure."""

    label: str
    x: Numbers
    y: Numbers
    low: Numbers | None = None  # ends of the interval: in y, in a forest in x
    high: Numbers | None = None
    mark: Mark = "line"
    ends: bool = False  # mark where it starts and where it ends


@dataclass(frozen=True)
class Field:
    """A function of two numbers, as contour lines."""

    x: Numbers
    y: Numbers
    z: Sequence[Numbers]
    levels: Numbers
    name: str


@dataclass(frozen=True)
class Panel:
    kind: str  # a file of this folder
    title: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    field: Field | None = None
    notes: Sequence[str] = ()  # inside the panel, in small letters
    equal: bool = False  # one scale on both axes

    def as_json(self) -> dict[str, Any]:
        return dict(_short(asdict(self)))

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Panel:
        """From what `as_json` gave; KeyError or TypeError if it is something else."""
        values = dict(data)
        values["x"], values["y"] = Axis(**values["x"]), Axis(**values["y"])
        values["series"] = [Series(**one) for one in values["series"]]
        values["field"] = Field(**values["field"]) if values.get("field") else None
        return cls(**values)


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_short(part) for part in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
