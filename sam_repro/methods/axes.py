"""The axes of the algebra with the options of each, found in their folders, and a point: one option of every axis."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, ClassVar

from sam_repro.methods import own as own_code
from sam_repro.methods.ascents import Ascent
from sam_repro.methods.cadences import Cadence
from sam_repro.methods.descents import Descent
from sam_repro.methods.directions import Direction
from sam_repro.methods.geometries import Geometry
from sam_repro.methods.option import ANYTHING, COUNT, Option, Range, value
from sam_repro.methods.radii import Radius
from sam_repro.methods.scopes import Scope
from sam_repro.methods.starts import Start


@dataclass(frozen=True)
class Sharding(Option):
    """Who shares a perturbation. No axis of its own: there is nothing to choose but the number."""

    axis: ClassVar[str] = ""

    m: int | None = value(
        None,
        "samples that share one perturbation (m-sharpness); null: the whole batch",
        Range(COUNT.holds, "must be at least 1 sample, is {}"),
    )


AXES: dict[str, type[Option]] = {
    kind.axis: kind for kind in (Start, Ascent, Direction, Geometry, Scope, Radius, Descent, Cadence)
}
# Those whose option may be the user's own, package.module:attribute. A stored run's id follows from the others alone:
# to read a run executes no code that it names.
OPEN = (Direction.axis, Geometry.axis, Descent.axis)
ALWAYS = ("", Start.axis, Ascent.axis)  # the axes that are read without an ascent, too


@dataclass(frozen=True)
class Point:
    """One option of every axis, with its values."""

    start: Start
    ascent: Ascent
    direction: Direction
    geometry: Geometry
    scope: Scope
    radius: Radius
    descent: Descent
    between: Cadence
    sharding: Sharding

    def options(self) -> Iterator[Option]:
        """Those that are read: without an ascent there is no direction, for one."""
        for field in dataclasses.fields(self):
            option = getattr(self, field.name)
            if self.reads(option.axis):
                yield option

    def reads(self, axis: str) -> bool:
        """Without an ascent there is noise at most to perturb by."""
        return axis in ALWAYS or self.ascent.ascends or (axis == Scope.axis and self.start.noisy)

    @property
    def needs_first(self) -> bool:
        """Whether the first gradient is kept until the second is there."""
        return self.ascent.ascends and (self.descent.needs_first or self.between.needs_first)


@cache
def options(axis: str) -> dict[str, type[Option]]:
    """The options of an axis by name, its default first: one class a file of its folder."""
    base, found = AXES[axis], dict[str, type[Option]]()
    package = import_module(base.__module__)
    for file in iter_modules(package.__path__, f"{package.__name__}."):
        module = import_module(file.name)
        own = [
            kind
            for kind in vars(module).values()
            if isinstance(kind, type) and issubclass(kind, base) and kind.__module__ == file.name
        ]
        assert len(own) == 1, f"{file.name} must define one {base.__name__}, it defines {len(own)}"
        found[own[0].name] = own[0]
    return dict(sorted(found.items(), key=lambda item: (item[0] != base.default, item[0])))


def option(axis: str, name: str) -> type[Option]:
    """The option of this name: of the folder, or the user's own."""
    return own_code.load(AXES[axis], name) if axis in OPEN and ":" in name else options(axis)[name]


@dataclass(frozen=True)
class Field:
    """A field of the configuration, and who reads it."""

    type: Any
    default: Any
    doc: str
    allowed: Range
    axis: str
    readers: tuple[str, ...]  # options of the axis
    choices: tuple[tuple[str, str], ...] = ()  # name and meaning, the latter empty where `doc` has it


@cache
def fields() -> Mapping[str, Field]:
    """Every field that an option declares. Two options that declare one mean the same."""
    found: dict[str, Field] = {}
    for axis in (*AXES, Sharding.axis):
        for option in options(axis).values() if axis else [Sharding]:
            types = typing.get_type_hints(option)
            for own in dataclasses.fields(option):
                choices = tuple((name, "") for name in own.metadata["choices"])
                doc, allowed = own.metadata["doc"], own.metadata["allowed"]
                new = Field(types[own.name], own.default, doc, allowed, axis, (), choices)
                known = found.get(own.name, new)
                same = (known.type, known.default, known.axis) == (new.type, new.default, new.axis)
                assert same, f"two options declare {own.name} differently"
                found[own.name] = dataclasses.replace(known, readers=(*known.readers, option.name))
    return found


@cache
def declared() -> Mapping[str, Field]:
    """The same, after the fields that choose an option of an axis."""
    return {axis: _choosing(axis) for axis in AXES} | dict(fields())


def _choosing(axis: str) -> Field:
    known = options(axis)
    doc = first_line(import_module(AXES[axis].__module__).__doc__) + "; or package.module:attribute" * (axis in OPEN)
    choices = tuple((name, first_line(import_module(option.__module__).__doc__)) for name, option in known.items())
    return Field(str, AXES[axis].default, doc, ANYTHING, axis, (), choices)


def first_line(doc: str | None) -> str:
    return (doc or "").strip().partition("\n")[0].rstrip(".")


def point(said: Mapping[str, Any], own: Mapping[str, Any]) -> Point:
    """The point of these values: the names of options by axis, and fields; what is None or not there is not said.

    own: the fields that options of the user's own alone have.
    """
    return Point(**{axis: chosen(axis, said, own) for axis in AXES}, sharding=_made(Sharding, said, {}))


def chosen(axis: str, said: Mapping[str, Any], own: Mapping[str, Any]) -> Any:
    """The option of one axis, with its values."""
    return _made(option(axis, said.get(axis) or AXES[axis].default), said, own)


def _made(kind: type[Option], said: Mapping[str, Any], own: Mapping[str, Any]) -> Any:
    names = [field.name for field in dataclasses.fields(kind) if field.name in fields()]
    values = {name: said[name] for name in names if said.get(name) is not None}
    return kind(**values, **(own_code.values(kind, fields(), own) if own else {}))
