"""The Transformer's size, that padding counts for nothing, and the loss of a token."""

import math

import torch
import torch.nn.functional as F

from sam_repro.tasks.translation.bpe import EOS, PAD
from sam_repro.tasks.translation.loss import of_sentences, token_losses
from sam_repro.tasks.translation.model import Transformer, TransformerConfig

TINY = TransformerConfig(width=32, inner=48, heads=4, layers=2, dropout=0.0)


def test_it_has_the_size_of_the_paper() -> None:
    with torch.device("meta"):
        model = Transformer(TransformerConfig(), 8848, 6632)
    assert sum(p.numel() for p in model.parameters()) == 39_469_056


def batch() -> tuple[list[int], torch.Tensor, torch.Tensor, torch.Tensor]:
    dice = torch.Generator().manual_seed(0)
    source, target = (torch.randint(4, 40, (5, n), generator=dice) for n in (300, 9))
    lengths = [9, 6, 3, 8, 1]
    for row, n in enumerate(lengths):
        source[row, n + 1 :], target[row, n:] = PAD, PAD
        target[row, n - 1] = EOS
    shifted = torch.cat([torch.full((5, 1), EOS), target[:, :-1]], 1).masked_fill(target == PAD, PAD)
    return lengths, source, shifted, target


def test_padding_changes_no_loss_and_no_gradient() -> None:
    torch.manual_seed(0)
    model = Transformer(TINY, 40, 48).double()
    lengths, source, shifted, target = batch()

    def losses(rows: slice, s: int, t: int) -> torch.Tensor:
        out = target[rows, :t]
        return of_sentences(token_losses(model(source[rows, :s], shifted[rows, :t]), out, 0.1), out)[0]

    together = losses(slice(None), 300, 9)
    alone = torch.cat([losses(slice(i, i + 1), n + 1, n) for i, n in enumerate(lengths)])
    assert (together - alone).abs().max() <= 1e-12
    gradients = [torch.autograd.grad(each.sum(), list(model.parameters())) for each in (together, alone)]
    assert max((a - b).abs().max() for a, b in zip(*gradients, strict=True)) <= 1e-12
    assert model.source.weight[PAD].abs().max() == 0


def test_a_token_does_not_see_what_follows_it() -> None:
    torch.manual_seed(0)
    model = Transformer(TINY, 40, 48).double()
    source, target = torch.randint(4, 40, (1, 5)), torch.randint(4, 48, (1, 6))
    other = target.clone()
    other[0, 4] = 4 + (target[0, 4] - 3) % 44
    a, b = model(source, target), model(source, other)
    assert torch.equal(a[:4], b[:4])
    assert not torch.allclose(a[4], b[4])


def test_the_loss_of_a_token_is_smoothed_as_printed() -> None:
    logits, target = torch.randn(3, 7, dtype=torch.float64), torch.tensor([[4, EOS], [5, PAD]])
    log = F.log_softmax(logits, 1)
    wanted = [-(0.9 * log[i, y] + 0.1 * log[i].mean()) for i, y in enumerate((4, EOS, 5))]
    each = token_losses(logits, target, 0.1)
    torch.testing.assert_close(each, torch.stack(wanted))
    sums, weights = of_sentences(each, target)
    torch.testing.assert_close(sums, torch.stack([each[:2].sum(), each[2]]))
    assert weights.tolist() == [2, 1]


def test_a_new_model_guesses_evenly() -> None:
    """The sum of what an embedding of norm one gives: a loss near that of chance, as at the start of fairseq's runs."""
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(64, 128, 4, 2, 0.0), 400, 400)
    source, target = torch.randint(4, 400, (8, 12)), torch.randint(4, 400, (8, 12))
    loss = token_losses(model(source, target), target.flip(0)).mean().item()
    assert math.log(400) - 0.1 < loss < math.log(400) + 1.5
