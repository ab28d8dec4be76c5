"""All that a run's next steps depend on: one thing to save, to merge where the number of ranks changes, and to load.

Every rank saves a share. What all ranks have alike, the weights say, is in the main rank's; running statistics and the
method's state are each rank's own. A share is believed only if every part of it has the names, shapes and types of this
run's own: before that nothing changes, so that a refused checkpoint leaves a run that can start anew.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sam_repro.engine.batchnorm import RunningStatistics
from sam_repro.engine.checkpoint import MALFORMED, Misfit, State, Stored
from sam_repro.engine.precision import LossScale
from sam_repro.engine.ranks import Ranks
from sam_repro.methods import Method
from sam_repro.methods.state import SHARED
from sam_repro.record.metrics import misfit


@dataclass
class Progress:
    """Where a run is."""

    step: int = 0  # steps done
    epoch: int = 0  # epochs done, their evaluation included
    seconds: float = 0.0  # trained before this process started
    collapsed_at: int | None = None  # the first step whose loss was NaN or infinite
    loss_sum: float = 0.0  # of the running epoch, over its examples
    counts: list[float] = field(default_factory=list)  # and what the task counts beside the loss
    weight: float = 0.0  # of these examples
    skipped: int = 0  # steps of the run
    probed: list[float] = field(default_factory=list)  # of the running epoch: see probe.py


@dataclass
class TrainState:
    model: nn.Module
    method: Method
    optimizer: torch.optim.Optimizer
    statistics: RunningStatistics
    scale: LossScale
    progress: Progress = field(default_factory=Progress)
    seen: int = 0  # bytes of metrics.jsonl when this state was saved
    seen_sha256: str = ""  # of those bytes
    shards: int | None = None  # that a batch is cut into, each of them one rank's; None: the ranks share it

    def state_dict(self, main: bool) -> State:
        """This rank's share."""
        share: State = {"statistics": self.statistics.copy(), "method": self.method.state_dict()}
        if main:
            share |= {
                "weights": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scale": self.scale.state_dict(),
                "progress": dict(vars(self.progress)),
                "metrics": self.seen,
                "metrics_sha256": self.seen_sha256,
            }
        return share

    def load(self, stored: Stored, ranks: Ranks, folder: Path) -> None:
        """Go on from a checkpoint of as many ranks or of another number, if it fits this run and its metrics.jsonl.

        Raises `Misfit` on all ranks, everything as it was, if it does not.
        """
        method, scale, problem = self.method.state_dict(), self.scale.state_dict(), ""
        try:
            first = stored.share(0)
            alike = stored.count == ranks.world
            shares = [stored.share(ranks.rank)] if alike else [stored.share(i) for i in range(stored.count)]
            weights = matching(first["weights"], self.model.state_dict())
            optimizer = self._optimizer_state(first["optimizer"])
            statistics = self._merged_statistics([share["statistics"] for share in shares])
            progress = parsed(first["progress"])
            # Checkpoints of older versions have no digest.
            seen, sha256 = first["metrics"], first.get("metrics_sha256", "")
            if type(seen) is not int or not isinstance(sha256, str):
                raise Misfit("metrics is no number, or its digest no text")
            problem = misfit(folder, seen, sha256) if ranks.main else ""
            self._load_method(self._of(ranks, merged([share["method"] for share in shares])))
            self.scale.load_state_dict(first["scale"])
        except MALFORMED as error:
            problem = f"{stored.folder} is no checkpoint of this run ({' '.join(str(error).split())[:200]})"
        problem = next((p for p in ranks.gather(problem) if p), "")
        if problem:
            self.method.load_state_dict(method)
            self.scale.load_state_dict(scale)
            raise Misfit(problem)
        self.model.load_state_dict(weights)
        self.optimizer.load_state_dict(optimizer)
        self.statistics.restore(statistics)
        self.progress, self.seen = progress, seen

    def _optimizer_state(self, saved: Any) -> dict[str, Any]:
        """With tensors laid out as the parameters, since fused optimizers walk through both in the order of memory.

        The groups stay this run's: they hold what the configuration says.
        """
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        keeps, state = kept_by(self.optimizer), {}
        for i, values in saved["state"].items():
            p = parameters[i]
            own = {k: torch.empty_like(p, requires_grad=False) if v.ndim else v for k, v in keeps.items()}
            values = matching(values, own)
            state[i] = {k: own[k].copy_(v) if v.ndim else v for k, v in values.items()}
        return {"state": state, "param_groups": self.optimizer.state_dict()["param_groups"]}

    def _merged_statistics(self, shares: list[Any]) -> list[Tensor]:
        own = dict(enumerate(self.statistics.copy()))
        columns = zip(*(matching(dict(enumerate(share)), own).values() for share in shares), strict=True)
        return [
            column[0] if len(shares) == 1 else torch.stack([t.double() for t in column]).mean(0) for column in columns
        ]

    def _of(self, ranks: Ranks, state: State) -> State:
        """The method's state without that of the shards that other ranks work on."""
        if self.shards is None:
            return state
        each = self.shards // ranks.world
        mine = {SHARED, *range(ranks.rank * each, (ranks.rank + 1) * each)}
        return state | {"shards": {key: shard for key, shard in state["shards"].items() if int(key) in mine}}

    def _load_method(self, state: State) -> None:
        shapes = {name: p.shape for name, p in self.model.named_parameters()}
        for name, tensor in named_tensors(state):
            if tensor.shape != shapes.get(name):
                raise Misfit(f"the method's tensor of {name} has the shape {tuple(tensor.shape)}")
        self.method.load_state_dict(state)


