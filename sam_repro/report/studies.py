"""Studies as they are shown: what is stored of each, its picture, its lines in list, plan and status. No torch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sam_repro import CONFIGS
from sam_repro.errors import UserError
from sam_repro.files.atomic import write_atomic
from sam_repro.files.read import DamagedError, read_json
from sam_repro.report.figures.panel import Panel
from sam_repro.tables.plan import PAPER
from sam_repro.tables.studies import Study, load_all

FILE, PICTURE = "numbers.json", "figure"
FORMAT = 1
HOLDS = {True: "holds", False: "does not hold", None: "not decided"}


@dataclass(frozen=True)
class Judged:
    """Of one of the study's claims: whether it holds here, and what was measured."""

    holds: bool | None
    measured: str


@dataclass(frozen=True)
class Stored:
    """What a study found, as it lies in numbers.json."""

    study: str
    figure: str
    budget: str
    settings: Mapping[str, Any]
    runs: Sequence[Mapping[str, Any]]  # id and label of each run that was looked at
    caption: str  # n, budget and settings
    claims: Mapping[str, Judged]
    panels: Sequence[Panel]
    numbers: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "study": self.study,
            "figure": self.figure,
            "budget": self.budget,
            "settings": dict(self.settings),
            "runs": [dict(run) for run in self.runs],
            "caption": self.caption,
            "claims": {name: {"holds": one.holds, "measured": one.measured} for name, one in self.claims.items()},
            "numbers": dict(self.numbers),
            "panels": [panel.as_json() for panel in self.panels],
        }

    def text(self) -> str:
        """A panel and a measured value a line, so that a difference is read in a line too."""
        parts = self.as_json()
        for name in ("numbers", "claims", "settings"):
            parts[name] = _Lines(parts[name])
        lines = [f"{json.dumps(key)}: {_dump(value)}" for key, value in parts.items()]
        return "{\n" + ",\n".join(lines) + "\n}\n"


class _Lines(dict[str, Any]):
    """A mapping whose entries get a line each."""


def _dump(value: Any) -> str:
    if isinstance(value, _Lines):
        inside = ",\n".join(f" {json.dumps(k)}: {_flat(v)}" for k, v in value.items())
        return f"{{\n{inside}\n}}" if value else "{}"
    if isinstance(value, list):
        return "[\n" + ",\n".join(f" {_flat(one)}" for one in value) + "\n]" if value else "[]"
    return _flat(value)


def _flat(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def read(study: Study, results: Path, budget: str) -> Stored | None:
    """None: not measured yet."""
    file = study.folder(results, budget) / FILE
    try:
        data = read_json(file)
    except FileNotFoundError:
        return None
    try:
        if data["format"] != FORMAT:
            raise ValueError(f"its format is {data['format']}, this program's {FORMAT}")
        return Stored(
            **{name: data[name] for name in ("study", "figure", "budget", "settings", "runs", "caption", "numbers")},
            claims={name: Judged(_verdict(one["holds"]), str(one["measured"])) for name, one in data["claims"].items()},
            panels=[Panel.of(panel) for panel in data["panels"]],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedError(f"{file} holds no study ({type(error).__name__}: {error}): measure it again") from None


def _verdict(value: Any) -> bool | None:
    if value not in (True, False, None):
        raise ValueError(f"a claim holds or not, it is {value!r}")
    return None if value is None else bool(value)


def write(study: Study, stored: Stored, results: Path) -> list[Path]:
    """Numbers and picture."""
    folder = study.folder(results, stored.budget)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / FILE, stored.text())
    except OSError as error:
        raise UserError(f"results_dir={results} can't be written ({error.strerror}): choose another folder") from error
    # Drawn from what is stored, whose drawn numbers have fewer digits, so that it is the same picture later.
    panels = [Panel.of(panel.as_json()) for panel in stored.panels]
    return [folder / FILE, *draw(study, replace(stored, panels=panels), results)]


def draw(study: Study, stored: Stored, results: Path) -> list[Path]:
    """The picture of stored numbers, in each format."""
    from sam_repro.report.figures import picture

    folder, paths = study.folder(results, stored.budget), []
    for form, content in picture.draw(
        folder.name, study.title_at(stored.budget), stored.caption, stored.panels
    ).items():
        paths.append(folder / f"{PICTURE}.{form}")
        write_atomic(paths[-1], content)
    return paths


def draw_all(results: Path, configs: Path = CONFIGS) -> list[Path]:
    """Every picture of which the numbers are there."""
    return [path for study, stored in found(results, configs) for path in draw(study, stored, results)]


def found(results: Path, configs: Path = CONFIGS) -> list[tuple[Study, Stored]]:
    """Of every figure what was measured of it, at the paper's budget or in miniature."""
    pairs = [(study, read(study, results, budget)) for study in load_all(configs) for budget in study.parts]
    return [(study, stored) for study, stored in pairs if stored]


def claims(study: Study, stored: Stored | None) -> list[str]:
    """A sentence for each claim, with what came of it."""
    lines = []
    for name, claim in study.claims.items():
        one = stored.claims.get(name) if stored else None
        came = f"{HOLDS[one.holds]}: {one.measured}" if one else "not measured"
        lines.append(f"{claim.says} ({claim.where}) – {came}")
    return lines


def state(study: Study, results: Path, budget: str) -> str:
    """missing, done, or done with other settings than the study's file has."""
    stored = read(study, results, budget)
    if stored is None:
        return "missing"
    wanted = study.part(budget).settings
    other = [key for key, value in wanted.items() if stored.settings.get(key) != value]
    return f"done, with another {', '.join(other)}" if other else "done"


def command(study: Study, budget: str) -> str:
    return f"sam-repro study {study.name}" + ("" if budget == PAPER else f" budget={budget}")
