"""What a checkpoint holds goes on exactly: into another memory layout too, and into nothing that it does not fit."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from rig import CPU, Net, config, net, stepper, train, weights

from sam_repro.engine.checkpoint import Checkpoints, Misfit
from sam_repro.engine.ranks import Ranks
from sam_repro.engine.step import Stepper

ALONE = Ranks(0, 1, CPU)


def trained(*overrides: str, steps: int = 3) -> Stepper:
    s = stepper(config(*overrides), net(torch.float32))
    train(s, steps)
    return s


def saved(s: Stepper, folder: Path) -> dict[str, Any]:
    state = copy.deepcopy(s.state.state_dict(main=True))
    Checkpoints(folder, ALONE).save(3, state)
    return state


def load(s: Stepper, folder: Path) -> None:
    stored, rejected = Checkpoints(folder, ALONE).load()
    assert stored is not None, rejected
    s.state.load(stored, ALONE, folder)


def channels_last(n: Net) -> Net:
    return n.to(memory_format=torch.channels_last)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "rmsprop"])
@pytest.mark.parametrize("method", ["sam", "fsam"])
@pytest.mark.parametrize("there", [True, False])
def test_a_resume_in_another_memory_layout_goes_on_with_the_same_elements(
    tmp_path: Path, optimizer: str, method: str, there: bool
) -> None:
    """Fused optimizers go through weights and momentum in the order of memory, whatever their strides say."""
    overrides = [f"method={method}", f"base_optimizer={optimizer}"]
    first, second = (channels_last, lambda n: n) if there else (lambda n: n, channels_last)
    s = stepper(config(*overrides), first(net(torch.float32)))
    train(s, 3)
    saved(s, tmp_path)

    resumed = stepper(config(*overrides), second(net(torch.float32)))
    load(resumed, tmp_path)
    parameters = dict(resumed.state.model.named_parameters())
    for p in parameters.values():
        for value in resumed.optimizer.state[p].values():
            assert value.ndim == 0 or value.stride() == p.stride()
    # The reference: the same numbers, written element by element into a state that grew up in this layout.
    reference = stepper(config(*overrides), second(net(torch.float32)))
    train(reference, 3)
    for mine, theirs in zip(reference.parameters, s.parameters, strict=True):
        with torch.no_grad():
            mine.copy_(theirs)
        for key, value in s.optimizer.state[theirs].items():
            reference.optimizer.state[mine][key].copy_(value)
    reference.statistics.restore(s.statistics.copy())
    reference.method.load_state_dict(s.method.state_dict())
    ids = s.data.order(0)[48:64]
    for one in (resumed, reference):
        one(ids, 0, 3)
    assert torch.equal(weights(resumed.state.model), weights(reference.state.model))


Damage = Callable[[dict[str, Any]], object]


def first_state(share: dict[str, Any]) -> dict[str, Any]:
    state: dict[str, Any] = share["optimizer"]["state"][0]
    return state


DAMAGES: dict[str, Damage] = {
    "no weights": lambda s: s.pop("weights"),
    "a weight too few": lambda s: s["weights"].popitem(),
    "a weight of another shape": lambda s: s["weights"].update({"linear.bias": torch.zeros(3)}),
    "a weight of another type": lambda s: s["weights"].update({"linear.bias": torch.zeros(10, dtype=torch.int64)}),
    "a weight that is a number": lambda s: s["weights"].update({"linear.bias": 3}),
    "weights that are a list": lambda s: s.update(weights=[1, 2]),
    "statistics of another model": lambda s: s["statistics"].pop(),
    "statistics that are text": lambda s: s.update(statistics="mean"),
    "no optimizer": lambda s: s.update(optimizer=None),
    "an optimizer of more parameters": lambda s: s["optimizer"]["state"].update({99: first_state(s)}),
    "momentum of another shape": lambda s: first_state(s).update(momentum_buffer=torch.zeros(3)),
    "momentum that is text": lambda s: first_state(s).update(momentum_buffer="fast"),
    "another optimizer's state": lambda s: s["optimizer"]["state"].update({0: {"exp_avg": torch.zeros(6, 3, 3, 3)}}),
    "a method's state without shards": lambda s: s.update(method={}),
    "a method's average of another shape": lambda s: ema(s).update({"linear.bias": torch.zeros(())}),
    "a method's average of an unknown parameter": lambda s: ema(s).update({"bias": torch.zeros(10)}),
    "a loss scale that is none": lambda s: s["scale"].update(scale=-1.0),
    "a loss scale that is text": lambda s: s.update(scale="big"),
    "a step that is text": lambda s: s["progress"].update(step="3"),
    "a step before the first": lambda s: s["progress"].update(step=-3),
    "progress without a step": lambda s: s["progress"].pop("step"),
    "progress with something more": lambda s: s["progress"].update(colour=1),
    "no metrics": lambda s: s.pop("metrics"),
    "metrics that are text": lambda s: s.update(metrics="0"),
}


def ema(share: dict[str, Any]) -> dict[str, Any]:
    average: dict[str, Any] = share["method"]["shards"][0]["tensors"]["ema"]
    return average


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_whole_checkpoint_of_another_state_is_refused_and_nothing_has_changed(tmp_path: Path, damage: str) -> None:
    share = saved(trained("method=fsam"), tmp_path / "good")
    DAMAGES[damage](share)
    Checkpoints(tmp_path / "bad", ALONE).save(3, share)
    fresh = stepper(config("method=fsam"), net(torch.float32))
    before = copy.deepcopy(fresh.state.state_dict(main=True))
    with pytest.raises(Misfit) as refusal:
        load(fresh, tmp_path / "bad")
    assert "\n" not in str(refusal.value)
    assert "000000003 is no checkpoint of this run" in str(refusal.value)
    train(fresh, 2)
    anew = stepper(config("method=fsam"), net(torch.float32))
    train(anew, 2)
    assert torch.equal(weights(fresh.state.model), weights(anew.state.model))
    assert before["scale"] == fresh.state.scale.state_dict()


def test_a_share_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    Checkpoints(tmp_path, ALONE).save(3, [1, 2])  # type: ignore[arg-type]
    with pytest.raises(Misfit, match="no checkpoint of this run"):
        load(trained(steps=0), tmp_path)


def test_what_is_loaded_is_what_was_saved_and_goes_on_alike(tmp_path: Path) -> None:
    s = trained("method=fsam", "base_optimizer=adamw")
    share = saved(s, tmp_path)
    resumed = trained("method=fsam", "base_optimizer=adamw", steps=0)
    load(resumed, tmp_path)
    assert share["progress"] == vars(resumed.state.progress)
    for step in (3, 4):
        ids = s.data.order(0)[:16]
        assert torch.equal(s(ids, 0, step).loss, resumed(ids, 0, step).loss)
    assert torch.equal(weights(resumed.state.model), weights(s.state.model))
