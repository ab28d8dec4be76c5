"""metrics.jsonl: what happened in a run, one JSON object a line. It is the truth; console and W&B mirror it.

Steps and epochs are counted from 1, losses are means over images, accuracies are percent. A run that learns something
else has its own metrics and speed in their places (`sam_repro.engine.task`). Every record has `kind`:

kind "step", every `track.every` steps:
    step           optimizer steps done
    epoch          the epoch that the step belongs to
    loss           mean loss of the pass that gave the final gradient; of a step that fp16 skipped, of its last
                   pass, null where that overflowed too (loss_ascent likewise)
    loss_ascent    mean loss of the first pass over the batch; null where a step has only one pass, as LookSAM's between
                   its ascents. Where the ascent sees other data (`ascent: other, larger, full`: SAM-db, SAM-full, ...)
                   the first pass over the batch is the descent's, at the perturbed weights: loss_ascent equals loss
                   and the loss on the other data is not logged. train_loss and train_accuracy are of the same pass
    grad_norm      l2 norm of the final gradient, before clipping
    radius         rho of this step
    ascent_norm, gradient_norm, perturbation_norm, distance_to_sam   of a step with an ascent (docs/methods.md); with
                   method.m of the first rank's last shard
    lr             learning rate of this step
    images_per_s   training samples a second since the record before (each counted once, however many passes)
    time           seconds trained so far, summed over interruptions
kind "epoch", at the end of each:
    step, epoch, train_loss, train_accuracy, test_loss, test_accuracy, test_top5   (of training null: all steps skipped)
    ascent_cosine, gradient_cosine, noise_cosine   with loop.probe_steps, means over the epoch's probed steps: what the
                   perturbation has of the whole training set's gradient and of the batch's noise (engine/probe.py)
    seconds        that the epoch took, its evaluation included
    time           as above
kind "event", when something happened to the training itself, and would again if the run were repeated:
    name           "collapsed", "skipped", ...
    step           and what else belongs to it

What happens to a *process* (interrupted, resumed, a checkpoint that fell back) is not in here but in events.jsonl:
metrics.jsonl is, times aside, bit-identical between an interrupted run and an uninterrupted one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sam_repro.errors import UserError
from sam_repro.files import lines
from sam_repro.files.read import DamagedError, opened
from sam_repro.record.folder import RunFolder

# The order of keys in a line; keys not named here follow, sorted.
ORDER = (
    *("kind", "name", "step", "epoch", "loss", "loss_ascent", "grad_norm", "radius", "lr"),
    *("train_loss", "train_accuracy", "test_loss", "test_accuracy", "test_top5"),
    *("images_per_s", "seconds", "time"),
)
# What differs between two runs that are otherwise equal to the bit.
TIMES = ("seconds", "time", "wall_seconds")
PER_SECOND = "_per_s"  # and every speed: images_per_s, tokens_per_s

# Of a file that does not fit its checkpoint.
REMEDY = "put it back or retrain with force=true"

_RANK = {key: index for index, key in enumerate(ORDER)}


class MetricsLog:
    """Appends records to a run's metrics.jsonl. One process owns it."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = RunFolder(Path(folder)).metrics
        self._descriptor = lines.open_to_append(self.path)

    def append(self, record: Mapping[str, Any]) -> None:
        """Write a record as one line. It is with the operating system when this returns: a killed process keeps it."""
        ordered = {key: record[key] for key in sorted(record, key=lambda key: (_RANK.get(key, len(ORDER)), key))}
        lines.append(self._descriptor, lines.encode(ordered))

    def flush(self) -> int:
        """Make all lines durable; the length in bytes, for a checkpoint that is about to be written."""
        os.fsync(self._descriptor)
        return os.fstat(self._descriptor).st_size

    def rewind(self, offset: int) -> None:
        """Forget what came after the `flush` that returned this offset, a torn last line too. 0: a fresh start."""
        size = os.fstat(self._descriptor).st_size
        if offset > size:
            raise UserError(f"{_too_short(self.path, size, offset)}; {REMEDY}")
        os.ftruncate(self._descriptor, offset)
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Make all lines durable and let go of the file. A second call does nothing."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def read(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """All records of a run folder, finished or not; NaN and infinity are floats again.

    A torn last line is left out. A damaged line elsewhere can't come from a killed writer and is refused.
    """
    path = RunFolder(Path(folder)).metrics
    records, problems = lines.read_lines(path)
    if problems and not (len(problems) == 1 and _torn_tail(path)):
        raise UserError(f"{problems[0]}; retrain with force=true")
    for record in records:
        if not sound(record):
            raise UserError(f"{path} holds a record that no run writes: the file was altered; retrain with force=true")
    return records


def sound(record: Mapping[str, Any]) -> bool:
    """Whether whoever reads a record finds what is always there, of its type, and numbers where numbers belong."""
    kind = record.get("kind")
    needed = {"step": ("step",), "epoch": ("step", "epoch"), "event": ()}.get(kind if isinstance(kind, str) else "")
    if needed is None or (kind == "event") != isinstance(record.get("name"), str):
        return False
    if not all(isinstance(record.get(key), int) for key in needed):
        return False
    return all(isinstance(record.get(key), int | float | None) for key in ORDER[2:])


def digest(folder: str | os.PathLike[str], offset: int) -> str:
    """The SHA-256 of the first `offset` bytes of the folder's metrics.jsonl, for a checkpoint to keep."""
    with open(RunFolder(Path(folder)).metrics, "rb") as file:
        return hashlib.sha256(file.read(offset)).hexdigest()


def misfit(folder: str | os.PathLike[str], offset: int, sha256: str = "") -> str:
    """Why a checkpoint that saw `offset` bytes of the folder's metrics.jsonl can't go on with it, or "".

    sha256: the `digest` of those bytes; checkpoints of older versions have none.

    For a run that is about to resume: what is wrong with the file is better said before the training than after it.
    What comes after the offset does not matter, since `rewind` forgets it.
    """
    path = RunFolder(Path(folder)).metrics
    try:
        with opened(path) as file:
            content = file.read()
    except FileNotFoundError:
        content = b""
    except DamagedError as error:
        return str(error)
    if offset > len(content):
        return _too_short(path, len(content), offset)
    whole = content[:offset].split(b"\n")
    # A checkpoint sees whole lines, so there is nothing after the last newline.
    for number, line in enumerate(whole, start=1):
        try:
            if number < len(whole):
                lines.decode(line)
            elif line:
                raise ValueError("the checkpoint ends within this line")
        except (ValueError, RecursionError):
            return f"{path} line {number} is damaged: the file was altered"
    if sha256 and hashlib.sha256(content[:offset]).hexdigest() != sha256:
        return f"{path} says other things than when its checkpoint was saved: the file was altered"
    return ""


def without_times(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record without what differs between two runs that are otherwise equal, in nested objects too."""
    return {
        key: without_times(value) if isinstance(value, Mapping) else value
        for key, value in record.items()
        if key not in TIMES and not key.endswith(PER_SECOND)
    }


def _too_short(path: Path, size: int, offset: int) -> str:
    return f"{path} has {size} bytes, its checkpoint saw {offset}: the file was altered"


def _torn_tail(path: Path) -> bool:
    tail = path.read_bytes().rpartition(b"\n")[2]
    try:
        return bool(tail) and not lines.decode(tail)
    except ValueError:
        return True
