"""What the algebra says is equal is equal: to the bit where the arithmetic is the same, to fp64 rounding elsewhere."""

import copy
import math

import pytest
import reference as ref
import rig
import torch
from problem import STEPS, Data, Loop, net
from torch import nn

from sam_repro.methods import Moment, build
from sam_repro.methods.directions.minus_ema import MinusEma
from sam_repro.methods.factory import override, read


def trained(name, dtype=torch.float64, loop=Loop, **fields):
    model, data = net(dtype), Data()
    run = loop(model, data)
    method = build(name, model, **fields)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=0.01)
    for t in range(STEPS):
        run.t = t
        method.estimate(run, at=Moment(step=t, progress=t / STEPS, lr=0.1, lr_max=0.1))
        optimizer.step()
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


class SameBatch(Loop):
    """SAM-db's other batch is the batch itself."""

    def __call__(self, wanted):
        return super().__call__(type(wanted)("batch", index=wanted.index))


SAM = {"rho": 0.3}
ALMOST = 1 - 1e-15  # not 1, so that the code for a share runs, and of a small batch the share is all of it
HUGE = 2.0**60  # beside it a weight is lost to rounding: abs(w) + HUGE is HUGE, and a power of two rounds nothing
CONSTANT = {"rho": 0.3 / HUGE, "eta": HUGE, "normalise": "all"}  # T = HUGE, the identity but for a factor of the radius
BITWISE = {
    "sigma=0 F-SAM": ("fsam", {**SAM, "sigma": 0.0}, Loop),
    "gamma=0 R-SAM": ("rsam", {**SAM, "gamma": 0.0, "mix": 1.0}, Loop),
    "k=1 LookSAM": ("looksam", {**SAM, "every": 1}, Loop),
    "fraction=1": ("sam_fraction", {**SAM, "fraction": ALMOST}, Loop),
    "identity ASAM": ("asam", CONSTANT, Loop),
    "identity filter-wise ASAM": ("asam_filter", CONSTANT, Loop),
    "SAM-db with B'=B": ("sam_db", SAM, SameBatch),
    "eta=0 FisherSAM": ("fishersam", {**SAM, "eta": 0.0}, Loop),
    "alpha=0 GSAM": ("gsam", {**SAM, "alpha": 0.0, "radius": "constant", "rho_min": None}, Loop),
}


@pytest.mark.parametrize("case", BITWISE)
def test_is_sam_to_the_bit(case):
    name, fields, loop = BITWISE[case]
    assert override(read(name), fields) != override(read("sam"), SAM), "or it is SAM by its name only"
    assert torch.equal(trained(name, loop=loop, **fields), trained("sam", **SAM))


def test_mixing_factor_means_nothing_without_noise():
    a, b = trained("rsam", rho=0.3, gamma=0.0, mix=2.7), trained("sam", rho=0.3)
    assert ref.norm(a - b) / ref.norm(b) < 1e-12


def test_looksam_at_every_step_goes_looksams_way():
    """Or its identity above would say nothing: the direction for the steps between is kept, though there are none."""
    model = net()
    method = build("looksam", model, every=1)
    assert (method.spec.between, method.spec.every) == ("reuse", 1)
    method.estimate(Loop(model, Data()))
    assert set(method.state_dict()["shards"][0]["tensors"]["look"]) == {name for name, _ in model.named_parameters()}


def test_esam_with_all_weights_and_all_samples_is_sam():
    """Not to the bit: the samples are sorted by their rise."""
    a, b = trained("esam", perturb=ALMOST, keep=ALMOST, **SAM), trained("sam", **SAM)
    assert ref.norm(a - b) / ref.norm(b) < 1e-12


SHARES = {
    "fraction=1": ["method=sam_fraction", f"method.fraction={ALMOST!r}"],
    "perturb=1, keep=1 ESAM": ["method=esam", f"method.perturb={ALMOST!r}", f"method.keep={ALMOST!r}"],
}


