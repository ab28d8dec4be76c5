"""Both losses against their formulas, class by class."""

from __future__ import annotations

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from rig import CPU, config, net, stepper

from sam_repro.config.schema import Loss
from sam_repro.engine.evaluate import evaluate
from sam_repro.engine.ranks import Ranks
from sam_repro.tasks.classification.loss import loss_of

LOGITS = torch.tensor([[0.3, -1.2, 2.0], [-10.0, -10.0, -9.0]])
CLASSES = torch.tensor([2, 0])


def sigmoid_entropy(logits: list[float], targets: list[float]) -> float:
    """-sum of t log s(z) + (1 - t) log(1 - s(z)), s the logistic function."""
    terms = [(t, 1 / (1 + math.exp(-z))) for z, t in zip(logits, targets, strict=True)]
    return -sum(t * math.log(s) + (1 - t) * math.log(1 - s) for t, s in terms)


@pytest.mark.parametrize("smoothing", [0.0, 1e-4, 0.1])
def test_sigmoid_is_every_class_by_itself_and_smoothing_lifts_the_wrong_ones(smoothing: float) -> None:
    targets = [[smoothing, smoothing, 1.0], [1.0, smoothing, smoothing]]
    wanted = [sigmoid_entropy(z, t) for z, t in zip(LOGITS.tolist(), targets, strict=True)]
    each = loss_of(Loss.sigmoid, LOGITS, CLASSES, smoothing)
    assert each.tolist() == pytest.approx(wanted, rel=1e-5)
    assert loss_of(Loss.sigmoid, LOGITS, CLASSES, smoothing, "sum").item() == pytest.approx(sum(wanted), rel=1e-5)


def test_mixed_targets_are_shares_of_each_class() -> None:
    shares = torch.tensor([[0.25, 0.0, 0.75], [0.5, 0.5, 0.0]])
    wanted = [sigmoid_entropy(z, t) for z, t in zip(LOGITS.tolist(), shares.tolist(), strict=True)]
    assert loss_of(Loss.sigmoid, LOGITS, shares).tolist() == pytest.approx(wanted, rel=1e-5)


def test_softmax_is_torchs() -> None:
    for reduction in ("none", "sum"):
        ours = loss_of(Loss.softmax, LOGITS, CLASSES, 0.1, reduction)
        assert ours.equal(F.cross_entropy(LOGITS, CLASSES, label_smoothing=0.1, reduction=reduction))


def test_the_configured_loss_is_trained_and_evaluated() -> None:
    c = config("method=plain", "loop.loss=sigmoid", "augment.label_smoothing=0.1")
    model, ids = net(torch.float32), torch.arange(16)
    s = stepper(c, model)
    batch = s.data.gather(ids, 0)
    with torch.no_grad():
        wanted = loss_of(Loss.sigmoid, copy.deepcopy(model)(batch.images), batch.targets, 0.1).mean()
    assert float(s(ids, 0, 0).loss) == pytest.approx(float(wanted), rel=1e-6)

    (held,) = s.task.test.batches(16)
    model.eval()
    with torch.no_grad():
        wanted = loss_of(Loss.sigmoid, model(held.images), held.targets).mean()
    assert evaluate(model, s.task, c, Ranks(0, 1, CPU))["test_loss"] == pytest.approx(float(wanted), rel=1e-6)
