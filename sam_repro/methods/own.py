"""An option of the user's own: `method.direction=package.module:attribute`, a class as the folders' files have one.

What it declares is taken from it as from theirs: equation, rules, state, cost. A field that no option here declares is
said under `method.own`, another by the name that it has anyway.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sam_repro import own
from sam_repro.methods.option import ANYTHING, Option, Problem

if TYPE_CHECKING:
    from sam_repro.methods.axes import Field


def load(base: type[Option], name: str) -> type[Option]:
    """Raises `UserError` where it can't be found. What is found may be no option of this axis: `misfit` tells."""
    found: type[Option] = own.load(f"method.{base.axis}", name)
    return found


def misfit(base: type[Option], found: Any, known: Mapping[str, Field]) -> str | None:
    """Why this is no option of the axis."""
    if not (isinstance(found, type) and issubclass(found, base) and "__dataclass_fields__" in vars(found)):
        return f"is no frozen dataclass derived from {base.__module__}.{base.__name__}"
    hints = typing.get_type_hints(found)
    for field in dataclasses.fields(found):
        there = known.get(field.name)
        if there and (there.axis, there.type, there.default) != (base.axis, hints[field.name], field.default):
            return f"declares {field.name} otherwise than method.{field.name} is declared: give it another name"
    return None


def types_of(option: type[Option], known: Collection[str]) -> dict[str, Any]:
    """The fields that are its alone."""
    hints = typing.get_type_hints(option)
    return {field.name: hints[field.name] for field in dataclasses.fields(option) if field.name not in known}


def problems(options: Collection[type[Option]], known: Collection[str], given: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with the values under `method.own`."""
    readers = [(option, types_of(option, known)) for option in options]
    names = [name for _, its in readers for name in its]
    for name in given:
        if name not in names:
            there = f"there is {', '.join(names)}" if names else "no chosen option has a field of its own"
            yield f"own.{name}", f"is nothing that is read: {there}"
    for option, its in readers:
        for field in dataclasses.fields(option):
            if field.name not in its:
                continue
            if field.name not in given:
                if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
                    yield f"own.{field.name}", "must have a value"
                continue
            value, kind = _converted(given[field.name], its[field.name]), its[field.name]
            if type(value) not in _kinds(kind):
                yield f"own.{field.name}", f"must be a {getattr(kind, '__name__', kind)}, is {value!r}"
            elif wrong := field.metadata.get("allowed", ANYTHING).broken_by(value):
                yield f"own.{field.name}", wrong


def values(option: type[Option], known: Collection[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of its own fields that are said."""
    return {n: _converted(given[n], kind) for n, kind in types_of(option, known).items() if n in given}


def _converted(value: Any, kind: Any) -> Any:
    """A whole number is a number."""
    return float(value) if type(value) is int and float in _kinds(kind) and int not in _kinds(kind) else value


def _kinds(kind: Any) -> tuple[Any, ...]:
    single = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    return tuple(typing.get_origin(one) or one for one in single)
