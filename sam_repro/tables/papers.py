"""The papers whose tables these are: configs/table/<paper>/paper.yaml says name and year, in whose order they stand.

A folder without that file, such as one of the user's own tables, goes by its own name and comes last.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sam_repro import CONFIGS
from sam_repro.errors import UserError
from sam_repro.files.read import DamagedError, read_yaml
from sam_repro.files.strict import Kinds, typed_keys

FILE = "paper.yaml"
_PAPER: Kinds = {"name": str, "year": int}


@dataclass(frozen=True)
class Paper:
    name: str  # as it stands on the page: ASAM
    year: float


@cache
def papers(configs: Path = CONFIGS) -> dict[str, Paper]:
    """Every paper by its folder's name."""
    folders = {folder.name: folder for kind in ("figure", "table") for folder in (configs / kind).glob("*/")}
    found = {name: _read(folder / FILE) for name, folder in folders.items()}
    return dict(sorted(found.items(), key=lambda item: (item[1].year, item[0])))


def shown(names: Iterable[str]) -> dict[str, Paper]:
    """Of the tables of these papers, in order. A table from elsewhere goes by its folder's name, too."""
    wanted, known = set(names), papers()
    of_elsewhere = {name: Paper(name, math.inf) for name in sorted(wanted - set(known))}
    return {name: paper for name, paper in known.items() if name in wanted} | of_elsewhere


def _read(file: Path) -> Paper:
    where = f"{file.parent.name}/{FILE}"
    try:
        fields = typed_keys(where, read_yaml(file), _PAPER, needed=_PAPER)
    except FileNotFoundError:
        return Paper(file.parent.name, math.inf)
    except DamagedError as error:
        raise UserError(f"{where}: {' '.join(str(error).split())}") from None
    return Paper(fields["name"], fields["year"])
