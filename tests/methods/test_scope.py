"""Which parameters are perturbed: against an independent reference in fp64, identities, and what falls out of norms."""

import copy

import pytest
import reference as ref
import rig
import torch
from problem import STEPS, Data, Flat, Loop, net
from test_identities import trained
from torch import nn

from sam_repro.engine.ranks import Ranks
from sam_repro.errors import UserError
from sam_repro.methods import build
from sam_repro.methods.leaves import leaves
from sam_repro.train import prepared

NORMS = {"1.weight", "1.bias", "4.weight", "4.bias"}  # of problem.net
RHO = 0.3


def inside(layout, names):
    out = torch.zeros(layout[-1].hi, dtype=torch.float64)
    for s in layout:
        out[s.lo : s.hi] = float(s.name in names)
    return out


def sam_in(state, w, grad, t, layout, names, operator=None):
    """SAM's or ASAM's ball, in the space of these parameters alone."""
    g = grad(w, "batch") * inside(layout, names)
    return grad(w + ref.ball(g, 1.0 if operator is None else operator(w, g, layout, 0.01, False), RHO), "batch")


def fsam_in(state, w, grad, t, layout, names):
    d = ref.fsam_direction(state, grad(w, "batch") * inside(layout, names), 0.8, 0.6, False)
    return grad(w + RHO * d / ref.norm(d), "batch")


def rsam_in(state, w, grad, t, layout, names):
    """The noise, drawn for the parameters in scope alone, is theirs too."""
    source, d0 = torch.Generator().manual_seed(ref.key(0, t, 0, "noise0")), torch.zeros_like(w)
    for s in layout:
        if s.name in names:
            d0[s.lo : s.hi] = 0.05 * torch.randn(s.shape, generator=source).double().reshape(-1)
    d = (d0 + 1.5 * grad(w + d0, "batch")) * inside(layout, names)
    return grad(w + RHO * d / ref.norm(d), "batch")


def residual_in(state, w, grad, t, layout, names):
    g, full = (grad(w, data) * inside(layout, names) for data in ("batch", "full"))
    d = g - ref.inner(g, full) / ref.inner(full, full) * full
    return grad(w + RHO * d / ref.norm(d), "batch")


def gsam_in(state, w, grad, t, layout, names):
    """The ascent is in scope; the descent splits the gradients of all parameters."""
    g = grad(w, "batch")
    ascent = g * inside(layout, names)
    h = grad(w + RHO * ascent / ref.norm(ascent), "batch")
    unit = h / ref.norm(h)
    return h - 0.4 * (g - ref.inner(g, unit) * unit)


CASES = {
    "sam": ("sam", {}, sam_in, {}),
    "asam": ("asam", {"eta": 0.01}, sam_in, {"operator": ref.t_elementwise}),
    "asam_filter": ("asam_filter", {"eta": 0.01}, sam_in, {"operator": ref.t_filterwise}),
    "fsam": ("fsam", {"sigma": 0.8}, fsam_in, {}),
    "rsam": ("rsam", {"start": "isotropic_noise", "gamma": 0.05, "mix": 1.5}, rsam_in, {}),
    "sam_noise": ("sam_noise", {}, residual_in, {}),
    "gsam": ("gsam", {"radius": "constant", "rho_min": None, "alpha": 0.4}, gsam_in, {}),
}


@pytest.mark.parametrize("scope", ["only_norm", "no_norm"])
@pytest.mark.parametrize("case", CASES)
def test_a_scope_is_its_reference(case, scope):
    name, fields, function, arguments = CASES[case]
    model, data = net(torch.float64), Data()
    flat = Flat(model, data, torch.float64)
    names = NORMS if scope == "only_norm" else {s.name for s in flat.layout} - NORMS
    method, loop, state = build(name, model, rho=RHO, scope=scope, **fields), Loop(model, data), {}
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for t in range(STEPS):
        loop.t = flat.t = t
        w = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
        expected = function(state, w, flat.grad, t, flat.layout, names, **arguments)
        method.estimate(loop)
        found = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
        assert ref.norm(found - expected) / ref.norm(expected) < 1e-12
        optimizer.step()


@pytest.mark.parametrize("name", ["sam", "asam", "fsam", "rsam", "looksam", "esam"])
def test_a_pattern_of_everything_is_everything(name):
    assert torch.equal(trained(name, scope="pattern", pattern=".*"), trained(name))
    assert not torch.equal(trained(name, scope="pattern", pattern=r"bias"), trained(name))


