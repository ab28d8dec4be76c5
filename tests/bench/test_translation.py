"""The benches of translation at their smallest print what they document; their ratios are held on a quiet machine."""

import pytest

from sam_repro.bench import decode, translation
from sam_repro.tasks.translation.model import TransformerConfig

TINY = TransformerConfig(width=16, inner=24, heads=2, layers=1, dropout=0.1)


@pytest.mark.slow
def test_decode_counts_sentences_and_translation_tokens() -> None:
    decoded = decode.run(batch=4, rounds=1, alone=2, model=TINY, clock="cpu")
    assert set(decoded["ratios"]) == {decode.ONE, decode.NAIVE}
    assert all(speed > 0 for speed in decoded["sentences_per_second"].values())
    assert "sentences/s" in decode.table(decoded)
    trained = translation.run(tokens=256, rounds=1, model=TINY, clock="cpu")
    assert set(trained["tokens_per_second"]) == {translation.OURS, translation.THEIRS}
    assert trained["ratio"] > 0
    assert "target tokens/s" in translation.table(trained)


@pytest.mark.proof
def test_the_bars_are_met() -> None:
    """On two free cores: about five minutes."""
    for result in (decode.run(), translation.run()):
        assert all(bar["measured"] >= bar["bar"] for bar in result["bars"]), result
