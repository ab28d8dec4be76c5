"""What classifying images is judged by. Imports no torch."""

from __future__ import annotations

from sam_repro.tasks.metric import Metric


def of_images(classes: int) -> tuple[Metric, ...]:
    """Classifying images."""
    chance = 100.0 / classes
    return (
        Metric("test_accuracy", "%", chance=chance, result=True),
        Metric("test_top5", "%", chance=min(100.0, 5 * chance), result=True),
        Metric("test_loss", higher_is_better=False),
        Metric("train_accuracy", "%", chance=chance),
        Metric("train_loss", higher_is_better=False),
    )
