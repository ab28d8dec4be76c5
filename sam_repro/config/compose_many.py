"""Compose hundreds of cells in the time of a few: Hydra takes about 40 ms for each, whatever is in it.

Cells are made of few parts: a model with its values, a method with its values. The file of every option that they name
is read once, and a cell's `Config` is put together from them. That is the same as composing the cell as long as an
option of a group sets nothing outside its own group and looks at nothing there. What isn't so (a profile), or fails, is
composed by itself: `sam_repro.config.compose` has the last word. An experiment is written out first, as the options and
values that it is made of.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from sam_repro import CONFIGS
from sam_repro.config.compose import checked, compose, said
from sam_repro.config.experiments import Overrides, written_out
from sam_repro.config.overrides import readable
from sam_repro.config.schema import Config
from sam_repro.errors import UserError

Part = tuple[str, Overrides]  # a field of Config and the overrides that concern it


def compose_all(wanted: Iterable[Overrides]) -> dict[Overrides, Config | UserError]:
    """The checked configuration of each list of overrides, or what is wrong with it."""
    wanted = list(dict.fromkeys(wanted))
    base = copy.deepcopy(_nothing_said())
    split = {overrides: _split(overrides) for overrides in wanted}
    built = _build(base, dict.fromkeys(part for parts in split.values() for part in parts or ()))
    return {overrides: _assemble(base, split[overrides], built) or _alone(overrides) for overrides in wanted}


@cache
def _nothing_said() -> Any:
    return said([])


def _assemble(base: Any, parts: list[Part] | None, built: Mapping[Part, Any]) -> Config | UserError | None:
    if parts is None or any(part not in built for part in parts):
        return None
    try:
        return checked(replace(base, **{part[0]: built[part] for part in parts}))
    except UserError as error:
        return error


def _alone(overrides: Overrides) -> Config | UserError:
    try:
        return compose(overrides)
    except UserError as error:
        return error


def _split(overrides: Overrides) -> list[Part] | None:
    """The overrides by the field of Config that they concern; None if one may concern more than its own."""
    parts = dict[str, list[str]]()
    if (written := written_out(overrides)) is None:
        return None
    for override in written:
        key, _, option = override.partition("=")
        field = key.split(".")[0]
        if field not in _FIELDS or (key == field and not _separable(field, option)):
            return None
        parts.setdefault(field, []).append(override)
    return [(field, tuple(of_field)) for field, of_field in parts.items()]


def _build(base: Any, parts: Iterable[Part]) -> dict[Part, Any]:
    """Every part as the dataclass that it is; those that do not fit the schema are left out."""
    parts = list(parts)
    chosen = {part: [o.partition("=")[2] for o in part[1] if o.startswith(f"{part[0]}=")] for part in parts}
    options = _options(dict.fromkeys((part[0], option) for part in parts for option in chosen[part][-1:]))
    parser, built = OverridesParser.create(), dict[Part, Any]()

    @cache
    def start(field: str, of_option: bool) -> Any:
        """To make one takes longer than to copy it, which a merge does."""
        value = getattr(base, field)
        return OmegaConf.structured(type(value)() if of_option else value)

    for field, overrides in parts:
        last = chosen[field, overrides][-1:]
        try:
            node = OmegaConf.merge(start(field, bool(last)), *(options[field, option] for option in last))
            values = parser.parse_overrides(readable(o for o in overrides if o.startswith(f"{field}.")))
            if any(override.is_sweep_override() for override in values):
                continue  # several runs in one, which a cell can't be
            for override in values:
                key = override.get_key_element().removeprefix(f"{field}.")
                OmegaConf.update(node, key, override.value())
            built[field, overrides] = OmegaConf.to_object(node)
        except (HydraException, OmegaConfBaseException, KeyError, UserError):
            continue  # whatever is wrong, `_alone` will say it of the cell that has it
    return built


def _options(wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Any]:
    """What the files of these options say. Left out are those of another form, which Hydra reads, or complains of."""
    found = {}
    for group, option in wanted:
        with suppress(Exception):
            found[group, option] = _option(group, option)
    return found


@cache
def _option(group: str, option: str) -> Any:
    """Plain values, on top of those of the option that it starts from; ValueError for any other defaults list."""
    node: Any = OmegaConf.load(CONFIGS / group / f"{option}.yaml")
    defaults = node.pop("defaults", None)
    if defaults is None:
        return node
    start, itself = defaults
    if itself != "_self_" or set(start) & set("@/ "):
        raise ValueError(f"{group}/{option}")
    return OmegaConf.merge(_option(group, start), node)


@cache
def _separable(group: str, option: str) -> bool:
    """Whether the group's files keep to themselves, and this option is one of them."""
    files = list((CONFIGS / group).rglob("*.yaml"))
    texts = [file.read_text(encoding="utf-8") for file in files]
    return CONFIGS / group / f"{option}.yaml" in files and not any("@package" in text or "${" in text for text in texts)


# The parts of a Config that have fields of their own.
_FIELDS = frozenset(field.name for field in fields(Config) if is_dataclass(getattr(Config(), field.name)))
