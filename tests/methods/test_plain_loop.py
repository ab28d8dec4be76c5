"""The lines that the documentation gives to other people's loops, run as they stand there."""

import re
from pathlib import Path

import pytest
import torch
from every import METHODS
from torch import nn

from sam_repro.methods import Pass

ROOT = Path(__file__).parents[2]
ASK_FOR_MORE = ["esam", "gsam", "lpf_sgd", "rgsam", "sam_db", "sam_fraction", "sam_full", "sam_larger", "sam_noise"]


def section():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.split(r"^## ", readme.split("## In somebody else's loop\n")[1], maxsplit=1, flags=re.M)[0]


def blocks(text):
    return re.findall(r"```python\n(.*?)```", text, re.S)


def lines(name=None):
    """README's simple loop, or with a method's name the loop for every method."""
    simple, whole = blocks(section())
    return simple if name is None else named(whole, 'build("esam", model)', name)


def named(code, call, name):
    assert code.count(call) == 1
    return code.replace(call, f'build("{name}", model)')


class Overflowing(nn.Module):
    """Cross entropy that makes a gradient inf in the given calls."""

    def __init__(self, at):
        super().__init__()
        self.at, self.calls = at, 0

    def forward(self, x, y, reduction="mean"):
        self.calls += 1
        loss = nn.functional.cross_entropy(x if x.dtype == torch.float64 else x.float(), y, reduction=reduction)
        return loss * float("inf") if self.calls - 1 in self.at else loss


def run(code, overflow=(), steps=40, enabled=True, dtype=torch.float32, **more):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 3)).to(dtype)
    train = torch.randn(640, 6).to(dtype)
    targets = train[:, :3].argmax(1)
    x, y = train[:32], targets[:32]

    def draw(n):
        ids = torch.randint(len(train), (n,))
        return train[ids], targets[ids]

    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, enabled=enabled)
    names = {
        "model": model, "loader": [(x, y)] * steps, "accumulate": 2, "loss_fn": Overflowing(overflow), "torch": torch,
        "device": "cpu", "scaler": scaler, "optimizer": torch.optim.SGD(model.parameters(), 0.5), "steps": steps,
        "draw": draw, "train_batches": list(zip(train.split(100), targets.split(100), strict=True)),
        "train_size": len(train), "lr_min": 0.0, "lr_max": 0.5,
    }  # fmt: skip
    names |= more
    before = nn.functional.cross_entropy(model(x), y).item()
    exec(code, names)
    return before, nn.functional.cross_entropy(model(x), y).item(), scaler.get_scale(), names


def test_the_documented_loop_trains():
    before, after, scale, names = run(lines())
    assert after < before / 3
    assert names["loss_fn"].calls == 40 * 2 * 2  # steps, passes, micro-batches
    assert scale == 2.0**10


@pytest.mark.parametrize("call", [0, 1, 2, 3])
def test_the_documented_loop_survives_an_overflow_in_any_pass(call):
    before, after, scale, names = run(lines(), overflow=[call])
    assert after < before / 3
    assert scale == 2.0**9
    assert all(p.isfinite().all() for p in names["model"].parameters())


@pytest.mark.parametrize("method", METHODS)
def test_the_simple_loop_takes_the_methods_that_readme_says(method):
    code = named(lines(), 'build("asam", model, rho=0.5)', method)
    if method in ASK_FOR_MORE:
        with pytest.raises(ValueError, match=r"Moment|function of one argument"):
            run(code, steps=10)
    else:
        before, after, _, _ = run(code, steps=10)
        assert after < before


def test_readme_names_the_methods_that_ask_for_more():
    said = section().split("Nine methods ask for more:")[1].split("```")[0]
    assert sorted(name for code in re.findall(r"`(.*?)`", said, re.S) for name in code.split()) == ASK_FOR_MORE


