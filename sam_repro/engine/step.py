"""One step of training: shards, the method's passes, one average over the ranks, clipping, the base optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from sam_repro.config.schema import Config
from sam_repro.data import Batch, TrainData
from sam_repro.engine.gradient import GradFn, Shard
from sam_repro.engine.ranks import Ranks
from sam_repro.engine.schedule import Schedule
from sam_repro.engine.state import TrainState
from sam_repro.methods import Moment, Overflow


@dataclass
class Outcome:
    """What a step reports. Tensors stay on the device until somebody writes them down."""

    loss: Tensor  # mean over the batch, of every shard's first pass
    descent_loss: Tensor  # the same of the pass that gave the final gradient
    correct: Tensor  # right predictions of the first pass
    lr: float
    grad_norm: Tensor | None = None  # of the final gradient, before clipping
    skipped: bool = False  # fp16 overflow
    hopeless: bool = False  # it overflowed without any loss scale: the training has diverged
    wanted: float = 0.0  # the largest request of any rank: see loop.py
    method: dict[str, Tensor | float] = field(default_factory=dict)  # of this rank's last shard


class Stepper:
    def __init__(
        self,
        config: Config,
        state: TrainState,
        schedule: Schedule,
        data: TrainData,
        ranks: Ranks,
        forward: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        """forward: the model or a compiled form of it."""
        self.config, self.state, self.method, self.optimizer = config, state, state.method, state.optimizer
        self.schedule, self.data, self.ranks = schedule, data, ranks
        self.parameters = [p for p in state.model.parameters() if p.requires_grad]
        self.scale, self.statistics = state.scale, state.statistics
        self.grad_fn = GradFn(
            config,
            state.model if forward is None else forward,
            self.parameters,
            data,
            ranks,
            self.scale,
            self.statistics,
            synchronised=config.method.m is None,
        )

    def __call__(
        self,
        ids: Tensor,
        epoch: int,
        step: int,
        batches: Iterator[Batch] | None = None,
        want: float = 0.0,
        log: bool = True,
    ) -> Outcome:
        """Train on the samples `ids` of the whole batch. `want` is this rank's request to the others.

        batches: a stream of this rank's pieces of this and later steps, where the loop fetches them ahead.
        """
        request = self.grad_fn.request = torch.tensor(want, device=self.ranks.device)
        moment = self.schedule.at(step)
        self.method.observe = log
        shards = [
            Shard(p, self.data.gather(p, epoch) if batches is None else next(batches), i, size, epoch, step)
            for i, size, p in self.pieces(ids)
        ]
        before = self.statistics.copy() if self.scale.enabled else []
        loss, descent_loss, correct = torch.zeros(3, device=self.ranks.device).unbind()
        outcome = Outcome(loss, descent_loss, correct, moment.lr)
        try:
            self._estimate(shards, len(ids), moment, outcome)
        except Overflow:
            # Weights and the method's state are as before the step; the statistics may have seen infinities.
            self.statistics.restore(before)
            outcome.skipped = True
        self.method.end_step(self._mean_over_ranks, outcome.skipped)
        if not self.grad_fn.synchronised:
            # The step's one collective: the final gradients and, riding along, a few numbers.
            gradients = [] if outcome.skipped else self._gradients()
            self.ranks.sum_([*gradients, outcome.loss, outcome.descent_loss, outcome.correct, request])
        outcome.wanted = float(request) if self.ranks.world > 1 else want
        outcome.hopeless = outcome.skipped and self.scale.scale <= 1
        self.scale.update(outcome.skipped)
        if not outcome.skipped:
            self._descend(moment.lr, outcome, log)
        return outcome

    def pieces(self, ids: Tensor) -> list[tuple[int, int, Tensor]]:
        """(index, size over all ranks, this rank's samples) of the shards of a batch that this rank works on.

        Without m the ranks share one shard; with m every shard is some rank's own.
        """
        ranks, m = self.ranks, self.config.method.m
        if m is None:
            return [(0, len(ids), ids.tensor_split(ranks.world)[ranks.rank])]
        assert len(ids) % (m * ranks.world) == 0, "the rules see to it that every rank has as many shards"
        each = len(ids) // m // ranks.world
        places = range(ranks.rank * each, (ranks.rank + 1) * each)
        return [(i, m, ids[i * m : (i + 1) * m]) for i in places]

    def _estimate(self, shards: Sequence[Shard], batch_size: int, moment: Moment, outcome: Outcome) -> None:
        """The mean of the shards' final gradients, left in `.grad`."""
        total: list[Tensor] = []
        update = self.statistics.side_by_side(len(shards))
        for shard in shards:
            loss = self.method.estimate(self.grad_fn.over(shard), at=moment, shard=shard.index)
            update.one_done()
            weight = shard.size / batch_size
            outcome.loss += loss * weight
            outcome.descent_loss += self.method.report.get("loss_perturbed", loss) * weight
            outcome.correct += self.grad_fn.correct
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
        outcome.method = self.method.report

    def _mean_over_ranks(self, tensors: Sequence[Tensor]) -> None:
        self.ranks.sum_(tensors)
        for t in tensors:
            t.div_(self.ranks.world)

    def _gradients(self) -> list[Tensor]:
        return [p.grad for p in self.parameters if p.grad is not None]

    def _descend(self, lr: float, outcome: Outcome, log: bool) -> None:
        clip = self.config.loop.clip_norm
        if clip is not None or log:
            outcome.grad_norm = torch.nn.utils.get_total_norm(self._gradients())
            if clip is not None:
                torch.nn.utils.clip_grads_with_norm_(self.parameters, clip, outcome.grad_norm)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()
