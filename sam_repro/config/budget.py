"""What a budget makes of a recipe: epochs, warm-up and batch of the run. It scales a recipe, never its meaning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sam_repro import CONFIGS
from sam_repro.config.schema import Config


def recipe_epochs(config: Config) -> int:
    schedule = config.schedule
    plain = not config.method.ascends and schedule.plain_epochs is not None
    return schedule.plain_epochs if plain and schedule.plain_epochs is not None else schedule.epochs


def epochs(config: Config) -> int:
    """How long a run trains: the recipe's epochs, scaled by the budget."""
    scaled = max(1, round(recipe_epochs(config) * config.budget.epochs))
    return scaled if config.budget.max_epochs is None else min(scaled, config.budget.max_epochs)


def warmup_epochs(config: Config) -> float:
    """The warm-up keeps its share of the run, whatever the budget."""
    return config.schedule.warmup_epochs * epochs(config) / recipe_epochs(config)


def warmup_steps(config: Config) -> float | None:
    """The same of a warm-up in steps."""
    steps = config.schedule.warmup_steps
    return None if steps is None else steps * epochs(config) / recipe_epochs(config)


def within_budget(config: Config) -> Config:
    """The configuration with the budget's cap on batches applied: what a run trains and what its id is made of."""
    cap = config.budget.max_batch
    if cap is None or config.loop.batch_size <= cap:
        return config
    m, larger = config.method.m, config.method.ascent_batch
    if (m is not None and config.loop.batch_size % m) or (larger is not None and larger <= config.loop.batch_size):
        return config  # a mistake, which the rules tell in the recipe's own numbers
    if m is not None:
        # As many shards as the recipe has, each of fewer samples, where there are enough samples for them.
        shards = config.loop.batch_size // m
        m = max(1, cap // shards)
        cap = m * max(1, min(shards, cap))
    loop = replace(config.loop, batch_size=cap, micro_batch=_least(config.loop.micro_batch, cap))
    capped: dict[str, Any] = {"m": m, "ascent_batch": None if larger is None else 2 * cap}
    method = replace(config.method, **capped)
    return replace(config, loop=loop, method=method)


def _least(value: int | None, cap: int) -> int | None:
    return None if value is None else min(value, cap)


def names() -> list[str]:
    """The files of configs/budget."""
    return sorted(file.stem for file in (CONFIGS / "budget").glob("*.yaml"))
