"""Beam search over many sentences at once, each token's keys and values computed once.

    score(y) = log p(y | x) / |y|^penalty

Every step extends the `beam` best prefixes of a sentence by a token and looks at the 2 beam best of what comes out:
those among the first `beam` that end are results, the first `beam` that do not are the next prefixes. A sentence is
done when it has `beam` results, or its translation would be longer than `a |x| + b`. As fairseq's search.

The prefixes of a sentence stand side by side as queries. Keys and values of all prefixes that there ever were stay
where they were written, and a mask says which of them a prefix descends from: nothing is moved when prefixes change
places. `naive.py` has the same search as one would write it on paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sam_repro.tasks.translation.batches import in_order, padded
from sam_repro.tasks.translation.bpe import EOS, PAD, START
from sam_repro.tasks.translation.corpus import Side
from sam_repro.tasks.translation.model import Layer, Transformer

_CHUNK = 16  # tokens that the cache grows by


@dataclass(frozen=True)
class Search:
    beam: int = 5
    penalty: float = 1.0  # 0 favours short translations
    a: float = 1.2
    b: int = 10

    def limit(self, source: int) -> int:
        """Tokens of a translation, its end included, of so many tokens with their end."""
        return int(self.a * source + self.b)


@dataclass(frozen=True)
class Hypothesis:
    ids: list[int]  # without the end
    score: float


class Stopped(Exception):
    """`stop` said so; nothing was kept."""


class Cache:
    """A decoder layer's keys and values of all prefixes so far: [sentences, heads, tokens * beam, size of a head]."""

    def __init__(self, layer: Layer, memory: Tensor) -> None:
        assert layer.cross is not None
        self.layer = layer
        self.of_source = layer.cross.keys(memory)
        self.own = [x.new_empty(x.shape[0], x.shape[1], 0, x.shape[3]) for x in self.of_source]

    def keep(self, rows: Tensor) -> None:
        self.of_source = self.of_source[0][rows], self.of_source[1][rows]
        self.own = [x[rows] for x in self.own]

    def __call__(self, x: Tensor, place: int, seen: Tensor, source_seen: Tensor | None) -> Tensor:
        """What the layer makes of the newest token of every prefix, [sentences, beam, width]."""
        layer, end = self.layer, place + x.shape[1]
        assert layer.cross is not None
        assert layer.cross_norm is not None
        for i, new in enumerate(layer.own.keys(x)):
            if end > self.own[i].shape[2]:
                more = new.new_empty(*new.shape[:2], _CHUNK * x.shape[1], new.shape[3])
                self.own[i] = torch.cat([self.own[i], more], dim=2)
            self.own[i][:, :, place:end] = new
        keys = self.own[0][:, :, :end], self.own[1][:, :, :end]
        x = layer.add(x, layer.own.attend(x, keys, seen), layer.own_norm)
        x = layer.add(x, layer.cross.attend(x, self.of_source, source_seen), layer.cross_norm)
        return layer.add(x, layer.ffn(x), layer.ffn_norm)


