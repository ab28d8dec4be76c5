"""Training on translations, against the same model as torch gives it.

    OMP_NUM_THREADS=2 sam-repro bench translation [--rounds 5] [--clock wall|cpu] [--json]

Ours: batches by length, the Transformer of `tasks/translation/model.py`, the output for tokens alone. Theirs:
torch.nn.Transformer of the same size in fp32, batches of as many sentences each, in random order, padded to the
longest, the loss over all positions but padding. Both: forward, backward, fused Adam; a second's target tokens count,
padding never. The lengths are those of `bench decode`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sam_repro.bench.timing import CLOCKS, Bar, hardware, take_turns
from sam_repro.tasks.translation.batches import Block, Epochs, block
from sam_repro.tasks.translation.bpe import EOS, PAD
from sam_repro.tasks.translation.corpus import Pairs, Side
from sam_repro.tasks.translation.loss import token_losses
from sam_repro.tasks.translation.model import Transformer, TransformerConfig, sinusoids

OURS, THEIRS = "ours", "nn.Transformer"
AT_LEAST = 2.0
SYMBOLS = 8848, 6632
PAIRS = 20_000


class FromTorch(nn.Module):
    """As a tutorial has it; the decoder's embedding is the output matrix here too."""

    def __init__(self, c: TransformerConfig) -> None:
        super().__init__()
        self.width = c.width
        self.source, self.target = (nn.Embedding(n, c.width, padding_idx=PAD) for n in SYMBOLS)
        self.body = nn.Transformer(c.width, c.heads, c.layers, c.layers, c.inner, c.dropout, batch_first=True)
        self.register_buffer("positions", sinusoids(512, c.width).float())

    def embedded(self, table: nn.Module, ids: Tensor) -> Tensor:
        positions: Tensor = self.positions  # type: ignore[assignment]
        return F.dropout(table(ids) * math.sqrt(self.width) + positions[: ids.shape[1]], 0.3, self.training)

    def forward(self, source: Tensor, target_in: Tensor) -> Tensor:
        blank = source == PAD
        later = nn.Transformer.generate_square_subsequent_mask(target_in.shape[1])
        states = self.body(
            self.embedded(self.source, source),
            self.embedded(self.target, target_in),
            tgt_mask=later,
            src_key_padding_mask=blank,
            memory_key_padding_mask=blank,
            tgt_is_causal=True,
        )
        return F.linear(states, self.target.weight)


def corpus(count: int = PAIRS) -> Pairs:
    dice = np.random.default_rng(0)
    source = np.clip(np.exp(dice.normal(3.0, 0.6, count)), 1, 175).astype(int)
    target = np.clip(source * np.exp(dice.normal(0.04, 0.22, count)), 1, 175).astype(int)
    both = zip((source, target), SYMBOLS, strict=True)
    return Pairs(*(Side.of([[*dice.integers(4, size, n), EOS] for n in lengths]) for lengths, size in both))


def contestant(
    model: nn.Module, batches: Iterator[Block], loss: Callable[[Tensor, Tensor], Tensor], clock: str
) -> Callable[[], float]:
    """Seconds for a target token, of a step on the next batch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-6, betas=(0.9, 0.98), fused=True)

    now = CLOCKS[clock]

    def turn() -> float:
        begin, batch = now(), next(batches)
        out = torch.from_numpy(batch.target_out)
        optimizer.zero_grad()
        loss(model(torch.from_numpy(batch.source), torch.from_numpy(batch.target_in)), out).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return (now() - begin) / batch.tokens

    return turn


def run(
    tokens: int = 1024, rounds: int = 5, model: TransformerConfig | None = None, clock: str = "wall"
) -> dict[str, Any]:
    """tokens: a batch of ours, on either side; theirs has as many sentences as ours has on average."""
    c, pairs = model or TransformerConfig(), corpus()
    epochs = Epochs(pairs, tokens, seed=0)
    each = round(len(pairs) / len(epochs))
    shuffled = np.random.default_rng(1).permutation(len(pairs))
    torch.manual_seed(0)
    sorted_blocks = (block(pairs, ids) for ids in epochs(0))
    mixed_blocks = (block(pairs, shuffled[i : i + each]) for i in range(0, len(pairs), each))

    def our_loss(logits: Tensor, out: Tensor) -> Tensor:
        return token_losses(logits, out, 0.1).mean()

    def their_loss(logits: Tensor, out: Tensor) -> Tensor:
        return F.cross_entropy(logits.flatten(0, 1), out.flatten(), ignore_index=PAD, label_smoothing=0.1)

    contestants = {
        OURS: contestant(Transformer(c, *SYMBOLS), sorted_blocks, our_loss, clock),
        THEIRS: contestant(FromTorch(c), mixed_blocks, their_loss, clock),
    }
    taken = take_turns(contestants, rounds)
    # Batches differ in size from turn to turn: what is compared is the seconds of a token over all turns.
    seconds = {name: statistics.median(turns) for name, turns in taken.items()}
    faster = round(seconds[THEIRS] / seconds[OURS], 2)
    return {
        "hardware": hardware(),
        "settings": {"tokens a batch": tokens, "sentences a batch of theirs": each, "dtype": "float32", "clock": clock},
        "rounds": rounds,
        "tokens_per_second": {name: round(1 / value) for name, value in seconds.items()},
        "ratio": faster,
        "bars": [Bar("training tokens a second / nn.Transformer's", faster, AT_LEAST, at_least=True).as_json()],
    }


def table(result: dict[str, Any]) -> str:
    lines = [f"{name:<24}{speed:>10,} target tokens/s" for name, speed in result["tokens_per_second"].items()]
    return "\n".join([*lines, f"ratio {result['ratio']}"])
