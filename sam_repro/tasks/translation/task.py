"""Translating sentences, as the engine asks for it: a sentence weighs as much as its translation has tokens.

    sam-repro task=sam_repro.tasks.translation.task:Embedded                  # the embedded corpus, a small Transformer
    sam-repro task=sam_repro.tasks.translation.task:Iwslt14 dataset.root=...  # the folder that `fetch iwslt14` made

`loop.batch_size`, `loop.micro_batch` and `loop.eval_batch` count tokens. An evaluation translates the whole test set,
or the validation set with dataset.evaluate_on=validation, or each with both, in single precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from sam_repro.config.schema import Config
from sam_repro.data.counter import Draw, key, permutation
from sam_repro.data.declared import Split
from sam_repro.tasks.metric import Metric
from sam_repro.tasks.translation import grammar
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

    def take(self, which: slice | Tensor) -> Sentences:
        return Sentences(self.source[which], self.target_in[which], self.target_out[which], self.ids[which])


def sentences(pairs: Pairs, ids: Tensor, device: torch.device) -> Sentences:
    b = block(pairs, ids.numpy())
    source, target_in, target_out = (torch.from_numpy(x).to(device) for x in (b.source, b.target_in, b.target_out))
    return Sentences(source, target_in, target_out, ids.to(device))


class Train:
    def __init__(self, pairs: Pairs, seed: int, device: torch.device) -> None:
        self.pairs, self.seed, self.device = pairs, seed, device
        self.size = len(pairs)
        self.weights = torch.from_numpy(pairs.target.lengths.astype(np.float64))
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
        return sentences(self.pairs, ids, self.device)

    def gather_each(self, batches: Iterable[Tensor], epoch: int) -> Iterator[Sentences]:
        for ids in batches:
            yield self.gather(ids, epoch)


class Test:
    """`first`: the id of its first sentence, since a task's sets share one list of references."""

    def __init__(self, pairs: Pairs, device: torch.device, first: int = 0) -> None:
        self.pairs, self.device, self.first = pairs, device, first

    def batches(self, batch_size: int, rank: int = 0, ranks: int = 1) -> Iterator[Sentences]:
        for ids in in_order(np.maximum(self.pairs.source.lengths, self.pairs.target.lengths), batch_size)[rank::ranks]:
            found = sentences(self.pairs, torch.from_numpy(ids), self.device)
            yield replace(found, ids=found.ids + self.first)


class Translation:
    """Any corpus with any Transformer; its subclasses say which."""

    unit = "tokens"
    metrics = (
        Metric("test_bleu", chance=0.0, result=True),
        Metric("test_bleu_tokenised", chance=0.0, result=True),
        Metric("test_chrf", result=True),
        Metric("test_loss", higher_is_better=False),
        Metric("train_token_accuracy", "%"),
    )
    counted = 1  # tokens that the model would have said

    def __init__(
        self, config: Config, device: torch.device, corpus: Corpus, shape: TransformerConfig, how: Search | None = None
    ) -> None:
        self.config, self.corpus, self.shape, self.how = config, corpus, shape, how or Search()
        split = "valid" if config.dataset.evaluate_on is Split.validation else "test"
        self.train, self.test = Train(corpus.pairs("train"), config.seed, device), Test(corpus.pairs(split), device)
        self.validation: Test | None = None
        self.scorer = Judge(corpus.how.lower)
        self.judged = 2 + self.scorer.size  # the losses, the tokens, and what the scores are made of
        references = list(corpus.references(split))
        if config.dataset.evaluate_on is Split.both:
            self.validation = Test(corpus.pairs("valid"), device, first=len(references))
            references += corpus.references("valid")
        self.references = [(corpus.target.tokens(text), text) for text in references]
        self.facts = dict(corpus.facts) | {
            "dictionaries": [len(corpus.source), len(corpus.target)], "evaluated": split,
            "beam": self.how.beam, "length_penalty": self.how.penalty, "signatures": self.scorer.signatures(),
        }  # fmt: skip

    def build(self) -> nn.Module:
        return Transformer(self.shape, len(self.corpus.source), len(self.corpus.target))

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
        losses = token_losses(forward(*self.inputs(batch)), batch.target_out)
        found = [self.corpus.target.decode(best.ids) for best in search(model, batch.source, self.how)]
        references = [self.references[i] for i in batch.ids.tolist()]
        sums = [float(losses.double().sum()), float(len(losses)), *self.scorer.sums(found, references)]
        return torch.tensor(sums, dtype=torch.float64, device=batch.source.device)

    def scores(self, sums: Sequence[float]) -> dict[str, float]:
        found = {f"test_{name}": score for name, score in self.scorer.scores(sums[2:]).items()}
        return found | {"test_loss": sums[0] / sums[1]}


class Embedded(Translation):
    """The embedded corpus, and a Transformer that learns it in minutes on a processor."""

    merges: ClassVar[int] = 300
    size: ClassVar[TransformerConfig] = TransformerConfig(width=128, inner=256, heads=4, layers=2, dropout=0.1)

    def __init__(self, config: Config, device: torch.device) -> None:
        corpus = Corpus(prepared(grammar.FOLDER, Preparation(merges=self.merges)))
        super().__init__(config, device, corpus, self.size)


class Iwslt14(Translation):
    """train|valid|test.de|.en in dataset.root, and the Transformer of fairseq's recipe."""

    def __init__(self, config: Config, device: torch.device) -> None:
        corpus = Corpus(prepared(Path(config.dataset.root), Preparation()))
        super().__init__(config, device, corpus, TransformerConfig())
