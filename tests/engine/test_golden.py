"""A hundred steps of every method, compared with the losses of a committed run.

To the last bit on the kind of machine that wrote them, to 1e-5 elsewhere. `python tests/engine/test_golden.py` writes
them anew, after a change that is meant to change numbers; raise `RECIPE_VERSION` in sam_repro/identity.py then.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from every import METHODS, of
from rig import SAMPLES, config, net, stepper

FOLDER = Path(__file__).parent / "golden"
STEPS = 100


def machine() -> str:
    try:
        cpu = re.findall(r"^(?:vendor_id|cpu family|model)\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)[:3]
    except OSError:
        cpu = ["?"]
    return f"{' '.join(cpu)}, {torch.backends.cpu.get_cpu_capability()}, torch {torch.__version__}"


def losses(method: str) -> list[float]:
    torch.set_num_threads(1)
    s = stepper(config(*of(method), "augment=basic", "base_optimizer.lr=0.02"), net())
    batch, out = s.config.loop.batch_size, []
    for step in range(STEPS):
        epoch, i = divmod(step, SAMPLES // batch)
        out.append(s(s.data.order(epoch)[i * batch : (i + 1) * batch], epoch, step).loss)
    return [float(x) for x in out]


@pytest.mark.parametrize("method", METHODS)
def test_golden(method: str) -> None:
    header, *lines = (FOLDER / f"{method}.txt").read_text().splitlines()
    expected = [float.fromhex(line.split()[0]) for line in lines]
    found = losses(method)
    assert len(expected) == STEPS
    if header == f"# {machine()}":
        assert found == expected
    else:
        assert found == pytest.approx(expected, rel=1e-5)


def test_the_methods_differ() -> None:
    """No two methods may have the same trajectory, or one of them does not do what its name says."""
    last = {m: (FOLDER / f"{m}.txt").read_text().splitlines()[-1] for m in METHODS}
    for value in set(last.values()):
        same = sorted(m for m in METHODS if last[m] == value)
        assert len(same) == 1, same


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in METHODS:
        text = "".join(f"{x.hex()}  {x:.9f}\n" for x in losses(name))
        (FOLDER / f"{name}.txt").write_text(f"# {machine()}\n{text}")
        print(name)
