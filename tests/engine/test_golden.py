"""A hundred steps of every method, compared with the losses of a committed run.

To the last bit on the kind of machine that wrote them, to 1e-5 elsewhere. `python tests/renew.py NAME ...`
writes the named ones anew, after a change that is meant to change numbers; raise the recipe version of the runs that it
concerns then (sam_repro/config/identity.py).
"""

from __future__ import annotations

import re
import sys
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


def golden(method: str) -> list[str]:
    file = FOLDER / f"{method}.txt"
    if not file.exists():
        pytest.fail(f"{method} has no golden file: python tests/renew.py {method} writes it", pytrace=False)
    return file.read_text().splitlines()


def renew(names: list[str]) -> str:
    """Write the golden files of these methods alone; returns what is wrong with the names."""
    unknown = sorted(set(names) - set(METHODS))
    if unknown or not names:
        return f"{', '.join(unknown) or 'nothing'} is no method: name some of {' '.join(METHODS)}"
    for name in names:
        text = "".join(f"{x.hex()}  {x:.9f}\n" for x in losses(name))
        (FOLDER / f"{name}.txt").write_text(f"# {machine()}\n{text}")
    return ""


@pytest.mark.parametrize("method", METHODS)
def test_golden(method: str) -> None:
    header, *lines = golden(method)
    expected = [float.fromhex(line.split()[0]) for line in lines]
    found = losses(method)
    assert len(expected) == STEPS
    if header == f"# {machine()}":
        assert found == expected
    else:
        assert found == pytest.approx(expected, rel=1e-5)


def test_the_methods_differ() -> None:
    """No two methods may have the same trajectory, or one of them does not do what its name says."""
    last = {m: golden(m)[-1] for m in METHODS}
    for value in set(last.values()):
        same = sorted(m for m in METHODS if last[m] == value)
        assert len(same) == 1, same


@pytest.mark.slow
def test_one_golden_file_is_renewed_and_a_missing_one_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "FOLDER", tmp_path)
    with pytest.raises(pytest.fail.Exception, match=r"no golden file: python tests/renew.py sam writes it"):
        golden("sam")
    assert renew(["sam", "samm"]).startswith("samm is no method")
    assert renew([]).startswith("nothing is no method")
    assert not list(tmp_path.iterdir())
    assert renew(["sam"]) == ""
    assert [file.name for file in tmp_path.iterdir()] == ["sam.txt"]
    test_golden("sam")
