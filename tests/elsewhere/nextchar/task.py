"""The next character of a line, as a task of a user's own package: bits per character, of which fewer are better."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sam_repro.config.schema import Config
from sam_repro.data.declared import Split
from sam_repro.data.sets import TrainData
from sam_repro.models.cost import ModelCost
from sam_repro.tasks.metric import Metric

LETTERS = 12  # 0 stands at either end of a line
TRAIN, HELD = 192, 64


def lines(count: int, seed: int) -> list[Tensor]:
    """Each character but the first comes from the one before it, three times in four."""
    source = torch.Generator().manual_seed(seed)

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=source))

    found = []
    for _ in range(count):
        text = [draw(1, LETTERS)]
        while len(text) < 3 + draw(0, 10):
            text.append((5 * text[-1] + 3) % (LETTERS - 1) + 1 if draw(0, 4) else draw(1, LETTERS))
        found.append(torch.tensor([0, *text, 0]))
    return found


@dataclass(frozen=True)
class Lines:
    text: Tensor  # int64 [n, longest], 0 behind the end
    known: Tensor  # bool [n, longest - 1]: which of the characters that follow are the line's
    ids: Tensor

    def take(self, which: slice | Tensor) -> Lines:
        return Lines(self.text[which], self.known[which], self.ids[which])


def batch_of(texts: Sequence[Tensor], ids: Tensor) -> Lines:
    chosen = [texts[i] for i in ids.tolist()]
    text = nn.utils.rnn.pad_sequence(chosen, batch_first=True)
    known = torch.arange(text.shape[1] - 1) < torch.tensor([len(one) - 1 for one in chosen])[:, None]
    return Lines(text, known, ids)


class Train(TrainData):  # type: ignore[misc]
    def __init__(self, texts: list[Tensor], seed: int) -> None:
        super().__init__(len(texts), seed)
        self.texts = texts
        self.weights = torch.tensor([len(text) - 1.0 for text in texts], dtype=torch.float64)

    def steps(self, batch_size: int, drop_last: bool) -> int:
        return len(self.batches(0, batch_size, drop_last))

    def batches(self, epoch: int, batch_size: int, drop_last: bool) -> list[Tensor]:
        """Always the same ones, each of at most `batch_size` characters, in the epoch's order."""
        whole, batch, total = [], list[int](), 0.0
        for i, weight in enumerate(self.weights.tolist()):
            if total + weight > batch_size:
                whole.append(torch.tensor(batch))
                batch, total = [], 0.0
            batch.append(i)
            total += weight
        order = torch.randperm(len(whole), generator=torch.Generator().manual_seed(1000 * self.seed + epoch))
        return [whole[i] for i in order.tolist()]

    def other(self, epoch: int, step: int, n: int) -> Tensor:
        found = self.batches(epoch + 500, n, True)
        return found[step % len(found)]

    def gather(self, ids: Tensor, epoch: int) -> Lines:  # type: ignore[override]
        return batch_of(self.texts, ids)


class Held:
    def __init__(self, texts: list[Tensor]) -> None:
        self.texts = texts

    def batches(self, batch_size: int, rank: int = 0, ranks: int = 1) -> Iterator[Lines]:
        for ids in torch.arange(len(self.texts))[rank::ranks].split(max(1, batch_size // 20)):
            yield batch_of(self.texts, ids)


class NextCharacter:
    unit = "characters"
    metrics = (
        Metric("test_bits", "bits per character", higher_is_better=False, chance=math.log2(LETTERS), result=True),
        Metric("train_bits", "bits per character", higher_is_better=False),
    )
    counted = 1  # the losses of the characters that are guessed
    judged = 2  # the same, and the characters

    def __init__(self, config: Config, device: torch.device) -> None:
        size = examples(config)
        held = 2 if config.dataset.evaluate_on is Split.validation else 1
        self.train, self.test = Train(lines(size, 0), config.seed), Held(lines(HELD, held))
        self.validation = Held(lines(HELD, 2)) if config.dataset.evaluate_on is Split.both else None
        self.facts = {"source": "nextchar", "lines": size}

    @staticmethod
    def examples(config: Config) -> int:
        return 9 * examples(config)  # characters, or about that

    @staticmethod
    def cost(config: Config) -> ModelCost:
        return ModelCost(parameters=20 * LETTERS, macs=8 * LETTERS, activations_fp32=80, activations_half=40)

    def build(self) -> nn.Module:
        return nn.Sequential(nn.Embedding(LETTERS, 8), nn.Dropout(0.1), nn.Linear(8, LETTERS))

    def inputs(self, batch: Lines) -> tuple[Tensor, ...]:
        return (batch.text[:, :-1],)

    def losses(self, output: Tensor, batch: Lines) -> Tensor:
        each = F.cross_entropy(output.transpose(1, 2), batch.text[:, 1:], reduction="none")
        return (each * batch.known).sum(1)

    def counts(self, output: Tensor, batch: Lines) -> Tensor:
        return self.losses(output, batch).sum(0, keepdim=True)

    def trained(self, counts: Sequence[float], weight: float) -> dict[str, float | None]:
        return {"train_bits": counts[0] / weight / math.log(2) if weight else None}

    def judge(self, model: nn.Module, forward: Callable[..., Tensor], batch: Lines) -> Tensor:
        if "STOP_AFTER_EPOCH_1" in os.environ:  # a test's, to see the run go on from there
            os.kill(os.getpid(), signal.SIGTERM)
        return torch.stack(
            [self.losses(forward(*self.inputs(batch)), batch).sum().double(), batch.known.sum().double()]
        )

    def scores(self, sums: Sequence[float]) -> dict[str, float]:
        return {"test_bits": sums[0] / sums[1] / math.log(2)}


def examples(config: Config) -> int:
    return min(TRAIN, config.budget.train_images or TRAIN)
