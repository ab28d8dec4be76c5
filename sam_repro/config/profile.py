"""`profile=official` takes what configs/departure has for a method and for a recipe; here it refuses to be empty.

A recipe goes by the name of its schedule. A method may be an exception to its recipe's departure, and a file that holds
nothing says that the authors' code was looked at and departs in nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sam_repro import CONFIGS
from sam_repro.errors import UserError

DEPARTURES = CONFIGS / "departure"
OFFICIAL = "official"


def refuse_empty(choices: Mapping[str, str]) -> None:
    """`choices`: the option of every group, as Hydra composed them."""
    method, schedule = choices["method"], choices["schedule"]
    if choices["profile"] != OFFICIAL or any(file.exists() for file in _files(method, schedule)):
        return
    raise UserError(
        f"profile={OFFICIAL} changes nothing for method={method} with schedule={schedule}: leave it out. It is for "
        f"method={','.join(_names(DEPARTURES / OFFICIAL))} and for the recipes of "
        f"schedule={','.join(_names(DEPARTURES / 'recipe' / OFFICIAL))}"
    )


def _files(method: str, schedule: str) -> tuple[Path, ...]:
    return (
        DEPARTURES / OFFICIAL / f"{method}.yaml",
        DEPARTURES / "recipe" / OFFICIAL / f"{schedule}.yaml",
        DEPARTURES / "exception" / OFFICIAL / schedule / f"{method}.yaml",
    )


def _names(folder: Path) -> list[str]:
    return sorted(file.stem for file in folder.glob("*.yaml"))
