"""The checked-in W&B sweep file: its agent's command is the plain entry point with overrides that compose."""

from __future__ import annotations

import itertools
from typing import Any

import yaml

from sam_repro import CONFIGS
from sam_repro.config.compose import compose
from sam_repro.config.identity import run_id


def combinations(sweep: dict[str, Any]) -> list[dict[str, Any]]:
    """What W&B's grid search would ask for."""
    values = [spec["values"] if "values" in spec else [spec["value"]] for spec in sweep["parameters"].values()]
    return [dict(zip(sweep["parameters"], chosen, strict=True)) for chosen in itertools.product(*values)]


def test_the_agents_commands_are_distinct_runs() -> None:
    from wandb.sdk.launch.sweeps.utils import create_sweep_command, create_sweep_command_args

    sweep = yaml.safe_load((CONFIGS / "sweep" / "wandb.yaml").read_text())
    assert sweep["command"][2:4] == ["-m", "sam_repro"]
    asked, ids = combinations(sweep), set()
    some = [asked[0], asked[-1], *asked[1:-1:10]]
    for parameters in some:
        macros = create_sweep_command_args({"args": {key: {"value": value} for key, value in parameters.items()}})
        words = create_sweep_command(list(sweep["command"]))
        expanded = [word for chunk in words for word in macros.get(str(chunk)[2:-1], [chunk])]
        config = compose(expanded[4:])  # after ${env} ${interpreter} -m sam_repro
        assert config.method.rho == parameters["method.rho"]
        ids.add(run_id(config))
    assert len(ids) == len(some) > 4
