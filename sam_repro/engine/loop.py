"""The epochs of a run: steps, evaluation, checkpoints, and what to do when the loss is no number."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from itertools import zip_longest

import torch

from sam_repro.config.schema import Config, OnDivergence
from sam_repro.engine.checkpoint import Checkpoints
from sam_repro.engine.evaluate import evaluate
from sam_repro.engine.keep import Keeper
from sam_repro.engine.probe import means
from sam_repro.engine.profiling import profiler
from sam_repro.engine.ranks import Ranks
from sam_repro.engine.requests import SAVE, STOP, Answers, Interrupted, Requests
from sam_repro.engine.state import Progress, TrainState
from sam_repro.engine.step import Outcome, Stepper
from sam_repro.engine.task import Task
from sam_repro.record import Recorder
from sam_repro.record.metrics import digest


@dataclass
class Loop:
    config: Config
    state: TrainState
    stepper: Stepper
    task: Task
    ranks: Ranks
    recorder: Recorder = field(init=False)
    checkpoints: Checkpoints = field(init=False)
    keeper: Keeper | None = field(init=False)  # on the main rank
    answers: Answers = field(default_factory=Answers)
    unseen: list[tuple[int, Outcome]] = field(default_factory=list)  # (step, outcome) not yet looked at
    fresh: float = 0.0  # what the examples weigh that were trained on since the last mark

    @property
    def progress(self) -> Progress:
        return self.state.progress

    def run(self, recorder: Recorder, checkpoints: Checkpoints, keeper: Keeper | None = None) -> str:
        """Train to the end: "done" or "collapsed". Raises `Interrupted` after a signal, its checkpoint written."""
        self.recorder, self.checkpoints, self.keeper = recorder, checkpoints, keeper
        self.steps_per_epoch, self.epochs = self.stepper.schedule.steps_per_epoch, self.stepper.schedule.epochs
        self.started = time.monotonic()
        self.mark = self.started
        requests = Requests(self.config.runtime.checkpoint_minutes, self.ranks.main)
        wanted = self.config.runtime.profile and self.ranks.main
        with profiler(wanted, self.recorder.files.trace, self.ranks) as self.profiler:
            while self.progress.epoch < self.epochs:
                if self._collapsed() or self._train_epoch(requests):
                    return "collapsed"
                self._end_epoch()
                if self.progress.epoch < self.epochs:
                    self._save(requests)
        return "collapsed" if self.progress.collapsed_at is not None else "done"

    def _collapsed(self) -> bool:
        stops = self.config.on_divergence is OnDivergence.stop
        return stops and self.progress.collapsed_at is not None

    def _train_epoch(self, requests: Requests) -> bool:
        """The rest of the running epoch; whether the run has collapsed and should stop."""
        progress, batch = self.progress, self.config.loop.batch_size
        epoch = progress.epoch
        self.epoch_began = time.monotonic()
        overfit = self.config.budget.overfit
        drawn = 0 if overfit else epoch  # the epoch whose order and augmentation count
        batches = self.task.train.batches(drawn, batch, self.config.loop.drop_last)
        probes = self.config.loop.probe_steps
        todo = range(progress.step - epoch * self.steps_per_epoch, self.steps_per_epoch)
        steps = [batches[0 if overfit else i] for i in todo]
        for i, shards in zip(todo, self.stepper.shards(steps, drawn, progress.step), strict=True):
            due = self.recorder.due(progress.step + 1)
            probed = probes is not None and (progress.step + 1) % probes == 0
            outcome = self.stepper(shards, requests.now(), due, probed)
            progress.step += 1
            if probed:
                progress.probed = [a + b for a, b in zip_longest(progress.probed, outcome.probed, fillvalue=0.0)]
            self.unseen.append((progress.step, outcome))
            self.fresh += outcome.weight
            self.recorder.advance(progress.step)
            if self.profiler is not None:
                self.profiler.step()
            last = i + 1 == self.steps_per_epoch
            every = self.config.runtime.checkpoint_steps
            asked = self.answers.after(outcome.request, now=due or last)
            stop = asked >= STOP
            # The end of the epoch saves anyway.
            save = not last and (asked >= SAVE or (every is not None and progress.step % every == 0))
            if due or last or save or stop:
                self._look(record=due)
                if self._collapsed():
                    return True
            if save or stop:
                self._save(requests)
            if stop:
                raise Interrupted
        return False

    def _look(self, record: bool) -> None:
        """Fetch what the steps since the last look left on the device: losses, counts, divergence."""
        if not self.unseen:
            return
        progress = self.progress
        losses = torch.stack([o.loss.float() for _, o in self.unseen]).tolist()
        counts = torch.stack([o.counts.float() for _, o in self.unseen]).tolist()
        for (step, outcome), loss, counted in zip(self.unseen, losses, counts, strict=True):
            if outcome.skipped:
                progress.skipped += 1
                self.recorder.event("skipped", step=step, reason="fp16 overflow")
                # A run that never took a step has learnt nothing, however finite its losses.
                never = step == self.stepper.schedule.steps == progress.skipped
                if not never and not outcome.hopeless:
                    continue
                loss = math.nan
            progress.loss_sum += loss * outcome.weight
            progress.counts = [a + b for a, b in zip_longest(progress.counts, counted, fillvalue=0.0)]
            progress.weight += outcome.weight
            if not math.isfinite(loss) and progress.collapsed_at is None:
                progress.collapsed_at = step
                self.recorder.event("collapsed", step=step, loss=loss)
                if self._collapsed():
                    progress.step = step  # what came after does not count: how much did depends on who looked when
                    break
        if record and not self._collapsed():
            self._record(*self.unseen[-1])
        self.unseen.clear()

    def _record(self, step: int, outcome: Outcome) -> None:
        now, then, trained = time.monotonic(), self.mark, self.fresh
        self.mark, self.fresh = now, 0.0
        details = {k: float(v) for k, v in outcome.method.items()}
        losses = [float(outcome.descent_loss), float(outcome.loss) if outcome.passes > 1 else None]
        # What overflowed in a skipped step is no loss of this training, which has not collapsed.
        loss, loss_ascent = (None if outcome.skipped and x and not math.isfinite(x) else x for x in losses)
        self.recorder.step(
            {
                "step": step,
                "epoch": self.progress.epoch + 1,
                "loss": loss,
                "loss_ascent": loss_ascent,
                "grad_norm": None if outcome.grad_norm is None else float(outcome.grad_norm),
                "radius": details.pop("radius", None),
                "lr": outcome.lr,
                f"{self.task.unit}_per_s": trained / max(1e-9, now - then),
                "time": self.seconds(),
                **details,
            }
        )

    def _end_epoch(self) -> None:
        progress = self.progress
        self.state.statistics.average_over(self.ranks)
        tested = evaluate(self.state.model, self.task, self.config, self.ranks)
        progress.epoch += 1
        record = {
            "step": progress.step,
            "epoch": progress.epoch,
            "train_loss": progress.loss_sum / progress.weight if progress.weight else None,
            **self.task.trained(progress.counts, progress.weight),
            **tested,
            **means(progress.probed),
            "seconds": time.monotonic() - self.epoch_began,
            "time": self.seconds(),
        }
        self.recorder.epoch(record)
        ruined = progress.epoch == self.epochs and not all(map(math.isfinite, tested.values()))
        if ruined and progress.collapsed_at is None:
            # Of what the last update did no training loss tells.
            progress.collapsed_at = progress.step
            self.recorder.event("collapsed", step=progress.step, loss=math.nan)
        if self.keeper is not None:
            self.keeper.epoch(record, self.state.model)
        progress.loss_sum, progress.counts, progress.probed, progress.weight = 0.0, [], [], 0.0
        self.mark, self.fresh = time.monotonic(), 0.0

    def seconds(self) -> float:
        return self.progress.seconds + time.monotonic() - self.started

    def _save(self, requests: Requests) -> None:
        self.state.seen = self.recorder.flush()
        if self.ranks.main:
            self.state.seen_sha256 = digest(self.recorder.files.path, self.state.seen)
        self.progress.seconds, self.started = self.seconds(), time.monotonic()
        self.checkpoints.save(self.progress.step, self.state.state_dict(self.ranks.main))
        requests.saved()
        self.answers.forget()
