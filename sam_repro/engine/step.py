"""One step of training: the method's passes over each shard, one average over the ranks, one update."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from sam_repro.config.schema import Config
from sam_repro.engine.gradient import GradFn, Setting
from sam_repro.engine.probe import Probe, Sums
from sam_repro.engine.ranks import Ranks
from sam_repro.engine.reduction import Reduction
from sam_repro.engine.requests import Answer
from sam_repro.engine.schedule import Schedule
from sam_repro.engine.shards import Shard, sharded
from sam_repro.engine.state import TrainState
from sam_repro.engine.task import Task
from sam_repro.methods import Overflow


@dataclass
class Outcome:
    """What a step reports. Tensors stay on the device until somebody writes them down."""

    loss: Tensor  # mean over the batch, of every shard's first pass; of a skipped step, over the shards it came to
    descent_loss: Tensor  # the same of the pass that gave the final gradient
    counts: Tensor  # what the task counts in the first pass
    weight: float  # of the batch's examples
    lr: float
    passes: int = 0  # over each shard
    grad_norm: Tensor | None = None  # of the final gradient, before clipping
    skipped: bool = False  # fp16 overflow
    hopeless: bool = False  # it overflowed without any loss scale: the training has diverged
    request: float | Answer = 0.0  # the sum of all ranks' requests: see requests.py
    method: dict[str, Tensor | float] = field(default_factory=dict)  # of this rank's last shard, but for its losses
    probed: Sums = field(default_factory=list)  # empty where nobody asked: see probe.py


class Stepper:
    def __init__(
        self,
        config: Config,
        task: Task,
        state: TrainState,
        schedule: Schedule,
        ranks: Ranks,
        forward: Callable[..., Tensor] | None = None,
    ) -> None:
        """forward: the model or a compiled form of it."""
        self.config, self.state, self.method, self.optimizer = config, state, state.method, state.optimizer
        self.schedule, self.task, self.data, self.ranks = schedule, task, task.train, ranks
        self.parameters = [p for p in state.model.parameters() if p.requires_grad]
        self.scale, self.statistics = state.scale, state.statistics
        model = state.model if forward is None else forward
        m = config.method.m
        reduction = Reduction(ranks, self.parameters, every_pass=m is None)
        self.setting = Setting(config, task, model, self.parameters, ranks, reduction, self.scale, self.statistics)
        self.count = None if m is None else config.loop.batch_size // m  # of a step's shards; None: the ranks share one

    def shards(self, batches: Sequence[Tensor], epoch: int, step: int) -> Iterator[list[Shard]]:
        """What the steps on these batches of ids take, the first of them being `step`."""
        return sharded(batches, self.count, self.ranks, self.data, epoch, step)

    def __call__(self, shards: Sequence[Shard], request: float = 0.0, log: bool = True, probe: bool = False) -> Outcome:
        """Train on this rank's shards of a batch. `request` is this rank's to the others."""
        own = self.config.method.m is not None  # every shard is one rank's own, and averaged with the others at the end
        loss, descent_loss = torch.zeros(2, device=self.ranks.device).unbind()
        counts = torch.zeros(self.task.counted, device=self.ranks.device)
        outcome = Outcome(loss, descent_loss, counts, shards[0].of_step, self.schedule.lr(shards[0].step))
        asked = torch.full((), request, device=self.ranks.device)
        before = self.statistics.copy() if self.scale.enabled else []

        # The passes. Without m they average themselves, for all ranks perturb their weights alike.
        watch = Probe(self.setting, self.state.model) if probe else None
        share = self._passes(shards, outcome, watch, riders=[] if own else [asked], log=log)
        if watch is not None:
            outcome.probed = watch.result()
        if outcome.skipped:
            # Weights and the method's state are as before the step; the statistics may have seen infinities.
            self.statistics.restore(before)
        self.method.end_step(self._mean_over_ranks, outcome.skipped)

        # One average: the final gradients and, riding along, a few numbers.
        if own:
            gradients = [] if outcome.skipped else self._gradients()
            self.ranks.sum_([*gradients, outcome.loss, outcome.descent_loss, outcome.counts, asked])
            share *= self.ranks.world
        if outcome.skipped:
            outcome.loss /= share
            outcome.descent_loss /= share

        # One update.
        outcome.request = Answer(asked) if self.ranks.world > 1 else request
        outcome.hopeless = outcome.skipped and self.scale.scale <= 1
        self.scale.update(outcome.skipped)
        if not outcome.skipped:
            self._descend(outcome, log)
        return outcome

    def _passes(
        self, shards: Sequence[Shard], outcome: Outcome, watch: Probe | None, riders: Sequence[Tensor], log: bool
    ) -> float:
        """Leave the sum over the shards of their final gradients, each weighted by its share of the batch, in `.grad`.

        Returns the share of the batch that the passes came to: an overflow ends the step.
        """
        total: list[Tensor] = []
        moment = self.schedule.at(shards[0].step)
        update = self.statistics.side_by_side(len(shards))
        done = 0.0
        for shard in shards:
            if watch is not None:
                watch.before(shard)
            grad_fn = GradFn(self.setting, shard, riders)
            passes = grad_fn if watch is None else watch.around(grad_fn)
            weight = shard.weight / shard.of_step
            try:
                self.method.estimate(passes, at=moment, shard=shard.index, observe=log)
            except Overflow:
                outcome.skipped = True
            outcome.loss += grad_fn.loss * weight
            outcome.descent_loss += grad_fn.losses[-1] * weight
            outcome.counts += grad_fn.counts
            outcome.passes = len(grad_fn.losses)
            done += weight
            if outcome.skipped:
                return done
            if watch is not None:
                watch.after()
            update.one_done()
            if self.config.method.m is None:
                continue
            gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
            if not total:
                total = [g.mul_(weight) for g in gradients]
            else:
                torch._foreach_add_(total, gradients, alpha=weight)
        update.all_done()
        for p, g in zip(self.parameters, total, strict=False):
            p.grad = g
        outcome.method = {k: v for k, v in self.method.report.items() if not k.startswith("loss")}
        return done

    def _mean_over_ranks(self, tensors: Sequence[Tensor]) -> None:
        self.ranks.sum_(tensors)
        for t in tensors:
            t.div_(self.ranks.world)

    def _gradients(self) -> list[Tensor]:
        return [p.grad for p in self.parameters if p.grad is not None]

    def _descend(self, outcome: Outcome, log: bool) -> None:
        clip = self.config.loop.clip_norm
        if clip is not None or log:
            outcome.grad_norm = torch.nn.utils.get_total_norm(self._gradients())
            if clip is not None:
                torch.nn.utils.clip_grads_with_norm_(self.parameters, clip, outcome.grad_norm)
        for group in self.optimizer.param_groups:
            group["lr"] = outcome.lr
        self.optimizer.step()
