"""Every method against its independent fp64 reference: five steps of SGD with momentum and weight decay.

Twice: in fp64, where both must agree to 1e-12, which leaves no room for a wrong formula; and in fp32 to 1e-6. There the
reference keeps its weights, perturbations and averages in fp64 and only evaluates gradients in fp32, as no fp32 program
could do better: what is compared is the method's arithmetic, relative to the length of the weight vector.
"""

import math

import pytest
import reference as ref
import torch
from problem import STEPS, Data, Flat, Loop, net

from sam_repro.methods import Moment, Pass, build

SEED = 11
LR, LR_MIN = 0.1, 0.01
RATES = [0.0, 0.05, 0.1, 0.07, 0.03]  # a warm-up from 0, then decay


def gsam_rho(t):
    return ref.gsam_rho(0.3, 0.05, RATES[t], LR_MIN, LR)


def ramp(t):
    return 0.02 + 0.03 * (1 - math.cos(math.pi * t / STEPS)) / 2


NOISE = {"gamma": 0.05}
R = {"gamma": 0.05, "lam": 1.5, "seed": SEED}
LOOK = {"every": 2, "look": 0.7}
F = {"sigma": 0.8, "lam": 0.6}
G = {"rho": 0.3, "rho_min": 0.05, "alpha": 0.4}
T = {"eta": 0.01, "biases": False}

# name of the method file, overrides, reference, its arguments
CASES = {
    "plain": ("plain", {}, ref.plain, {}),
    "sam": ("sam", {"rho": 0.2}, ref.sam, {"rho": 0.2}),
    "sam with decay in the ascent": ("sam", {"rho": 0.2, "ascent_decay": 0.1}, ref.sam, {"rho": 0.2, "decay": 0.1}),
    "asam": ("asam", {"rho": 0.7}, ref.asam, {"rho": 0.7, "eta": 0.01}),
    "asam_bias": ("asam_bias", {"rho": 0.7}, ref.asam, {"rho": 0.7, "eta": 0.01, "biases": True}),
    "asam_filter": ("asam_filter", {"rho": 0.7}, ref.asam, {"rho": 0.7, "eta": 0.01, "operator": ref.t_filterwise}),
    "asam_linf": ("asam_linf", {"rho": 0.05}, ref.asam_linf, {"rho": 0.05, "eta": 0.01}),
    "rsam": ("rsam", {"rho": 0.2, "mix": 1.5, **NOISE}, ref.rsam, {"rho": 0.2, **R}),
    "rsam, variance": (
        "rsam", {"rho": 0.2, "mix": 1.5, "noise_scale": "sqrt_filter", **NOISE},
        ref.rsam, {"rho": 0.2, **R, "root": True},
    ),
    "rsam, isotropic": (
        "rsam", {"rho": 0.2, "mix": 1.5, "start": "isotropic_noise", **NOISE}, ref.rsam_isotropic, {"rho": 0.2, **R},
    ),
    "rsam, not projected": (
        "rsam", {"rho": 0.2, "mix": None, "direction": "gradient_on_noise", **NOISE},
        ref.rsam_not_projected, {"rho": 0.2, "gamma": 0.05, "seed": SEED},
    ),
    "gsam": ("gsam", G, ref.gsam, {"rho": gsam_rho, "alpha": 0.4}),
    "rgsam": ("rgsam", {**G, **NOISE, "mix": 1.5}, ref.rgsam, {"rho": gsam_rho, "alpha": 0.4, **R}),
    "fsam": ("fsam", {"rho": 0.2, "sigma": 0.8}, ref.fsam, {"rho": 0.2, **F}),
    "fsam, released order": (
        "fsam", {"rho": 0.2, "sigma": 0.8, "ema_order": "subtract_first", "ema_start": "first"},
        ref.fsam, {"rho": 0.2, **F, "official": True},
    ),
    "fasam": (
        "fasam", {"rho": 0.7, "sigma": 0.8}, ref.fsam_in_ball, {"rho": 0.7, **F, "operator": ref.t_elementwise, **T},
    ),
    "fishersam": (
        "fishersam", {"rho": 0.2, "eta": 30.0}, ref.asam, {"rho": 0.2, "eta": 30.0, "operator": ref.t_fisher},
    ),
    "ffishersam": (
        "ffishersam", {"rho": 0.2, "eta": 30.0, "sigma": 0.8},
        ref.fsam_in_ball, {"rho": 0.2, **F, "operator": ref.t_fisher, "eta": 30.0, "biases": True},
    ),
    "sam_full": ("sam_full", {"rho": 0.2}, ref.sam, {"rho": 0.2, "data": "full"}),
    "sam_db": ("sam_db", {"rho": 0.2}, ref.sam, {"rho": 0.2, "data": "other"}),
    "sam_noise": ("sam_noise", {"rho": 0.2}, ref.sam_noise, {"rho": 0.2}),
    "sam_larger": ("sam_larger", {"rho": 0.2, "ascent_batch": 48}, ref.sam, {"rho": 0.2, "data": "larger"}),
    "sam_fraction": ("sam_fraction", {"rho": 0.2}, ref.sam, {"rho": 0.2, "data": "part"}),
    "lpf_sgd": (
        "lpf_sgd", {"draws": 5, "gamma": 0.02, "gamma_end": 0.05},
        ref.lpf_sgd, {"gamma": ramp, "draws": 5, "seed": SEED},
    ),
    "lpf_sgd, not split": (
        "lpf_sgd", {"draws": 3, "split": False, "gamma": 0.02, "gamma_end": 0.05},
        ref.lpf_sgd, {"gamma": ramp, "draws": 3, "seed": SEED, "split": False},
    ),
    "looksam": ("looksam", {"rho": 0.2, **LOOK}, ref.looksam, {"rho": 0.2, **LOOK}),
    "looksam, by tensor": (
        "looksam", {"rho": 0.2, "look_by": "tensor", **LOOK}, ref.looksam_by_tensor, {"rho": 0.2, **LOOK},
    ),
    "esam": ("esam", {"rho": 0.2}, ref.esam, {"rho": 0.2, "share": 0.6, "seed": SEED}),
}  # fmt: skip