@pytest.mark.parametrize("enabled", [True, False], ids=["scaled", "unscaled"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_in_the_loop_for_every_method(method, enabled):
    before, after, scale, names = run(lines(method), steps=20, enabled=enabled)
    assert after < before / 1.5
    assert scale == (2.0**10 if enabled else 1.0)
    assert names["step"] == 19


@pytest.mark.parametrize("method", METHODS)
def test_accumulation_changes_no_method_in_the_loop_for_every_method(method):
    """In double precision, which autocast leaves alone; 32 samples in parts that are not of one size."""
    ends = []
    for accumulate in (1, 3):
        _, _, _, names = run(lines(method), steps=6, enabled=False, dtype=torch.float64, accumulate=accumulate)
        ends.append(torch.cat([p.detach().reshape(-1) for p in names["model"].parameters()]))
    torch.testing.assert_close(*ends, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("method", ["esam", "sam_fraction", "sam_larger"])
@pytest.mark.parametrize("call", [0, 2])
def test_the_loop_for_every_method_survives_an_overflow(method, call):
    """In the first pass and in what comes after it; an overflow in ESAM's choice of samples harms no gradient."""
    before, after, scale, names = run(lines(method), overflow=[call], steps=20)
    assert after < before / 1.5
    assert scale == (2.0**10 if (method, call) == ("esam", 2) else 2.0**9)
    assert all(p.isfinite().all() for p in names["model"].parameters())


PASSES = {
    "batch": Pass(),
    "fraction": Pass(fraction=0.3),
    "part": Pass(part=2, parts=3),
    "keep": Pass(keep=0.3, index=1),
    "other": Pass("other"),
    "larger": Pass("larger"),
    "full": Pass("full"),
}


@pytest.mark.parametrize("case", PASSES)
def test_a_pass_of_the_loop_is_over_the_samples_that_it_asks_for(case):
    torch.manual_seed(1)
    drawn = []

    def draw(n):
        drawn.append((torch.randn(n, 6).double(), torch.arange(n) % 3))
        return drawn[-1]

    _, _, _, names = run(lines("sam_larger"), steps=1, enabled=False, dtype=torch.float64, draw=draw, accumulate=3)
    model, (x, y) = names["model"], names["loader"][0]
    names["before"].clear()
    drawn.clear()
    noise = torch.linspace(-1, 1, 32).double() * (torch.arange(32) % 2 * 2 - 1)
    with torch.no_grad():
        now = nn.functional.cross_entropy(model(x), y, reduction="none")
    names["before"].append(now - noise)  # so that the loss of sample i has risen by noise[i]
    model.zero_grad()
    if case != "keep":
        names["before"].clear()
    loss = names["closure"](PASSES[case])
    found = [p.grad.clone() for p in model.parameters()]

    match case:
        case "fraction":
            x, y = x[:10], y[:10]
        case "part":
            x, y = x[22:], y[22:]
        case "keep":
            rose = noise.argsort(descending=True)[:10]
            x, y = x[rose], y[rose]
        case "other":
            ((x, y),) = drawn
            assert len(y) == 32
        case "larger":
            ((more, targets),) = drawn
            x, y = torch.cat([x, more]), torch.cat([y, targets])
            assert len(y) == 512
        case "full":
            x, y = (torch.cat(column) for column in zip(*names["train_batches"], strict=True))
            assert len(y) == 640
    model.zero_grad()
    expected = nn.functional.cross_entropy(model(x), y) * (10 / 32 if case == "part" else 1)  # parts add up
    expected.backward()
    torch.testing.assert_close(loss, expected.detach(), rtol=1e-12, atol=0)
    for a, p in zip(found, model.parameters(), strict=True):
        torch.testing.assert_close(a, p.grad, rtol=1e-10, atol=1e-14)


def test_the_loop_in_docs_methods_is_readmes():
    (code,) = blocks((ROOT / "docs" / "methods.md").read_text(encoding="utf-8"))
    assert code == lines()
