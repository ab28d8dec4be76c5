"""An experiment written out as overrides that say the same, since Hydra takes 40 ms to compose one.

Read is what the experiments here are made of: another experiment, options of groups, and plain values. What is made of
anything else is left to Hydra, whose composition a test holds against this one.
"""

from __future__ import annotations

from functools import cache
from pathlib import PurePosixPath
from typing import Any

import yaml

from sam_repro import CONFIGS
from sam_repro.files.strict import Loader

Overrides = tuple[str, ...]
_EXPERIMENT = "+experiment"


def written_out(overrides: Overrides) -> Overrides | None:
    """The overrides with the options and values of their experiment, which they replace; None if only Hydra knows."""
    own = dict(override.partition("=")[::2] for override in overrides)
    if _EXPERIMENT not in own:
        return overrides
    try:
        options, values = _read(own.pop(_EXPERIMENT))
    except Exception:
        return None  # no such experiment, or one that Hydra will complain of in its own words
    # Options first: a value of the experiment's holds for whichever option of its group is chosen.
    chosen = {key: own.pop(key) for key in [*own] if (CONFIGS / key).is_dir()}
    return tuple(f"{key}={value}" for key, value in {**options, **chosen, **values, **own}.items())


@cache
def _read(name: str) -> tuple[dict[str, str], dict[str, str]]:
    """The options by their groups and the values by their keys; ValueError if it is made of more than these."""
    text = (CONFIGS / "experiment" / f"{name}.yaml").read_text(encoding="utf-8")
    if not text.startswith("# @package _global_\n") or "${" in text:
        raise ValueError(name)
    body = yaml.load(text, Loader=Loader)
    if not isinstance(body, dict):
        raise ValueError(name)
    defaults = body.pop("defaults", [])
    inherited = [default for default in defaults if isinstance(default, str)]
    if len(inherited) > 1:
        raise ValueError(name)  # which of two goes first is Hydra's to say, and where `_self_` stands
    options, values = dict[str, str](), dict[str, str]()
    if inherited:
        root = PurePosixPath("/experiment")
        options, values = _read(str((root.joinpath(name).parent / inherited[0]).relative_to(root)))
    overriding = dict[str, str]()
    for ((key, option),) in (default.items() for default in defaults if default not in inherited):
        if not key.startswith("override /") or not isinstance(option, str):
            raise ValueError(name)
        overriding[key.removeprefix("override /")] = option
    return options | overriding, values | dict(_leaves(body))


def _leaves(node: Any, prefix: str = "") -> list[tuple[str, str]]:
    if isinstance(node, dict):
        return [leaf for key, value in node.items() for leaf in _leaves(value, f"{prefix}.{key}" if prefix else key)]
    if not isinstance(node, bool | int | float):
        raise ValueError(prefix)
    return [(prefix, str(node))]
