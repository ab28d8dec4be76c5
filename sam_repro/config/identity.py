"""What a run *is*: its id is a hash of everything in the configuration that changes its numbers.

Where it runs (devices, ranks, workers, folders, logging) is no part of it, but for what ranks do to the samples that
share a forward pass, a mixture or a mask, and for the masks that compiled kernels draw; nor is a field that this
configuration does not read.
Values equal to the schema's defaults are dropped, so that a new field with a neutral default changes no id.
`RECIPE_VERSION` counts the changes of the code that change every run's numbers under an unchanged configuration,
`MECHANISMS` those that change some. Imports no torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from sam_repro.config.reads import draws_at_random, is_text, mixing, unread
from sam_repro.config.schema import Config, Policy
from sam_repro.data import listing
from sam_repro.data.declared import Source
from sam_repro.methods.spec import Spec
from sam_repro.models.catalog import Architecture, mixes_samples
from sam_repro.tasks.translation import text

RECIPE_VERSION = 1


@dataclass(frozen=True)
class Mechanism:
    """What some runs use, whose code gave other numbers before: its version is part of these runs' ids alone."""

    version: int
    used_by: Callable[[Config], bool]


MECHANISMS = {
    # 2: of a table (position embeddings, tokens, embeddings) a kernel is a channel, not a row or the whole.
    "kernels": Mechanism(
        2, lambda c: c.method.by_kernel and c.model.architecture in (Architecture.timm, Architecture.own)
    ),
    # 2: each draw takes a part of the batch, where it took all of it.
    "parts": Mechanism(2, lambda c: c.method.parts > 1),
}

# Names and limits of other runs, places and speed: none of these changes a number.
NOT_SCIENCE = frozenset({
    "dataset.root", "dataset.workers", "dataset.skip_unreadable", "model.weights_sha256",
    "method.name", "budget.name", "budget.seeds", "loop.eval_batch", "loop.keep_best", "loop.keep_every",
    "loop.probe_steps", "track",
    "results_dir", "force",
    "runtime.ranks", "runtime.device", "runtime.loss_scaler", "runtime.channels_last", "runtime.compile",
    "runtime.determinism", "runtime.threads", "runtime.checkpoint_steps", "runtime.checkpoint_minutes",
    "runtime.profile",
})  # fmt: skip


# Data of one's own is known by what is in it, under this name beside the fields of `dataset`.
CONTENTS = {Source.folder: "images", Source.parallel: "sentences"}


def run_id(config: Config, content: str | None = None) -> str:
    return id_of(config, science(config, content))


def ids_of_seeds(config: Config, seeds: Sequence[int]) -> list[str]:
    """The `run_id` of each of several runs that differ in their seed alone."""
    default = Config().seed
    what = science(replace(config, seed=default))  # which leaves defaults out
    return [id_of(config, what if seed == default else {**what, "seed": seed}) for seed in seeds]


def id_of(config: Config, science: Mapping[str, Any]) -> str:
    versions = {name: mechanism.version for name, mechanism in MECHANISMS.items() if mechanism.used_by(config)}
    code = {"recipe": RECIPE_VERSION} | ({"mechanisms": versions} if versions else {})
    text = json.dumps({**code, **science}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def science(config: Config, content: str | None = None) -> dict[str, Any]:
    """The part of a configuration that changes its numbers, as nested plain values, defaults dropped.

    content: what dataset=folder or parallel held, where a record says so and the files need not be there.
    """
    found = _differing(as_values(_on_its_ranks(config)), _defaults(), "", NOT_SCIENCE | unread(config).keys())
    if _depends_on_ranks(_on_its_ranks(config)):
        found.setdefault("runtime", {})["ranks"] = config.runtime.ranks
    if config.runtime.compile and draws_at_random(config):
        found.setdefault("runtime", {})["compile"] = True  # its kernels draw other masks of the same seed
    if name := CONTENTS.get(config.dataset.name):
        found["dataset"][name] = content or _content(config.dataset.name, config.dataset.root, config.dataset.languages)
    if config.model.weights_sha256 is not None:
        found["model"]["weights"] = config.model.weights_sha256  # what is in the file counts, not where it lies
    return found


def _on_its_ranks(config: Config) -> Config:
    """With the samples of a forward pass written out, where the numbers depend on them and only the ranks tell."""
    ranks, loop = config.runtime.ranks, config.loop
    if ranks == 1 or config.method.m or loop.micro_batch or _of_lengths(config) or not mixes_samples(config.model):
        return config
    return replace(config, loop=replace(loop, micro_batch=loop.batch_size // ranks))


def _depends_on_ranks(config: Config) -> bool:
    """Whether as many ranks make numbers of their own, by more than rounding, whatever `loop.micro_batch` says."""
    ranks, loop, larger = config.runtime.ranks, config.loop, config.method.ascent_batch
    if ranks == 1 or config.method.m:
        return False
    if config.method.chooses_samples:  # each rank from its own share
        return True
    shared = [loop.batch_size] if larger is None else [loop.batch_size, larger - loop.batch_size]
    streamed = config.dataset.stream or config.augment.policy is not Policy.none
    if streamed and mixing(config) and any(count % (2 * ranks) for count in shared):
        return True  # an image is mixed with its neighbour in a rank's share
    if not mixes_samples(config.model):
        return False
    # Masks are numbered by forward pass: those over what a larger batch adds come after a rank's own, not after all.
    renumbered = larger is not None and draws_at_random(config)
    cut_across = any(count % (ranks * (loop.micro_batch or 1)) for count in shared)
    return _of_lengths(config) or renumbered or cut_across


def _of_lengths(config: Config) -> bool:
    """Whether examples are of many lengths, as sentences are and those of a task of one's own may be: ranks share
    them by their number, and forward passes are cut by their length."""
    return is_text(config) or config.task is not None


@cache
def _content(source: Source, root: str, languages: tuple[str, str]) -> str:
    """Of images by names and contents, of text by its lines: two data sets of one's own are two sciences."""
    return listing.digest(root) if source is Source.folder else text.digest(Path(root).expanduser(), languages)


@cache
def _defaults() -> Any:
    return as_values(Config())


def as_values(value: Any) -> Any:
    """A dataclass tree as dictionaries, lists, numbers and strings; enums by name, fields not said by their default."""
    if isinstance(value, Spec):
        return {k: as_values(v) for k, v in value.canonical().items()}
    if is_dataclass(value):
        return {f.name: as_values(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {k: as_values(v) for k, v in value.items()}
    if isinstance(value, list):
        return [as_values(v) for v in value]
    return value.name if isinstance(value, Enum) else value


def _differing(values: dict[str, Any], defaults: dict[str, Any], prefix: str, left_out: Set[str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in values.items():
        name = prefix + key
        if name in left_out or value == defaults[key]:
            continue
        if isinstance(value, dict) and defaults[key]:
            inner = _differing(value, defaults[key], name + ".", left_out)
            if inner:
                out[key] = inner
        else:
            out[key] = value
    return out