@pytest.mark.parametrize("case", SHARES)
def test_a_share_that_is_the_whole_batch_is_sam_in_the_engine_too(case):
    shared, whole = rig.net(), rig.net()
    rig.train(rig.stepper(rig.config(*SHARES[case], "method.rho=0.3"), shared), STEPS)
    rig.train(rig.stepper(rig.config("method=sam", "method.rho=0.3"), whole), STEPS)
    torch.testing.assert_close(rig.weights(shared), rig.weights(whole), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["asam", "asam_bias", "asam_linf", "fasam"])
def test_elementwise_geometry_of_weights_of_size_one_is_the_identity(name):
    """T = abs(w) = 1 at every sign of w, with eta = 0."""
    gradients = []
    identity = {"geometry": "identity", "eta": None, "normalise": None}
    for of_geometry in ({"geometry": "elementwise", "eta": 0.0}, identity):
        model = net(torch.float64)
        with torch.no_grad():
            for p in model.parameters():
                p.sign_()
            assert all((p == -1).any() for p in model.parameters() if p.dim() > 1)
        build(name, model, **SAM, **of_geometry).estimate(Loop(model, Data()))
        gradients.append([p.grad for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_a_larger_ascent_batch_of_the_same_samples_is_sam():
    class Same(SameBatch):
        pass

    assert torch.equal(trained("sam_larger", loop=Same, rho=0.3), trained("sam", rho=0.3))


@pytest.mark.parametrize("name", ["sam", "asam", "asam_linf", "asam_filter", "fsam", "rsam", "fishersam", "sam_db"])
def test_zero_radius_is_sgd_to_the_bit(name):
    assert torch.equal(trained(name, torch.float32, rho=0.0), trained("plain", torch.float32))


def directions(order, sigma, gradients, decay=0.6):
    direction = MinusEma(sigma=sigma, ema_order=order, ema_decay=decay)
    m, out = torch.zeros_like(gradients[0]), []
    for g in gradients:
        d, before = g.clone(), m.clone()
        direction.bend([d], [[m]])
        out.append((before, d))
    return out


def test_both_orders_of_fsam_are_parallel_at_sigma_one():
    gradients = list(torch.randn(6, 50, dtype=torch.float64))
    for (_, paper), (_, code) in zip(
        directions("update_first", 1.0, gradients), directions("subtract_first", 1.0, gradients), strict=True
    ):
        assert torch.allclose(paper, 0.6 * code, rtol=1e-12, atol=1e-14)  # ema_decay times as long
    same = {"rho": 0.3, "ema_start": "zero"}
    a, b = trained("fsam", ema_order="update_first", **same), trained("fsam", ema_order="subtract_first", **same)
    assert ref.norm(a - b) / ref.norm(a) < 1e-12


@pytest.mark.parametrize("sigma", [0.2, 0.5, 0.9])
def test_sigma_conversion_between_the_two_orders_of_fsam(sigma):
    """A paper sigma equals a code sigma of sigma lambda / (1 - sigma (1 - lambda))."""
    decay = 0.6
    code_sigma = sigma * decay / (1 - sigma * (1 - decay))
    gradients = list(torch.randn(6, 50, dtype=torch.float64))
    for (_, paper), (_, code) in zip(
        directions("update_first", sigma, gradients), directions("subtract_first", code_sigma, gradients), strict=True
    ):
        assert torch.allclose(paper / paper.norm(), code / code.norm(), rtol=1e-11, atol=1e-13)
    same = {"rho": 0.3, "ema_start": "zero", "ema_decay": decay}
    a = trained("fsam", sigma=sigma, ema_order="update_first", **same)
    b = trained("fsam", sigma=code_sigma, ema_order="subtract_first", **same)
    assert ref.norm(a - b) / ref.norm(a) < 1e-12


def perturbation(model, **fields):
    """eps of one step, seen from inside the descent pass."""
    method, seen = build("asam_bias", model, **fields), {}
    x, y = torch.randn(16, 6, generator=torch.Generator().manual_seed(1)).double(), torch.arange(16) % 3

    def grad_fn(wanted):
        seen[wanted.index] = [p.detach().clone() for p in model.parameters()]
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss.detach()

    loss = method.estimate(grad_fn)
    return loss, [a - w for a, w in zip(seen[1], seen[0], strict=True)], [p.grad for p in model.parameters()]


@pytest.mark.parametrize("p", ["l2", "linf"])
def test_asam_does_not_see_a_rescaling_that_leaves_the_loss(p):
    """Node-wise scaling A of a rectifier layer and its inverse in the next: eps(A w) = A eps(w), g(A w) = A^-1 g(w)."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).double()
    scale = torch.rand(8, dtype=torch.float64) * 5 + 0.2
    scaled = copy.deepcopy(model)
    with torch.no_grad():
        scaled[0].weight.mul_(scale[:, None])
        scaled[0].bias.mul_(scale)
        scaled[2].weight.div_(scale)
    factors = [scale[:, None], scale, 1 / scale, torch.ones(3, dtype=torch.float64)]
    fields = {"eta": 0.0, "rho": 0.5 if p == "l2" else 0.05, "p": p}
    loss, eps, g = perturbation(model, **fields)
    loss_scaled, eps_scaled, g_scaled = perturbation(scaled, **fields)
    assert torch.allclose(loss, loss_scaled, rtol=1e-12)
    for a, e, e_scaled, x, x_scaled in zip(factors, eps, eps_scaled, g, g_scaled, strict=True):
        assert torch.allclose(a * e, e_scaled, rtol=1e-9, atol=1e-14)
        assert torch.allclose(x / a, x_scaled, rtol=1e-9, atol=1e-14)


def test_sam_does_see_that_rescaling():
    """The other half of the claim: the test above would not pass by accident."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).double()
    scaled = copy.deepcopy(model)
    with torch.no_grad():
        scaled[0].weight.mul_(3.0)
        scaled[0].bias.mul_(3.0)
        scaled[2].weight.div_(3.0)
    identity = {"geometry": "identity", "eta": None, "normalise": None, "rho": 0.5}
    (_, eps, _), (_, eps_scaled, _) = (perturbation(m, **identity) for m in (model, scaled))
    assert not torch.allclose(3 * eps[0], eps_scaled[0], rtol=0.1)


def optimal_alpha(speed, steps=1500, noise=1.0, size=64):
    """The alpha = 1 - lambda whose average is closest to the true gradient, on a quadratic walked at constant speed.

    L(w) = |w|^2 / 2, so the gradient is w: it drifts by gamma G = `speed` a step and is seen with noise E|xi|^2 = 1.
    """
    source = torch.Generator().manual_seed(5)
    guess = (4 * speed**2 / noise**2) ** (1 / 3)
    alphas = [guess * 2 ** (k / 3) for k in range(-4, 5)]
    directions_ = [MinusEma(ema_decay=1 - alpha) for alpha in alphas]
    w = torch.zeros(size, dtype=torch.float64)
    drift = torch.full_like(w, speed / math.sqrt(size))
    averages, errors = [torch.zeros_like(w) for _ in alphas], [0.0 for _ in alphas]
    for t in range(steps):
        w = w + drift
        g = w + torch.randn(size, generator=source, dtype=torch.float64) * noise / math.sqrt(size)
        for k, direction in enumerate(directions_):
            direction.bend([g.clone()], [[averages[k]]])
            if t > 4 / min(alphas):  # theorem 1 asks for T > 4 / alpha
                errors[k] += float((averages[k] - w).square().sum())
    x, y = torch.tensor(alphas).log().double(), torch.tensor(errors, dtype=torch.float64).log()
    best = int(y.argmin())
    assert 0 < best < len(alphas) - 1, "the minimum is inside the grid"
    a, b, _ = torch.linalg.lstsq(
        torch.stack([x**2, x, torch.ones_like(x)], 1)[best - 1 : best + 2], y[best - 1 : best + 2]
    )[0]
    return math.exp(float(-b / (2 * a))), guess


def test_the_average_of_fsam_is_best_where_theorem_1_says():
    """alpha = 1 - lambda ~ (gamma G beta)^(2/3) / M^(1/3): eight times the speed, four times the alpha."""
    speeds = [0.004, 0.032, 0.128]
    found = [optimal_alpha(s) for s in speeds]
    for alpha, predicted in found:
        assert alpha == pytest.approx(predicted, rel=0.25)
    slope = math.log(found[-1][0] / found[0][0]) / math.log(speeds[-1] / speeds[0])
    assert slope == pytest.approx(2 / 3, abs=0.06)
