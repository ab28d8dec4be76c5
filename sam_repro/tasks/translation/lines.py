"""A text file translated line for line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from torch import nn

from sam_repro.errors import UserError
from sam_repro.tasks.translation.decode import translate
from sam_repro.tasks.translation.model import Transformer
from sam_repro.tasks.translation.task import Translation
from sam_repro.tasks.translation.text import lines_of


def text_of(file: Path) -> list[str]:
    """The lines of a file that a user named."""
    if not file.is_file():
        raise UserError(f"translate={file}: there is no such file")
    return lines_of(file)


def translated(
    task: Translation, model: nn.Module, lines: Sequence[str], say: Callable[[int, int], None] = lambda done, all_: None
) -> list[str]:
    """As many lines, each the best translation as a reader has it; of a blank one, a blank one.

    `say` is told after every batch how many of how many sentences are done.
    """
    assert isinstance(model, Transformer)
    filled = [i for i, line in enumerate(lines) if line.strip()]
    count = 0

    def done(more: int) -> None:
        nonlocal count
        count += more
        say(count, len(filled))

    source = task.corpus.source.encode([lines[i] for i in filled])
    found = [""] * len(lines)
    for i, ids in zip(filled, translate(model, source, task.how, done=done), strict=True):
        found[i] = task.corpus.target.decode(ids)[1]
    return found
