"""A study's specification: configs/study/NAME.yaml -> `Study`.

    title: what the figure shows
    measures: what of any runs   # the title in miniature, and where a user names the runs and gets a figure of his own
    source: {paper: ..., where: figure 3}
    figure: asam/fig3            # whose figure it is: the paper's folder, and a number
    study: toy                   # the module of sam_repro/study that measures it; default the file's own name
    takes: 20 s                  # of one core, as measured, without the training of its runs
    settings: {steps: 1000}      # of the module's `Settings`; the command line overrides them
    runs: {table: fsam/cifar10, cells: [resnet18/sam]}  # the trained runs that it looks at: cells of a table, or all
    mini: {takes: 2 s, settings: {...}, runs: {...}}    # the same question in a few minutes, under budget=mini
    claims:                      # what the paper prints or says; the module judges each by its name
      reaches: {says: ..., where: section 5.1}
    notes: [...]                 # what the paper leaves open and what was taken here

What comes out stands in results/figures/<paper>_<figure>/: numbers.json, and the picture that is drawn from it alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sam_repro import CONFIGS
from sam_repro.errors import UserError, hint
from sam_repro.files.read import DamagedError, read_yaml
from sam_repro.files.strict import Kinds, mapping, shown, typed_keys
from sam_repro.tables.plan import PAPER
from sam_repro.tables.table import MINI

_WORD = (str, int, float)
_PART: Kinds = {"takes": str, "settings": dict, "runs": dict}
_STUDY: Kinds = _PART | {
    "title": str, "measures": str, "source": dict, "figure": str, "study": str, "mini": dict, "claims": dict,
    "notes": list,
}  # fmt: skip
_SOURCE: Kinds = {"paper": _WORD, "where": _WORD}
_CLAIM: Kinds = {"says": str, "where": _WORD}
_RUNS: Kinds = {"table": str, "cells": list, "budget": str}


@dataclass(frozen=True)
class Claim:
    says: str
    where: str


@dataclass(frozen=True)
class Runs:
    """Cells of a table whose runs are looked at."""

    table: str
    cells: tuple[str, ...]  # row/column, in the order of the figure; none: all
    budget: str  # that they are trained with

    @property
    def command(self) -> str:
        budget = "" if self.budget == PAPER else f" budget={self.budget}"
        cells = f" cells={','.join(self.cells)}" if self.cells else ""
        return f"sam-repro sweep table={self.table}{cells}{budget}"


@dataclass(frozen=True)
class Part:
    """Of one budget: the paper's question, or its miniature."""

    budget: str
    takes: str
    settings: Mapping[str, Any]
    runs: Runs | None


@dataclass(frozen=True)
class Study:
    name: str
    module: str
    title: str
    source: str
    figure: str  # asam/fig3
    claims: Mapping[str, Claim]
    notes: tuple[str, ...]
    parts: Mapping[str, Part]
    measures: str

    def title_at(self, budget: str) -> str:
        """The paper's nets and data are not the miniature's, whose caption says its own."""
        return f"{self.measures}, in miniature" if budget == MINI else self.title

    def of_named_runs(self, judged: Collection[str] = ()) -> Study:
        """A figure of the user's own, which neither replaces the paper's nor stands in the report; of what the paper
        says what could be judged."""
        claims = {name: claim for name, claim in self.claims.items() if name in judged}
        return replace(
            self,
            title=self.measures,
            source="runs that were named",
            figure=f"own/{self.name}",
            claims=claims,
            notes=(),
        )

    @property
    def paper(self) -> str:
        return self.figure.partition("/")[0]

    def part(self, budget: str) -> Part:
        if budget not in self.parts:
            raise UserError(f"budget={budget}: study {self.name} has {' and '.join(self.parts)}")
        return self.parts[budget]

    def folder(self, results: Path, budget: str) -> Path:
        return results / "figures" / (self.figure.replace("/", "_") + (f".{MINI}" if budget == MINI else ""))


def names(configs: Path = CONFIGS) -> list[str]:
    return sorted(file.stem for file in (configs / "study").glob("*.yaml"))


def load_all(configs: Path = CONFIGS) -> list[Study]:
    """In the order of their figures."""
    return sorted((load(name, configs) for name in names(configs)), key=lambda study: study.figure)


def of_figure(word: str, configs: Path = CONFIGS) -> Study | None:
    """The study of this figure, or of this name."""
    return next((study for study in load_all(configs) if word in (study.figure, study.name)), None)


def load(name: str, configs: Path = CONFIGS) -> Study:
    where = f"study {name}"
    if name not in names(configs):
        raise UserError(f"no study {name!r}, {hint(name, names(configs))}")
    try:
        data = read_yaml(configs / "study" / f"{name}.yaml")
    except DamagedError as error:
        raise UserError(f"{where}: {' '.join(str(error).split())}") from None
    fields = typed_keys(where, data, _STUDY, needed={"title", "source", "figure", "takes"})
    source = typed_keys(f"{where} source", fields["source"], _SOURCE, needed=_SOURCE)
    paper, slash, number = fields["figure"].partition("/")
    if not (paper and slash and number) or "/" in number:
        raise UserError(f"{where}: figure must be PAPER/NUMBER, is {shown(fields['figure'])}")
    parts = {PAPER: _part(where, PAPER, fields, {})}
    if fields.get("mini") is not None:
        small = typed_keys(f"{where} mini", fields["mini"], _PART, needed={"takes"})
        parts[MINI] = _part(f"{where} mini", MINI, small, parts[PAPER].settings)
    return Study(
        name=name,
        module=fields.get("study") or name,
        title=fields["title"],
        source=f"{source['paper']}, {source['where']}",
        figure=fields["figure"],
        claims={key: _claim(f"{where} claim {key}", claim) for key, claim in (fields.get("claims") or {}).items()},
        notes=tuple(map(str, fields.get("notes") or ())),
        parts=parts,
        measures=fields.get("measures") or fields["title"],
    )


def _claim(where: str, data: Any) -> Claim:
    fields = typed_keys(where, data, _CLAIM, needed=_CLAIM)
    return Claim(fields["says"], str(fields["where"]))


def _part(where: str, budget: str, fields: Mapping[str, Any], above: Mapping[str, Any]) -> Part:
    settings = {**above, **mapping(f"{where} settings", fields.get("settings") or {})}
    return Part(budget, fields["takes"], settings, _runs(f"{where} runs", budget, fields.get("runs")))


def _runs(where: str, budget: str, data: Any) -> Runs | None:
    if data is None:
        return None
    fields = typed_keys(where, data, _RUNS, needed={"table"})
    return Runs(fields["table"], tuple(map(str, fields.get("cells") or ())), fields.get("budget") or budget)