def moved(model, **fields):
    """The names of the parameters that the descent pass sees elsewhere, and how far away they are in all."""
    before, seen = copy.deepcopy(dict(model.named_parameters())), {}
    loop = Loop(model, Data())

    def grad_fn(wanted):
        seen[wanted.index] = {name: (p - before[name]).norm().item() for name, p in model.named_parameters()}
        return loop(wanted)

    method = build("sam", model, rho=RHO, **fields)
    method.estimate(grad_fn)
    return {name for name, far in seen[1].items() if far}, sum(far**2 for far in seen[1].values()) ** 0.5, method.report


def test_norms_and_the_rest_complement_each_other():
    model = net(torch.float64)
    everything = {name for name, _ in model.named_parameters()}
    (norms, far, report), (rest, as_far, _) = moved(model, scope="only_norm"), moved(model, scope="no_norm")
    assert (norms, rest) == (NORMS, everything - NORMS)
    assert (far, as_far) == (pytest.approx(RHO), pytest.approx(RHO))  # the whole radius is theirs
    assert moved(model, scope="pattern", pattern=r"^1\.|^4\.")[0] == NORMS
    assert float(report["distance_to_sam"]) > 0.5 * RHO
    assert float(report["gradient_norm"]) == pytest.approx(float(moved(model)[2]["gradient_norm"]))


def test_noise_alone_keeps_to_the_scope_too():
    for name in ("lpf_sgd", "rsam"):
        model, seen = net(torch.float64), []
        before = [p.detach().clone() for p in model.parameters()]
        loop = Loop(model, Data())

        def grad_fn(wanted):
            now = zip(before, model.named_parameters(), strict=True)  # noqa: B023
            seen.append({name for w, (name, p) in now if not torch.equal(w, p)})  # noqa: B023
            return loop(wanted)  # noqa: B023

        method = build(name, model, gamma=0.1, gamma_end=None, scope="only_norm")
        method.estimate(grad_fn)
        assert set.union(*seen) == NORMS, name


class Foreign(nn.Module):
    """Another library's: its class says what it is."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))


class RmsNorm2d(Foreign):
    pass


def test_a_normalisation_is_known_by_its_layer():
    """A shortcut's batch norm is called 1.weight, and a linear layer may be called norm."""
    norms = nn.ModuleDict({
        "downsample": nn.BatchNorm2d(3), "ln": nn.LayerNorm(3), "gn": nn.GroupNorm(1, 3), "rms": nn.RMSNorm(3),
        "instance": nn.InstanceNorm2d(3, affine=True), "sync": nn.SyncBatchNorm(3), "foreign": RmsNorm2d(),
    })  # fmt: skip
    others = nn.ModuleDict({"norm": nn.Linear(3, 3), "bn": nn.Conv2d(3, 3, 1), "plain": Foreign()})
    others["parametrized"] = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))
    assert all(leaf.is_normalisation for leaf in leaves(norms))
    assert not any(leaf.is_normalisation for leaf in leaves(others))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scope": "pattern", "pattern": "nothing"}, "pattern=nothing fits no parameter of this model"),
        ({"scope": "only_norm"}, "scope=only_norm fits no parameter"),
    ],
)
def test_a_scope_of_nothing_is_told(fields, message):
    with pytest.raises(ValueError, match=message):
        build("sam", nn.Linear(2, 2), **fields)


def test_layers_are_asked_of_a_module_only():
    with pytest.raises(ValueError, match=r"build\(\) takes the model"):
        build("sam_on", net().named_parameters())
    build("sam", net().named_parameters(), scope="pattern", pattern="weight")


@pytest.mark.parametrize(
    ("name", "fields", "problem"),
    [
        ("sam", {"scope": "pattern"}, "pattern must be said"),
        ("sam", {"scope": "pattern", "pattern": "("}, "is no regular expression"),
        ("sam", {"pattern": "head"}, "pattern is not read with scope=all"),
        ("plain", {"scope": "only_norm"}, "scope has no meaning without"),
    ],
)
def test_a_scope_that_says_nothing_is_refused(name, fields, problem):
    with pytest.raises(ValueError, match=problem):
        build(name, net(), **fields)


def test_a_pattern_that_matches_nothing_is_one_line_of_the_command():
    with pytest.raises(UserError, match=r"^method\.pattern=nothing fits no parameter of this model: [^\n]*$"):
        prepared(rig.config("method=sam", "method.scope=pattern", "method.pattern=nothing"), Ranks(0, 1, rig.CPU))
