"""What moving a run to fewer ranks makes of the method's state, which each rank has for its own shards."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from rig import CPU, config, net, stepper
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from sam_repro.engine.checkpoint import Checkpoints, State
from sam_repro.engine.ranks import Ranks
from sam_repro.engine.state import merged
from sam_repro.methods import Pass, build
from sam_repro.methods.method import Method


def a_method() -> tuple[nn.Module, Method]:
    model = net()
    return model, build("fsam", model, rho=0.2, m=8)


def step(model: nn.Module, method: Method, t: int, shards: list[int]) -> Tensor:
    """The sum of the final gradients of these shards; each has other data in each step."""
    total = torch.zeros(())
    for shard in shards:
        source = torch.Generator().manual_seed(2 * t + shard)
        x, y = torch.randn(8, 3, 32, 32, generator=source), torch.randint(0, 10, (8,), generator=source)

        def grad_fn(p: Pass, x: Tensor = x, y: Tensor = y) -> Tensor:
            loss = cross_entropy(model(x), y)
            loss.backward()
            return loss.detach()

        method.estimate(grad_fn, shard=shard)
        total = total + torch.cat([p.grad.reshape(-1) for p in model.parameters() if p.grad is not None])
    method.end_step()
    return total


def average(state: State, shard: int) -> Tensor:
    return torch.cat([m.reshape(-1) for m in state["shards"][shard]["tensors"]["ema"].values()])


def test_the_state_of_every_ranks_shard_survives() -> None:
    alone, ranks = a_method(), [a_method(), a_method()]
    for t in range(3):
        step(*alone, t, [0, 1])
        for rank in (0, 1):
            step(*ranks[rank], t, [rank])
    both = merged([method.state_dict() for _, method in ranks])
    expected = alone[1].state_dict()
    assert set(both["shards"]) == {0, 1}
    for shard in (0, 1):
        assert both["shards"][shard]["steps"] == 3
        assert torch.equal(average(both, shard), average(expected, shard))
    assert not torch.equal(average(both, 0), average(both, 1)), "or it would not matter whose is kept"

    model, method = a_method()
    method.load_state_dict(both)
    assert torch.equal(step(model, method, 3, [0, 1]), step(*alone, 3, [0, 1]))


def test_of_a_shards_copies_the_newest_counts_on_whichever_rank() -> None:
    """A rank that lost a shard when the run moved before still has it as it was then."""
    old, new = a_method(), a_method()
    step(*old, 0, [0, 1])
    for t in range(2):
        step(*new, t, [1])
    states = [old[1].state_dict(), new[1].state_dict()]
    for order in (states, states[::-1]):
        both = merged(order)
        assert {shard: state["steps"] for shard, state in both["shards"].items()} == {0: 1, 1: 2}
        assert torch.equal(average(both, 0), average(states[0], 0))
        assert torch.equal(average(both, 1), average(states[1], 1))


@pytest.mark.parametrize("world", [1, 2, 4])
def test_a_rank_takes_the_state_of_its_own_shards_alone(world: int) -> None:
    """With m = 128 at a batch of 4096 there are 32 averages as large as the model."""
    s = stepper(config("method=fsam", "method.m=4"), net())
    s.state.shards = 4
    stored = {"shards": {key: {"steps": 1, "tensors": {}} for key in (-1, 0, 1, 2, 3)}}
    for rank in range(world):
        each = 4 // world
        found = s.state._of(Ranks(rank, world, CPU), stored)
        assert list(found["shards"]) == [-1, *range(rank * each, (rank + 1) * each)]
    s.state.shards = None
    assert s.state._of(Ranks(0, world, CPU), stored) == stored


def test_what_is_not_wanted_of_a_share_takes_no_memory(tmp_path: Path) -> None:
    alone, big = Ranks(0, 1, CPU), torch.ones(32 << 20)  # 128 MB
    Checkpoints(tmp_path, alone).save(1, {"big": big, "small": torch.ones(3)})
    del big
    before = held()
    stored, _ = Checkpoints(tmp_path, alone).load()
    assert stored is not None
    share = stored.share(0)
    assert share["small"].sum() == 3
    assert held() - before < 32
    assert share["big"].sum() == 32 << 20


def held() -> float:
    """MB that this process has, but for what it may drop as it is on the disk, too."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["RssAnon"].split()[0]) / 1024
