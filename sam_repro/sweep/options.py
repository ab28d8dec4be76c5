"""The command line of `sam-repro sweep`: words of the form key=value, as everywhere in the project."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path

from sam_repro.errors import UserError
from sam_repro.sweep import launchers
from sam_repro.tables.chosen import papers
from sam_repro.tables.extend import NO_OVERRIDE, Column, column
from sam_repro.words import parse as words_of
from sam_repro.words import placed

USAGE = """\
sam-repro sweep table=asam/2 budget=mini [SETTING=VALUE ...] [OVERRIDE ...] [--dry-run]

Trains what is missing of a table: every run once, whoever else works on the same results. Started again it goes on.

  table=asam/2,asam/3      tables or whole papers, as `sam-repro report list` names them
  figure=fsam/figA3        or the runs of a measured figure, and then its study
  column=mine:method=sam,method.rho=0.07   one column more, for this command: trained and shown beside the others
  tune=true                the trials of the table's `tune:` first; then its values are chosen, then it is trained
  cells=resnet20/*         only the cells whose ROW/COLUMN matches (several: comma)
  budget=mini              paper (default), mini or smoke
  gpus=0-7 per_gpu=2       two runs at once on each of eight GPUs; with runtime.ranks=4 on each group of four
  slots=2                  or so many runs at once, the machine's threads divided among them
  launcher=slurm           or one job of a Slurm array for each run, set up by hydra.launcher.KEY=VALUE
  results_dir=results      the folder that all schedulers share
  stale=300                seconds without a heartbeat after which another scheduler takes a run over
  --dry-run                print the commands and start nothing

Anything else is an override of every run: dataset.root=/data track=none runtime.precision=fp32
"""


@dataclass
class Options:
    table: str = ""
    cells: str = ""
    column: Column | None = None
    tune: bool = False
    budget: str = "paper"
    gpus: str | None = None
    per_gpu: int = 1
    slots: int = 1
    launcher: str = "local"
    results_dir: str = "results"
    stale: float = 300.0
    dry_run: bool = False
    ranks: int = 1  # of a run, from its override
    submit: dict[str, str] = field(default_factory=dict)  # hydra.launcher.*
    overrides: list[str] = field(default_factory=list)

    @property
    def patterns(self) -> list[str]:
        """Of the cells: all of them, or with a column of the user's own that column's."""
        named = [pattern for pattern in self.cells.split(",") if pattern]
        return named or ([f"*/{self.column.id}"] if self.column else [])

    @property
    def results(self) -> Path:
        return Path(self.results_dir)


_SETTINGS = (
    "table",
    "cells",
    "column",
    "tune",
    "budget",
    "gpus",
    "per_gpu",
    "slots",
    "launcher",
    "results_dir",
    "stale",
)


def parse(words: list[str]) -> Options:
    given = words_of(words, {"--dry-run": False}, settings=())
    options = Options(dry_run="--dry-run" in given.flags)
    for word in given.names:
        key, equals, value = word.partition("=")
        key = key.lstrip("+~")  # a plus changes nothing about what a key means here
        if not equals and word.partition("/")[0] in papers():
            options.table = ",".join(filter(None, [options.table, word]))
        elif not equals or not key:
            raise UserError(f"{word}: write KEY=VALUE, or --dry-run")
        elif key.startswith("hydra.launcher."):
            options.submit[key.removeprefix("hydra.launcher.")] = value
        elif key.startswith("hydra"):
            raise UserError(f"{key}: not in a sweep; for Slurm write launcher=slurm hydra.launcher.KEY=VALUE")
        elif key in NO_OVERRIDE:
            raise UserError(f"{key}: {NO_OVERRIDE[key]}")
        elif key == "table" and value:
            options.table = ",".join(filter(None, [options.table, value]))
        elif key == "column" and options.column is not None:
            raise UserError(f"column={value}: there is one already, {options.column.id}: name one a command")
        elif key in _SETTINGS:  # of two the later counts, as of Hydra's words
            setattr(options, key, _typed(key, placed(key, value)))
        else:
            options.overrides.append(word)
            if key == "runtime.ranks":
                options.ranks = _whole(key, value)
    return _checked(options)


def _checked(options: Options) -> Options:
    if not options.table:
        raise UserError("table: name one, as in table=asam/2; `sam-repro report list` has them")
    launchers.named(options.launcher).check(options)
    return options


def _typed(key: str, value: str) -> str | int | float | Column:
    kind = {f.name: f.type for f in fields(Options)}[key]
    if key == "tune":
        if value not in ("true", "false"):
            raise UserError(f"tune={value}: write tune=true, or leave it out")
        return value == "true"
    if key == "column":
        return column(value)
    if kind == "int":
        return _whole(key, value)
    if kind == "float":
        try:
            number = float(value)
        except ValueError:
            number = 0.0
        if not 0 < number < float("inf"):
            raise UserError(f"{key} must be a number of seconds above 0, is {value}")
        return number
    if not value:
        raise UserError(f"{key}= needs a value")
    return value


def _whole(key: str, value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise UserError(f"{key} must be a whole number from 1, is {value}")
    return int(value)
