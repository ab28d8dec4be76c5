"""Symmetric label noise (ASAM, table 6): a share of the training labels is drawn anew, uniformly over the classes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sam_repro.data.counter import Draw, hashes, integers, key
from sam_repro.data.declared import LabelNoise


def corrupt(labels: Tensor, classes: int, noise: LabelNoise) -> tuple[Tensor, dict[str, Any]]:
    """The noisy labels, and what was done.

    Exactly round(rate * n) labels are redrawn, so the requested rate holds for every subset. Without `include_true` a
    redrawn label is one of the classes - 1 wrong ones and the realised rate is the requested one; with it, one in
    `classes` redrawn labels stays true by chance. The draw depends on `noise.seed` and the sample, never on the run's
    seed.
    """
    n = len(labels)
    ids = torch.arange(n)
    chosen = hashes(ids, key(noise.seed, Draw.noise_choice)).argsort(stable=True)[: round(noise.rate * n)]
    choices = classes if noise.include_true else classes - 1
    draw = integers(chosen, [key(noise.seed, Draw.noise_label)], [choices])[:, 0]
    true = labels[chosen]
    noisy = labels.clone()
    # Drawing a distance 1 .. classes - 1 from the true label is uniform over the wrong ones.
    noisy[chosen] = draw if noise.include_true else (true + 1 + draw) % classes
    realised = (noisy != labels).double().mean().item() if n else 0.0
    return noisy, {"requested": noise.rate, "redrawn": len(chosen), "realised": realised}
