"""One forward and backward pass over a shard of the batch, as the methods ask for it.

The only place that knows of mixed precision, gradient accumulation, the batch-norm policy, dropout masks and ranks. A
pass leaves in `.grad` the mean gradient over its samples, unscaled and in the weights' precision, because a method may
add noise to it, average it over time or square it: its scale must mean something.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sam_repro.config.schema import Config, Masks
from sam_repro.data import Batch, TrainData
from sam_repro.engine.batchnorm import RunningStatistics
from sam_repro.engine.precision import LossScale, forward
from sam_repro.engine.ranks import Ranks
from sam_repro.methods import Overflow, Pass


@dataclass
class Shard:
    """The samples of one perturbation that this rank holds."""

    ids: Tensor
    batch: Batch
    index: int  # among the step's shards, over all ranks
    size: int  # samples of the shard over all ranks: more than `ids` where the perturbation is synchronised
    epoch: int
    step: int
    loss_before: Tensor | None = None  # a sample's loss in the first pass, for ESAM's selection


@dataclass
class GradFn:
    config: Config
    model: Callable[[Tensor], Tensor]
    parameters: Sequence[nn.Parameter]
    data: TrainData
    ranks: Ranks
    scale: LossScale
    statistics: RunningStatistics
    synchronised: bool  # every pass is averaged over the ranks: one perturbation for the whole batch
    shard: Shard = field(init=False)
    correct: Tensor = field(init=False)  # right predictions of the first pass over the shard
    _counted_now: bool = field(init=False, default=False)
    request: Tensor = field(init=False)  # to the other ranks, sent along with the first synchronised pass

    def over(self, shard: Shard) -> GradFn:
        self.shard, self.correct = shard, torch.zeros((), device=self.ranks.device)
        self.statistics.begin_shard()
        return self

    def __call__(self, p: Pass) -> Tensor:
        for parameter in self.parameters:
            parameter.grad = None
        if p.keep < 1:
            loss = self._selected(p)
        else:
            size, micro_batches = self._samples(p)
            loss = self._accumulate(p, micro_batches, size)
        for parameter in self.parameters:
            if parameter.grad is None and self.synchronised:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [q.grad for q in self.parameters if q.grad is not None]
        self.scale.unscale_(gradients)
        everywhere = self.synchronised or p.data == "full"
        if everywhere:
            riders = [self.request] if p.index == 0 and self.synchronised else []
            riders += [self.correct] if self._counted_now and self.synchronised else []
            self.ranks.sum_([*gradients, loss, *riders])
        overflowed = self.scale.overflowed(gradients)
        # The ranks must agree, or one would leave the others waiting in the next collective.
        if self.scale.enabled and (overflowed if everywhere else self.ranks.any(overflowed)):
            raise Overflow(f"a gradient of pass {p.index} is not finite at loss scale {self.scale.scale:g}")
        return loss

    def _samples(self, p: Pass) -> tuple[int, list[Batch] | Iterator[Batch]]:
        """(samples over all ranks that share the pass, this rank's part in micro-batches)."""
        shard, cut = self.shard, self._cut
        ways = self.ranks.world if self.synchronised else 1
        match p.data:
            case "batch" if p.fraction < 1:
                mine = max(1, math.ceil(p.fraction * len(shard.ids)))
                return mine * ways, cut(take(shard.batch, slice(mine)))
            case "batch":
                return shard.size, cut(shard.batch)
            case "other" | "larger":
                ids = self._other_ids(p.data)
                return len(ids) * ways, cut(self.data.gather(ids, shard.epoch))
            case "full":
                ids = self.data.order(shard.epoch)
                share = torch.tensor_split(ids, self.ranks.world)[self.ranks.rank]
                chunks = [share[i : i + self._micro] for i in range(0, len(share), self._micro)]
                return len(ids), self.data.stream(chunks, shard.epoch)
            case _:
                raise AssertionError(p)

    def _other_ids(self, data: str) -> Tensor:
        """Ids of another random batch, or of a larger one that holds the shard."""
        shard, loop = self.shard, self.config.loop
        shards = loop.batch_size // shard.size * (self.ranks.world if self.synchronised else 1)
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
        first = p.data == "batch" and self.shard.loss_before is None and p.fraction == 1
        losses, correct = [], torch.zeros((), device=self.ranks.device)
        count = len(micro_batches) if isinstance(micro_batches, list) else 1
        with self.statistics.during(counts=p.data != "full") as moves:
            update = self.statistics.side_by_side(count if moves else 1)
            for i, micro in enumerate(micro_batches, start=self._ahead(p, size)):
                self._seed_masks(p, i)
                output, each = self.losses(micro)
                loss = each.sum() / size
                torch.autograd.backward(loss * self.scale.scale if self.scale.enabled else loss)
                update.one_done()
                total += loss.detach()
                if first:
                    losses.append(each.detach())
                    correct += hits(output.detach(), micro.targets)
            update.all_done()
        if first:
            self.shard.loss_before, self.correct = torch.cat(losses), correct
        self._counted_now = first
        return total

    def _selected(self, p: Pass) -> Tensor:
        """ESAM: of the samples, those whose loss rose most at the perturbed weights."""
        shard = self.shard
        assert shard.loss_before is not None, "the first pass is over the whole batch"
        with torch.no_grad(), self.statistics.during(counts=False):
            after = []
            for i, micro in enumerate(self._cut(shard.batch), start=self._ahead(p, shard.size)):
                self._seed_masks(p, i)
                after.append(self.losses(micro)[1])
        kept = max(1, math.ceil(p.keep * len(shard.ids)))
        chosen = (torch.cat(after) - shard.loss_before).topk(kept).indices
        ways = self.ranks.world if self.synchronised else 1
        return self._accumulate(p, self._cut(take(shard.batch, chosen)), kept * ways)

    def losses(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(logits, the loss of every sample in fp32)."""
        output = forward(self.model, batch.images, self.config.runtime)
        smoothing = self.config.augment.label_smoothing
        return output, F.cross_entropy(output, batch.targets, label_smoothing=smoothing, reduction="none")

    def _ahead(self, p: Pass, size: int) -> int:
        """How many micro-batches of this pass the ranks before this one have."""
        shared = self.synchronised or p.data == "full"
        return self.ranks.rank * math.ceil(size / self.ranks.world / self._micro) if shared else 0

    def _seed_masks(self, p: Pass, micro: int) -> None:
        """Dropout's draws are a function of (seed, step, shard, micro-batch), so that a resumed run draws the same.

        `micro` counts over all ranks that share the pass: on another number of ranks, too.
        """
        passes = p.index if self.config.loop.masks is Masks.independent else 0
        seed = hash((self.config.seed, self.shard.step, self.shard.index, 0, micro, passes)) % 2**63
        # `torch.manual_seed` asks for every kind of device there could be: a tenth of a millisecond a pass.
        torch.default_generator.manual_seed(seed)
        if self.ranks.device.type == "cuda":
            torch.cuda.manual_seed(seed)


def take(batch: Batch, which: slice | Tensor) -> Batch:
    return Batch(batch.images[which], batch.targets[which], batch.ids[which])


def hits(output: Tensor, targets: Tensor) -> Tensor:
    """How many predictions are right; with soft targets, their largest class counts."""
    labels = targets if targets.ndim == 1 else targets.argmax(1)
    return (output.argmax(1) == labels).sum()