class Beams:
    """The prefixes of the sentences that are not done."""

    def __init__(self, model: Transformer, source: Tensor, how: Search) -> None:
        self.model, self.how, device = model, how, source.device
        memory, self.source_seen = model.encode(source)
        self.caches = [Cache(layer, memory) for layer in model.decoder]  # type: ignore[arg-type]
        n, beam = len(source), how.beam
        self.rows = torch.arange(n, device=device)  # which sentences these are
        self.limits = [how.limit(length) for length in (source != PAD).sum(1).tolist()]
        self.ids = torch.full((n, beam, 1), EOS, device=device)
        self.scores = torch.full((n, beam), -math.inf, device=device, dtype=memory.dtype)
        self.scores[:, 0] = 0.0  # at first there is one prefix
        self.seen = torch.zeros(n, beam, 0, dtype=torch.bool, device=device)
        self.results: list[list[Hypothesis]] = [[] for _ in range(n)]

    def step(self) -> None:
        length = self.ids.shape[2]  # of the longest result of this step, its end included
        scores, parents, tokens = self._candidates(length)
        ends = tokens == EOS
        beam, rows = self.how.beam, self.rows.tolist()
        for i, k in ends[:, :beam].nonzero().tolist():
            if len(self.results[rows[i]]) < beam and math.isfinite(score := float(scores[i, k])):
                ids = self.ids[i, parents[i, k], 1:].tolist()
                self.results[rows[i]].append(Hypothesis(ids, score / length**self.how.penalty))
        order = ends.to(torch.int8).argsort(dim=1, stable=True)[:, :beam]
        self.scores, parents, tokens = (x.gather(1, order) for x in (scores, parents, tokens))
        self.ids = torch.cat([_of_parents(self.ids, parents), tokens[..., None]], dim=2)
        self.seen = _of_parents(self.seen, parents)
        self._drop([len(self.results[row]) >= beam or self.limits[row] <= length for row in rows])

    def _candidates(self, length: int) -> tuple[Tensor, Tensor, Tensor]:
        """[n, 2 beam] each, best first: the score, which prefix it extends, and by which token."""
        model, n, beam = self.model, len(self.rows), self.how.beam
        own = torch.eye(beam, dtype=torch.bool, device=self.seen.device).expand(n, beam, beam)
        self.seen = torch.cat([self.seen, own], dim=2)
        x = model.target.at(self.ids[..., -1], length - 1)
        for cache in self.caches:
            x = cache(x, (length - 1) * beam, self.seen[:, None], self.source_seen)
        logits = model.logits(x)
        logits = logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits
        total = logits.logsumexp(dim=2, keepdim=True)
        logits[..., [START, PAD]] = -math.inf
        for i, row in enumerate(self.rows.tolist()):
            if self.limits[row] <= length:
                logits[i, :, :EOS] = logits[i, :, EOS + 1 :] = -math.inf
        best, tokens = logits.topk(2 * beam, dim=2)
        scores, places = (self.scores[..., None] + best - total).flatten(1).topk(2 * beam, dim=1)
        return scores, places // (2 * beam), tokens.flatten(1).gather(1, places)

    def _drop(self, done: Sequence[bool]) -> None:
        """Leave the sentences that are done. Of a few among many it is not worth the copy; they have their results."""
        left = [i for i, is_done in enumerate(done) if not is_done]
        if left and len(left) > 0.75 * len(done):
            return
        rows = torch.tensor(left, dtype=torch.int64, device=self.ids.device)
        for cache in self.caches if left else ():
            cache.keep(rows)
        self.rows, self.ids, self.scores, self.seen = (x[rows] for x in (self.rows, self.ids, self.scores, self.seen))
        self.source_seen = None if self.source_seen is None else self.source_seen[rows]


def _of_parents(values: Tensor, parents: Tensor) -> Tensor:
    """[n, beam, k]: of each prefix what its parent had."""
    return values.gather(1, parents[..., None].expand(-1, -1, values.shape[2]))


@torch.no_grad()
def search(
    model: Transformer, source: Tensor, how: Search | None = None, stop: Callable[[], bool] = lambda: False
) -> list[Hypothesis]:
    """The best translation of each row of `source`, int64 [n, s], which ends in padding. The model is in eval mode.

    `stop` is asked before every token; Stopped where it says so.
    """
    beams = Beams(model, source, how or Search())
    while len(beams.rows):
        if stop():
            raise Stopped
        beams.step()
    return [max(results, key=lambda result: result.score) for results in beams.results]


def translate(
    model: Transformer,
    sentences: Side,
    how: Search | None = None,
    tokens: int = 2048,
    done: Callable[[int], None] = lambda count: None,
    stop: Callable[[], bool] = lambda: False,
) -> list[list[int]]:
    """The ids of each sentence's translation, in the sentences' order; those of like length are searched together.

    tokens: of the source, a batch. `done` is told how many sentences each batch was.
    """
    was_training, device = model.training, model.target.weight.device
    model.eval()
    found: list[list[int]] = [[] for _ in range(len(sentences))]
    try:
        for ids in in_order(sentences.lengths, tokens):
            source = torch.from_numpy(padded(sentences, ids)).to(device)
            for i, best in zip(ids.tolist(), search(model, source, how, stop), strict=True):
                found[i] = best.ids
            done(len(ids))
    finally:
        model.train(was_training)
    return found
