"""Accidents to a run's folder: one line or a named warning, and the runs beside it are shown all the same."""

import gzip
import json
import math
import os
import random
import shutil
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from commands import within
from damage import damaged
from report.samples import ENV, epochs, write_run

from sam_repro.config.compose import compose
from sam_repro.errors import UserError
from sam_repro.report import curves, demo
from sam_repro.runs import archive, ledger
from sam_repro.runs.outcome import already, finished
from sam_repro.runs.restore import restore
from sam_repro.runs.run import Run
from sam_repro.runs.verify import check

pytestmark = pytest.mark.slow

FILES = ("config.yaml", "env.json", "metrics.jsonl", "summary.json", "evaluations.json")
BOMB = "a: &a [x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\nmethod: *c\n"


def accident(file: Path, chance: random.Random) -> None:
    match chance.randrange(10):
        case 0:
            file.unlink()
            file.mkdir()
        case 1:
            file.unlink()
            os.mkfifo(file)
        case 2:
            file.unlink()
            file.symlink_to(file)
        case 3:
            file.write_text(BOMB)
        case 4:
            file.write_bytes(b"[" * 20_000)
        case 5 if file.suffix == ".yaml":
            lines = file.read_text().splitlines()
            lines[chance.randrange(len(lines))] += chance.choice([" &a [*a]", ": x", " !!set {x}", "\t", " 1e999"])
            file.write_text("\n".join(lines))
        case _:
            whole = file.read_bytes()
            if file.suffix == ".yaml":
                file.write_bytes(whole[: chance.randrange(len(whole))] + chance.randbytes(3))
            else:
                file.write_bytes(damaged(whole, chance))


def altered(curve: Path, chance: random.Random) -> None:
    """By somebody who knows how it is packed, or by the disk."""
    whole = gzip.decompress(curve.read_bytes())
    curve.write_bytes(chance.choice([gzip.compress(damaged(whole, chance)), damaged(whole, chance)]))


@pytest.mark.parametrize("seed", range(3))
def test_broken_run_folders(tmp_path: Path, seed: int) -> None:
    source = tmp_path / "source"
    for number in (0, 1):
        config = replace(compose(["method=sam", f"seed={number}"]), results_dir=str(source))
        run = Run.of(config)
        write_run(run.path, config, epochs(60.0, number))
        run.env.write_text(json.dumps(ENV) + "\n")
        run.evaluations.write_text(json.dumps({"imagenet_accuracy": 71.5}) + "\n")
        archive.keep(run)
    bad, good = sorted(path.name for path in (source / "runs").iterdir())
    for case in range(50):
        with within(20, f"seed {seed}, case {case}"):
            chance = random.Random(1000 * seed + case)
            results = tmp_path / f"{case}"
            shutil.copytree(source, results)
            broken = Run.at(results, bad)
            accident(broken.path / chance.choice(FILES), chance)
            altered(archive.path(results, bad), chance)
            summary = finished(broken)
            if summary is not None:
                assert "\n" not in already(summary)
            restore(broken)
            assert restore(Run.at(results, good)), case
            lines, problems = ledger.read(results)
            assert not problems
            assert {line["run_id"] for line in lines} >= {good}
            for finding in check([], results):
                assert bad in finding.text, f"seed {seed}, case {case}: {finding.text}"
            for run in (bad, good):
                assert all(map(math.isfinite, chain(*curves.of_run(results, run, "test_accuracy"))))
            assert curves.of_run(results, good, "test_accuracy")
            if case % 10:  # drawing takes a second
                continue
            said = ""
            try:
                demo.write([broken.path, Run.at(results, good).path], results / "out")
            except UserError as error:
                said = str(error)
            assert not said or bad in said, f"seed {seed}, case {case}"
