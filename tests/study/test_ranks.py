"""Studies of weights on two ranks: the numbers of one process, the same on both; killed, they go on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import command, wait_for
from nursery import Nursery
from torch import Tensor, nn

from sam_repro.config.schema import RuntimeConfig
from sam_repro.engine.ranks import Ranks
from sam_repro.study.__main__ import main
from sam_repro.study.ball import Landscape, Norm, average, m_sharpness, one_steps
from sam_repro.study.lanczos import lanczos, largest
from sam_repro.study.parts import Parts
from sam_repro.study.products import Products

Batches = list[tuple[Tensor, Tensor]]


def net() -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Tanh(), nn.Flatten(), nn.Linear(32, 3))
    return model.double().eval()


def batches(*sizes: int) -> Batches:
    generator = torch.Generator().manual_seed(1)
    return [
        (
            torch.randn(n, 1, 6, 6, generator=generator, dtype=torch.float64),
            torch.randint(0, 3, (n,), generator=generator),
        )
        for n in sizes
    ]


def loss(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(outputs, targets, reduction="sum")


def numbers(ranks: Ranks) -> dict[str, Any]:
    """Of three batches, and of one that a second rank has no part of."""
    found = dict[str, Any]()
    for name, data in {"three": batches(5, 8, 3), "one": batches(5)}.items():
        model, total, plain = net(), sum(len(y) for _, y in data), Norm(2.0, "none")
        land = Landscape(model, data, loss, plain, ranks)
        e = [0.1 * p.detach() for p in model.parameters()]
        value, slope = land.slope(e)
        found[f"{name} slope"] = [value, *(float(part.norm()) for part in slope)]
        found[f"{name} value"] = [land.value(), land.value(e)]
        found[f"{name} average"] = average(land, 0.1, 3, seed=0)
        for m in (None, 2):
            for norm, rho in ((plain, 0.2), (Norm(float("inf"), "elementwise", 0.01), 0.05)):
                found[f"{name} sharpness, m = {m}, p = {norm.p}"] = m_sharpness(
                    model, data, loss, norm, rho, m, 4, 1, 0, ranks
                )
        # A ball so large that random starts win, which each group draws by its own seed.
        found[f"{name} restarts"] = m_sharpness(model, data, loss, plain, 3.0, 2, 2, 3, 0, ranks)
        found[f"{name} radii"] = one_steps(model, data, loss, plain, [0.1, 0.3], 2, ranks)
        for matrix in ("hessian", "gauss_newton"):
            products = Products(model, ranks.mine(data), loss, total, matrix, ranks)
            found[f"{name} {matrix} product"] = products(np.linspace(-1, 1, products.size)).tolist()
            found[f"{name} {matrix} largest"] = products.led(lambda of: largest(of, products.size, 3, 1e-8, 0))  # noqa: B023
            found[f"{name} {matrix} trace"] = products.led(lambda of: lanczos(of, products.size, 6, 0)).trace  # noqa: B023
    return found


def a_rank(number: str, port: str, folder: str) -> None:
    os.environ |= {"RANK": number, "WORLD_SIZE": "2", "LOCAL_RANK": number, "MASTER_ADDR": "127.0.0.1",
                   "MASTER_PORT": port}  # fmt: skip
    torch.set_num_threads(1)
    ranks = Ranks.join(RuntimeConfig())
    found = numbers(ranks)
    # The second rank sees another folder, as on another machine.
    own = Path(folder) / number
    if ranks.main:
        Parts(own, {}, quiet=True).get("a", lambda: "before")
    parts = Parts(own, {}, ranks=ranks)
    found["parts"] = [parts.get("a", lambda: "again"), parts.get("b", lambda: ranks.rank), parts.known]
    assert own.exists() == ranks.main
    (Path(folder) / f"{number}.json").write_text(json.dumps(found))
    ranks.leave()


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory, nursery: Nursery) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("ranks")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    here = Path(__file__)
    started = [nursery.function(here.parent, f"{here.stem}:a_rank", number, port, str(folder)) for number in "01"]
    try:
        for rank in started:
            out, err = rank.communicate(300)
            assert rank.returncode == 0, out + err
    finally:
        for rank in started:
            rank.end()
    return [json.loads((folder / f"{number}.json").read_text()) for number in "01"]


@cache
def alone() -> dict[str, Any]:
    return numbers(Ranks(0, 1, torch.device("cpu")))


def test_two_ranks_find_what_one_process_finds(two_ranks: list[dict[str, Any]]) -> None:
    first, second = two_ranks
    assert first == second, "to the bit: else they might go different ways"
    for name, value in alone().items():
        assert first[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name


def test_the_main_ranks_parts_are_everybodys(two_ranks: list[dict[str, Any]]) -> None:
    for one in two_ranks:
        assert one["parts"] == ["before", 0, {"a": "before"}]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["toy", "ranks=2"], "study toy looks at no weights"),
        (["toy", "method=sam", "ranks=2"], "study toy looks at no weights"),
        (["curves", "run=abc", "ranks=2"], "study curves looks at no weights"),
        (["spectrum", "run=abc", "ranks=0"], "ranks must be a whole number of at least 1, is '0'"),
        (["spectrum", "run=abc", "ranks=two"], "ranks must be a whole number of at least 1, is 'two'"),
        (["spectrum", "run=abc", "ranks=1000000"], "cores; at most"),
        (["spectrum", "run=abc", "ranks=2", "results_dir=nowhere"], "run=abc names no run"),
        (["spectrum", "run=abc", "ranks=2", "steps=0"], "steps must be at least 1"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    told = capsys.readouterr()
    assert says in told.err
    assert told.err.count("\n") == 1
    assert not told.out


def test_a_launchers_ranks_count(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "3")
    for rank, lines in (("0", 1), ("2", 0)):
        monkeypatch.setenv("RANK", rank)
        assert main(["regions"]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == lines
        assert ("ranks=3: study regions looks at no weights" in told) == bool(lines)


# ------------------------------------------------------------------------------------ the command, on tiny trained runs

FEW = ["images=40", "batch=16"]  # three batches
CUTS = {
    "spectrum": ["spectrum", *FEW, "probes=2", "steps=8"],
    "sharpness": ["sharpness", *FEW, "steps=3", "draws=2"],
    "sharpness_of_groups": ["sharpness", *FEW, "steps=3", "draws=2", "m=5"],
    "decays": ["decays", *FEW, "m=10", "radii=[0.001,0.01]"],
    "stability": ["stability", *FEW, "draws=1", "radii=[0.1,0.5]", "variances=[0.0075]"],
    "surface": ["surface", *FEW, "points=5", "directions=2", "plane=3"],
    "one_batch": ["stability", "images=10", "batch=16", "draws=1", "radii=[0.1]", "variances=[0.0075]"],
}


def folder_of(trained: Path, tmp_path: Path, name: str) -> tuple[Path, list[str]]:
    """A folder of its own to study in, and the words."""
    home = tmp_path / name
    shutil.copytree(trained / "runs", home / "results/runs")
    ids = sorted(run.name for run in (home / "results/runs").iterdir())
    ids = ids if CUTS[name][0] in ("sharpness", "decays") else ids[:2]
    return home, ["study", *CUTS[name], f"runs=[{','.join(ids)}]"]


def stored(home: Path) -> dict[str, Any]:
    (file,) = home.glob("results/figures/*/numbers.json")
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def close(one: Any, other: Any, where: str = "") -> None:
    """1e-6 nats are a rounding of a loss in fp32, and sharpness is a difference of two."""
    assert type(one) is type(other), where
    if isinstance(one, Mapping):
        assert one.keys() == other.keys(), where
        for key, value in one.items():
            close(value, other[key], f"{where}/{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), where
        for place, (a, b) in enumerate(zip(one, other, strict=True)):
            close(a, b, f"{where}/{place}")
    else:
        assert one == (pytest.approx(other, rel=1e-5, abs=1e-6) if isinstance(one, float) else other), where


def one_process(nursery: Nursery, home: Path, words: list[str]) -> dict[str, Any]:
    code, said = nursery.run(home, *words)
    assert code == 0, said
    found = stored(home)
    shutil.rmtree(home / "results/figures")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", CUTS)
def test_a_study_on_two_ranks_is_that_of_one(name: str, trained: Path, tmp_path: Path, nursery: Nursery) -> None:
    home, words = folder_of(trained, tmp_path, name)
    expected = one_process(nursery, home, words)
    done = nursery.call(home, *words, "ranks=2")
    assert done.returncode == 0, done.stderr
    found = stored(home)
    assert found.pop("caption") == expected.pop("caption") + " Computed on 2 ranks."
    for key in ("settings", "runs", "numbers", "claims"):
        close(found[key], expected[key], key)
    assert done.stdout.count("Computed on 2 ranks.") == 1
    lines = done.stderr.splitlines()
    assert len(lines) == len(set(lines)), "each line once"
    assert not list(home.glob("results/figures/*/parts.jsonl"))


@pytest.mark.slow
@pytest.mark.parametrize("start", ["spawned", "torchrun"])
def test_a_users_own_processes(start: str, trained: Path, tmp_path: Path, nursery: Nursery) -> None:
    home, words = folder_of(trained, tmp_path, "spectrum")
    expected = one_process(nursery, home, words)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", "-m"]
    line = command(*words, "ranks=2") if start == "spawned" else [*torchrun, *command(*words)[2:]]
    done = subprocess.run([*line, "--json"], cwd=home, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = stored(home)
    assert json.loads(done.stdout) == found
    close(found["numbers"], expected["numbers"])


@pytest.mark.slow
@pytest.mark.parametrize(("how", "code"), [("stopped", 75), ("a rank killed", 1)])
def test_what_ends_early_goes_on(how: str, code: int, trained: Path, tmp_path: Path, nursery: Nursery) -> None:
    home, words = folder_of(trained, tmp_path, "sharpness")
    words += ["steps=8"]
    expected = one_process(nursery, home, words)
    parts = "results/figures/*/parts.jsonl"
    process: Any = nursery.start(home, *words, "ranks=2")
    try:
        wait_for(lambda: any(file.read_text().count("\n") > 2 for file in home.glob(parts)), process)
        if how == "stopped":
            process.terminate()
        else:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            assert len(children) == 2
            os.kill(int(children[1]), signal.SIGKILL)
        out, err = process.communicate(60)
    finally:
        process.end()
    assert (process.returncode, out) == (code, ""), err
    assert err.count("error: ") == code % 75, err
    (file,) = home.glob(parts)
    known = [json.loads(line)["name"] for line in file.read_text().splitlines()]
    assert not list(home.glob("results/figures/*/numbers.json"))
    done = nursery.call(home, *words, "ranks=2")
    assert done.returncode == 0, done.stderr
    assert not [name for name in known if f"] {name}, about" in done.stderr], "measured twice"
    close(stored(home)["numbers"], expected["numbers"])


@pytest.mark.slow
def test_a_mistake_that_the_ranks_find_is_one_line(trained: Path, tmp_path: Path, nursery: Nursery) -> None:
    home, words = folder_of(trained, tmp_path, "decays")
    for file in home.glob("results/runs/*/weights.epoch*.safetensors"):
        file.unlink()
    done = nursery.call(home, *words, "ranks=2")
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert (done.returncode, len(errors)) == (2, 1), done.stderr
    assert "kept no weights of its epochs" in errors[0]