def ours(name, fields, dtype, **how):
    model, data = net(dtype), Data()
    loop = Loop(model, data)
    method = build(name, model, seed=SEED, **how, **fields)
    optimizer = torch.optim.SGD(model.parameters(), LR, momentum=0.9, weight_decay=0.01)
    for t in range(STEPS):
        loop.t = t
        optimizer.param_groups[0]["lr"] = RATES[t]
        at = Moment(step=t, progress=t / STEPS, lr=RATES[t], lr_min=LR_MIN, lr_max=LR)
        method.estimate(loop, at=at)
        optimizer.step()
    return torch.cat([p.detach().reshape(-1).double() for p in model.parameters()])


def references(function, arguments, dtype):
    flat = Flat(net(), Data(), dtype, fraction=0.5, keep=0.5)
    w, state, optimizer = flat.vector(), {}, ref.Momentum(LR, 0.9, 0.01)
    for t in range(STEPS):
        flat.t = t
        g = function(state, w, flat.grad, t, flat.layout, **arguments)
        w = optimizer.step(w, g, RATES[t])
    return w


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)], ids=["fp64", "fp32"])
@pytest.mark.parametrize("case", CASES)
def test_five_steps_agree_with_the_reference(case, dtype, tolerance):
    name, fields, function, arguments = CASES[case]
    expected = references(function, arguments, dtype)
    got = ours(name, fields, dtype)
    assert ref.norm(got - expected) / ref.norm(expected) < tolerance


@pytest.mark.parametrize("case", CASES)
def test_foreach_equals_the_loops(case):
    name, fields, _, _ = CASES[case]
    loops, foreach = (ours(name, fields, torch.float64, foreach=choice) for choice in (False, True))
    assert ref.norm(loops - foreach) / ref.norm(loops) < 1e-12


@pytest.mark.parametrize("case", CASES)
def test_swapped_memory_gives_the_bits_of_copied_memory(case):
    name, fields, _, _ = CASES[case]
    assert torch.equal(*(ours(name, fields, torch.float32, swap=choice) for choice in (True, False)))


@pytest.mark.parametrize("case", [case for case in CASES if case != "plain"])
def test_a_wrong_method_would_be_seen(case):
    """What the tolerance is worth: plain SGD is further from every reference by a factor of a thousand."""
    _, _, function, arguments = CASES[case]
    expected = references(function, arguments, torch.float32)
    assert ref.norm(ours("plain", {}, torch.float32) - expected) / ref.norm(expected) > 1e-3


@pytest.mark.parametrize(("look_by", "theirs"), [("tensor", True), ("whole", False)])
def test_looksam_by_tensor_is_the_popular_ports(look_by, theirs):
    """pytorch_optimizer's passes twice on every step; what comes of them is the same."""
    from pytorch_optimizer import LookSAM

    model, data = net(torch.float64), Data()
    loop = Loop(model, data)
    port = LookSAM(model.parameters(), torch.optim.SGD, rho=0.2, k=2, alpha=0.7, lr=LR, momentum=0.9, weight_decay=0.01)
    for t in range(STEPS):
        loop.t = t
        port.base_optimizer.param_groups[0]["lr"] = RATES[t]

        def closure():
            port.zero_grad()
            return loop(Pass())

        closure()
        port.step(closure)
    expected = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    got = ours("looksam", {"rho": 0.2, "look_by": look_by, **LOOK}, torch.float64)
    assert (ref.norm(got - expected) / ref.norm(expected) < 1e-6) == theirs
