"""What a method remembers from step to step: counters, averages, directions. Kept per shard, saved, and undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

SHARED = -1  # the key of the state that all shards share

Absorb = Callable[["State", dict[str, Tensor]], None]


class State:
    """Of one shard: how many steps it took, and tensors by kind ("ema", "look", "total") and parameter name."""

    def __init__(self) -> None:
        self.steps = 0
        self.tensors: dict[str, dict[str, Tensor]] = {}

    @property
    def begun(self) -> bool:
        return self.steps > 0 or any(self.tensors.values())

    def of(self, kind: str) -> dict[str, Tensor]:
        return self.tensors.setdefault(kind, {})

    def snapshot(self, into: State | None, copied: Sequence[str]) -> State:
        """The state as it is now. What changes in place is copied, into the memory of the last snapshot."""
        into = State() if into is None else into
        into.steps = self.steps
        old, into.tensors = into.tensors, {kind: dict(tensors) for kind, tensors in self.tensors.items()}
        for kind in copied:
            now, buffers = self.of(kind), old.get(kind, {})
            for name, m in now.items():
                buffer = buffers.get(name)
                into.of(kind)[name] = torch.empty_like(m) if buffer is None or buffer is m else buffer
            if now:
                torch._foreach_copy_([into.of(kind)[name] for name in now], list(now.values()))
        return into


class Memory:
    """The states of all shards, and the way back from a step that the optimizer does not take."""

    def __init__(self, params: dict[str, Tensor], copied: Sequence[str]):
        """copied: the kinds that change in place and are to go back with a step; what is replaced always does."""
        self._params = params
        self._copied = copied
        self._states: dict[int, State] = {}
        self._before: dict[int, State] = {}  # the states as they were before their last step
        self._stepped: set[int] = set()  # the shards that were estimated since the last `end_step`

    def begin(self, shard: int) -> State:
        state = self._states.setdefault(shard, State())
        self._before[shard] = state.snapshot(self._before.get(shard), self._copied)
        self._stepped.add(shard)
        return state

    @property
    def shared(self) -> State:
        return self._states.setdefault(SHARED, State())

    def undo(self, shard: int) -> None:
        """Back to the state before this shard's step. The snapshot's memory becomes the state's."""
        if shard in self._before:
            before = self._before.pop(shard)
            self._states[shard].steps, self._states[shard].tensors = before.steps, before.tensors

    def end_step(self, all_reduce_mean: Callable[[list[Tensor]], object] | None, skipped: bool, absorb: Absorb) -> None:
        """absorb: what becomes of the mean, over shards and ranks, of what the shards of this step added up."""
        shards = len(self._stepped)
        if skipped:
            for shard in self._stepped:
                self.undo(shard)
        self._stepped.clear()
        shared = self.shared
        total = shared.tensors.pop("total", {})
        if skipped or not total:
            return
        mean = list(total.values())
        torch._foreach_div_(mean, shards)
        if all_reduce_mean is not None:
            all_reduce_mean(mean)
        absorb(shared, total)
        shared.steps += 1

    def state_dict(self) -> dict[str, Any]:
        return {
            "shards": {
                key: {"steps": state.steps, "tensors": {kind: dict(ts) for kind, ts in state.tensors.items() if ts}}
                for key, state in self._states.items()
                if state.begun
            }
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self._states = {int(key): self._loaded(state) for key, state in saved["shards"].items()}
        self._before = {}
        self._stepped = set()

    def _loaded(self, saved: dict[str, Any]) -> State:
        """Tensors go where their parameter is and take its memory layout: the fast loops want all of one kind."""
        state = State()
        state.steps = int(saved["steps"])
        for kind, tensors in saved["tensors"].items():
            for name, t in tensors.items():
                if name not in self._params:
                    raise ValueError(f"the saved method state is of another model: it has no parameter {name!r}")
                state.of(kind)[name] = torch.empty_like(self._params[name], requires_grad=False).copy_(t)
        return state
