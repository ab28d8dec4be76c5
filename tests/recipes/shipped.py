"""The shipped experiments: their files, their headers, and what they compose to.

`python tests/renew.py NAME` renews what is derived of an experiment: its run id in run_ids.txt, and in its header
the lines "Cell" (which cell of configs/table it is, where the claim stands), "Passes", "Time" and "Columns". Look at
the difference before you commit it: a changed run id means that recorded results no longer belong to the recipe.
"""

from __future__ import annotations

import re
from collections.abc import Set
from functools import cache
from pathlib import Path

from sam_repro import CONFIGS
from sam_repro.config.compose import compose
from sam_repro.config.compose_many import compose_all
from sam_repro.config.groups import options
from sam_repro.config.identity import run_id
from sam_repro.config.schema import Config
from sam_repro.errors import UserError
from sam_repro.tables.cost import cost
from sam_repro.tables.spec import load_all
from sam_repro.tables.table import Cell, Table

RUN_IDS = Path(__file__).with_name("run_ids.txt")
_PLACE = {"Cell": r"^# Command ", "Passes": r"^# Time |^defaults:", "Time": r"^defaults:", "Columns": r"^defaults:"}
_HEADER_LINE = re.compile(r"# (\w*) +(.*)")


def names() -> list[str]:
    """Every experiment. The files of recipe/ are what experiments have in common, and none themselves."""
    return [name for name in options("experiment") if not name.startswith("recipe/")]


def published() -> list[str]:
    """Those that repeat a paper's setting."""
    return [name for name in names() if name != "demo"]


@cache
def config(name: str, *overrides: str) -> Config:
    """By Hydra itself; with overrides on the short way, which tests/test_recipes.py holds equal."""
    words = (f"+experiment={name}", *overrides)
    found = compose_all([words])[words] if overrides else compose(words)
    if isinstance(found, UserError):
        raise found
    return found


def path(name: str) -> Path:
    return CONFIGS / "experiment" / f"{name}.yaml"


def header(name: str) -> dict[str, str]:
    """The comment at the head of an experiment's file by its keys; continued lines joined."""
    found: dict[str, str] = {}
    key = ""
    for line in path(name).read_text(encoding="utf-8").splitlines()[1:]:
        match = _HEADER_LINE.fullmatch(line)
        if match is None:
            break
        key, text = match[1] or key, match[2]
        found[key] = f"{found[key]} {text}" if key in found else text
    return found


def derived(name: str) -> dict[str, list[str]]:
    """The header's lines that follow from the configuration and from the tables."""
    spent = cost(config(name))
    hours = spent.hours("a100")
    assert hours is not None, f"the cost of {name}'s model is not in models/cost.json"
    return _of_the_cell(name) | {
        "Passes": [f"{spent.passes / spent.steps:.4g} a step, {_spaced(spent.passes)} in all"],
        "Time": [f"about {_duration(hours)} on one A100 (estimated from FLOPs, not measured)"],
    }


def _of_the_cell(name: str) -> dict[str, list[str]]:
    """Which cell the experiment is, the first of its tables', and what makes the others of the row from it."""
    identity = run_id(config(name))
    same = [(table, cell) for table, cell in cells() if cells()[table, cell] == identity]
    if not same:
        return {}
    table, own = min(same, key=lambda found: found[0].paper != name.partition("_")[0])  # one of its own paper first
    lines = {"Cell": [own.name]}
    others = [c for c in table.cells if c.row == own.row and c.overrides != own.overrides]
    if others and run_id(config(own.overrides[0].removeprefix("+experiment="))) == identity:
        labels = {column.id: column.label for column in table.columns}
        lines["Columns"] = [f"{labels[c.column]}: {' '.join(_beyond(name, own, c))}" for c in others]
    return lines


def _beyond(name: str, own: Cell, other: Cell) -> list[str]:
    """The overrides that make another cell of the experiment; those of its own cell only where they are needed."""
    whole = [o for o in other.overrides if not o.startswith("+experiment=")]
    short = [o for o in whole if o not in own.overrides]
    wanted = run_id(config(*(o.removeprefix("+experiment=") for o in other.overrides)))
    return short if run_id(config(name, *short)) == wanted else whole


@cache
def cells() -> dict[tuple[Table, Cell], str]:
    """The run id, without its seed, of every cell that is trained."""
    found = {(table, cell): cell.overrides for table in load_all() if not table.not_run for cell in table.cells}
    composed = compose_all(found.values())
    return {key: run_id(run) for key, overrides in found.items() if isinstance(run := composed[overrides], Config)}


def _duration(hours: float) -> str:
    if hours < 1:
        return f"{max(1, round(60 * hours))} min"
    return f"{_spaced(hours)} hours" if hours >= 10 else f"{hours:.1f} hours"


def _spaced(number: float) -> str:
    return f"{number:,.0f}".replace(",", " ")


def run_ids() -> list[str]:
    return [f"{run_id(config(name))}  {name}" for name in names()]


def pinned_ids() -> dict[str, str]:
    """Experiment -> its run id, as run_ids.txt has it."""
    lines = RUN_IDS.read_text(encoding="utf-8").splitlines()
    return {name: identity for identity, _, name in (line.partition("  ") for line in lines)}


def renew(wanted: Set[str]) -> None:
    """Of these experiments alone."""
    kept = {name: identity for name, identity in pinned_ids().items() if name in names()}
    kept |= {name: run_id(config(name)) for name in wanted}
    RUN_IDS.write_text("".join(f"{kept[name]}  {name}\n" for name in sorted(kept)), encoding="utf-8")
    for name in sorted(wanted & set(published())):
        text = path(name).read_text(encoding="utf-8")
        for key, lines in derived(name).items():
            block = "".join(f"# {key if not i else '':<8} {line}\n" for i, line in enumerate(lines))
            block = block.replace("\\", r"\\")  # a template, which stands for itself
            text, found = re.subn(rf"^# {key} +.*\n(#  +.*\n)*", block, text, count=1, flags=re.M)
            if not found:  # before the command, or at the header's end
                text = re.sub(_PLACE[key], rf"{block}\g<0>", text, count=1, flags=re.M)
        path(name).write_text(text, encoding="utf-8")
