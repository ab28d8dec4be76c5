"""From overrides to a checked `Config`, and from Hydra's many errors to one line. Imports no torch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import OverrideParseException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from sam_repro import CONFIGS, own
from sam_repro.config.budget import within_budget
from sam_repro.config.groups import groups, options
from sam_repro.config.overrides import readable
from sam_repro.config.profile import refuse_empty
from sam_repro.config.rules import check
from sam_repro.config.said import Said, settled
from sam_repro.config.schema import Config
from sam_repro.data.declared import Source
from sam_repro.data.listing import count_classes
from sam_repro.errors import UserError, nearest
from sam_repro.files.digest import file_sha256
from sam_repro.methods.axes import OPEN

ConfigStore.instance().store(name="schema", node=Said)


def compose(overrides: Iterable[str]) -> Config:
    """The checked configuration that `python -m sam_repro OVERRIDES` would train."""
    return checked(said(overrides))


def said(overrides: Iterable[str]) -> Any:
    """What these overrides and the files that they name say, as a `Said`."""
    return _typed(_composed(overrides))


def printed(overrides: Iterable[str], *, resolve: bool = False) -> str:
    """The same as text, where a run would take it: what `--cfg job` prints."""
    node = _composed(overrides)
    checked(_typed(node))
    if resolve:
        OmegaConf.resolve(node)
    return OmegaConf.to_yaml(node)


def _composed(overrides: Iterable[str]) -> DictConfig:
    try:
        GlobalHydra.instance().clear()
        with initialize_config_dir(str(CONFIGS), version_base="1.3"):
            node = hydra_compose("config", overrides=readable(overrides), return_hydra_config=True)
    except UserError:
        raise
    except Exception as error:
        # Hydra raises a dozen kinds, ValueError and AssertionError among them, all for bad input.
        raise UserError(one_line(error)) from error
    refuse_empty(node.hydra.runtime.choices)
    with open_dict(node):
        del node.hydra
    return node


def typed(node: DictConfig, choices: Mapping[str, str]) -> Config:
    """Hydra's node as dataclasses, checked. choices: the option of every group."""
    refuse_empty(choices)
    return checked(_typed(node))


def checked(words: Any) -> Config:
    """A `Said` as the configuration of a run."""
    config = settled(words)
    if config.dataset.name is Source.folder and not config.dataset.classes:
        config.dataset.classes = count_classes(config.dataset.root)
    weights = config.model.weights
    if weights is not None and config.model.weights_sha256 is None and Path(weights).is_file():
        config.model = replace(config.model, weights_sha256=file_sha256(weights))
    return _pinned(check(within_budget(config)))


def _pinned(config: Config) -> Config:
    """With what stands in the modules of the user's own code; what is wrong with it is told before a run begins."""
    for part, fields_ in (("model", ("name",)), ("dataset", ("reader",)), ("method", OPEN)):
        node = getattr(config, part)
        named = {field: name for field in fields_ if ":" in (name := getattr(node, field) or "")}
        found = {field: own.pinned(f"{part}.{field}", name) for field, name in named.items()}
        config = replace(config, **{part: replace(node, **found)}) if found else config
    if config.task is not None:
        config = replace(config, task=own.pinned("task", config.task))
    return replace(config, method=config.method.settled())


def _typed(node: DictConfig) -> Any:
    try:
        if unknown := _unknown(OmegaConf.to_container(node), _schema()):
            # A plus, which Hydra itself advises for a missing key, adds one that nobody reads.
            raise UserError(f"{unknown}: there is no such key.{nearest_key(unknown)}")
        return OmegaConf.to_object(node)
    except OmegaConfBaseException as error:
        raise UserError(one_line(error)) from error


def _unknown(found: Any, known: Any) -> str | None:
    """The first key, dotted, that the schema has not. A mapping that is empty there may hold anything."""
    if not isinstance(known, dict) or not isinstance(found, dict) or not known:
        return None
    for key, value in found.items():
        if key not in known:
            return str(key)
        if (inner := _unknown(value, known[key])) is not None:
            return f"{key}.{inner}"
    return None


@cache
def _schema() -> Any:
    return OmegaConf.to_container(OmegaConf.structured(Config))


def keys(node: Any = None, prefix: str = "") -> list[str]:
    """Every key of the schema, dotted."""
    node = Config() if node is None else node
    found = []
    for field in fields(node):
        value = getattr(node, field.name)
        found.append(prefix + field.name)
        if is_dataclass(value):
            found += keys(value, f"{prefix}{field.name}.")
    return found


def one_line(error: BaseException) -> str:
    """The cause of a failed composition in one line: the key, what is wrong, the nearest valid one."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    text = "\n".join(str(e) for e in chain)

    for link in chain:
        if isinstance(link, OverrideParseException):
            key, _, value = link.override.partition("=")
            return f"{key}: {value!r} can't be read as a value"
    if found := re.search(r"Ambiguous value for argument '([^=']+)=", text):
        return f"{found[1]}: several values are several runs, which --multirun (-m) starts"
    if found := re.search(r"Multiple values for (\w+)", text):
        return f"{found[1]} is said twice: leave one out"
    if found := re.search(r"[Cc]ould not (?:find|load) '([^']+)'", text):
        group, _, option = found[1].rpartition("/")
        return _no_such_option(group, option, text)
    if "No match in the defaults list" in text and (found := re.search(r"[Cc]ould not override '([^'@]+)", text)):
        return f"{found[1]}: not in the configuration. {_add_or_mend(found[1])}"
    if found := re.search(r"Key '([^']+)' (?:is )?not in|Could not override '([^']+)'", text):
        full = re.search(r"full_key: (\S+)", text)
        key = full[1] if full else found[1] or found[2]
        return f"{key}: there is no such key{_file_of(text)}.{nearest_key(key)}"
    for link in chain:
        if found := re.search(r"full_key: (\S+)", str(link)):
            return f"{found[1]}: {str(link).splitlines()[0].strip()}"
    return " ".join(re.sub(r"See https\S+ for details", "", str(error)).split())


def _no_such_option(group: str, option: str, text: str) -> str:
    if not group:
        return f"{option}: there is no such config file.{nearest(option, groups())}"
    known = options(group) or re.findall(r"^\t(?!provider)(\S+)$", text, re.M)
    if not known:
        return f"there is no config group '{group}'.{nearest(group, groups())}"
    close = nearest(option, known) or f" Options: {', '.join(known)}."
    return f"{group}={option}: there is no such {group}.{close}"


def nearest_key(key: str) -> str:
    known = keys()
    leaf = key.rsplit(".", 1)[-1]
    same_leaf = [k for k in known if k.rsplit(".", 1)[-1] == leaf]
    return f" Did you mean '{same_leaf[0]}'?" if same_leaf else nearest(key, known)


def _add_or_mend(key: str) -> str:
    if key == "experiment":
        return "Write it with a plus: +experiment=NAME"
    close = nearest_key(key) or nearest(key, groups())
    return close.strip() or "See --help for the groups and --cfg job for the keys"


def _file_of(text: str) -> str:
    found = re.search(r"[Ii]n '([^']+)'", text)
    return f" (in {found[1]}.yaml)" if found and "/" in found[1] else ""
