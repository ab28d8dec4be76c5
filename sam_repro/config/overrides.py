"""Overrides as a user types them, for Hydra's grammar: read before Hydra sees them, so that it meets no surprise.

A path or another text may hold anything: `~ = ( [ { ,`, spaces, letters of every language, digits alone. It is put into
quotes. What could load or call code, or takes something out of a configuration, is refused.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from sam_repro.config.groups import groups, options
from sam_repro.config.schema import Config
from sam_repro.errors import UserError, nearest

_OVERRIDE = re.compile(r"(?P<plus>\+{0,2})(?P<key>[^=]*?)(?P<package>@[^=]*)?=(?P<value>.*)", re.DOTALL)
_PLAIN = re.compile(r"([A-Za-z_/]|\.{1,2}/)[\w./-]*", re.ASCII)  # nothing that Hydra takes for a number
_WORDS = ("null", "true", "false", "nan", "inf")  # nor for one of these
_OPEN = "method.own."  # what stands behind it, the user's own code declares
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_SCIENTIFIC = re.compile(r"(?<![\w.])\d+(?:\.\d*)?[eE]\+?\d\d?(?![\w.])")
_SEVERAL = re.compile(r"(?:choice|range|interval|glob|shuffle|sort|tag)\(.*\)", re.DOTALL)
# Of Hydra's own keys those that say where and how runs are started. Others, its callbacks and loggers above all, call
# what they are told to.
_HYDRA = re.compile(
    r"hydra[/.](launcher|sweeper|job_logging|hydra_logging)|hydra/sweeper/sampler|hydra\.(launcher|sweeper)\.[\w.]+"
    r"|hydra\.(run|sweep)\.\w+|hydra\.job\.(name|chdir)|hydra\.(mode|verbose|output_subdir)"
)
_CALLS = re.compile(r"_target_|custom_search_space|\(\)|\bpkg://")


def readable(overrides: Iterable[str], several: bool = False) -> list[str]:
    """As Hydra reads them; `several`: with commas between the values of several runs."""
    return [_readable(word, several) for word in overrides]


def _readable(word: str, several: bool) -> str:
    found = _OVERRIDE.fullmatch(word)
    if word.startswith("~"):
        raise UserError(f"{word}: nothing can be taken out of a configuration; give {word[1:]} another value")
    if not found or not found["key"]:
        raise UserError(f"{word}: write KEY=VALUE.{_meant(word)}")
    key, value = found["key"], found["value"]
    if key.split(".")[0].split("/")[0] == "hydra":
        _refuse_code(key, value)
        return word
    if "_target_" in word or "\0" in word:
        raise UserError(f"{key}: a configuration is values; it calls no code, so that _target_ is nothing for it")
    if key in groups() and not re.fullmatch(r"[\w./,'\"-]+|choice\(.*\)", value, re.ASCII):
        raise UserError(f"{word}: write one option, {key}=NAME.{nearest(value, options(key))}")
    if key not in _texts() and "${" in value:  # it would be filled in by whatever stands there, of any type
        raise UserError(f"{key}: ${{...}} is filled in by a shell, not here: write the value itself")
    if key in _whole_numbers():
        return word[: -len(value)] + _SCIENTIFIC.sub(_whole, value) if value else word
    if key.startswith(_OPEN):
        return f"++{key}={value}"
    if key not in _texts():
        return word
    return f"{found['plus']}{key}{found['package'] or ''}={_text(key, value, several)}"


def _text(key: str, value: str, several: bool) -> str:
    if _QUOTED.fullmatch(value) or (several and _SEVERAL.fullmatch(value)) or (value == "null" and _texts()[key]):
        return value
    if several and "," in value:
        return ",".join(_text(key, part, False) for part in value.split(","))
    if not value and not _texts()[key]:
        raise UserError(f"{key}= needs a value")
    if "${" in value:  # what is written into the run's folder would be filled in whenever it is read
        raise UserError(f"{key}: ${{...}} is filled in by a shell, not here: write the text itself")
    return quoted(value)


def _whole(found: re.Match[str]) -> str:
    """1e3 as 1000, which is no float for Hydra."""
    number = float(found[0])
    return str(int(number)) if number.is_integer() else found[0]


def quoted(text: str) -> str:
    """A text that Hydra reads as this text."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    # A backslash means itself, but before a quote or an interpolation.
    text = re.sub(r"(\\*)\$\{", lambda found: 2 * found[1] + "\\${", text)
    return "'" + re.sub(r"(\\*)('|$)", lambda found: 2 * found[1] + ("\\'" if found[2] else ""), text) + "'"


def _refuse_code(key: str, value: str) -> None:
    if not _HYDRA.fullmatch(key) or _CALLS.search(f"{key}={value}"):
        raise UserError(
            f"{key}: of Hydra's own keys a command line sets launcher, sweeper, run, sweep, verbose, mode, job.name "
            "and job.chdir, to nothing that loads or calls code"
        )


def _meant(word: str) -> str:
    return f" Did you mean '{word}=VALUE'?" if word in known() else nearest(word, known())


@cache
def known() -> tuple[str, ...]:
    """What may stand before the equals sign: every key and every group."""
    return (*groups(), *(key for key, _ in _keys(Config(), "")))


@cache
def _texts() -> dict[str, bool]:
    """The keys whose value is a text -> whether null is one of their values too."""
    return {key: type_ is not str for key, type_ in _keys(Config(), "") if type_ in (str, str | None)}


@cache
def _whole_numbers() -> frozenset[str]:
    """The keys whose value is a whole number."""
    return frozenset(key for key, type_ in _keys(Config(), "") if type_ in (int, int | None))


def _keys(node: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    types = typing.get_type_hints(type(node))
    for field in fields(node):
        value = getattr(node, field.name)
        yield prefix + field.name, types[field.name]
        if is_dataclass(value):
            yield from _keys(value, f"{prefix}{field.name}.")
