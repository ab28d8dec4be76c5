"""Beam search over a batch of sentences, against one sentence at a time.

    OMP_NUM_THREADS=2 sam-repro bench decode [--rounds 3] [--clock wall|cpu] [--json]

Ours: `tasks/translation/decode.py`. Against `naive.py`, which reads every prefix anew for each token, which the bar is
about, and against our own search given one sentence at a time, which shows what batching alone brings. All in fp32,
beam 5, on the Transformer of IWSLT's size with random weights: it seldom ends by itself, so that every translation has
nearly its full length, 1.2 |x| + 10.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from sam_repro.bench.timing import Bar, hardware, ratio, stopwatch, take_turns
from sam_repro.tasks.translation.bpe import EOS
from sam_repro.tasks.translation.corpus import Side
from sam_repro.tasks.translation.decode import Search, translate
from sam_repro.tasks.translation.model import Transformer, TransformerConfig
from sam_repro.tasks.translation.naive import naive_search

OURS, ONE, NAIVE = "batched", "batched search, one at a time", "one at a time, no cache"
AT_LEAST = 8.0
SYMBOLS = 8848, 6632


def sentences(count: int, seed: int = 0) -> Side:
    """Lengths as the test sentences of IWSLT'14 have: log-normal around 20 symbols."""
    dice = np.random.default_rng(seed)
    lengths = np.clip(np.exp(dice.normal(3.0, 0.5, count)), 3, 60).astype(int)
    return Side.of([[*dice.integers(4, SYMBOLS[0], n), EOS] for n in lengths])


def run(
    batch: int = 32, rounds: int = 3, alone: int = 4, model: TransformerConfig | None = None, clock: str = "wall"
) -> dict[str, Any]:
    """alone: so many of the batch are what the slow contestants translate in a turn; every so many-th by length."""
    torch.manual_seed(0)
    net = Transformer(model or TransformerConfig(), *SYMBOLS).eval()
    text, how = sentences(batch), Search()
    by_length = np.argsort(text.lengths, kind="stable")
    some = by_length[np.linspace(0, batch - 1, 2 * alone + 1).round().astype(int)[1::2]]  # the middles of `alone` parts
    each = [torch.from_numpy(text[i].astype(np.int64)) for i in some]

    def naive() -> None:
        for source in each:
            naive_search(net, source, how)

    def one() -> None:
        for source in each:
            translate(net, Side.of([source.tolist()]), how)

    jobs: dict[str, tuple[Callable[[], object], int]] = {
        OURS: (lambda: translate(net, text, how, tokens=batch * int(text.lengths.max())), batch),
        ONE: (one, len(each)),
        NAIVE: (naive, len(each)),
    }
    # Seconds a sentence.
    contestants = {name: _per(stopwatch(job, clock), count) for name, (job, count) in jobs.items()}
    taken = take_turns(contestants, rounds, warmup=1)
    ratios = {name: round(ratio(taken[name], taken[OURS]), 2) for name in (ONE, NAIVE)}
    return {
        "hardware": hardware(),
        "settings": {
            "batch": batch,
            "beam": how.beam,
            "sentences alone": len(each),
            "dtype": "float32",
            "clock": clock,
        },
        "rounds": rounds,
        "sentences_per_second": {name: round(1 / statistics.median(seconds), 2) for name, seconds in taken.items()},
        "ratios": ratios,
        "bars": [Bar("times faster than a sentence at a time", ratios[NAIVE], AT_LEAST, at_least=True).as_json()],
    }


def _per(seconds: Callable[[], float], count: int) -> Callable[[], float]:
    return lambda: seconds() / count


def table(result: dict[str, Any]) -> str:
    return "\n".join(
        f"{name:<34}{speed:>10.2f} sentences/s{result['ratios'].get(name, 1.0):>10.2f} x slower"
        for name, speed in result["sentences_per_second"].items()
    )
