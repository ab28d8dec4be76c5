"""The vocabulary: every shipped method is sound, nonsense is refused with its reason, and imports stay light."""

import dataclasses
import math
import subprocess
import sys

import pytest
import torch
from problem import Data, Loop, net
from torch import nn

from sam_repro import CONFIGS
from sam_repro.methods import Pass, axes, build, factory
from sam_repro.methods.factory import override, read
from sam_repro.methods.spec import Spec

NAMES = sorted(f.stem for f in (CONFIGS / "method").glob("*.yaml"))


@pytest.mark.parametrize("profile", ["paper", "official"])
@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_method_is_sound(name, profile):
    assert read(name, profile).problems() == []


@pytest.mark.parametrize("file", sorted((CONFIGS / "departure" / "official").glob("*.yaml")), ids=lambda f: f.stem)
def test_every_departure_changes_its_method(file):
    assert read(file.stem, "official") != read(file.stem)


def test_a_method_with_another_radius_departs_as_the_one_that_it_is_made_of():
    for name in ("asam_cifar100", "asam_imagenet", "asam_pyramidnet", "asam_demo"):
        assert read(name, "official") == override(read(name), {"eta": read("asam", "official").eta})
        assert read(name, "official") != read(name)


def test_composed_methods_are_the_named_ones():
    assert override(read("fsam"), {"geometry": "elementwise", "eta": 0.01, "rho": 0.5}) == read("fasam")
    as_gsam = {"descent": "gsam", "alpha": 0.6, "radius": "follow_lr", "rho": 0.6, "rho_min": 0.1}
    assert override(read("rsam"), as_gsam) == read("rgsam")
    assert override(read("asam"), {"geometry": "filterwise"}) == read("asam_filter")


NONSENSE = {
    "rho": {"rho": 0.1},
    "alpha": {"ascent": "batch", "alpha": 0.1},
    "gamma": {"ascent": "batch", "gamma": 0.1},
    "gamma_end": {"start": "kernel_noise", "gamma": 0.1, "gamma_end": math.inf},
    "direction": {"ascent": "batch", "direction": "noise_plus_gradient"},
    "fraction": {"ascent": "other", "fraction": 0.5},
    "ascent_batch": {"ascent": "larger"},
    "ascent": {"ascent": "full", "direction": "residual"},
    "descent": {"ascent": "other", "descent": "gsam"},
    "rho_min": {"ascent": "batch", "radius": "follow_lr", "rho": 0.1, "rho_min": 0.2},
    "between": {"ascent": "other", "every": 2, "between": "reuse"},
    "look": {"ascent": "batch", "every": 2, "look": 0.5},
    "look_by": {"ascent": "batch", "every": 2, "look_by": "tensor"},
    "p": {"ascent": "batch", "geometry": "fisher", "p": "linf"},
    "eta": {"ascent": "batch", "eta": 0.1},
    "draws": {"ascent": "batch", "draws": 4},
    "split": {"start": "kernel_noise", "gamma": 0.1, "split": False},
    "ema_shared": {"ascent": "batch", "direction": "minus_ema", "ema_shared": True},
    "keep": {"ascent": "other", "keep": 0.5},
    "ema_decay": {"ascent": "batch", "direction": "minus_ema", "ema_decay": 1.0},
    "sigma": {"ascent": "batch", "direction": "minus_ema", "sigma": math.nan},
    "every": {"every": 3},
    "perturb": {"ascent": "batch", "perturb": 0.0},
}


def test_reuse_without_an_ascent_is_refused_whatever_the_cadence():
    for every in (1, 2):
        fields = {"between": "reuse", "every": every}
        assert "between" in [name for name, _ in override(Spec(), fields).problems()]


@pytest.mark.parametrize("field", NONSENSE)
def test_nonsense_is_refused_at_its_field(field):
    assert field in [name for name, _ in override(Spec(), NONSENSE[field]).problems()]
    with pytest.raises(ValueError, match=f"method.{field} "):
        build("plain", net(), **NONSENSE[field])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rhoo": 0.1}, "did you mean 'rho'"),
        ({"geometry": "element"}, "one of identity, elementwise, filterwise, fisher"),
        ({"direction": "gradient_on_noise"}, "direction gradient_on_noise needs noise: start=kernel_noise"),
        ({"rho": "big"}, "must be a float"),
        ({"every": 1.5}, "must be a int"),
        ({"rho": True}, "must be a float"),
        ({"every": "1e1"}, "must be a int"),
    ],
)
def test_wrong_fields_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        build("sam", net(), **wrong)


