"""Runs for a notebook: `sam_repro.load_runs` and `sam_repro.open_run`. Torch and pandas come with what needs them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sam_repro.config.schema import Config
from sam_repro.errors import UserError
from sam_repro.files.read import read_json
from sam_repro.record import metrics
from sam_repro.runs.compare import chosen, collect, differing, row
from sam_repro.runs.run import Run, find_run

if TYPE_CHECKING:
    from pandas import DataFrame
    from torch import nn


def load_runs(results_dir: str | Path = "results", **filters: Any) -> DataFrame:
    """A row a run, finished, failed or running: its method, what tells it from the others, metrics and cost.

    Filters are facts (`status="failed"`, `method="sam"`, `dataset="cifar10"`, `seed=0`) or fields of the configuration
    (`**{"base_optimizer.lr": 0.1}`).
    """
    from pandas import DataFrame

    shown = chosen(collect(Path(results_dir)), filters)
    fields = differing(shown)
    return DataFrame([row(one, fields) for one in shown])


def open_run(run: str | Path, results_dir: str | Path = "results") -> OpenRun:
    """A run by its folder, its id or the first characters of it."""
    return OpenRun(Run(Path(run)) if Path(run).is_dir() else find_run(Path(results_dir), str(run)))


@dataclass(frozen=True)
class OpenRun:
    run: Run

    @cached_property
    def config(self) -> Config:
        return self.run.stored()

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What it came to; empty while it trains."""
        try:
            return dict(read_json(self.run.summary))
        except FileNotFoundError:
            return {}

    @property
    def curves(self) -> DataFrame:
        """A row an epoch."""
        return self.records("epoch")

    def records(self, kind: Literal["epoch", "step", "event"]) -> DataFrame:
        from pandas import DataFrame

        return DataFrame([record for record in metrics.read(self.run.path) if record["kind"] == kind])

    def model(self, which: Literal["last", "best", "picked"] | int = "last") -> nn.Module:
        """With the weights of the end, of the best epoch or the one picked on validation (loop.keep_best), or of one by
        number (loop.keep_every)."""
        from sam_repro.trained import trained

        files = {"last": self.run.weights, "best": self.run.best_weights, "picked": self.run.picked_weights}
        file = self.run.weights_of(which) if isinstance(which, int) else files[which]
        if not file.exists():
            why = {"last": "it is not finished", "best": "loop.keep_best=true keeps them"}
            why["picked"] = "loop.keep_best=true keeps them where dataset.evaluate_on=both"
            raise UserError(
                f"run {self.run.id} has no {file.name}: {why.get(str(which), 'loop.keep_every keeps them')}"
            )
        return trained(self.config, file)
