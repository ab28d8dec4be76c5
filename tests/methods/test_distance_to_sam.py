"""`report["distance_to_sam"]`: how far eps is from rho g / l2(g), g the step's first gradient, in fp64."""

import pytest
import torch
from problem import Data, Loop, net

from sam_repro.methods import build

CASES = {
    "sam": ("sam", {}),
    "sam with decay in the ascent": ("sam", {"ascent_decay": 0.1}),
    "asam with decay in the ascent": ("asam", {"ascent_decay": 0.1}),
    "fsam": ("fsam", {}),
    "fasam": ("fasam", {}),
    "fsam, linf": ("fsam", {"p": "linf"}),
    "rsam": ("rsam", {"gamma": 0.05}),
    "rsam, not projected": ("rsam", {"gamma": 0.05, "mix": None, "direction": "gradient_on_noise"}),
    "sam_noise": ("sam_noise", {}),
    "sam_on": ("sam_on", {}),
    "asam in a scope": ("asam", {"scope": "pattern", "pattern": "weight"}),
    "sam in a scope with decay": ("sam", {"scope": "no_norm", "ascent_decay": 0.1}),
    "esam": ("esam", {}),
    "esam around fasam with decay": ("fasam", {"perturb": 0.7, "ascent_decay": 0.1}),
}


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_it_is_the_distance_between_two_perturbations(case, foreach):
    name, fields = CASES[case]
    model, seen, grads = net(torch.float64), [], []
    method = build(name, model, rho=0.3, foreach=foreach, **fields)
    loop = Loop(model, Data())
    for t in range(3):
        loop.t = t
        seen.clear()
        grads.clear()
        w = torch.cat([p.detach().reshape(-1) for p in model.parameters()])

        def grad_fn(wanted):
            loss = loop(wanted)
            seen.append(torch.cat([p.detach().reshape(-1) for p in model.parameters()]))
            grads.append(torch.cat([p.grad.reshape(-1) for p in model.parameters()]))
            return loss

        method.estimate(grad_fn)
        apart = (seen[-1] - w - 0.3 * grads[0] / grads[0].norm()).norm().item()
        alike = case == "sam" or (case == "fsam" and t == 0)  # its first average is a multiple of its first gradient
        assert (apart > 1e-3) != alike
        assert float(method.report["perturbation_norm"]) == pytest.approx((seen[-1] - w).norm().item(), rel=1e-9)
        assert float(method.report["distance_to_sam"]) == pytest.approx(apart, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_nothing_of_it_is_computed_where_nobody_looks(case, monkeypatch):
    name, fields = CASES[case]
    model = net()
    monkeypatch.delattr("sam_repro.methods.method.distance_to_sam")
    monkeypatch.delattr("sam_repro.methods.perturb.Observed")
    method = build(name, model, rho=0.3, **fields)
    method.estimate(Loop(model, Data()), observe=False)
    assert "distance_to_sam" not in method.report
