"""The toy of ASAM figure 3 against a second implementation in numpy, and what the figure claims."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import ROOT

from sam_repro.errors import UserError
from sam_repro.methods.factory import read
from sam_repro.study import toy

NEAR, FAR = (0.2, 0.05), (0.3, 0.033)  # the paper's starts
METHODS = sorted(file.stem for file in (ROOT / "configs" / "method").glob("*.yaml"))


def asks_for_layers(method: str) -> bool:
    return read(method).scope in ("only_norm", "no_norm")


def gradient(w: np.ndarray) -> np.ndarray:
    inside = np.sign(w[0] * max(w[1], 0.0) - 0.04)
    return inside * np.array([max(w[1], 0.0), w[0] if w[1] > 0 else 0.0])


def by_hand(method: str, w0: tuple[float, float], rho: float, eta: float, lr: float, steps: int) -> tuple[list, list]:
    """Plain descent with SAM's eps = rho g / l2(g), or ASAM's rho T^2 g / l2(T g) with T = abs(w) + eta."""
    w, trajectory, perturbation = np.array(w0), [np.array(w0)], []
    for _ in range(steps):
        t = np.abs(w) + eta if method == "asam" else np.ones(2)
        g = gradient(w)
        length = np.sqrt(((t * g) ** 2).sum())
        eps = rho * t**2 * g / length if length else np.zeros(2)
        w = w - lr * gradient(w + eps)
        trajectory.append(w)
        perturbation.append(eps)
    return trajectory, perturbation


def losses(run: toy.Run) -> np.ndarray:
    w1, w2 = np.array(run.trajectory).T
    return np.abs(w1 * np.maximum(w2, 0) - 0.04)


LENGTHS = [(0.1, 100), pytest.param(0.01, 1000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("w0", [NEAR, FAR])
@pytest.mark.parametrize(("method", "rho"), [("sam", 0.05), ("sam", 0.01), ("asam", 0.05), ("asam", 0.5)])
@pytest.mark.parametrize(("lr", "steps"), LENGTHS)
def test_agrees_with_numpy(method: str, rho: float, w0: tuple[float, float], lr: float, steps: int) -> None:
    run = toy.run(method, {"rho": rho}, w0, lr, steps)
    trajectory, perturbation = by_hand(method, w0, rho, 0.01, lr, steps)
    np.testing.assert_allclose(run.trajectory, trajectory, rtol=0, atol=1e-12)
    np.testing.assert_allclose(run.perturbation, perturbation, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("lr", "steps"), LENGTHS)
def test_sam_fails_where_asam_reaches_the_valley(lr: float, steps: int) -> None:
    """ASAM section 5.1. Who reaches the valley bounces across it with steps of lr |w|: a loss of about lr |w|^2."""
    in_valley = 2 * lr * 0.1
    assert (losses(toy.run("sam", {"rho": 0.05}, FAR, lr, steps)) == losses_at(FAR)).all()
    for method, w0 in (("asam", FAR), ("asam", NEAR), ("sam", NEAR)):
        assert losses(toy.run(method, {"rho": 0.05}, w0, lr, steps))[-20:].max() < in_valley < losses_at(w0)


def losses_at(w: tuple[float, float]) -> float:
    return abs(w[0] * w[1] - 0.04)


def test_sam_goes_along_the_valley_and_asam_stays() -> None:
    sam, asam = (np.array(toy.run(m, {"rho": 0.05}, NEAR, 0.01, 1000).trajectory[-1]) for m in ("sam", "asam"))
    assert np.abs(sam - 0.2).max() < 0.01
    # Plain gradient flow keeps w1^2 - w2^2 and would meet the valley here.
    arrival = np.sqrt((0.0375 + np.sqrt(0.0375**2 + 4 * 0.04**2)) / 2)
    assert abs(asam[0] - arrival) < 0.01 < abs(sam[0] - arrival)


@pytest.mark.parametrize("w0", [NEAR, FAR])
def test_asam_without_eta_works_up_to_the_square_root_of_two(w0: tuple[float, float]) -> None:
    """Section 5.1's bound. At eta = 0 the perturbed point is w (1 - rho / sqrt 2): beyond, ReLU is flat there."""
    below = toy.run("asam", {"rho": 1.4, "eta": 0.0}, w0, 0.1, 1500)
    assert losses(below).min() < 1e-3
    beyond = toy.run("asam", {"rho": 1.42, "eta": 0.0}, w0, 0.01, 100)
    assert beyond.trajectory == [list(w0)] * 101