@pytest.mark.parametrize("number", ["5e-4", "1e-3", "2.5E-2", "3", "0.5"])
def test_a_number_in_a_method_file_is_the_one_that_hydra_reads(number, tmp_path, monkeypatch):
    """YAML 1.1, PyYAML's, takes 5e-4 for text."""
    from omegaconf import OmegaConf

    (tmp_path / "method").mkdir()
    (tmp_path / "method" / "tiny.yaml").write_text(f"name: tiny\nascent: batch\nrho: {number}\n")
    monkeypatch.setattr(factory, "CONFIGS", tmp_path)
    rho = build("tiny", net()).spec.rho
    assert isinstance(rho, float)
    assert rho == OmegaConf.load(tmp_path / "method" / "tiny.yaml").rho == float(number)


def test_wrong_names_are_answered_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'asam'"):
        build("asamm", net())
    with pytest.raises(ValueError, match="paper or official"):
        build("asam", net(), profile="offical")


def test_a_spec_and_named_parameters_build_too():
    model = net()
    method = build(Spec(), model.named_parameters(), ascent="batch", rho=0.1, geometry="elementwise")
    assert method.spec.geometry == "elementwise"
    assert method.estimate(Loop(model, Data())).isfinite()


def test_a_closure_is_told_when_it_cannot_give_what_is_asked():
    model = net()
    with pytest.raises(ValueError, match="asks for Pass"):
        build("sam_db", model).estimate(lambda: model(torch.zeros(2, 3, 8, 8)).mean())


def test_passes_are_numbered_and_carry_what_is_wanted():
    wanted = {}
    for name, fields in (
        ("sam_fraction", {}),
        ("sam_noise", {}),
        ("esam", {}),
        ("sam_db", {}),
        ("lpf_sgd", {"draws": 2}),
    ):
        model = net()
        loop = Loop(model, Data())
        build(name, model, **fields, **({"gamma_end": None} if name == "lpf_sgd" else {})).estimate(loop)
        wanted[name] = loop.seen
    assert wanted == {
        "sam_fraction": [Pass(fraction=0.5), Pass(index=1)],
        "sam_noise": [Pass(), Pass("full", index=1), Pass(index=2)],
        "esam": [Pass(), Pass(keep=0.5, index=1)],
        "sam_db": [Pass("other"), Pass(index=1)],
        "lpf_sgd": [Pass(parts=2), Pass(index=1, part=1, parts=2)],
    }


@pytest.mark.parametrize(
    ("name", "fields", "passes"),
    [
        ("plain", {}, 1), ("sam", {}, 2), ("sam_fraction", {"fraction": 0.25}, 1.25), ("looksam", {"every": 4}, 1.25),
        ("looksam", {"every": 1}, 2),
        ("lpf_sgd", {"draws": 8}, 1), ("lpf_sgd", {"draws": 8, "split": False}, 8), ("sam_db", {}, 2),
        ("esam", {}, 1 + 1 / 3 + 0.5),
    ],
)  # fmt: skip
def test_cost_in_passes(name, fields, passes):
    assert build(name, net(), **fields).passes == pytest.approx(passes)


def test_cost_where_it_depends_on_sizes():
    assert math.isnan(build("sam_full", net()).passes)
    assert read("sam_full").passes(batch=100, train=5000) == 51
    assert read("sam_noise").passes(batch=100, train=5000) == 52
    assert dataclasses.replace(read("sam_noise"), m=25).passes(batch=100, train=5000) == 2 + 4 * 50
    assert read("sam_larger").passes(batch=128) == 5


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("name", ["sam", "asam", "fsam", "fishersam", "asam_linf"])
def test_report_measures_what_was_done(name, foreach):
    """Its norms are those of eps as the second pass sees it, and of the gradient as the first one left it."""
    model, seen, grads = net(torch.float64), {}, []
    method = build(name, model, rho=0.3, foreach=foreach)
    loop = Loop(model, Data())

    def grad_fn(wanted):
        loss = loop(wanted)
        seen[wanted.index] = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
        grads.append(torch.cat([p.grad.reshape(-1) for p in model.parameters()]))
        return loss

    loss = method.estimate(grad_fn)
    eps = seen[1] - seen[0]
    r = {key: float(value) for key, value in method.report.items()}
    assert r["perturbation_norm"] == pytest.approx(eps.norm().item(), rel=1e-9)
    assert r["gradient_norm"] == pytest.approx(grads[0].norm().item(), rel=1e-9)
    assert r["distance_to_sam"] == pytest.approx(
        (eps - 0.3 * grads[0] / grads[0].norm()).norm().item(), rel=1e-6, abs=1e-12
    )
    assert r["radius"] == 0.3
    assert r["loss"] == loss.item()
    assert r["loss_perturbed"] > r["loss"]


