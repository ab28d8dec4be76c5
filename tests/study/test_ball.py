"""Sharpness against what is known of it."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from sam_repro.study.ball import Landscape, Norm, apgd, average, m_sharpness, one_step, sharpness


class Quadratic(nn.Module):
    """L = 1/2 w^T A w + b^T w, whatever the sample."""

    def __init__(self, a: Tensor, b: Tensor, w: Tensor) -> None:
        super().__init__()
        self.a, self.b, self.w = a, b, nn.Parameter(w[None])

    def forward(self, x: Tensor) -> Tensor:
        w = self.w[0]
        return (0.5 * w @ self.a @ w + self.b @ w).expand(len(x))


def of_sum(outputs: Tensor, _: Tensor) -> Tensor:
    return outputs.sum()


def quadratic() -> tuple[Quadratic, list[tuple[Tensor, Tensor]], Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(6, 6, generator=generator).double()
    a, b, w = root @ root.T, torch.randn(6, generator=generator).double(), torch.randn(6, generator=generator).double()
    return Quadratic(a, b, w), [(torch.zeros(3, 1), torch.zeros(3))], a, a @ w + b


def largest(a: Tensor, g: Tensor, rho: float) -> float:
    """max over ||e|| <= rho of g e + 1/2 e A e: (lambda I - A) e = g with ||e|| = rho, lambda above A's largest."""
    values, vectors = torch.linalg.eigh(a)
    turned = vectors.T @ g
    low, high = float(values[-1]), float(values[-1] + g.norm() / rho + 1)
    for _ in range(200):
        middle = (low + high) / 2
        longer = float((turned / (middle - values)).norm()) > rho
        low, high = (middle, high) if longer else (low, middle)
    e = turned / (high - values)
    return float(turned @ e + 0.5 * (values * e * e).sum())


@pytest.mark.parametrize("geometry", ["none", "elementwise"])
@pytest.mark.parametrize("rho", [0.05, 0.5])
def test_of_a_quadratic_it_is_the_closed_form(geometry: str, rho: float) -> None:
    model, batches, a, g = quadratic()
    t = model.w.detach()[0].abs() if geometry == "elementwise" else torch.ones(6).double()
    found = sharpness(model, batches, of_sum, Norm(2, geometry), rho, 150, 1, seed=0)
    assert found == pytest.approx(largest(t[:, None] * a * t, t * g, rho), rel=1e-6)


def relu_net(scale: float) -> tuple[nn.Sequential, list[tuple[Tensor, Tensor]]]:
    """The same function at any scale: a hidden node's inputs and bias times it, its outputs divided by it."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3)).double()
    batches = [(torch.randn(n, 5).double(), torch.randint(0, 3, (n,))) for n in (9, 7)]
    factors = scale ** torch.linspace(-1, 1, 7).double()
    with torch.no_grad():
        model[0].weight *= factors[:, None]
        model[0].bias *= factors
        model[2].weight /= factors
    return model, batches


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(outputs, targets, reduction="sum")


@pytest.mark.parametrize("p", [2, math.inf])
@pytest.mark.parametrize("steps", [0, 5])
@pytest.mark.parametrize("m", [None, 4])
def test_adaptive_sharpness_knows_no_scale_and_sharpness_does(p: float, steps: int, m: int | None) -> None:
    """ASAM, theorem 1."""
    found = {}
    for geometry in ("elementwise", "none"):
        norm = Norm(p, geometry, biases=True)
        found[geometry] = [m_sharpness(*relu_net(s), cross_entropy, norm, 0.1, m, steps, 0, 0) for s in (1.0, 4.0)]
    one, other = found["elementwise"]
    assert other == pytest.approx(one, abs=1e-9)
    one, other = found["none"]
    assert abs(other - one) > 1e-3


@pytest.mark.parametrize("p", [2, math.inf])
@pytest.mark.parametrize("geometry", ["none", "elementwise", "filterwise"])
@pytest.mark.parametrize("rho", [0.01, 0.1, 1.0])
def test_one_step_is_at_most_apgd_and_both_stay_in_the_ball(p: float, geometry: str, rho: float) -> None:
    model, batches = relu_net(1.0)
    before = [w.detach().clone() for w in model.parameters()]
    norm = Norm(p, geometry, eta=0.01)
    land = Landscape(model, batches, cross_entropy, norm)
    e = one_step(land, rho)
    flat = torch.cat([part.reshape(-1) for part in e])
    assert float(flat.norm() if p == 2 else flat.abs().max()) == pytest.approx(rho)
    assert land.value(e) <= apgd(land, rho, 20, 1, seed=0)
    draws = average(land, rho, 4, seed=0)
    assert draws == average(land, rho, 4, seed=0)
    assert draws != average(land, rho, 4, seed=1)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True)), "left as it was"


def test_filters_are_scaled_as_wholes() -> None:
    conv = nn.Conv2d(2, 3, 2)
    weight, bias = Norm(2, "filterwise", eta=0.5).scales(conv)
    for number in range(3):
        assert torch.allclose(weight[number], conv.weight[number].norm() + 0.5)
    assert torch.equal(bias, torch.ones(3))