def merged(states: list[State]) -> State:
    """The method's state of several ranks as one. It is kept by shard; of a shard's copies the newest counts."""
    shards: State = {}
    for state in states:
        for key, shard in state["shards"].items():
            if key not in shards or shard["steps"] > shards[key]["steps"]:
                shards[key] = shard
    return states[0] | {"shards": shards}


def matching(found: Any, own: dict[Any, Tensor]) -> dict[Any, Tensor]:
    """The saved tensors, if they have the names, shapes and types of these."""
    if set(found) != set(own):
        raise Misfit(f"it has not {sorted(map(str, set(own) ^ set(found)))[0]} in common with this run")
    for name, mine in own.items():
        tensor = found[name]
        if not isinstance(tensor, Tensor) or (tensor.shape, tensor.dtype) != (mine.shape, mine.dtype):
            raise Misfit(f"{name} has another form than this run's")
    return {name: found[name] for name in own}


def parsed(saved: Any) -> Progress:
    own = vars(Progress())
    # Checkpoints of older versions have no probe and do not count the skipped steps; the oldest know images alone.
    later = {"skipped", "probed"}
    if set(own) - set(saved) - later == {"counts", "weight"}:
        saved = {k: v for k, v in saved.items() if k not in ("correct", "samples")} | {
            "counts": [saved["correct"]],
            "weight": float(saved["samples"]),
        }
    if set(own) - set(saved) - later:
        raise Misfit("progress has other entries than this run's")
    for name, value in saved.items():
        allowed = (int, type(None)) if name == "collapsed_at" else (type(own[name]),)
        if type(value) not in allowed or (type(value) is int and value < 0):
            raise Misfit(f"{name} is {value!r}"[:100])
    if not all(type(count) is float for count in [*saved["counts"], *saved.get("probed", [])]):
        raise Misfit("counts are no numbers")
    return Progress(**saved)


def kept_by(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What the optimizer keeps of a parameter, by the example of one of its own: a tensor alike, or a number."""
    twin = copy.copy(optimizer)
    groups = optimizer.param_groups
    example = torch.zeros(1, device=groups[0]["params"][0].device, requires_grad=True)
    example.grad = torch.zeros_like(example)
    twin.state = defaultdict(dict)
    twin.param_groups = [{**groups[0], "params": [example]}]
    twin.step()
    return dict(twin.state[example])


def named_tensors(state: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """Every tensor of a nest of dictionaries, under its innermost key."""
    if isinstance(state, Tensor):
        yield name, state
    elif isinstance(state, dict):
        for key, value in state.items():
            yield from named_tensors(value, str(key))
