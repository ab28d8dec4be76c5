"""Products of a vector with the Hessian and the Gauss-Newton matrix, against curvlinops's on the same net and batches.

    OMP_NUM_THREADS=1 sam-repro bench study [--model resnet8] [--batch 128] [--rounds 5] [--clock cpu] [--json]

A turn is as many products as a search for the largest eigenvalues takes, from nothing: what a contestant keeps between
products it has to make in its own time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sam_repro.bench.timing import Bar, hardware, milliseconds, ratio, stopwatch, take_turns

BATCHES, PRODUCTS = 4, 20
AT_LEAST = 1.2  # times the products a second of curvlinops
MATRICES = {"hessian": "HessianLinearOperator", "gauss_newton": "GGNLinearOperator"}


def contestants(model: str, batch: int, matrix: Any, clock: str) -> dict[str, Callable[[], float]]:
    import curvlinops
    import numpy as np
    import torch
    from torch import nn

    from sam_repro import models
    from sam_repro.bench.step import configure
    from sam_repro.engine.ranks import Ranks
    from sam_repro.study.products import Products

    torch.manual_seed(0)
    c = configure(model, "sam", batch)
    net = models.build(c.model, c.dataset.classes, c.dataset.image_size).eval()
    size, classes = c.dataset.image_size, c.dataset.classes
    batches = [(torch.randn(batch, 3, size, size), torch.randint(0, classes, (batch,))) for _ in range(BATCHES)]
    parameters = [p for p in net.parameters() if p.requires_grad]
    vector = np.random.default_rng(0).standard_normal(sum(p.numel() for p in parameters))

    def ours() -> None:
        def loss(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            return nn.functional.cross_entropy(outputs, targets, reduction="sum")

        product = Products(net, batches, loss, batch * BATCHES, matrix, Ranks(0, 1, torch.device("cpu")))
        for _ in range(PRODUCTS):
            product(vector)

    def theirs() -> None:
        kind = getattr(curvlinops, MATRICES[matrix])
        product = kind(net, nn.CrossEntropyLoss(), parameters, batches, check_deterministic=False)
        for _ in range(PRODUCTS):
            product @ torch.from_numpy(vector).float()

    return {"ours": stopwatch(ours, clock), "curvlinops": stopwatch(theirs, clock)}


def run(model: str = "resnet8", rounds: int = 5, batch: int = 128, clock: str = "wall") -> dict[str, Any]:
    taken, bars, ratios = dict[str, Any](), list[Any](), dict[str, float]()
    for matrix in MATRICES:
        found = take_turns(contestants(model, batch, matrix, clock), rounds, warmup=1)
        taken |= {f"{matrix}: {name}": seconds for name, seconds in found.items()}
        ratios[matrix] = round(ratio(found["curvlinops"], found["ours"]), 3)
        bars.append(
            Bar(f"{matrix} products a second / curvlinops's", ratios[matrix], AT_LEAST, at_least=True).as_json()
        )
    return {
        "hardware": hardware(),
        "settings": {
            "model": model,
            "batch": batch,
            "batches": BATCHES,
            "products": PRODUCTS,
            "clock": clock,
            "precision": "fp32",
        },
        "rounds": rounds,
        "milliseconds": milliseconds(taken),
        "ratios": ratios,
        "bars": bars,
    }


def table(result: dict[str, Any]) -> str:
    per = result["settings"]["products"]
    return "\n".join(f"{name:<28}{milli / per:>10.1f} ms a product" for name, milli in result["milliseconds"].items())
