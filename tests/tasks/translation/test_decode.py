"""Beam search: the fast one finds what the naive one finds, token by token, in any company."""

from itertools import count

import numpy as np
import pytest
import torch

from sam_repro.tasks.translation.bpe import EOS, PAD
from sam_repro.tasks.translation.corpus import Side
from sam_repro.tasks.translation.decode import Search, Stopped, search, translate
from sam_repro.tasks.translation.model import Transformer, TransformerConfig
from sam_repro.tasks.translation.naive import naive_search


def model(seed: int, ends: float) -> Transformer:
    """Random weights in double precision. `ends`: how much the model likes to end, so that lengths differ."""
    torch.manual_seed(seed)
    made = Transformer(TransformerConfig(width=16, inner=24, heads=4, layers=2, dropout=0.3), 40, 32).double().eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.mul_(1.7)
        made.target.weight[EOS] *= ends
    return made


def sentences(seed: int) -> Side:
    dice = np.random.default_rng(seed)
    return Side.of([[*dice.integers(4, 40, n), EOS] for n in dice.integers(1, 14, 24)])


SLOW = pytest.mark.slow  # five seconds each


@pytest.mark.parametrize(
    "how",
    [
        Search(5, 0.6, 0.5, 3),
        pytest.param(Search(), marks=SLOW),
        pytest.param(Search(beam=1), marks=SLOW),
        pytest.param(Search(beam=3, penalty=0.0), marks=SLOW),
    ],
)
def test_it_finds_what_a_naive_search_of_each_sentence_finds(how: Search) -> None:
    lengths = set()
    for seed, ends in ((0, 1.0), (1, 1.5), (2, 2.0)):
        net, text = model(seed, ends), sentences(seed)
        naive = [naive_search(net, torch.from_numpy(text[i].astype(np.int64)), how) for i in range(len(text))]
        assert translate(net, text, how, tokens=100) == [result.ids for result in naive]
        assert translate(net, text, how, tokens=20) == [result.ids for result in naive], "in other company"
        source = torch.full((len(text), int(text.lengths.max())), PAD)
        for i in range(len(text)):
            source[i, : len(text[i])] = torch.from_numpy(text[i].astype(np.int64))
        for ours, theirs in zip(search(net, source, how), naive, strict=True):
            assert ours.score == pytest.approx(theirs.score, abs=1e-12)
        lengths |= {len(result.ids) for result in naive}
    assert len(lengths) > 5, "the sentences end at several lengths, or little was tested"


def test_it_stops_when_asked_and_says_how_far_it_is() -> None:
    net, text, asked, done = model(0, 1.0), sentences(0), count(), []
    with pytest.raises(Stopped):
        translate(net.train(), text, tokens=30, done=done.append, stop=lambda: next(asked) > 30)
    assert 0 < sum(done) < len(text)
    assert net.training, "left as it was"
