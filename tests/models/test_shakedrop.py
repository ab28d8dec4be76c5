"""ShakeDrop against a reference written from the paper's equation, sample by sample."""

import pytest
import torch

from sam_repro.models.pyramidnet import PyramidNet, ShakeDrop


def observe(layer: ShakeDrop, samples: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The factor of every sample in the forward and in the backward pass, each constant over the sample."""
    x = torch.randn(samples, 3, 2, 2, dtype=torch.float64, requires_grad=True)
    out = layer(x)
    upstream = torch.randn_like(out)
    (gradient,) = torch.autograd.grad(out, x, upstream)
    forward, backward = (out / x).detach(), gradient / upstream
    for factor in (forward, backward):
        torch.testing.assert_close(factor, factor[:, :1, :1, :1].expand_as(factor))
    return forward[:, 0, 0, 0], backward[:, 0, 0, 0]


def test_factors_are_those_of_the_equation():
    """b = 1: both factors 1. b = 0: alpha uniform on [-1, 1] forward, an independent beta on [0, 1] backward."""
    torch.manual_seed(0)
    n, shaken = 40_000, 0.3
    forward, backward = observe(ShakeDrop(shaken), n)
    kept = (forward - 1).abs() < 1e-9
    assert torch.equal(kept, (backward - 1).abs() < 1e-9)
    assert kept.double().mean().item() == pytest.approx(1 - shaken, abs=4 * (shaken * (1 - shaken) / n) ** 0.5)
    alpha, beta = forward[~kept], backward[~kept]
    for draws, low, high in ((alpha, -1, 1), (beta, 0, 1)):
        # Kolmogorov-Smirnov distance to the uniform distribution, critical value of p = 0.001
        uniform = (draws.sort().values - low) / (high - low)
        steps = torch.arange(1, len(draws) + 1) / len(draws)
        assert (uniform - steps).abs().max().item() < 1.95 / len(draws) ** 0.5
        assert draws.min() >= low - 1e-9
        assert draws.max() <= high + 1e-9
    correlation = torch.corrcoef(torch.stack([alpha, beta]))[0, 1].item()
    assert abs(correlation) < 4 / len(alpha) ** 0.5


def test_evaluation_is_the_expectation_of_training():
    torch.manual_seed(0)
    layer = ShakeDrop(0.4)
    x = torch.ones(200_000, 1, 1, 1)
    mean = layer(x).mean().item()
    layer.eval()
    assert torch.equal(layer(x[:3]), torch.full((3, 1, 1, 1), 0.6))
    assert mean == pytest.approx(0.6, abs=4 * 0.6 / 200_000**0.5)


def test_chance_rises_linearly_with_depth():
    model = PyramidNet(29, 20, 10, bottleneck=True, shaken=0.5)
    chances = [m.shaken for m in model.modules() if isinstance(m, ShakeDrop)]
    assert chances == pytest.approx([0.5 * number / 9 for number in range(1, 10)])


def test_a_reseeded_pass_is_the_same_pass():
    """Both passes of a sharpness-aware step see the same masks, forward and backward, whatever is drawn in between."""
    torch.manual_seed(0)
    model = PyramidNet(29, 20, 10, bottleneck=True, shaken=0.9)
    images = torch.randn(4, 3, 32, 32)

    def gradient(seed: int, draw_before_backward: bool) -> list[torch.Tensor]:
        torch.manual_seed(seed)
        loss = model(images).square().mean()
        if draw_before_backward:
            torch.rand(1000)
        return list(torch.autograd.grad(loss, list(model.parameters())))

    one, again, other = gradient(1, False), gradient(1, True), gradient(2, False)
    assert all(torch.equal(a, b) for a, b in zip(one, again, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_half_precision_stays_half():
    torch.manual_seed(0)
    x = torch.randn(4, 2, 2, 2, dtype=torch.bfloat16, requires_grad=True)
    out = ShakeDrop(0.9)(x)
    out.sum().backward()
    assert out.dtype == torch.bfloat16
    assert x.grad is not None
    assert x.grad.dtype == torch.bfloat16
