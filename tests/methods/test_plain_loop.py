"""The lines that the documentation gives to other people's loops, run as they stand there."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

ROOT = Path(__file__).parents[2]


def block():
    """README's, or the one in docs/methods.md where README only points there."""
    for file in (ROOT / "README.md", ROOT / "docs" / "methods.md"):
        for code in re.findall(r"```python\n(.*?)```", file.read_text(encoding="utf-8"), re.S):
            if "from sam_repro.methods import build" in code:
                return code
    raise AssertionError("no python block imports build")


class Overflowing(nn.Module):
    """Cross entropy that makes a gradient inf in the given calls."""

    def __init__(self, at):
        super().__init__()
        self.at, self.calls = at, 0

    def forward(self, x, y):
        self.calls += 1
        loss = nn.functional.cross_entropy(x.float(), y)
        return loss * float("inf") if self.calls - 1 in self.at else loss


def run(overflow=()):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
    x = torch.randn(32, 6)
    y = x[:, :3].argmax(1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    names = {
        "model": model, "loader": [(x, y)] * 40, "accumulate": 2, "loss_fn": Overflowing(overflow), "torch": torch,
        "device": "cpu", "scaler": scaler, "optimizer": torch.optim.SGD(model.parameters(), 0.5),
    }  # fmt: skip
    before = nn.functional.cross_entropy(model(x), y).item()
    exec(block(), names)
    return before, nn.functional.cross_entropy(model(x), y).item(), scaler.get_scale(), names


def test_the_documented_loop_trains():
    before, after, scale, names = run()
    assert after < before / 3
    assert names["loss_fn"].calls == 40 * 2 * 2  # steps, passes, micro-batches
    assert scale == 2.0**10


@pytest.mark.parametrize("call", [0, 1, 2, 3])
def test_the_documented_loop_survives_an_overflow_in_any_pass(call):
    before, after, scale, names = run(overflow=[call])
    assert after < before / 3
    assert scale == 2.0**9
    assert all(p.isfinite().all() for p in names["model"].parameters())
