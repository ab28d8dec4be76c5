"""What a user or a file says, before it is a `Config`.

A field that only some configurations read (`reads.READ_BY`) may be left unsaid: null, in the schema that Hydra merges
files and overrides into. `settled` refuses what is said and not read, and fills the rest with the schema's defaults. So
everywhere else a `Config` is complete and its fields have the types that they are declared with.
"""

from __future__ import annotations

from copy import copy
from dataclasses import field, fields, is_dataclass, make_dataclass
from typing import Any, get_type_hints

from sam_repro.config.reads import READ_BY, unread
from sam_repro.config.schema import Config
from sam_repro.errors import UserError


def settled(said: Any) -> Config:
    """The complete configuration. Raises `UserError` for a field that is said and that nobody reads."""
    config = _filled(said, Config(), "")
    assert isinstance(config, Config)
    for name, problem in config.method.problems():
        raise UserError(f"method.{name} {problem}")  # before its options are asked what they read
    for key, why in unread(config).items():
        if _value(said, key) is not None:
            raise UserError(f"{key} is not read {why}; leave it out, or set it to null over a file's value")
    return config


def _filled(said: Any, default: Any, prefix: str) -> Any:
    if type(said) is type(default):
        return said  # a group, or a value, that has nothing to fill
    values = {}
    for name in (f.name for f in fields(default)):
        value, key = getattr(said, name), prefix + name
        if is_dataclass(value):
            value = _filled(value, getattr(default, name), f"{key}.")
        values[name] = getattr(default, name) if value is None and key in READ_BY else value
    return type(default)(**values)


def _value(said: Any, key: str) -> Any:
    for name in key.split("."):
        said = getattr(said, name)
    return said


def _sayable(kind: type, prefix: str = "") -> type:
    """`kind` with null for every field that may stay unsaid; itself where there is none."""
    if not any(key.startswith(prefix) for key in READ_BY):
        return kind
    hints, declared = get_type_hints(kind), list[tuple[str, Any, Any]]()
    for f in fields(kind):
        key, hint = prefix + f.name, hints[f.name]
        if key in READ_BY:
            declared.append((f.name, hint | None, field(default=None)))
        elif isinstance(hint, type) and is_dataclass(hint) and (inner := _sayable(hint, f"{key}.")) is not hint:
            declared.append((f.name, inner, field(default_factory=inner)))
        else:
            declared.append((f.name, hint, copy(f)))
    return make_dataclass(kind.__name__, declared)


Said = _sayable(Config)
