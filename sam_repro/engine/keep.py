"""Weights that outlive the training: those of the end, of the best epoch, of every so many epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from sam_repro.config.schema import LoopConfig
from sam_repro.files.atomic import write_atomic
from sam_repro.record.folder import RunFolder
from sam_repro.tasks.metric import Metric


def write_weights(file: Path, model: nn.Module, told: Mapping[str, str] | None = None) -> None:
    """Contiguous copies, since safetensors keeps no memory format. `told`: what the file says of itself."""
    weights = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in model.state_dict().items()}
    write_atomic(file, save(weights, metadata=None if told is None else dict(told)))


class Keeper:
    """`loop.keep_best` and `loop.keep_every`, on the main rank. `records`: the epochs before this start.

    A start goes on from a checkpoint that may be older than the weights that are kept. These are of an epoch that is
    trained again then, perhaps with other bits, so they go: `dropped` says which.
    """

    def __init__(self, run: RunFolder, loop: LoopConfig, metric: Metric, records: Iterable[Mapping[str, Any]]) -> None:
        self.run, self.loop = run, loop
        # What no record has, as a metric of a validation set that there is not, keeps nothing.
        self.metrics = {run.best_weights: metric, run.picked_weights: metric.on_validation()}
        before = [record for record in records if record["kind"] == "epoch"]
        self.best = {file: one.best(before) for file, one in self.metrics.items()}
        self.dropped = [file for file in self.metrics if file.exists() and not self._of_its_record(file)]
        for file in self.dropped:
            file.unlink()

    def epoch(self, record: Mapping[str, Any], model: nn.Module) -> None:
        """The record of an epoch that has ended, its model evaluated."""
        every = self.loop.keep_every
        if every is not None and record["epoch"] % every == 0:
            write_weights(self.run.weights_of(record["epoch"]), model)
        for file, metric in self.metrics.items() if self.loop.keep_best else ():
            before = self.best[file]
            self.best[file] = metric.best([before, record] if before else [record])
            if self.best[file] is not before:
                write_weights(file, model, self._told(file))

    def _told(self, file: Path) -> dict[str, str]:
        return {"epoch": str((self.best[file] or {}).get("epoch"))}

    def _of_its_record(self, file: Path) -> bool:
        try:
            with safe_open(file, framework="pt") as weights:
                told = weights.metadata()
        except SafetensorError:
            return False
        return told is None or told == self._told(file)  # older files say nothing
