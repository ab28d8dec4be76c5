"""The search of `decode.py` as one would write it on paper: a sentence at a time, prefixes read anew for each token.

What the fast search is tested and measured against.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from sam_repro.tasks.translation.bpe import EOS, PAD, START
from sam_repro.tasks.translation.decode import Hypothesis, Search
from sam_repro.tasks.translation.model import Transformer


@torch.no_grad()
def naive_search(model: Transformer, source: Tensor, how: Search) -> Hypothesis:
    """The best translation of one sentence, int64 [s], without padding."""
    memory, _ = model.encode(source[None])
    live: list[tuple[list[int], float]] = [([], 0.0)]
    results: list[Hypothesis] = []
    limit = how.limit(len(source))
    for length in range(1, limit + 1):
        prefixes = torch.tensor([[EOS, *ids] for ids, _ in live], device=source.device)
        states = model.decode(prefixes, memory.expand(len(live), -1, -1), None)[:, -1]
        each = torch.log_softmax(model.logits(states), dim=1)
        each[:, [START, PAD]] = -math.inf
        if length == limit:
            each[:, :EOS] = each[:, EOS + 1 :] = -math.inf
        candidates = [
            (score + more, ids, token)
            for (ids, score), log in zip(live, each, strict=True)
            for more, token in zip(*(x.tolist() for x in log.topk(2 * how.beam)), strict=True)
            if more > -math.inf
        ]
        candidates = sorted(candidates, key=lambda candidate: -candidate[0])[: 2 * how.beam]
        for score, ids, token in candidates[: how.beam]:
            if token == EOS and len(results) < how.beam:
                results.append(Hypothesis(ids, score / length**how.penalty))
        if len(results) >= how.beam:
            break
        live = [([*ids, token], score) for score, ids, token in candidates if token != EOS][: how.beam]
    return max(results, key=lambda result: result.score)
