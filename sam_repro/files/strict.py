"""YAML read strictly: an unknown key, a missing one or one written twice is an error that says where."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from sam_repro.errors import UserError, hint

Fields = dict[str, Any]
Kinds = dict[str, type | tuple[type, ...]]  # of the values, by key


def known_keys(where: str, data: Any, allowed: set[str], needed: Iterable[str] = ()) -> Fields:
    found = mapping(where, data)
    for key in found:
        if key not in allowed:
            raise UserError(f"{where}: unknown key {key!r}: {hint(str(key), sorted(allowed))}")
    for key in needed:
        if not found.get(key):
            raise UserError(f"{where}: {key} is missing")
    return found


def typed_keys(where: str, data: Any, kinds: Kinds, needed: Iterable[str] = ()) -> Fields:
    """Keys that are known, with values of their kind; one that is null is as good as left out."""
    found = known_keys(where, data, set(kinds), needed)
    for key, value in found.items():
        if value is not None and not isinstance(value, kinds[key]):
            raise UserError(f"{where}: {key} can't be {shown(value)}")
    return found


def shown(value: Any) -> str:
    """A value in a sentence, however long it is."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def mapping(where: str, data: Any) -> Fields:
    if not isinstance(data, dict):
        raise UserError(f"{where}: must be a mapping, is {shown(data)}")
    return {str(key): value for key, value in data.items()}


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A key twice is a slip of the pen and not a wish; YAML's own loaders take the last one silently."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.YAMLError(f"key {key!r} twice, line {node.start_mark.line + 1}")
        return {str(key): value for key, value in super().construct_mapping(node, deep).items()}
