"""The shipped experiments: their files, their headers, and what they compose to.

`python tests/recipes/shipped.py` renews what is derived from the configuration: the run ids of run_ids.txt, and the
lines "Passes" and "Time" of every experiment's header. Look at the difference before you commit it: a changed run id
means that recorded results no longer belong to the recipe.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

from sam_repro import CONFIGS
from sam_repro.config.compose import compose, options
from sam_repro.config.identity import run_id
from sam_repro.config.schema import Config
from sam_repro.tables.cost import cost

RUN_IDS = Path(__file__).with_name("run_ids.txt")
_HEADER_LINE = re.compile(r"# (\w*) +(.*)")


def names() -> list[str]:
    """Every experiment. The files of recipe/ are what experiments have in common, and none themselves."""
    return [name for name in options("experiment") if not name.startswith("recipe/")]


def published() -> list[str]:
    """Those that repeat a paper's setting."""
    return [name for name in names() if name != "demo"]


@cache
def config(name: str, *overrides: str) -> Config:
    return compose([f"+experiment={name}", *overrides])


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


def derived(name: str) -> dict[str, str]:
    """The header's lines that follow from the configuration."""
    spent = cost(config(name))
    hours = spent.hours("a100")
    assert hours is not None, f"the cost of {name}'s model is not in models/cost.json"
    return {
        "Passes": f"{spent.passes / spent.steps:.4g} a step, {_spaced(spent.passes)} in all",
        "Time": f"about {_duration(hours)} on one A100 (estimated from FLOPs, not measured)",
    }


def _duration(hours: float) -> str:
    if hours < 1:
        return f"{max(1, round(60 * hours))} min"
    return f"{_spaced(hours)} hours" if hours >= 10 else f"{hours:.1f} hours"


def _spaced(number: float) -> str:
    return f"{number:,.0f}".replace(",", " ")


def run_ids() -> list[str]:
    return [f"{run_id(config(name))}  {name}" for name in names()]


def renew() -> None:
    RUN_IDS.write_text("\n".join(run_ids()) + "\n", encoding="utf-8")
    for name in published():
        text = path(name).read_text(encoding="utf-8")
        for key, value in derived(name).items():
            text = re.sub(rf"^# {key} +.*$", f"# {key:<8} {value}", text, count=1, flags=re.M)
        path(name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    renew()
    sys.stdout.write(f"renewed {len(published())} headers and {RUN_IDS}\n")
