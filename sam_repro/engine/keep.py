"""Weights that outlive the training: those of the end, of the best epoch, of every so many epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import nn

from sam_repro.config.schema import LoopConfig
from sam_repro.files.atomic import write_atomic
from sam_repro.record.folder import RunFolder
from sam_repro.tasks.metric import Metric


def write_weights(file: Path, model: nn.Module) -> None:
    """Contiguous copies, since safetensors keeps no memory format."""
    weights = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in model.state_dict().items()}
    write_atomic(file, save(weights))


class Keeper:
    """`loop.keep_best` and `loop.keep_every`, on the main rank. `records`: the epochs before this start."""

    def __init__(self, run: RunFolder, loop: LoopConfig, metric: Metric, records: Iterable[Mapping[str, Any]]) -> None:
        self.run, self.loop = run, loop
        # What no record has, as a metric of a validation set that there is not, keeps nothing.
        self.metrics = {run.best_weights: metric, run.picked_weights: metric.on_validation()}
        before = [record for record in records if record["kind"] == "epoch"]
        self.best = {file: one.best(before) for file, one in self.metrics.items()}

    def epoch(self, record: Mapping[str, Any], model: nn.Module) -> None:
        """The record of an epoch that has ended, its model evaluated."""
        every = self.loop.keep_every
        if every is not None and record["epoch"] % every == 0:
            write_weights(self.run.weights_of(record["epoch"]), model)
        for file, metric in self.metrics.items() if self.loop.keep_best else ():
            before = self.best[file]
            self.best[file] = metric.best([before, record] if before else [record])
            if self.best[file] is not before:
                write_weights(file, model)
