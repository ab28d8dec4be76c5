"""One forward and backward pass over a shard of the batch, as the methods ask for it.

The only place that knows of mixed precision, gradient accumulation, the batch-norm policy, dropout masks and ranks. A
pass leaves in `.grad` the mean gradient over what its examples weigh, unscaled and in the weights' precision, because a
method may add noise to it, average it over time or square it: its scale must mean something.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sam_repro.config.schema import Config, Masks
from sam_repro.engine.batchnorm import RunningStatistics
from sam_repro.engine.masks import seed_masks
from sam_repro.engine.precision import LossScale, forward
from sam_repro.engine.ranks import Ranks
from sam_repro.engine.reduction import Reduction
from sam_repro.engine.shards import Shard
from sam_repro.engine.task import Batch, Task, cut, weight
from sam_repro.methods import Overflow, Pass


@dataclass(frozen=True)
class Setting:
    """What all passes of a run have in common."""

    config: Config
    task: Task
    model: Callable[..., Tensor]
    parameters: Sequence[nn.Parameter]
    ranks: Ranks
    reduction: Reduction
    scale: LossScale
    statistics: RunningStatistics

    @property
    def synchronised(self) -> bool:
        """Whether every pass is averaged over the ranks: one perturbation for the whole batch."""
        return self.config.method.m is None


class GradFn:
    """The passes over one shard in one step, and what they found."""

    takes_pass = True  # which spares the method looking at the signature in every step

    def __init__(self, setting: Setting, shard: Shard, riders: Sequence[Tensor] = ()) -> None:
        """riders: numbers of the step that are summed over the ranks along with the first gradient that is."""
        self.setting, self.shard = setting, shard
        self.config, self.task, self.ranks = setting.config, setting.task, setting.ranks
        self.data = setting.task.train
        self.scale, self.statistics = setting.scale, setting.statistics
        self.synchronised = setting.synchronised
        self.riders = list(riders)
        self.losses: list[Tensor] = []  # the mean loss of each pass; parts of the batch are one
        self.batch_loss: Tensor | None = None  # of the first pass over the batch, or over a fraction of it
        self.counts = torch.zeros(self.task.counted, device=self.ranks.device)  # of the first over the whole shard
        self.each: Tensor | None = None  # the examples' losses in it, for ESAM's selection
        self.statistics.begin_shard()

    @property
    def loss(self) -> Tensor:
        return self.losses[0] if self.batch_loss is None else self.batch_loss

    def __call__(self, p: Pass) -> Tensor:
        """The gradient, the mean loss and, where they are shared, both over the ranks. Old gradients are gone."""
        loss = self._selected(p) if p.keep < 1 else self._accumulate(p, *self._samples(p))
        parameters, everywhere = self.setting.parameters, self.synchronised or p.data == "full"
        for parameter in parameters:
            if parameter.grad is None and everywhere:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [q.grad for q in parameters if q.grad is not None]
        if everywhere:
            self.setting.reduction.sum_([loss, *self.riders])
            self.riders.clear()
        self.scale.unscale_(gradients)
        self.losses.append(loss if p.part == 0 else self.losses.pop() + loss)
        if (self.batch_loss is None or p.part > 0) and p.data == "batch":
            self.batch_loss = self.losses[-1]
        overflowed = self.scale.overflowed(gradients)
        # The ranks must agree, or one would leave the others waiting in the next collective.
        if self.scale.enabled and (bool(overflowed) if everywhere else self.ranks.any(overflowed)):
            raise Overflow(f"a gradient of pass {p.index} is not finite at loss scale {self.scale.scale:g}")
        return loss

    def _samples(self, p: Pass) -> tuple[list[Batch] | Iterator[Batch], float, int]:
        """(this rank's part in micro-batches, what the examples weigh over all ranks that share the pass, `_ahead`)."""
        shard, share = self.shard, self.shard.share
        match p.data:
            case "batch" if p.whole:
                return self._cut(shard.batch, shard.ids), shard.weight, self._ahead(shard.weight)
            case "batch":
                mine = p.of(len(shard.ids))[0]
                parts = [ids[p.of(len(ids))[0]] for ids in share.of_ranks]
                batch = self._cut(shard.batch.take(mine), parts[share.place])
                size = shard.weight if p.parts > 1 else self._weight(parts)
                return batch, size, self._ahead(size)
            case "other" | "larger":
                parts = self._other_ids(p.data)
                ids, size = parts[share.place], self._weight(parts)
                return self._cut(self.data.gather(ids, shard.epoch), ids), size, self._ahead(size)
            case "full":
                # Cut first and shared then: what goes through the model together is the same on any number of ranks.
                ids = self.data.order(shard.epoch)
                pieces = cut(self.data, ids, self._micro_of_all)
                numbers = torch.arange(len(pieces)).tensor_split(self.ranks.world)
                chunks = [ids[pieces[number]] for number in numbers[self.ranks.rank].tolist()]
                ahead = sum(len(before) for before in numbers[: self.ranks.rank])
                return self.data.gather_each(chunks, shard.epoch), weight(self.data, ids), ahead
            case _:
                raise AssertionError(p)

    def _weight(self, parts: Sequence[Tensor]) -> float:
        return sum(weight(self.data, ids) for ids in parts)

    def _other_ids(self, data: str) -> list[Tensor]:
        """Of every rank that shares the shard: ids of another random batch, or of a larger one that holds the shard."""
        shard, share, size = self.shard, self.shard.share, self.config.loop.batch_size
        ranks = len(share.of_ranks)
        # A batch that is not full gets as small a share of the other one.
        shards = share.shards if share.shards > 1 else max(1, int(size // shard.weight)) * ranks
        more = size if data == "other" else (self.config.method.ascent_batch or 0) - size
        others = self.data.other(shard.epoch, shard.step, more).tensor_split(shards)
        mine = others[share.index : share.index + 1] if share.shards > 1 else others[:ranks]
        if data == "other":
            return list(mine)
        return [torch.cat([own, other]) for own, other in zip(share.of_ranks, mine, strict=True)]

    @property
    def _micro(self) -> float:
        """How much goes through the model together: unless the configuration says it, as much as the shard is."""
        return self.config.loop.micro_batch or max(1.0, weight(self.data, self.shard.ids))

    @property
    def _micro_of_all(self) -> float:
        """The same, as every rank knows it: of a pass that is everybody's."""
        share = self.shard.share
        among = share.shards if share.shards > 1 else self.ranks.world
        return self.config.loop.micro_batch or max(1.0, self.shard.of_step / among)

    def _cut(self, batch: Batch, ids: Tensor) -> list[Batch]:
        return [batch.take(piece) for piece in cut(self.data, ids, self._micro)]

    def _accumulate(self, p: Pass, micro_batches: list[Batch] | Iterator[Batch], size: float, ahead: int) -> Tensor:
        """The gradient and the loss, both divided by `size`, over all micro-batches."""
        total = torch.zeros((), device=self.ranks.device)
        first = p.data == "batch" and self.each is None and p.fraction == 1
        losses = []
        count = len(micro_batches) if isinstance(micro_batches, list) else 1
        if p.part == 0:
            self.parts_moved = self.statistics.side_by_side(min(p.parts, len(self.shard.ids)))
        with self.statistics.during(counts=p.data != "full", goes_on=p.part > 0) as moves:
            update = self.statistics.side_by_side(count if moves else 1)
            for i, micro in enumerate(micro_batches, start=ahead):
                self._seed_masks(p, i)
                output, each = self.per_example(micro)
                loss = each.sum() / size
                if isinstance(micro_batches, list) and micro is micro_batches[-1]:
                    self.setting.reduction.let_leave()
                torch.autograd.backward(loss * self.scale.scale if self.scale.enabled else loss)
                update.one_done()
                total += loss.detach()
                if first:
                    losses.append(each.detach())
                    self.counts += self.task.counts(output.detach(), micro)
            update.all_done()
        if count:
            self.parts_moved.one_done()
        if p.last:
            self.parts_moved.all_done()
        if first and p.parts == 1:
            self.each = torch.cat(losses)
        if first and p.last and self.synchronised:
            self.riders.append(self.counts)
        return total

    def _selected(self, p: Pass) -> Tensor:
        """ESAM: of the examples, those whose loss rose most at the perturbed weights."""
        shard = self.shard
        assert self.each is not None, "the first pass is over the whole batch"
        with torch.no_grad(), self.statistics.during(counts=False):
            after = []
            for i, micro in enumerate(self._cut(shard.batch, shard.ids), start=self._ahead(shard.weight)):
                self._seed_masks(p, i)
                after.append(self.per_example(micro)[1])
        kept = max(1, math.ceil(p.keep * len(shard.ids)))
        chosen = (torch.cat(after) - self.each).topk(kept).indices
        if self.data.weights is None:  # which examples they are need not leave the device
            ids, total = shard.ids[:kept], float(kept * len(shard.share.of_ranks))
        else:
            ids = shard.ids[chosen.cpu()]
            weights = torch.tensor(weight(self.data, ids), dtype=torch.float64)
            if self.synchronised:
                self.ranks.sum_([weights])
            total = float(weights)
        return self._accumulate(p, self._cut(shard.batch.take(chosen), ids), total, self._ahead(total))

    def per_example(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(output, the loss of every example in fp32)."""
        output = forward(self.setting.model, self.task.inputs(batch), self.config.runtime)
        return output, self.task.losses(output, batch)

    def _ahead(self, size: float) -> int:
        """How many micro-batches of this pass the ranks before this one have."""
        return self.ranks.rank * math.ceil(size / self.ranks.world / self._micro) if self.synchronised else 0

    def _seed_masks(self, p: Pass, micro: int) -> None:
        """Draw the same masks in every pass of a step, or other ones in each, on any number of ranks.

        `micro` counts over all ranks that share the pass.
        """
        number = p.index if self.config.loop.masks is Masks.independent or p.parts > 1 else 0
        shard = self.shard
        seed_masks(self.config.seed, shard.step, shard.index, 0, micro, number, device=self.ranks.device)
