"""Which tables a user means: one by its name, all of a paper, or all; and what to do where one of many is no table."""

from __future__ import annotations

from pathlib import Path

from sam_repro import CONFIGS
from sam_repro.errors import UserError, hint
from sam_repro.tables import spec
from sam_repro.tables.extend import Column
from sam_repro.tables.table import Table


def named(word: str, configs: Path = CONFIGS) -> list[str]:
    """The table of this name, or those of the paper."""
    known = spec.names(configs)
    paper = word.partition("/")[0]
    of_paper = [ref for ref in known if ref.startswith(f"{paper}/")]
    if word in known:
        return [word]
    if word == paper and of_paper:
        return of_paper
    others = f" The tables of {paper} are {', '.join(of_paper)}" if of_paper else ""
    raise UserError(f"unknown table {word!r}: {hint(word, known)}{others}")


def papers(configs: Path = CONFIGS) -> set[str]:
    return {ref.partition("/")[0] for ref in spec.names(configs)}


def readable(refs: list[str], configs: Path = CONFIGS, added: Column | None = None) -> tuple[list[Table], list[str]]:
    """The tables among them, and a sentence for each that is none: a slip in one file stops that table alone."""
    tables, mistakes = list[Table](), list[str]()
    for ref in refs:
        try:
            tables.append(spec.load(ref, configs, added))
        except UserError as mistake:
            mistakes.append(str(mistake))
    return tables, mistakes
