"""docs/discrepancies.yaml, read strictly: where papers, released code and this project differ. Its head says how."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sam_repro import CONFIGS
from sam_repro.errors import UserError, hint
from sam_repro.files.strict import Fields, Loader, known_keys, mapping
from sam_repro.tables.papers import papers

FILE = CONFIGS.parent / "docs" / "discrepancies.yaml"
# Papers that have no table here, but a method in one, or that are the source of a method.
OF_METHODS = {
    "gsam": "GSAM",
    "lpf_sgd": "LPF-SGD",
    "esam": "ESAM",
    "looksam": "LookSAM",
    "fishersam": "FisherSAM",
    "all": "all three",
}
TOPICS = ("method", "recipe", "model", "data", "text")
_TEXTS = ("says", "ours", "matters")
_NEEDED = ("id", "paper", "topic", "says", "code", "ours", "official", "matters", "seen")


@dataclass(frozen=True)
class Check:
    """What a row says in prose, as values that composing these overrides gives."""

    overrides: tuple[str, ...]
    default: Fields
    official: Fields  # with profile=official; empty where that would say nothing


@dataclass(frozen=True)
class Discrepancy:
    id: str
    paper: str
    topic: str
    says: str
    code: str | None
    ours: str
    official: str | None
    matters: str
    seen_paper: str | None
    seen_code: str | None
    checks: tuple[Check, ...]


def load(file: Path | None = None) -> dict[str, Discrepancy]:
    """Every row by its id; none where the file itself is missing."""
    file = file or FILE
    where = f"docs/{file.name}"
    try:
        rows = yaml.load(file.read_text(encoding="utf-8"), Loader=Loader)
    except FileNotFoundError:
        return {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{where}: {' '.join(str(error).split())}") from None
    if not isinstance(rows, list):
        raise UserError(f"{where}: must be a list of rows")
    found = dict[str, Discrepancy]()
    for number, row in enumerate(rows, start=1):
        name = row.get("id") if isinstance(row, dict) else None
        read = _row(f"{where} row {name or number}", row)
        if read.id in found:
            raise UserError(f"{where}: the id {read.id!r} twice")
        found[read.id] = read
    return found


def paper_names() -> dict[str, str]:
    """What a row's paper may be, and how it is shown."""
    return {name: paper.name for name, paper in papers().items()} | OF_METHODS


def concerning(ids: Iterable[str], rows: dict[str, Discrepancy]) -> list[Discrepancy]:
    """The named rows, in the file's order."""
    wanted = set(ids)
    for name in sorted(wanted - rows.keys()):
        raise UserError(f"docs/{FILE.name} has no row {name!r}: {hint(name, rows)}")
    return [row for row in rows.values() if row.id in wanted]


def refs(where: str, fields: Fields) -> tuple[str, ...]:
    """The rows that a table, or a row or column of it, says concern it."""
    found = fields.get("discrepancies") or []
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise UserError(f"{where}: discrepancies must be a list of ids of docs/discrepancies.yaml, is {found!r}")
    return tuple(found)


def _row(where: str, data: Any) -> Discrepancy:
    fields = known_keys(where, data, {*_NEEDED, "checks"})
    for key in _NEEDED:
        if key not in fields:
            raise UserError(f"{where}: {key} is missing")
    for key, known in (("paper", paper_names()), ("topic", TOPICS)):
        if fields[key] not in known:
            raise UserError(f"{where}: {key} must be one of {', '.join(known)}, is {fields[key]!r}")
    seen = known_keys(f"{where} seen", fields["seen"], {"paper", "code"})
    texts = {key: _text(f"{where} {key}", fields[key]) for key in ("id", *_TEXTS)}
    code, official = (_optional(f"{where} {key}", fields[key]) for key in ("code", "official"))
    seen_paper, seen_code = (_optional(f"{where} seen {key}", seen.get(key)) for key in ("paper", "code"))
    if (code is None) != (seen_code is None):
        raise UserError(f"{where}: code and where it is seen go together: both, or null where none was released")
    if seen_paper is None and seen_code is None:
        raise UserError(f"{where}: seen names neither the paper's section nor the code's file")
    checks = fields.get("checks", [])
    if not isinstance(checks, list):
        raise UserError(f"{where}: checks must be a list, is {checks!r}")
    return Discrepancy(
        id=texts["id"],
        paper=fields["paper"],
        topic=fields["topic"],
        says=texts["says"],
        code=code,
        ours=texts["ours"],
        official=official,
        matters=texts["matters"],
        seen_paper=seen_paper,
        seen_code=seen_code,
        checks=tuple(_check(f"{where} checks", check) for check in checks),
    )


def _check(where: str, data: Any) -> Check:
    fields = known_keys(where, data, {"overrides", "default", "official"}, needed=("overrides", "default"))
    overrides = fields["overrides"]
    if not isinstance(overrides, list) or not all(isinstance(x, str) and "=" in x for x in overrides):
        raise UserError(f"{where}: overrides must be a list of key=value, is {overrides!r}")
    return Check(tuple(overrides), mapping(where, fields["default"]), mapping(where, fields.get("official", {})))


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"{where}: must be a text, is {value!r}")
    return " ".join(value.split())


def _optional(where: str, value: Any) -> str | None:
    return None if value is None else _text(where, value)
