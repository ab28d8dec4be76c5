"""A known table with more in it: `extends: asam/2` in a file of one's own, or a column named on a command line.

    extends: asam/2                       # all of that table, with what this file says on top
    columns: {mine: {label: Mine, overrides: [method=sam, method.rho=0.07]}}

Rows, columns, cells and the miniature are taken over and added to, by their names; lists and values are replaced.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sam_repro.errors import UserError
from sam_repro.files.strict import Fields, mapping

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
# A quoted text, a list or another piece without a comma; brackets may hold one more pair, which is enough for a value.
_PIECE = re.compile(
    r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\[(?:[^\[\]]|\[[^\]]*\])*\]|\([^()]*\)|\{[^{}]*\}|[^,'\"\[\](){}])+"
)


# What a table's runs can't be told by an override, and what to say instead.
NO_OVERRIDE = {
    "seed": "a cell's seeds are the table's; budget.seeds=1 takes fewer of them",
    "force": "to train a run again delete its folder in results/runs and its line in the ledger",
    "budget.name": "write budget=NAME",
}
_NOT_IN_A_COLUMN = NO_OVERRIDE | {"results_dir": "say it of the whole command, outside of the column"}


@dataclass(frozen=True)
class Column:
    """One more column of a table, for this command alone."""

    id: str
    overrides: tuple[str, ...]


def column(text: str) -> Column:
    """ "mine:method=sam,method.rho=0.07": its name and, separated by commas, its overrides, quoted as Hydra has it."""
    name, colon, rest = text.partition(":")
    if not colon or not rest:
        raise UserError(f"column={text}: write column=NAME:OVERRIDE,..., as in mine:method=sam,method.rho=0.07")
    if not _NAME.fullmatch(name):
        raise UserError(f"column={text}: a name has letters, digits and _, after the first also . and -")
    pieces = _PIECE.findall(rest)
    if not pieces or ",".join(pieces) != rest:
        raise UserError(f"column={text}: a quote or bracket is not closed, or nothing stands between commas")
    for piece in pieces:
        if not re.match(r"[^=]+=", piece):
            raise UserError(f"column={text}: {piece!r} is no KEY=VALUE; put a value with a comma into quotes")
        key = piece.partition("=")[0].lstrip("+~")
        if key in _NOT_IN_A_COLUMN:
            raise UserError(f"column={text}: {key}: {_NOT_IN_A_COLUMN[key]}")
    return Column(name, tuple(pieces))


def with_column(where: str, data: Fields, added: Column) -> Fields:
    """The table's fields with the column, in its miniature too."""
    columns = mapping(f"{where} columns", data.get("columns") or {})
    if added.id in columns:
        raise UserError(f"column={added.id}: {where} has such a column; give yours another name")
    out = {**data, "columns": {**columns, added.id: {"label": added.id, "overrides": list(added.overrides)}}}
    if data.get("miniature"):
        small = mapping(f"{where} miniature", data["miniature"])
        out["miniature"] = with_column(f"{where} miniature", small, added)
    return out


def extended(base: Any, own: Any) -> Any:
    """`own` on top of `base`: mappings are merged by their keys, anything else is replaced."""
    if not isinstance(base, dict) or not isinstance(own, dict):
        return own
    return {**base, **{key: extended(base[key], value) if key in base else value for key, value in own.items()}}