def test_two_weights_are_no_layers() -> None:
    with pytest.raises(UserError, match=r"^method=sam_on: method\.scope=only_norm asks for layers[^\n]*$"):
        toy.run("sam_on", {}, NEAR, 0.01, 12)


@pytest.mark.parametrize("name", [name for name in METHODS if not asks_for_layers(name)])
def test_every_method_runs(name: str) -> None:
    run = toy.run(name, {}, NEAR, 0.01, 12)
    assert len(run.trajectory) == 13
    assert len(run.perturbation) == 12
    size = np.linalg.norm(run.perturbation, axis=1)
    assert (size.max() > 0) == (not name.startswith(("plain", "sam_noise")))


@pytest.mark.slow
def test_the_command_prints_exactly_its_four_parts() -> None:
    words = ["toy", "method=asam", "method.rho=0.05", "w0=[0.2,0.05]", "lr=0.1", "steps=100", "--json"]
    done = subprocess.run([sys.executable, "-m", "sam_repro.study", *words], capture_output=True, text=True, check=True)
    printed = json.loads(done.stdout)
    assert list(printed) == ["method", "w0", "trajectory", "perturbation"]
    assert (printed["method"], printed["w0"]) == ("asam", [0.2, 0.05])
    assert (len(printed["trajectory"]), len(printed["perturbation"])) == (101, 100)
    assert printed["trajectory"][0] == [0.2, 0.05]
    trajectory, _ = by_hand("asam", NEAR, 0.05, 0.01, 0.1, 100)
    np.testing.assert_allclose(printed["trajectory"], trajectory, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["method=asm"], "'asam'"),
        (["method.roh=1"], "'method.rho'"),
        (["method=sam", "method.geometry=elementwse"], "one of identity, elementwise"),
        (["stpes=3"], "'steps'"),
        (["lr=fast"], "lr=fast"),
        (["lr=-1"], "lr must be positive"),
        (["w0=[0.2]"], "w0 needs two"),
        (["w0=[0.2"], "w0=[0.2"),
        (["method=sam", "methods=[asam]"], "exclude each other"),
        (["asam"], "KEY=VALUE"),
        (["method=plain", "method.rho=0.1"], "no meaning without an ascent"),
        (["method=plain", "lr=1e300", "steps=9"], "diverges"),
    ],
)
def test_mistakes_are_told_in_one_line(words: list[str], says: str) -> None:
    with pytest.raises(UserError) as told:
        toy.main([*words, "--json"])
    assert says in str(told.value)
    assert "\n" not in str(told.value)


def test_a_mistake_ends_the_command_with_code_2() -> None:
    for words in (["toy", "method=asm"], ["toi"]):
        command = [sys.executable, "-m", "sam_repro.study", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("error: no ")
        assert done.stderr.count("\n") == 1
        assert "did you mean" in done.stderr


def test_a_folder_that_cant_be_written_is_a_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"results_dir=.*file can't be written \(Not a directory\)"):
        toy.main(["steps=2", f"results_dir={tmp_path / 'file'}"])


def test_the_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = []
    for folder in ("a", "b"):
        assert toy.main(["steps=60", f"results_dir={tmp_path / folder}"]) == 0
        files.append([Path(line) for line in capsys.readouterr().out.split()])
    svg, png = files[0]
    assert svg == tmp_path / "a" / "figures" / "toy_sam_asam.svg"
    assert svg.read_text().lstrip().startswith("<?xml")
    assert png.read_bytes().startswith(b"\x89PNG")
    for first, second in zip(*files, strict=True):
        assert first.read_bytes() == second.read_bytes()  # a committed figure changes when its runs do


def test_sam_beside_asam_is_the_same_picture_however_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = []
    for words in ([], ["methods=[sam,asam]"]):
        assert toy.main([*words, "steps=60", f"results_dir={tmp_path}"]) == 0
        pictures.append([Path(line).read_bytes() for line in capsys.readouterr().out.split()])
    assert pictures[0] == pictures[1]
