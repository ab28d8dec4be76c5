"""Studies of small problems, against closed forms, a second implementation and the methods' own code."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from sam_repro.methods import Moment, Pass, build
from sam_repro.study import m_matters, regions, toy, trajectories

ROOT2 = math.sqrt(2)


@pytest.mark.parametrize("rho", [0.05, 0.2, 0.5])
def test_regions_have_the_maxima_of_closed_forms(rho: float) -> None:
    """(1 + rho / sqrt 2)^2 over a ball of relative radii, (1 + rho)^2 over a box of them: at w and at A w alike."""
    wanted = {"(a) sphere": (1 + rho / ROOT2) ** 2, "(b) cuboid, adaptive": (1 + rho) ** 2}
    wanted["(c) ellipsoid, adaptive"] = wanted["(a) sphere"]
    for region, product in wanted.items():
        here, there = (regions.maximum(region, centre, rho) for centre in regions.CENTRES.values())
        assert here[0] == pytest.approx(product - 0.04, rel=1e-9)
        if region != "(a) sphere":
            assert there[0] == pytest.approx(here[0], rel=1e-9)
        else:
            assert there[0] > here[0] * 1.01


@pytest.mark.parametrize(("name", "eta"), [("sam", None), ("asam", 0.0), ("asam", 0.01)])
def test_many_starts_step_as_the_method_does(name: str, eta: float | None) -> None:
    starts = np.array([(0.2, 0.05), (0.3, 0.033), (0.4, 0.4), (0.01, 0.3)])
    w = starts
    for _ in range(6):
        w = trajectories.step(w, eta, 0.05, 0.05)
    fields = {"rho": 0.05} | ({} if eta is None else {"eta": eta})
    for start, mine in zip(starts, w, strict=True):
        np.testing.assert_allclose(toy.run(name, fields, start, 0.05, 6).trajectory[-1], mine, rtol=0, atol=1e-12)


def test_asam_reaches_the_valley_below_root_two_and_not_beyond() -> None:
    s = trajectories.Settings(grid=4, many_steps=4000)
    starts = trajectories.many(s)
    below = starts[starts[:, 0] * starts[:, 1] < toy.TARGET]
    assert all(trajectories.converged(starts, 0.0, 1.2, s))
    assert not any(trajectories.converged(below, 0.0, 1.45, s))
    assert not all(trajectories.converged(starts, None, 0.2, s)), "SAM's radius depends on the weights' scale"


def by_method(s: m_matters.Settings, m: int | None, steps: int, rho: float) -> list[np.ndarray]:
    """The same training by SAM's own code, with shards of m samples as the engine takes them."""
    p = m_matters.problem(s, 1)
    x, y = torch.tensor(p.x[0]), torch.tensor(p.y[0])
    u, v = (torch.full((s.features,), s.alpha, dtype=torch.float64, requires_grad=True) for _ in range(2))
    method = build("sam", [("u.weight", u), ("v.weight", v)], rho=rho)
    shards = torch.arange(s.samples).split(m or s.samples)
    for step in range(steps):
        total = [torch.zeros_like(u), torch.zeros_like(v)]
        for index, ids in enumerate(shards):

            def grad_fn(_: Pass, ids: torch.Tensor = ids) -> torch.Tensor:
                loss = (x[ids] @ (u * u - v * v) - y[ids]).square().mean()
                loss.backward()
                return loss.detach()

            method.estimate(grad_fn, at=Moment(step, 0.0, s.lr, 0.0, s.lr), shard=index)
            for t, w in zip(total, (u, v), strict=True):
                t += w.grad / len(shards)
        method.end_step()
        with torch.no_grad():
            for w, g in zip((u, v), total, strict=True):
                w -= s.lr * g
    return [u.detach().numpy(), v.detach().numpy()]


@pytest.mark.parametrize(("m", "name"), [(1, "1-SAM"), (None, "n-SAM")])
def test_m_sam_is_the_methods_own_code_over_shards(m: int | None, name: str) -> None:
    s, steps, rho = m_matters.Settings(samples=5, features=7), 12, 0.1
    p = m_matters.problem(s, 1)
    u = v = np.full(p.b.shape, s.alpha)
    for _ in range(steps):
        gu, gv = m_matters.final_gradient(name, p, u, v, np.full((1, 1), rho), True)
        u, v = u - s.lr * gu, v - s.lr * gv
    for mine, theirs in zip((u, v), by_method(s, m, steps, rho), strict=True):
        np.testing.assert_allclose(mine[0], theirs, rtol=0, atol=1e-12)


def test_m_matters_by_orders_of_magnitude() -> None:
    """On the smallest problem where it does: 1-SAM finds the sparse weights, n-SAM ends where gradient descent does."""
    s = m_matters.Settings(steps=4000, seeds=1)
    descent, whole, one = (m_matters.train(method, s, 0.05, True)[0][-1] for method in m_matters.METHODS)
    assert 30 * one < whole
    assert 0.5 < whole / descent < 2
