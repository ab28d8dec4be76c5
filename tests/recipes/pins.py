"""Tables that are pinned: the claim and the run id of every cell, as they were when the table was looked at last.

A table whose lines are in tests/tables/printed.txt and whose rows are in stated.yaml is held against the paper itself.
Another one is held against pinned.txt, so that no change of it goes unseen.
"""

from __future__ import annotations

from pathlib import Path

from sam_repro.config.compose_many import compose_all
from sam_repro.config.identity import run_id
from sam_repro.errors import UserError
from sam_repro.tables.miniature import of_seed
from sam_repro.tables.spec import load, names

FILE = Path(__file__).with_name("pinned.txt")
NONE = "-"


def lines(ref: str) -> list[str]:
    """What there is to pin of a table: a line a cell."""
    table = load(ref)
    first = {cell: of_seed(cell.overrides, cell.seeds[0]) for cell in table.cells}
    composed = {} if table.not_run else compose_all(first.values())
    found = []
    for cell in table.cells:
        run = composed.get(first[cell])
        if isinstance(run, UserError):
            raise UserError(f"{cell.name}: {run}")
        identity = NONE if run is None else run_id(run)
        found.append("\t".join((ref, cell.row, cell.column, cell.claim.text or NONE, identity)))
    return found


def pinned(file: Path = FILE) -> dict[str, list[str]]:
    """Table -> its lines."""
    found = dict[str, list[str]]()
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        found.setdefault(line.partition("\t")[0], []).append(line)
    return found


def renew(wanted: list[str], file: Path = FILE) -> None:
    """Of these tables alone; of a table that is there no more the pins go."""
    kept = {ref: of_table for ref, of_table in pinned(file).items() if ref in names()}
    kept |= {ref: lines(ref) for ref in wanted}
    file.write_text("".join(f"{line}\n" for ref in sorted(kept) for line in kept[ref]), encoding="utf-8")
