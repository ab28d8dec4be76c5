"""Translating sentences, as the engine asks for it: a sentence weighs as much as its translation has tokens.

    sam-repro dataset=grammar model=transformer_small         # the corpus inside the package, in minutes
    sam-repro dataset=iwslt14 model=transformer dataset.root=...
    sam-repro dataset=parallel dataset.root=... dataset.source=de dataset.target=en model=transformer

`loop.batch_size`, `loop.micro_batch` and `loop.eval_batch` count tokens. An evaluation translates the whole test set,
or the validation set with dataset.evaluate_on=validation, or each with both, in single precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from sam_repro.config.schema import Config, DecodingConfig, ModelConfig
from sam_repro.data.counter import Draw, key, permutation
from sam_repro.data.declared import DatasetConfig, Source, Split
from sam_repro.data.layouts import roots
from sam_repro.tasks.metric import Metric
from sam_repro.tasks.translation import archive, grammar
from sam_repro.tasks.translation.batches import Epochs, block, in_order
from sam_repro.tasks.translation.bleu import Judge
from sam_repro.tasks.translation.bpe import PAD
from sam_repro.tasks.translation.corpus import Corpus, Pairs
from sam_repro.tasks.translation.decode import Search, search
from sam_repro.tasks.translation.loss import of_sentences, token_losses
from sam_repro.tasks.translation.model import Transformer, TransformerConfig
from sam_repro.tasks.translation.prepare import Preparation, prepared


@dataclass(frozen=True)
class Sentences:
    """On the device; int64 [n, longest], padded at the end."""

    source: Tensor
    target_in: Tensor
    target_out: Tensor
    ids: Tensor
    split: str  # of the corpus

    def take(self, which: slice | Tensor) -> Sentences:
        source, target_in, target_out, ids = self.source, self.target_in, self.target_out, self.ids
        return Sentences(source[which], target_in[which], target_out[which], ids[which], self.split)


def sentences(pairs: Pairs, ids: Tensor, split: str, device: torch.device) -> Sentences:
    b = block(pairs, ids.numpy())
    source, target_in, target_out = (torch.from_numpy(x).to(device) for x in (b.source, b.target_in, b.target_out))
    return Sentences(source, target_in, target_out, ids.to(device), split)


class Train:
    def __init__(self, pairs: Pairs, seed: int, device: torch.device) -> None:
        self.pairs, self.seed, self.device = pairs, seed, device
        self.size = len(pairs)
        self.weights: Tensor | None = torch.from_numpy(pairs.target.lengths.astype(np.float64))
        self._epochs = lru_cache(maxsize=None)(lambda most, seed: Epochs(pairs, most, seed))

    def steps(self, batch_size: int, drop_last: bool) -> int:
        return len(self._epochs(batch_size, self.seed))

    def batches(self, epoch: int, batch_size: int, drop_last: bool) -> list[Tensor]:
        return [torch.from_numpy(ids) for ids in self._epochs(batch_size, self.seed)(epoch)]

    def order(self, epoch: int) -> Tensor:
        return permutation(self.size, key(self.seed, epoch, Draw.order))

    def other(self, epoch: int, step: int, n: int) -> Tensor:
        other = self._epochs(n, key(self.seed, Draw.other) >> 2)
        return torch.from_numpy(other(epoch)[step % len(other)])

    def gather(self, ids: Tensor, epoch: int) -> Sentences:
        return sentences(self.pairs, ids, "train", self.device)

    def gather_each(self, batches: Iterable[Tensor], epoch: int) -> Iterator[Sentences]:
        for ids in batches:
            yield self.gather(ids, epoch)


class Test:
    def __init__(self, pairs: Pairs, split: str, device: torch.device) -> None:
        self.pairs, self.split, self.device = pairs, split, device

    def batches(self, batch_size: int, rank: int = 0, ranks: int = 1) -> Iterator[Sentences]:
        for ids in in_order(np.maximum(self.pairs.source.lengths, self.pairs.target.lengths), batch_size)[rank::ranks]:
            yield sentences(self.pairs, torch.from_numpy(ids), self.split, self.device)


METRICS = (
    Metric("test_bleu", chance=0.0, result=True),
    Metric("test_bleu_tokenised", chance=0.0, result=True),
    Metric("test_chrf", result=True),
    Metric("test_loss", higher_is_better=False),
    Metric("test_token_accuracy", "%"),
    Metric("train_token_accuracy", "%"),
)


class Translation:
    unit = "tokens"
    counted = 1  # tokens that the model would have said

    def __init__(self, config: Config, device: torch.device, corpus: Corpus) -> None:
        self.config, self.corpus, self.how = config, corpus, search_of(config.decoding)
        data, budget, both = config.dataset, config.budget, config.dataset.evaluate_on is Split.both
        split = "valid" if data.evaluate_on is Split.validation else "test"
        self.train = Train(corpus.pairs("train").first(data.train_images, budget.train_images), config.seed, device)

        def held(split: str) -> Test:
            return Test(corpus.pairs(split).first(data.test_images, budget.test_images), split, device)

        self.test, self.validation = held(split), held("valid") if both else None
        self.metrics = (*METRICS[:3], *(m.on_validation() for m in METRICS[:3] if both), *METRICS[3:])
        self.scorer = Judge(corpus.how.lower)
        self.judged = 3 + self.scorer.size  # the losses, the tokens, the right ones, and what the scores are made of
        self.references = {
            split: [(corpus.target.tokens(text), text) for text in corpus.references(split)]
            for split in ({split, "valid"} if both else {split})
        }
        self.facts = dict(corpus.facts) | {
            "source": data.name.value,
            "languages": [corpus.how.source, corpus.how.target],
            "train": self.train.size,
            "evaluated": split,
            "evaluated_pairs": len(self.test.pairs),
            "dictionaries": [len(corpus.source), len(corpus.target)],
            "signatures": self.scorer.signatures(),
        }

    @classmethod
    def load(cls, config: Config, device: torch.device) -> Self:
        """Its corpus is prepared where that has not been done yet."""
        return cls(config, device, corpus_of(config.dataset))

    def build(self) -> nn.Module:
        return Transformer(shape_of(self.config.model), len(self.corpus.source), len(self.corpus.target))

    def inputs(self, batch: Sentences) -> tuple[Tensor, ...]:
        return batch.source, batch.target_in

    def losses(self, output: Tensor, batch: Sentences) -> Tensor:
        each = token_losses(output, batch.target_out, self.config.augment.label_smoothing)
        return of_sentences(each, batch.target_out)[0]

    def counts(self, output: Tensor, batch: Sentences) -> Tensor:
        return (output.argmax(1) == batch.target_out[batch.target_out != PAD]).sum(0, keepdim=True)

    def trained(self, counts: Sequence[float], weight: float) -> dict[str, float | None]:
        return {"train_token_accuracy": 100 * counts[0] / weight if weight else None}

    def judge(self, model: nn.Module, forward: Callable[..., Tensor], batch: Sentences) -> Tensor:
        """The loss is without label smoothing."""
        assert isinstance(model, Transformer)
        output = forward(*self.inputs(batch))
        losses = token_losses(output, batch.target_out)
        found = [self.corpus.target.decode(best.ids) for best in search(model, batch.source, self.how)]
        references = [self.references[batch.split][i] for i in batch.ids.tolist()]
        right = float(self.counts(output, batch))
        sums = [float(losses.double().sum()), float(len(losses)), right, *self.scorer.sums(found, references)]
        return torch.tensor(sums, dtype=torch.float64, device=batch.source.device)

    def scores(self, sums: Sequence[float]) -> dict[str, float]:
        found = {f"test_{name}": score for name, score in self.scorer.scores(sums[3:]).items()}
        return found | {"test_loss": sums[0] / sums[1], "test_token_accuracy": 100 * sums[2] / sums[1]}


def corpus_of(data: DatasetConfig) -> Corpus:
    """Prepared, where that has not been done yet."""
    return Corpus(prepared(folder_of(data), Preparation(*data.languages, **asdict(data.text))))


def folder_of(data: DatasetConfig) -> Path:
    """Of the files of text."""
    if data.name is Source.grammar:
        return grammar.FOLDER
    if data.name is Source.parallel:
        return Path(data.root).expanduser()
    folders = [root / archive.NAME for root in roots(data.root)]
    return next((folder for folder in folders if folder.is_dir()), folders[0])


def search_of(decoding: DecodingConfig) -> Search:
    return Search(decoding.beam, decoding.length_penalty, decoding.limit_factor, decoding.limit_extra)


def shape_of(model: ModelConfig) -> TransformerConfig:
    """Of a model that the catalogue has checked."""
    width, ffn, heads, depth = (value or 0 for value in (model.width, model.ffn, model.heads, model.depth))
    return TransformerConfig(width, ffn, heads, depth, model.dropout)
