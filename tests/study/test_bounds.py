"""The papers' bounds on problems of which all constants are known; and that a constant that is wrong breaks them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from sam_repro.study import quadratics
from sam_repro.study.quadratics import Quadratic

Q = Quadratic(size=10)
DRAWS, DELTA = 1000, 0.05


def test_the_longest_step_is_never_exceeded() -> None:
    rng = np.random.default_rng(0)
    w = Q.begin(DRAWS, rng)
    for _ in range(200):
        g = Q.gradient(w) + Q.noise(DRAWS, rng)
        assert np.linalg.norm(g, axis=1).max() <= Q.longest_step
        w = w - 0.5 * g
    assert np.linalg.norm(Q.noise(5, rng), axis=1) == pytest.approx(math.sqrt(Q.variance))


@pytest.mark.parametrize(("decay", "rate"), [(0.5, 0.001), (0.9, 0.01), (0.99, 0.001)])
def test_the_moving_average_is_within_theorem_1(decay: float, rate: float) -> None:
    values = quadratics.average_errors(Q, decay, rate, 200, DRAWS, seed=0)
    bound = quadratics.average_bound(Q, decay, rate, 200, DELTA, Q.variance)
    assert ((values <= bound[:, None]).mean(1) >= 1 - DELTA).all()
    assert values[0] == pytest.approx(np.full(DRAWS, math.sqrt(Q.variance))), "the first average is the first gradient"


def test_noise_of_another_variance_than_is_stated_breaks_theorem_1() -> None:
    loud = dataclasses.replace(Q, variance=400.0, mu=1.0)
    values = quadratics.average_errors(loud, 0.5, 1e-9, 50, DRAWS, seed=0)
    bound = quadratics.average_bound(dataclasses.replace(loud, start=1e-9), 0.5, 1e-9, 50, DELTA, variance=0.01)
    assert (values[-1] <= bound[-1]).mean() < 1 - DELTA


def test_what_is_left_of_the_full_gradient_is_lemma_1s() -> None:
    for sigma in (0.0, 0.5, 1.0):
        left = quadratics.projections(Q, sigma, 4, 4 * DRAWS, seed=1)
        assert left.mean() == pytest.approx(1 - sigma, abs=4 * left.std() / math.sqrt(len(left)))
    assert quadratics.projections(Q, 1.0, 4, 4, 0).std() > 0, "in the mean, not in each draw"


@pytest.mark.parametrize("radius", [0.0, 0.1, 2.0])
def test_squared_gradients_are_within_theorem_2(radius: float) -> None:
    values = quadratics.squared_gradients(Q, 0.5, radius, 300, DRAWS, seed=0)
    bound = quadratics.squared_bound(Q, 0.5, radius, 300)
    assert ((values <= bound[:, None]).mean(1) >= 1 - DELTA).all()
    assert values[-1].mean() < values[0].mean(), "it converges at all"


@pytest.mark.parametrize("samples", [30, 300])
def test_the_loss_is_within_theorem_3(samples: int) -> None:
    gap, square = quadratics.gaps(samples, 10, 0.01, 0.1, DRAWS, seed=0)
    bound = quadratics.gap_bound(square, samples, 10, 0.01, 0.1, DELTA)
    assert (gap <= bound).mean() >= 1 - DELTA
    assert gap.mean() == pytest.approx(0.25 / samples, rel=0.1), "what a mean of n samples overfits, by hand"


def test_the_smoothed_gradient_is_within_r_sams_theorem_1() -> None:
    gammas = [0.1, 0.3, 0.6]
    alpha, beta, found = quadratics.smoothness(3.0, gammas, 301)
    for gamma, value in zip(gammas, found, strict=True):
        assert value <= min(alpha / gamma, beta)
    assert found == sorted(found, reverse=True), "more noise is smoother"
    assert alpha / gammas[-1] < beta, "both sides of the minimum are asked"


def test_second_differences_are_those_of_a_parabola() -> None:
    a = np.linspace(-1, 1, 41)
    x, y = np.meshgrid(a, a, indexing="ij")
    found = quadratics._largest(3 * x * x + x * y - y * y, 0.05, (slice(2, -2),) * 2)
    assert found == pytest.approx(np.abs(np.linalg.eigvalsh([[6.0, 1.0], [1.0, -2.0]])).max())
