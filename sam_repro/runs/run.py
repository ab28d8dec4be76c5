"""A run: what its configuration and its folder are called. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from sam_repro.config.compose import one_line
from sam_repro.config.identity import CONTENTS, id_of, science
from sam_repro.config.schema import Config
from sam_repro.errors import UserError, nearest
from sam_repro.files.read import DamagedError, read_json, read_yaml
from sam_repro.methods.spec import misnamed
from sam_repro.record.folder import RunFolder
from sam_repro.tasks.described import described
from sam_repro.tasks.metric import Metric

_RUNS = "runs"  # the folder of all runs in a results folder


@dataclass(frozen=True)
class Run(RunFolder):
    """Made once, at launch, so that its id, which hashes files too, is computed once; then handed on.

    overrides   what it was started with
    science     what the id is a hash of, and the ledger keeps; only of a run that is made from its configuration
    """

    overrides: tuple[str, ...] = ()
    science: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, config: Config, overrides: Sequence[str] = ()) -> Self:
        """The run that a checked configuration is."""
        what = science(config)
        return cls(runs_folder(Path(config.results_dir).expanduser()) / id_of(config, what), tuple(overrides), what)

    @classmethod
    def at(cls, results: Path, run_id: str, overrides: Sequence[str] = ()) -> Self:
        """The run of that id in a results folder, whether it has been trained there or not."""
        return cls(runs_folder(results) / run_id, tuple(overrides))

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def results(self) -> Path:
        return self.path.parents[1]

    def stored(self) -> Config:
        """The configuration that it was trained with; a UserError if the folder does not say."""
        return config_of(self.read_config(), str(self.config))[0]

    def metrics_described(self) -> tuple[Metric, ...]:
        """What it is judged by, as it recorded that when it started."""
        try:
            told = read_json(self.described)
        except (FileNotFoundError, DamagedError):
            told = {}
        try:
            return described({"config": self.read_config(), **(told if isinstance(told, dict) else {})})
        except ValueError as error:
            raise UserError(f"{self.described}: {error}") from error

    def read_config(self) -> Any:
        """The content of its config.yaml, unchecked."""
        try:
            content = read_yaml(self.config)
        except (FileNotFoundError, DamagedError) as error:
            raise _no_configuration(str(self.config), error) from error
        if not content:  # cut short; as a configuration it would be the defaults
            raise _no_configuration(str(self.config), ValueError("it is empty"))
        return content


# What values of other types make OmegaConf raise.
_BROKEN = (ValueError, TypeError, LookupError, AttributeError, RecursionError, OmegaConfBaseException)


def config_of(stored: Any, where: str) -> tuple[Config, str | None]:
    """Of a stored configuration, whole or its science alone; and what data of one's own held, if it says so."""
    try:
        node = OmegaConf.create(stored)
        said = [name for name in CONTENTS.values() if OmegaConf.select(node, f"dataset.{name}")]
        content = node.dataset.pop(said[0]) if said else None
        config = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(Config), node))
        if not isinstance(config, Config):
            raise TypeError("no mapping of its fields")
        for axis, wrong in misnamed(config.method.said):
            raise ValueError(f"method.{axis} {wrong}")
        return replace(config, method=config.method.concise()), content
    except _BROKEN as error:
        raise _no_configuration(where, error) from error


def runs_folder(results: Path) -> Path:
    return results / _RUNS


def stored_runs(results: Path) -> list[Run]:
    """Every run that has a folder, by id."""
    return [Run(folder) for folder in sorted(runs_folder(results).glob("*")) if folder.is_dir()]


def not_one(found: int, start: str, ids: Sequence[str], where: Path) -> str:
    """What is wrong with the beginning of an id that so many runs have."""
    if found and start:
        return f"names {found} runs in {where}: write more of its id"
    return f"names no run in {where}.{nearest(start, ids)}"


def find_run(results: Path, start: str) -> Run:
    """The run whose id begins so."""
    runs = stored_runs(results)
    matching = [run for run in runs if start and run.id.startswith(start)]
    if len(matching) != 1:
        raise UserError(f"run={start} {not_one(len(matching), start, [r.id for r in runs], runs_folder(results))}")
    return matching[0]


def _no_configuration(where: str, error: Exception) -> UserError:
    return UserError(f"{where} is no configuration of a run ({one_line(error)[:300]}): put it back")
