"""The words of a command line: names, settings (KEY=VALUE) and flags (--flag, --flag VALUE or --flag=VALUE)."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sam_repro.errors import UserError, nearest

HELP = ("-h", "--help")
PLACES = ("results_dir", "out", "--results-dir", "--out", "--root", "--from")


@dataclass(frozen=True)
class Words:
    names: list[str] = field(default_factory=list)  # all that is neither a setting nor a flag, in order
    settings: dict[str, str] = field(default_factory=dict)
    flags: dict[str, str] = field(default_factory=dict)  # "--flag" -> its value; "" if it takes none


def parse(words: Sequence[str], flags: Mapping[str, bool], settings: Collection[str] | None = None) -> Words:
    """`flags` says of each flag whether it takes a value.

    Of two of one key the later counts, as of Hydra's words. Without `settings` every KEY=VALUE is one. Else a word with
    another key is a name: a folder may have an = in it.
    """
    found, rest = Words(), list(words)
    while rest:
        word = rest.pop(0)
        key, equals, value = word.partition("=")
        if not word.startswith("-"):
            if equals and (settings is None or key in settings):
                found.settings[key] = placed(key, value)
            else:
                found.names.append(word)
            continue
        if key in HELP:
            raise UserError(f"{key} comes first, as in sam-repro --help or, of a group, sam-repro --help method")
        if key not in flags:
            raise UserError(f"{key}: there is no such flag.{nearest(key, flags) or _offer(flags)}")
        if not flags[key] and equals:
            raise UserError(f"{key} takes no value")
        if flags[key] and not equals:
            if not rest:
                raise UserError(f"{key} needs a value")
            value = rest.pop(0)
        found.flags[key] = placed(key, value)
    return found


def placed(key: str, value: str) -> str:
    """A place with ~ as the home folder: after an equals sign few shells expand it, and a folder may be called so."""
    return os.path.expanduser(value) if key in PLACES else value


def stored_in(given: str | None) -> Path:
    """The results folder that was given, which must be there, or the default one, which a first run will make."""
    if given is not None and not Path(given).is_dir():
        raise UserError(f"results_dir={given}: there is no such folder")
    return Path(given or "results")


def _offer(flags: Collection[str]) -> str:
    return f" There are {', '.join([*flags, '--help'])}"
