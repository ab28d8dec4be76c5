"""One forward and backward pass over a shard of the batch, as the methods ask for it.

The only place that knows of mixed precision, gradient accumulation, the batch-norm policy, dropout masks and ranks. A
pass leaves in `.grad` the mean gradient over its samples, unscaled and in the weights' precision, because a method may
add noise to it, average it over time or square it: its scale must mean something.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sam_repro.config.schema import Config, Masks
from sam_repro.data import Batch, TrainData
from sam_repro.engine.batchnorm import RunningStatistics
from sam_repro.engine.loss import loss_of
from sam_repro.engine.masks import seed_masks
from sam_repro.engine.precision import LossScale, forward
from sam_repro.engine.ranks import Ranks
from sam_repro.engine.shards import Shard
from sam_repro.methods import Overflow, Pass


@dataclass(frozen=True)
class Setting:
    """What all passes of a run have in common."""

    config: Config
    model: Callable[[Tensor], Tensor]
    parameters: Sequence[nn.Parameter]
    data: TrainData
    ranks: Ranks
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
        self.config, self.data, self.ranks = setting.config, setting.data, setting.ranks
        self.scale, self.statistics = setting.scale, setting.statistics
        self.synchronised = setting.synchronised
        self.ways = self.ranks.world if self.synchronised else 1  # ranks that share the shard
        self.riders = list(riders)
        self.losses: list[Tensor] = []  # the mean loss of each pass; parts of the batch are one
        self.batch_loss: Tensor | None = None  # of the first pass over the batch, or over a fraction of it
        self.correct = torch.zeros((), device=self.ranks.device)  # right predictions of the first over the whole shard
        self.each: Tensor | None = None  # the samples' losses in it, for ESAM's selection
        self.statistics.begin_shard()

    @property
    def loss(self) -> Tensor:
        return self.losses[0] if self.batch_loss is None else self.batch_loss

    def __call__(self, p: Pass) -> Tensor:
        """The gradient, the mean loss and, where they are shared, both over the ranks. Old gradients are gone."""
        loss = self._selected(p) if p.keep < 1 else self._accumulate(p, *self._samples(p))
        parameters, everywhere = self.setting.parameters, self.synchronised or p.data == "full"
        for parameter in parameters:
            if parameter.grad is None and self.synchronised:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [q.grad for q in parameters if q.grad is not None]
        self.scale.unscale_(gradients)
        if everywhere:
            self.ranks.sum_([*gradients, loss, *self.riders])
            self.riders.clear()
        self.losses.append(loss if p.part == 0 else self.losses.pop() + loss)
        if (self.batch_loss is None or p.part > 0) and p.data == "batch":
            self.batch_loss = self.losses[-1]
        overflowed = self.scale.overflowed(gradients)
        # The ranks must agree, or one would leave the others waiting in the next collective.
        if self.scale.enabled and (overflowed if everywhere else self.ranks.any(overflowed)):
            raise Overflow(f"a gradient of pass {p.index} is not finite at loss scale {self.scale.scale:g}")
        return loss

    def _samples(self, p: Pass) -> tuple[list[Batch] | Iterator[Batch], int]:
        """(this rank's part in micro-batches, samples over all ranks that share the pass)."""
        shard, cut = self.shard, self._cut
        match p.data:
            case "batch" if p.plain:
                return cut(shard.batch), shard.size
            case "batch":
                mine, size = p.of(len(shard.ids))
                return cut(take(shard.batch, mine)), shard.size if p.parts > 1 else size * self.ways
            case "other" | "larger":
                ids = self._other_ids(p.data)
                return cut(self.data.gather(ids, shard.epoch)), len(ids) * self.ways
            case "full":
                ids = self.data.order(shard.epoch)
                share = torch.tensor_split(ids, self.ranks.world)[self.ranks.rank]
                chunks = [share[i : i + self._micro] for i in range(0, len(share), self._micro)]
                return self.data.stream(chunks, shard.epoch), len(ids)
            case _:
                raise AssertionError(p)

    def _other_ids(self, data: str) -> Tensor:
        """Ids of another random batch, or of a larger one that holds the shard."""
        shard, loop = self.shard, self.config.loop
        shards = loop.batch_size // shard.size * self.ways
        place = self.ranks.rank if self.synchronised else shard.index
        if data == "other":
            return self.data.other(shard.epoch, shard.step, loop.batch_size).tensor_split(shards)[place]
        more = (self.config.method.ascent_batch or 0) - loop.batch_size
        return torch.cat([shard.ids, self.data.other(shard.epoch, shard.step, more).tensor_split(shards)[place]])

    @property
    def _micro(self) -> int:
        return self.config.loop.micro_batch or max(1, len(self.shard.ids))

    def _cut(self, batch: Batch) -> list[Batch]:
        return [take(batch, slice(i, i + self._micro)) for i in range(0, len(batch.ids), self._micro)]

    def _accumulate(self, p: Pass, micro_batches: list[Batch] | Iterator[Batch], size: int) -> Tensor:
        """The gradient and the loss, both divided by `size`, over all micro-batches."""
        total = torch.zeros((), device=self.ranks.device)
        first = p.data == "batch" and self.each is None and p.fraction == 1
        losses = []
        count = len(micro_batches) if isinstance(micro_batches, list) else 1
        if p.part == 0:
            self.parts_moved = self.statistics.side_by_side(min(p.parts, len(self.shard.ids)))
        with self.statistics.during(counts=p.data != "full", goes_on=p.part > 0) as moves:
            update = self.statistics.side_by_side(count if moves else 1)
            for i, micro in enumerate(micro_batches, start=self._ahead(p, size)):
                self._seed_masks(p, i)
                output, each = self.per_sample(micro)
                loss = each.sum() / size
                torch.autograd.backward(loss * self.scale.scale if self.scale.enabled else loss)
                update.one_done()
                total += loss.detach()
                if first:
                    losses.append(each.detach())
                    self.correct += hits(output.detach(), micro.targets)
            update.all_done()
        if count:
            self.parts_moved.one_done()
        if p.last:
            self.parts_moved.all_done()
        if first and p.parts == 1:
            self.each = torch.cat(losses)
        if first and p.last and self.synchronised:
            self.riders.append(self.correct)
        return total

    def _selected(self, p: Pass) -> Tensor:
        """ESAM: of the samples, those whose loss rose most at the perturbed weights."""
        shard = self.shard
        assert self.each is not None, "the first pass is over the whole batch"
        with torch.no_grad(), self.statistics.during(counts=False):
            after = []
            for i, micro in enumerate(self._cut(shard.batch), start=self._ahead(p, shard.size)):
                self._seed_masks(p, i)
                after.append(self.per_sample(micro)[1])
        kept = max(1, math.ceil(p.keep * len(shard.ids)))
        chosen = (torch.cat(after) - self.each).topk(kept).indices
        return self._accumulate(p, self._cut(take(shard.batch, chosen)), kept * self.ways)

    def per_sample(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(logits, the loss of every sample in fp32)."""
        output = forward(self.setting.model, batch.images, self.config.runtime)
        smoothing = self.config.augment.label_smoothing
        return output, loss_of(self.config.loop.loss, output, batch.targets, smoothing)

    def _ahead(self, p: Pass, size: int) -> int:
        """How many micro-batches of this pass the ranks before this one have."""
        shared = self.synchronised or p.data == "full"
        return self.ranks.rank * math.ceil(size / self.ranks.world / self._micro) if shared else 0

    def _seed_masks(self, p: Pass, micro: int) -> None:
        """Draw the same masks in every pass of a step, or other ones in each, on any number of ranks.

        `micro` counts over all ranks that share the pass.
        """
        number = p.index if self.config.loop.masks is Masks.independent or p.parts > 1 else 0
        shard = self.shard
        seed_masks(self.config.seed, shard.step, shard.index, 0, micro, number, device=self.ranks.device)


def take(batch: Batch, which: slice | Tensor) -> Batch:
    return Batch(batch.images[which], batch.targets[which], batch.ids[which])


def hits(output: Tensor, targets: Tensor) -> Tensor:
    """How many predictions are right; with soft targets, their largest class counts."""
    labels = targets if targets.ndim == 1 else targets.argmax(1)
    return (output.argmax(1) == labels).sum()
