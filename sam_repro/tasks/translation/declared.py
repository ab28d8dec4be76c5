"""How translations are found, and what a Transformer costs to train, as a configuration says it. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from sam_repro.models.catalog import ModelConfig
from sam_repro.models.cost import ModelCost

# Tokens an epoch, the longer side of each pair counted, and padding; of a corpus of one's own, as many as of IWSLT'14
# for want of a better guess. And symbols in the dictionaries of source and target.
TOKENS = {"grammar": 80_000, "iwslt14": 4_300_000}
PAIRS = {"grammar": 6_000, "iwslt14": 160_239}
DICTIONARIES = {"grammar": (152, 136), "iwslt14": (8848, 6632)}
LENGTH = 25  # tokens of a sentence, about


@dataclass
class DecodingConfig:
    """Beam search, by which an evaluation and `evaluate translate=` find translations."""

    beam: int = 5  # prefixes that are kept
    length_penalty: float = 1.0  # a translation's score is log p / length^penalty; 0 favours short ones
    limit_factor: float = 1.2  # a translation has at most limit_factor |source| + limit_extra tokens
    limit_extra: int = 10


def cost(model: ModelConfig, dictionaries: tuple[int, int]) -> ModelCost:
    """Of a token of the target, with one of the source."""
    width, ffn, layers = model.width or 0, model.ffn or 0, model.depth or 0
    attention, feedforward, norm = 4 * width * (width + 1), 2 * width * ffn + ffn + width, 2 * width
    encoder, decoder = attention + feedforward + 2 * norm, 2 * attention + feedforward + 3 * norm
    products = layers * (12 * width**2 + 4 * width * ffn) + width * dictionaries[1]
    scores = layers * 3 * 2 * width * LENGTH
    # What a layer keeps for the backward pass: its inputs, queries, keys, values, sums, norms and masks.
    kept = layers * (28 * width + 4 * ffn + 3 * (model.heads or 0) * LENGTH) + 2 * dictionaries[1]
    return ModelCost(layers * (encoder + decoder) + width * sum(dictionaries), products + scores, 4 * kept, 2 * kept)
