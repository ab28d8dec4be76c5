"""Spectra against exact ones, and our products against a second implementation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from sam_repro import sweep_and_show
from sam_repro.engine.ranks import Ranks
from sam_repro.errors import UserError
from sam_repro.study import frame
from sam_repro.study.lanczos import density, lanczos, largest
from sam_repro.study.products import Matrix, Products
from sam_repro.tables import studies as specs
from sam_repro.words import parse

CPU = Ranks(0, 1, torch.device("cpu"))


def quadratic(size: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    rotation, _ = np.linalg.qr(rng.standard_normal((size, size)))
    values = np.sort(rng.standard_normal(size) ** 3)
    return rotation @ np.diag(values) @ rotation.T, values


def test_eigenvalues_trace_and_density_of_a_quadratic() -> None:
    matrix, values = quadratic(60)
    found = largest(lambda v: matrix @ v, 60, 5, 0.0, seed=1)
    np.testing.assert_allclose(found, values[::-1][:5], rtol=1e-6)
    probes = [lanczos(lambda v: matrix @ v, 60, 60, seed) for seed in range(40)]
    for probe in probes:  # as many steps as there are eigenvalues find each once, without ghosts
        np.testing.assert_allclose(probe.nodes, values, rtol=0, atol=1e-6)
        assert probe.weights.sum() == pytest.approx(1)
    traces = np.array([probe.trace for probe in probes])
    assert abs(traces.mean() - values.sum()) < 4 * traces.std(ddof=1) / np.sqrt(40)
    at = np.linspace(values[0] - 5, values[-1] + 5, 4000)
    mean, error = density(probes, at, 0.3)
    exact = np.exp(-0.5 * ((at[:, None] - values) / 0.3) ** 2).mean(1) / (0.3 * np.sqrt(2 * np.pi))
    assert np.trapezoid(mean, at) == pytest.approx(1, abs=1e-6)
    assert (np.abs(mean - exact) <= 5 * error + 1e-9).mean() > 0.97


def net() -> tuple[nn.Module, list[tuple[torch.Tensor, torch.Tensor]]]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Tanh(), nn.Flatten(), nn.Linear(32, 3)).double()
    model.eval()
    batches = [(torch.randn(n, 1, 6, 6).double(), torch.randint(0, 3, (n,))) for n in (5, 8)]
    return model, batches


def loss(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(outputs, targets, reduction="sum")


def dense(products: Products) -> np.ndarray:
    return np.stack([products(column) for column in np.eye(products.size)])


@pytest.mark.parametrize("keep", [True, False])
def test_the_hessian_is_autograds_own(keep: bool) -> None:
    model, batches = net()
    products = Products(model, batches, loss, 13, "hessian", CPU, keep)
    names, start = list(products.named), [p.detach() for p in products.parameters]

    def whole(*parameters: torch.Tensor) -> torch.Tensor:
        values = dict(zip(names, parameters, strict=True))
        return sum(loss(torch.func.functional_call(model, values, (x,)), y) for x, y in batches) / 13

    blocks = torch.autograd.functional.hessian(whole, tuple(start))
    exact = torch.cat([
        torch.cat([b.reshape(p.numel(), -1) for b in row], 1) for p, row in zip(start, blocks, strict=True)
    ]).numpy()  # fmt: skip
    before = [p.clone() for p in model.state_dict().values()]
    np.testing.assert_allclose(dense(products), exact, rtol=0, atol=1e-12)
    assert all(torch.equal(a, b) for a, b in zip(before, model.state_dict().values(), strict=True))
    values = np.linalg.eigvalsh(exact)
    found = largest(products, products.size, 5, 1e-6, seed=0)
    np.testing.assert_allclose(found, values[::-1][:5], rtol=1e-4)


@pytest.mark.slow  # curvlinops takes seconds to import
@pytest.mark.parametrize(("matrix", "name"), [("hessian", "Hessian"), ("gauss_newton", "GGN")])
def test_products_are_those_of_curvlinops(matrix: Matrix, name: str) -> None:
    import curvlinops

    model, batches = net()
    products = Products(model, batches, loss, 13, matrix, CPU)
    theirs = getattr(curvlinops, f"{name}LinearOperator")(model, nn.CrossEntropyLoss(), products.parameters, batches)
    vector = np.random.default_rng(0).standard_normal(products.size)
    wanted = (theirs @ torch.from_numpy(vector)).detach().numpy()
    np.testing.assert_allclose(products(vector), wanted, rtol=0, atol=1e-10)


def test_missing_runs_are_named_with_their_command_and_cost(tmp_path: Path) -> None:
    missing = r"^6 of 6 runs have no weights in .*`sam-repro sweep table=fsam/cifar10 cells=.*`, about .* hours on this"
    small = r"^6 of 6 runs .*`sam-repro sweep table=fsam/figA2_radii cells=resnet8/sam,resnet8/fsam budget=mini`"
    for budget, says in (("paper", missing), ("mini", small)):
        with pytest.raises(UserError, match=says):
            frame.run(specs.load("spectrum"), parse([f"results_dir={tmp_path}", f"budget={budget}"], {}))


def test_a_sweep_trains_what_a_figure_wants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["figure=fsam/figA3", f"results_dir={tmp_path}", "--dry-run"]
    assert sweep_and_show.main(words) == 0
    commands = capsys.readouterr().out
    assert commands.count("+experiment=fsam_cifar10_resnet18") == 6
    assert commands.count("method=sam") == 3
    for wrong, says in (("figure=fsam/figA9", "no study measures it"), ("cells=x", "exclude each other")):
        assert sweep_and_show.main([words[0], wrong]) == 2
        told = capsys.readouterr().err
        assert says in told
        assert told.count("\n") == 1
