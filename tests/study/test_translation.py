"""A translator seen by the studies of stored runs: its loss is that of its training, and products are derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from sam_repro.config.compose import compose
from sam_repro.engine.ranks import Ranks
from sam_repro.study.ball import Landscape, Norm
from sam_repro.study.products import Matrix, Products
from sam_repro.study.sentences import Batches, Joined, Loss, open_translator
from sam_repro.tasks.translation.task import Translation

PAIRS = 12
Opened = tuple[Joined, Batches, Loss]


@pytest.fixture(scope="module")
def opened() -> Opened:
    words = ["model.width=8", "model.ffn=12", "model.heads=2", "model.depth=1", "dataset.train_images=40"]
    config = compose(["dataset=grammar", "model=transformer_small", *words])
    torch.manual_seed(0)
    model = Translation.load(config, torch.device("cpu")).build().double().eval()
    return open_translator(config, model, PAIRS, 5)


def test_the_loss_is_the_mean_over_tokens_whatever_the_padding(opened: Opened) -> None:
    joined, batches, loss = opened
    config = compose(["dataset=grammar", "model=transformer_small", "dataset.train_images=40"])
    task = Translation.load(config, torch.device("cpu"))
    with torch.no_grad():
        total = tokens = 0.0
        for number in range(PAIRS):
            one = task.train.gather(torch.tensor([number]), 0)
            total += float(task.losses(joined.model(*task.inputs(one)), one).sum())
            tokens += one.target_out.shape[1]
    land = Landscape(joined, batches, loss, Norm(2.0, "elementwise"))
    assert [len(targets) for _, targets in batches] == [5, 5, 2]
    assert land.value() == pytest.approx(total / tokens, abs=1e-12)


@pytest.mark.parametrize("matrix", ["hessian", "gauss_newton"])
def test_products_are_of_the_second_derivative(matrix: Matrix, opened: Opened) -> None:
    joined, batches, loss = opened
    products = Products(joined, batches, loss, PAIRS, matrix, Ranks(0, 1, torch.device("cpu")))
    rng = np.random.default_rng(0)
    one, other = (rng.standard_normal(products.size) for _ in range(2))
    along = products(one)
    assert other @ along == pytest.approx(one @ products(other), rel=1e-9), "symmetric"
    if matrix == "gauss_newton":
        assert one @ along > 0
        return
    step = 1e-5
    differences = (gradient(opened, step * one) - gradient(opened, -step * one)) / (2 * step)
    np.testing.assert_allclose(along, differences, rtol=0, atol=1e-6 * np.abs(along).max())


def gradient(opened: Opened, move: NDArray[np.float64]) -> NDArray[np.float64]:
    """At the weights moved by so much."""
    joined, batches, loss = opened
    land = Landscape(joined, batches, loss, Norm(2.0, "none"))
    parts = torch.from_numpy(move).split([p.numel() for p in land.parameters])
    found = land.slope([part.view_as(p) for part, p in zip(parts, land.parameters, strict=True)])[1]
    return torch.cat([part.reshape(-1) for part in found]).numpy()
