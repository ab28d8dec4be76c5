"""Weights that are kept beside those of the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import nn

from sam_repro.config.schema import LoopConfig
from sam_repro.engine.keep import Keeper, write_weights
from sam_repro.record.folder import RunFolder
from sam_repro.tasks.metric import Metric

KEEPS = LoopConfig(keep_best=True)


def epoch(number: int, accuracy: float) -> dict[str, Any]:
    return {"kind": "epoch", "epoch": number, "test_accuracy": accuracy}


def net(value: float) -> nn.Module:
    model = nn.Linear(1, 1)
    nn.init.constant_(model.weight, value)
    return model


def keeper(run: RunFolder, *before: dict[str, Any]) -> Keeper:
    return Keeper(run, KEEPS, Metric("test_accuracy", "%", result=True), before)


def test_weights_of_an_epoch_that_is_trained_again_go(tmp_path: Path) -> None:
    """Killed between the weights of epoch 2 and its checkpoint, it goes on after epoch 1, and may end otherwise."""
    run = RunFolder(tmp_path)
    first = keeper(run)
    first.epoch(epoch(1, 30.0), net(1.0))
    assert keeper(run, epoch(1, 30.0)).dropped == []
    first.epoch(epoch(2, 50.0), net(2.0))
    again = keeper(run, epoch(1, 30.0))
    assert again.dropped == [run.best_weights]
    assert not run.best_weights.exists()
    again.epoch(epoch(2, 20.0), net(2.5))
    assert not run.best_weights.exists()
    again.epoch(epoch(3, 35.0), net(3.0))
    assert torch.equal(load_file(run.best_weights)["weight"], torch.tensor([[3.0]]))


def test_weights_that_do_not_say_of_which_epoch_they_are_stay_and_damaged_ones_go(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    write_weights(run.best_weights, net(1.0))
    assert keeper(run, epoch(1, 30.0)).dropped == []
    run.best_weights.write_bytes(b"no weights")
    assert keeper(run, epoch(1, 30.0)).dropped == [run.best_weights]
