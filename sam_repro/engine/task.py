"""What differs between one task and another, and nothing else: what the engine asks of the task that a run learns.

A task fulfils this protocol without knowing the engine, and the engine knows no task: `sam_repro.train` joins them. The
loss of a step is the sum of its examples' losses over the sum of their weights, on all ranks and over all micro-batches
together; an image weighs one, a sentence as much as it has tokens. What a pass or a step weighs is known before it
begins, from the ids of its examples, so that nothing waits for a device or for another rank to tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self

from torch import Tensor, nn

from sam_repro.tasks.metric import Metric


class Batch(Protocol):
    """Some examples, on the device. What else a batch holds, its task knows."""

    @property
    def ids(self) -> Tensor:
        """int64 [n], on the device: which examples of the set these are."""
        ...

    def take(self, which: slice | Tensor) -> Self:
        """Some of them."""
        ...


class TrainSet(Protocol):
    """Order and augmentation are pure functions of (seed, epoch, example), so that a run goes on from anywhere.

    `loop.batch_size`, `loop.micro_batch` and `method.m` count what examples weigh: images, or tokens.
    """

    size: int  # examples
    weights: Tensor | None  # float64 [size], on the CPU, by id: what an example counts for; None: each for one

    def steps(self, batch_size: int, drop_last: bool) -> int:
        """Batches an epoch, the same in every one."""
        ...

    def batches(self, epoch: int, batch_size: int, drop_last: bool) -> Sequence[Tensor]:
        """The ids of each batch of an epoch, int64 on the CPU: at least as many as a step has shards and ranks."""
        ...

    def order(self, epoch: int) -> Tensor:
        """All ids, in the epoch's order."""
        ...

    def other(self, epoch: int, step: int, n: int) -> Tensor:
        """Ids that weigh n, or about that: another random batch than the step's own."""
        ...

    def gather(self, ids: Tensor, epoch: int) -> Batch: ...

    def gather_each(self, batches: Iterable[Tensor], epoch: int) -> Iterator[Batch]:
        """`gather` of each in turn, fetched ahead where the data can."""
        ...


class TestSet(Protocol):
    def batches(self, batch_size: int, rank: int = 0, ranks: int = 1) -> Iterator[Batch]:
        """This rank's share. Together the ranks see every example exactly once."""
        ...


class Task(Protocol):
    """Batches are those of its own sets: what is asked with one may look at all that it holds."""

    unit: str  # what its examples weigh: "images", "tokens"
    metrics: tuple[Metric, ...]  # what an epoch's record says of a run, the primary one first
    facts: dict[str, Any]  # what was really loaded; plain JSON values for the run's record
    counted: int  # how many numbers `counts` gives
    judged: int  # how many numbers `judge` gives

    @property
    def train(self) -> TrainSet: ...

    @property
    def test(self) -> TestSet: ...

    @property
    def validation(self) -> TestSet | None:
        """Held out of the training beside the test set, with dataset.evaluate_on=both; else None."""
        ...

    def build(self) -> nn.Module:
        """The model at its start."""
        ...

    def inputs(self, batch: Any) -> tuple[Tensor, ...]:
        """What the model is called with in training."""
        ...

    def losses(self, output: Tensor, batch: Any) -> Tensor:
        """[n]: of every example, in single precision at least, summed over what it weighs."""
        ...

    def counts(self, output: Tensor, batch: Any) -> Tensor:
        """[counted]: what training adds up beside the loss, over a step's first pass."""
        ...

    def trained(self, counts: Sequence[float], weight: float) -> Mapping[str, float | None]:
        """What an epoch's record says of these sums over examples that weigh so much; null where that is nothing."""
        ...

    def judge(self, model: nn.Module, forward: Callable[..., Tensor], batch: Any) -> Tensor:
        """[judged]: what an evaluation adds up over batches and ranks. `forward`: the model in the run's precision."""
        ...

    def scores(self, sums: Sequence[float]) -> Mapping[str, float]:
        """What an epoch's record says of these sums over a whole set. One that is no number after the last epoch is a
        collapse."""
        ...


def weight(data: TrainSet, ids: Tensor) -> float:
    """Of these examples. `ids` are on the CPU."""
    return float(len(ids)) if data.weights is None else float(data.weights[ids].sum())


def cut(data: TrainSet, ids: Tensor, most: float) -> list[slice]:
    """The places of those that go through the model together, in turn: they weigh so much at most, or are one."""
    if data.weights is None:
        return [slice(i, i + int(most)) for i in range(0, len(ids), int(most))]
    pieces, begins, total = list[slice](), 0, 0.0
    for place, one in enumerate(data.weights[ids].tolist()):
        total += one
        if total > most and place > begins:
            pieces.append(slice(begins, place))
            begins, total = place, one
    return [*pieces, slice(begins, len(ids))] if len(ids) else []


def united(facts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """`Task.facts` of all ranks as one: to a list, as that of unreadable images, each adds what it alone met."""
    found = dict(facts[0])
    for key, value in found.items():
        if isinstance(value, list):
            found[key] = list(value)
            found[key] += (one for of_rank in facts[1:] for one in of_rank[key] if one not in found[key])
    return found
