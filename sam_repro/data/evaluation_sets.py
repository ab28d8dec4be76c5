"""The test sets on which one trained ImageNet model is judged: `evaluation_sets("c", config, device)`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from sam_repro.data import imagenet
from sam_repro.data.declared import DatasetConfig
from sam_repro.data.on_device import Normalise
from sam_repro.data.pictures import Tally
from sam_repro.data.sets import EvalData
from sam_repro.errors import UserError

NAMES = ("imagenet", "real", "v2", "r", "c")
# AlexNet's error on each corruption, averaged over the severities: what mCE is measured in (Hendrycks and Dietterich
# 2019, https://github.com/hendrycks/robustness).
ALEXNET_ERRORS = dict(
    zip(
        imagenet.CORRUPTIONS,
        (0.886428, 0.894468, 0.922640, 0.819880, 0.826268, 0.785948, 0.798360, 0.866816, 0.826572, 0.819324, 0.564592,
         0.853204, 0.646056, 0.717840, 0.606500),
        strict=True,
    )
)  # fmt: skip


@dataclass(frozen=True)
class EvaluationSet:
    name: str  # "imagenet", "c/fog/3", ...
    data: EvalData
    columns: Tensor | None = None  # of the model's outputs, those that compete; None: all

    def correct(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """bool [n]: whether the best output is the label, or one of the right ones where `targets` has several."""
        best = outputs[:, self.columns.to(outputs.device)] if self.columns is not None else outputs
        guess = best.argmax(1)
        return guess == targets if targets.ndim == 1 else targets.gather(1, guess[:, None])[:, 0] > 0


def evaluation_sets(name: str, config: DatasetConfig, device: torch.device | str) -> Iterator[EvaluationSet]:
    """One set, or 75 for "c" (each is looked for when its turn comes). Images are prepared as `config` says."""
    if name == "imagenet":
        yield _set(name, imagenet.find_validation(config.root, config.pack), config, device)
    elif name == "real":
        yield _set(name, imagenet.find_real(config.root, pack=config.pack), config, device)
    elif name == "v2":
        yield _set(name, imagenet.find_v2(config.root), config, device)
    elif name == "r":
        half, columns = imagenet.find_r(config.root)
        yield _set(name, half, config, device, columns)
    elif name == "c":
        # Published as 224 x 224 pixels, which are the centre of the validation image already. The authors' test script,
        # from which AlexNet's errors are, shows them as they are; enlarged and cropped again they would lose their rim.
        config = replace(config, crop_share=1.0)
        for corruption in imagenet.CORRUPTIONS:
            for severity in imagenet.SEVERITIES:
                half = imagenet.find_c(config.root, corruption, severity)
                yield _set(f"c/{corruption}/{severity}", half, config, device)
    else:
        raise UserError(f"there is no test set '{name}': choose of {', '.join(NAMES)}")


def _set(
    name: str,
    half: imagenet.LabelledPictures,
    config: DatasetConfig,
    device: torch.device | str,
    columns: Tensor | None = None,
) -> EvaluationSet:
    from sam_repro.data.preprocess import evaluation
    from sam_repro.data.stream import StreamEval
    from sam_repro.data.workers import Pool, worker_count

    device = torch.device(device)
    normalise = Normalise(config.mean, config.std, device)
    tally, pool = Tally(config.skip_unreadable), Pool(worker_count(config.workers), device)
    pictures, targets = half
    pictures = pictures.by(config.decoder)
    return EvaluationSet(
        name, StreamEval(pictures, targets, evaluation(config), normalise, tally, pool, device), columns
    )


def corruption_scores(accuracies: dict[str, float]) -> dict[str, float]:
    """Of the accuracies (0 .. 1) of all 75 sets "c/<corruption>/<severity>": the mean accuracy (R-SAM, table 4) and

    mCE = mean over corruptions of (mean error over severities) / (AlexNet's mean error)
    """
    errors = {
        corruption: sum(1.0 - accuracies[f"c/{corruption}/{s}"] for s in imagenet.SEVERITIES) / len(imagenet.SEVERITIES)
        for corruption in imagenet.CORRUPTIONS
    }
    return {
        "mean_accuracy": 1.0 - sum(errors.values()) / len(errors),
        "mCE": sum(error / ALEXNET_ERRORS[corruption] for corruption, error in errors.items()) / len(errors),
    }
