"""Results as runs leave them: ledger lines and folders for cells of the shipped tables, by the project's own code."""

import json
import math
import os
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from sam_repro.config.compose import compose
from sam_repro.config.identity import as_values
from sam_repro.config.schema import Config
from sam_repro.record.metrics import MetricsLog
from sam_repro.record.summary import summarise
from sam_repro.runs import archive, ledger
from sam_repro.runs.entry import entry_of
from sam_repro.runs.run import Run
from sam_repro.tables.plan import Planned
from sam_repro.tasks.classification.declared import of_images

ENV = {
    "hardware": {"gpus": [], "cpu": "A processor", "cores": 2, "memory_gb": 16.0},
    "packages": {"torch": "2.15.0"},
    "git": {"sha": "0123456789abcdef0123", "dirty": False},
}


def epochs(top: float, seed: int, count: int = 12) -> list[dict[str, Any]]:
    """Epoch records that rise to `top` in the one before the last and end a little below."""
    noise = random.Random(seed)
    records = []
    for epoch in range(1, count + 1):
        rise = (1 - math.exp(-epoch / 3)) / (1 - math.exp(-(count - 1) / 3))
        accuracy = top if epoch == count - 1 else min(top, 10 + (top - 10) * rise) - 0.25 - noise.random() * 0.01
        records.append({
            "kind": "epoch", "step": epoch * 10, "epoch": epoch, "train_loss": 2 / epoch, "test_loss": 1.0,
            "test_accuracy": accuracy, "test_top5": min(100.0, accuracy + 3), "seconds": 3.0, "time": 3.0 * epoch,
        })  # fmt: skip
    return records


def write_run(folder: Path, config: Config, records: list[dict[str, Any]], status: str = "done") -> dict[str, Any]:
    """config.yaml, metrics.jsonl, summary.json and DONE; returns the summary."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(as_values(config)))
    log = MetricsLog(folder)
    log.rewind(0)
    for record in records:
        log.append(record)
    log.close()
    metrics = of_images(config.dataset.classes)
    summary = summarise(records, status, metrics=metrics, passes=1000.0, wall_seconds=60.0)
    (folder / "summary.json").write_text(json.dumps(summary))
    (folder / "DONE").touch()
    return summary


def made(results: Path, *overrides: str, top: float = 60.0) -> Run:
    """A finished run that nobody trained, with its line."""
    config = replace(compose(overrides), results_dir=str(results))
    run = Run.of(config, overrides)
    records = epochs(top, config.seed)
    summary = write_run(run.path, config, records)
    ledger.append(results, entry_of(run, config, records, summary, ENV))
    return run


def finish(
    results: Path,
    planned: Planned,
    tops: Mapping[int, float | None],
    *,
    folders: bool = False,
    picks: int = 0,
    passes: float = 1000.0,
) -> None:
    """The cell's runs of these seeds end with these best accuracies; None is a collapsed run.

    `picks`: the epoch that is best on a validation split beside the test set; 0 where the runs have none.
    """
    assert planned.config is not None, planned.why
    for run in planned.runs:
        if run.seed not in tops:
            continue
        top = tops[run.seed]
        config = replace(planned.config, seed=run.seed)
        records = epochs(top, run.seed) if top is not None else [{"kind": "event", "name": "collapsed", "step": 7}]
        if picks:
            records = [r | {"validation_accuracy": 70.0 if r.get("epoch") == picks else 60.0} for r in records]
        status = "done" if top is not None else "collapsed"
        if folders:
            summary = write_run(results / "runs" / run.id, config, records, status)
            archive.keep(Run.at(results, run.id))
        else:
            metrics = of_images(config.dataset.classes)
            summary = summarise(records, status, metrics=metrics, passes=passes, wall_seconds=60.0)
        ledger.append(results, entry_of(Run.of(config, run.overrides), config, records, summary, ENV))


def cell(planned: Iterable[Planned], row: str, column: str) -> Planned:
    return next(p for p in planned if (p.cell.row, p.cell.column) == (row, column))


def curves_of(drawn: str) -> list[tuple[str, list[tuple[float, float]]]]:
    """The lines of a panel of the page: label, and points from the corner of what cuts them."""
    found = []
    for steps, label in re.findall(r'<path class="c\d" d="([^"]*)"><title>(.*?)</title>', drawn):
        x, y, points = 0.0, 0.0, list[tuple[float, float]]()
        for step in re.findall(r"[Ml][^Ml]*", steps):
            right, down = map(float, re.findall(r"-?[\d.]+", step))
            x, y = (right, down) if step[0] == "M" else (x + right, y + down)
            points.append((x, y))
        found.append((label, points))
    return found


def all_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not os.path.basename(path).startswith(".")
    }