def test_report_resolves_a_small_distance_to_sam_in_fp32():
    """With tiny gradients Fisher's ball is nearly SAM's; the difference of norms would cancel to nothing."""
    model = nn.Linear(40, 30, bias=False)
    g = torch.randn(30, 40) * 1e-2

    def grad_fn(wanted):
        model.weight.grad = g.clone()
        return torch.zeros(())

    method = build("fishersam", model, rho=0.1, eta=1.0)
    method.estimate(grad_fn)
    d = g.double()
    u = d / (1 + d**2)
    eps = 0.1 * u / (d * u).sum().sqrt()
    exact = (eps - 0.1 * d / d.norm()).norm().item()
    assert 0 < exact < 1e-4
    assert method.report["distance_to_sam"] == pytest.approx(exact, rel=1e-2)


def test_one_shared_average_follows_the_mean_of_the_shards():
    """ema_shared: m moves once a step, by the mean gradient over shards and ranks."""
    model, data = net(torch.float64), Data()
    fields = {
        "direction": "minus_ema",
        "m": 12,
        "ema_shared": True,
        "ema_order": "subtract_first",
        "ema_start": "first",
    }
    method = build("sam", model, rho=0.1, ema_decay=0.7, **fields)
    assert method.spec.direction == "minus_ema"
    expected, reduced = None, []
    for t in range(3):
        grads = []
        for shard in (0, 1):

            def grad_fn(wanted, t=t, shard=shard, grads=grads):
                ids = data.ids("batch", t)[12 * shard : 12 * shard + 12]
                loss = nn.functional.cross_entropy(model(data.images[ids]), data.targets[ids])
                loss.backward()
                if wanted.index == 0:
                    grads.append(model[0].weight.grad.clone())
                return loss.detach()

            method.estimate(lambda wanted, f=grad_fn: f(wanted), shard=shard)
        method.end_step(lambda tensors: reduced.append(len(tensors)))
        mean = (grads[0] + grads[1]) / 2
        expected = mean if expected is None else 0.7 * expected + 0.3 * mean
    m = method.state_dict()["shards"][-1]["tensors"]["ema"]["0.weight"]
    assert torch.allclose(m, expected, rtol=1e-12)
    assert reduced == [len(list(model.parameters()))] * 3


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import sam_repro.methods, sam_repro.methods.spec", ["torch"]),
        (
            "from sam_repro.methods import build",
            ["hydra", "omegaconf", "timm", "torchvision", "wandb", "yaml", "sam_repro.config.schema"],
        ),
    ],
)
def test_importing_is_light(code, absent):
    check = f"import sys; {code}; print([m for m in {absent!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"sigma": 1.0}, "sigma is not read with direction=gradient: direction=minus_ema reads it"),
        ({"normalise": "all"}, "normalise is not read with geometry=identity"),
        ({"ema_order": "update_first"}, "direction=minus_ema reads it"),
        ({"radius": "constant", "rho_min": 0.0}, "rho_min is not read with radius=constant"),
        ({"ascent": "none", "rho": None, "direction": "gradient"}, "no meaning without an ascent"),
    ],
)
def test_what_is_said_and_not_read_is_refused_even_if_it_is_the_default(overrides, message):
    with pytest.raises(ValueError, match=message):
        build("sam", net(), **overrides)
    fields = dict.fromkeys(set(overrides) & {"sigma", "normalise", "ema_order", "rho_min"})
    assert read("sam") == override(read("sam"), fields), "None takes back what was said"


def test_the_canonical_form_has_every_field_and_is_that_of_the_defaults_said():
    flat = read("sam").canonical()
    assert {None} <= {flat["m"], flat["gamma_end"], flat["ascent_batch"]}
    assert (flat["rho"], flat["sigma"], flat["draws"], flat["direction"]) == (0.05, 1.0, 1, "gradient")
    assert override(read("sam"), {"perturb": 1.0}).canonical() == flat


def test_every_option_says_what_its_fields_are():
    for name, field in axes.fields().items():
        assert field.doc, name
        assert field.default is None or field.allowed.broken_by(field.default) is None, name


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("name", ["asam", "asam_linf"])
def test_the_ascent_norm_is_that_of_the_adapted_gradient_in_both_balls(name, foreach):
    model, seen = net(torch.float64), []
    method, loop = build(name, model, rho=0.05, foreach=foreach), Loop(model, Data())

    def grad_fn(wanted):
        loss = loop(wanted)
        seen.append({n: (p.detach().clone(), p.grad.clone()) for n, p in model.named_parameters()})
        return loss

    method.estimate(grad_fn)
    adapted = [(w.abs() + 0.01) * g if "weight" in n else g for n, (w, g) in seen[0].items()]
    norm = torch.cat([x.reshape(-1) for x in adapted]).norm().item()
    assert float(method.report["ascent_norm"]) == pytest.approx(norm, rel=1e-9)
