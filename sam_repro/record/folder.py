"""The files of a run's folder, each named here and nowhere else. Imports no torch."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

_LEASE = re.compile(r"lease\.([1-9]\d{0,8})\.json")


@dataclass(frozen=True)
class RunFolder:
    path: Path

    @property
    def config(self) -> Path:
        """What was asked for: the whole configuration."""
        return self.path / "config.yaml"

    @property
    def env(self) -> Path:
        """On what it ran."""
        return self.path / "env.json"

    @property
    def described(self) -> Path:
        """What its metrics are, and which way is better."""
        return self.path / "described.json"

    @property
    def metrics(self) -> Path:
        """What happened in the training; the truth."""
        return self.path / "metrics.jsonl"

    @property
    def events(self) -> Path:
        """What happened to the processes that trained."""
        return self.path / "events.jsonl"

    @property
    def summary(self) -> Path:
        """What it came to."""
        return self.path / "summary.json"

    @property
    def weights(self) -> Path:
        """The model at the end."""
        return self.path / "weights.safetensors"

    @property
    def best_weights(self) -> Path:
        """The model of the best epoch so far, with loop.keep_best."""
        return self.path / "weights.best.safetensors"

    @property
    def picked_weights(self) -> Path:
        """The model of the epoch that is best on the validation set so far, with loop.keep_best and such a set."""
        return self.path / "weights.picked.safetensors"

    def weights_of(self, epoch: int) -> Path:
        """The model at the end of an epoch, with loop.keep_every."""
        return self.path / f"weights.epoch{epoch:04d}.safetensors"

    def kept_weights(self) -> list[Path]:
        """All but those of the end."""
        return sorted(self.path.glob("weights.*.safetensors"))

    @property
    def done(self) -> Path:
        """Empty, written last: the run is finished, and everything above is whole."""
        return self.path / "DONE"

    @property
    def evaluations(self) -> Path:
        """What `sam_repro.evaluate` found on other test sets."""
        return self.path / "evaluations.json"

    @property
    def checkpoints(self) -> Path:
        """A folder, gone when the run is finished."""
        return self.path / "checkpoints"

    @property
    def trace(self) -> Path:
        """Of debug=profile."""
        return self.path / "trace.json"

    def written(self) -> list[Path]:
        """The files that a training writes, its leases aside."""
        fixed = [self.config, self.env, self.described, self.metrics, self.events, self.summary, self.done]
        fixed += [self.evaluations]
        return [*fixed, self.weights, self.best_weights, *self.kept_weights()]

    @property
    def wandb(self) -> Path:
        """W&B's own folder."""
        return self.path / "wandb"

    @property
    def queued(self) -> Path:
        """Empty: the run is on a scheduler's list."""
        return self.path / "queued"

    def lease(self, number: int) -> Path:
        """Of one start: who trains the run (sam_repro.runs.lease)."""
        return self.path / f"lease.{number}.json"

    def lease_numbers(self) -> list[int]:
        try:
            names = os.listdir(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [int(found[1]) for name in names if (found := _LEASE.fullmatch(name))]
