"""Every field of a configuration with its type, default and meaning, as the schema's own lines declare them.

`sam-repro --help GROUP` prints a group, `python -m sam_repro.config.reference` renews docs/reference.md with all.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

from sam_repro import CONFIGS
from sam_repro.config.groups import groups, options
from sam_repro.config.schema import Config
from sam_repro.errors import UserError, hint
from sam_repro.files.atomic import write_atomic

FILE = CONFIGS.parent / "docs" / "reference.md"
RENEW = "python -m sam_repro.config.reference"
HEAD = f"""# Every key of a configuration

Made by `{RENEW}` from the comments of the schema; `sam-repro --help GROUP` prints a part of it.
The defaults are the schema's; `configs/` gives most of them another value, which `sam-repro --cfg job` prints.
"""
_DECLARED = re.compile(r"^    (\w+)(?::[^#]*|) = [^#]*#\s*(.+)$")
_GENERAL = "general"  # the keys that are in no group


@dataclass(frozen=True)
class Key:
    name: str  # dotted
    type: str
    default: str
    meaning: str
    choices: tuple[tuple[str, str], ...]  # an enum's members that say more than their name


def sections() -> dict[str, list[Key]]:
    """Group -> its keys."""
    found = dict[str, list[Key]]()
    for key in _keys(Config(), ""):
        group, dot, _ = key.name.partition(".")
        found.setdefault(group if dot else _GENERAL, []).append(key)
    return found


def text(group: str) -> str:
    """What there is to say of a group, for a terminal."""
    found, names = sections(), groups()
    if group not in (known := [*found, *names]):
        raise UserError(f"--help {group}: there is no such group: {hint(group, dict.fromkeys(known))}")
    lines = [f"{group}={'|'.join(options(group))}", ""] if group in names else []
    for key in found.get(group, []):
        lines.append(f"{key.name}={key.default}  ({key.type})" + (f"  {key.meaning}" if key.meaning else ""))
        lines += [f"    {choice}: {meaning}" for choice, meaning in key.choices]
    return "\n".join(lines).rstrip()


def page() -> str:
    """All of it, as Markdown."""
    lines = [HEAD]
    for group, keys in sections().items():
        lines += [f"## {group}", "", "| key | type | default | meaning |", "| --- | --- | --- | --- |"]
        for key in keys:
            meanings = [key.meaning, *(f"`{choice}`: {meaning}" for choice, meaning in key.choices)]
            cells = (f"`{key.name}`", key.type, f"`{key.default}`", "; ".join(filter(None, meanings)))
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _keys(node: Any, prefix: str) -> Iterator[Key]:
    types, said = typing.get_type_hints(type(node)), _comments(type(node))
    for field in fields(node):
        value, name = getattr(node, field.name), prefix + field.name
        if of_method := field.metadata.get("declared"):
            names = "|".join(choice for choice, _ in of_method.choices)
            choices = tuple(choice for choice in of_method.choices if choice[1])
            yield Key(name, names or _type(of_method.type), _shown(of_method.default), of_method.doc, choices)
        elif is_dataclass(value):
            yield from _keys(value, f"{name}.")
        else:
            chosen = _enum(types[field.name])
            yield Key(name, _type(types[field.name]), _shown(value), said.get(field.name, ""), _choices(chosen))


def _comments(kind: type) -> dict[str, str]:
    """Name -> the comment behind its declaration, of a dataclass's fields or an enum's members."""
    found = dict[str, str]()
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("sam_repro."):
            try:
                lines = inspect.getsource(base).splitlines()
            except OSError:  # an enum that no class statement declares
                continue
            found |= {match[1]: match[2] for line in lines if (match := _DECLARED.match(line))}
    return found


def _enum(type_: Any) -> type[Enum] | None:
    kinds = [type_, *typing.get_args(type_)]
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Enum)), None)


def _choices(kind: type[Enum] | None) -> tuple[tuple[str, str], ...]:
    said = _comments(kind) if kind else {}
    return tuple((str(member.value), said[member.name]) for member in kind or () if member.name in said)


def _type(type_: Any) -> str:
    if kind := _enum(type_):
        text = "|".join(str(member.value) for member in kind)
        return f"{text}|null" if type(None) in typing.get_args(type_) else text
    return (type_.__name__ if type(type_) is type else str(type_)).replace(" | ", "|").replace("None", "null")


def _shown(value: Any) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return f"[{','.join(map(str, value))}]" if isinstance(value, list) else str(value)


if __name__ == "__main__":
    write_atomic(FILE, page())
    print(FILE)
