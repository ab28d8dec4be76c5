"""A task that the project does not know, of which less is better: trained, resumed, on two ranks, and shown everywhere.

It lies in tests/elsewhere/nextchar with its table; nothing of the project names it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml
from commands import ROOT, command
from report.samples import ENV, curves_of
from safetensors.torch import load_file

from sam_repro.config.compose import compose
from sam_repro.config.identity import run_id
from sam_repro.errors import UserError
from sam_repro.record.metrics import read, without_times
from sam_repro.record.summary import summarise
from sam_repro.report import page, plan_view, status_view, write
from sam_repro.runs import archive, ledger
from sam_repro.runs.entry import Entry, entry_of
from sam_repro.runs.faults import usable
from sam_repro.runs.outcome import in_words
from sam_repro.runs.publish import publish
from sam_repro.runs.run import Run, stored_runs
from sam_repro.tables import choosing, spec, wanted
from sam_repro.tables.plan import Planned, plan
from sam_repro.tables.points import points, said
from sam_repro.tables.results import join
from sam_repro.tables.table import Table

ELSEWHERE = ROOT / "tests" / "elsewhere"
CONFIGS = ELSEWHERE / "nextchar" / "configs"
NAME = "task=nextchar.task:NextCharacter"
SMALL = [NAME, "base_optimizer.lr=0.5", "loop.batch_size=192", "schedule.epochs=4", "loop.eval_batch=400",
         "base_optimizer.weight_decay=0", "runtime.precision=fp32", "runtime.threads=1", "track=none"]  # fmt: skip
# Words of the other tasks. An interval holds 95 % whatever is measured.
FOREIGN = re.compile(
    r"accurac|\bimages?\b|(?<!\b95 )%|top5|top-5|bleu|\bsentences\b|token|\bclasses\b|classif", re.IGNORECASE
)


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(ELSEWHERE))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "nextchar"]:
        del sys.modules[name]


def table() -> Table:
    return spec.load("nextchar/1", CONFIGS)


def entries(results: Path) -> dict[str, Entry]:
    kept, faults = usable(ledger.read(results)[0])
    assert not faults
    return {entry["run_id"]: entry for entry in kept}


def finish(results: Path, planned: Planned, ends: Mapping[int, float]) -> None:
    """Runs that nobody trained: their bits fall to these, a little above at the last epoch."""
    from nextchar.task import NextCharacter

    assert planned.config is not None, planned.why
    for run in planned.runs:
        config, end = replace(planned.config, seed=run.seed, results_dir=str(results)), ends[run.seed]
        records = [
            {"kind": "epoch", "step": 6 * e, "epoch": e, "train_loss": 2.0, "train_bits": 3.0, "test_bits": end + more}
            for e, more in enumerate((1.0, 0.3, 0.0, 0.1), start=1)
        ]
        made = Run.of(config, run.overrides)
        made.path.mkdir(parents=True, exist_ok=True)
        made.metrics.write_text("".join(json.dumps(record) + "\n" for record in records))
        archive.keep(made)
        summary = summarise(records, "done", metrics=NextCharacter.metrics, passes=9.0, wall_seconds=6.0)
        ledger.append(results, entry_of(made, config, records, summary, ENV))


def finish_all(results: Path, shown: Table, better: str = "sam") -> list[Planned]:
    cells = plan([shown])[shown.ref]
    for cell in cells:
        level = 2.5 if cell.cell.column == better else 2.8
        finish(results, cell, {run.seed: level + 0.01 * run.seed for run in cell.runs})
    return cells


def test_of_its_model_nothing_is_known_so_it_may_draw_at_random() -> None:
    """Compiled kernels draw other masks of a seed, and whether several passes share theirs is for the user to say."""
    words = [*SMALL, "method=sam"]
    ids = {run_id(compose([*words, *more])) for more in ([], ["runtime.compile=true"], ["loop.masks=independent"])}
    assert len(ids) == 3


def test_less_is_better_in_the_best_epoch_the_points_and_what_is_said(tmp_path: Path) -> None:
    shown = table()
    cells = finish_all(tmp_path, shown)
    joined = join(shown, cells, entries(tmp_path), "paper", tmp_path)
    sam = joined.result("lines", "sam")
    assert sam.succeeded == 3
    assert sam.values == pytest.approx({0: 2.5, 1: 2.51, 2: 2.52}), "the best epoch is the one with the fewest"
    (point,) = points(joined)
    assert (point.holds, point.point.verdict) == (True, "same sign shown")
    unclaimed = replace(shown, pairs=tuple(replace(pair, claimed=None) for pair in shown.pairs))
    (point,) = points(join(unclaimed, cells, entries(tmp_path), "paper", tmp_path))
    assert point.holds, "without printed numbers the better column is the lower one"

    data = yaml.safe_load((CONFIGS / "table/nextchar/1.yaml").read_text())
    folder = tmp_path / "configs" / "table" / "mine"
    folder.mkdir(parents=True)
    (folder / "1.yaml").write_text(
        yaml.safe_dump(data | {"said": [{"words": "SAM is best", "best": ["sam", "plain"]}]})
    )
    spoken = spec.load("mine/1", tmp_path / "configs")
    (answer,) = said(join(spoken, plan([spoken])["mine/1"], entries(tmp_path), "paper", tmp_path))
    assert answer.verdict == "shown"


def test_trials_choose_the_value_with_the_fewest(tmp_path: Path) -> None:
    data = yaml.safe_load((CONFIGS / "table/nextchar/1.yaml").read_text())
    grid = {"plain": {"base_optimizer.lr": [0.2, 0.4]}, "sam": {"method.rho": [0.01, 0.02]}}
    folder = tmp_path / "table" / "mine"
    folder.mkdir(parents=True)
    tune = {"seeds": [100, 101], "rule": "best mean", "columns": grid}
    (folder / "1.yaml").write_text(yaml.safe_dump(data | {"tune": tune}))
    shown = spec.load("mine/1", tmp_path)
    assert shown.trials is not None
    for cell in plan([shown.trials])[shown.trials.ref]:
        finish(tmp_path, cell, dict.fromkeys((100, 101), 2.6 if cell.cell.column.endswith(("0.4", "0.02")) else 2.9))
    found = choosing.choose(shown, "paper", entries(tmp_path), tmp_path).choices["lines"]
    assert found == {"plain": ("base_optimizer.lr=0.4",), "sam": ("method.rho=0.02",)}


def shown_everywhere(results: Path) -> dict[str, str]:
    """Whatever shows runs and tables, by what it is; a style sheet aside, whose widths are in percent."""
    one = table()
    found, planned = entries(results), {"paper": plan([one])}
    cells = planned["paper"][one.ref]
    plans = plan_view.summarise({one.ref: cells}, {one.ref: cells}, found, results, "cpu")
    states = status_view.collect([one], {one.ref: cells}, found, results)
    texts = {
        "plan": plan_view.text(plans, "paper"),
        "status": status_view.text(states, single=True) + status_view.text(states, single=False),
        "page": page.render(write.joined([one], planned, found, results), found, results),
    }
    for path in write.everything([one], planned, found, results, None, page=False):
        texts[path.name] = path.read_text()
    texts["page"] = re.sub(r"<(style|script)>.*?</\1>", "", texts["page"], flags=re.S)
    return texts


def test_tables_plans_status_and_page_say_nothing_of_other_tasks(tmp_path: Path) -> None:
    waiting = wanted.wanted(
        [wanted.Candidate(table(), "paper", plan([table()])["nextchar/1"])], {}, tmp_path, "cpu", 8.0
    )
    assert sum(one.verdicts for one in waiting) == 3, "two levels and a point"
    finish_all(tmp_path, table())
    texts = shown_everywhere(tmp_path)
    assert {"plan", "status", "page", "1.md", "1.tex", "1.json", "1.csv"} <= set(texts)
    for name, text in texts.items():
        assert not FOREIGN.findall(text), name
    assert "bits per character" in texts["1.md"]
    assert "same sign shown" in texts["1.md"]
    heights = [height for _, height in curves_of(texts["page"])[1][1]]
    assert heights[0] < 4 < heights[2], "a steep beginning leaves the panel at the top, where the worst is"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("task=nextchar", "task must be package.module:attribute, or null; is 'nextchar'"),
        ("task=nextchar.task:NextWord", "task.py has no NextWord"),
    ],
)
def test_a_task_that_is_none_is_one_line(words: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        compose([words])


def test_a_task_of_ones_own_is_known_by_its_source_and_one_of_the_project_by_its_name() -> None:
    assert re.fullmatch(r"nextchar\.task:NextCharacter@[0-9a-f]{12}", str(compose([NAME]).task))
    shipped = "sam_repro.tasks.classification.task:Classification"
    assert compose([f"task={shipped}"]).task == shipped


def test_what_a_task_lacks_is_told() -> None:
    from sam_repro.train import task_of

    with pytest.raises(UserError, match=r"^task=nextchar.lacking:Lacking returns a Lacking without metrics, "):
        task_of(replace(compose([]), task="nextchar.lacking:Lacking"), torch.device("cpu"))


def start(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ELSEWHERE), str(ROOT)])
    return subprocess.run(
        command(*SMALL, *words), cwd=folder, env=os.environ | {"PYTHONPATH": path} | env,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.mark.slow
def test_a_table_of_it_is_trained_resumed_and_shown(tmp_path: Path) -> None:
    """About 25 s: nine runs of a second, and Python's start."""
    done = start(tmp_path, "-m", "method=plain,sam", "seed=0,1,2")
    assert done.returncode == 0, done.stderr
    results = tmp_path / "results"
    found = entries(results)
    wanted_runs = {run.id for cell in plan([table()])["nextchar/1"] for run in cell.runs}
    assert set(found) == wanted_runs
    for entry in found.values():
        epochs = [
            record["test_bits"] for record in archive.read(results, entry["run_id"]) or [] if record["kind"] == "epoch"
        ]
        assert entry["metrics"]["test_bits"]["best"] == min(epochs) < epochs[0] - 0.1
    for name, text in shown_everywhere(results).items():
        assert not FOREIGN.findall(text), name

    (tmp_path / "again").mkdir()
    stopped = start(tmp_path / "again", "method=sam", STOP_AFTER_EPOCH_1="1")
    assert stopped.returncode == 75, stopped.stderr
    again = start(tmp_path / "again", "method=sam")
    assert again.returncode == 0, again.stderr
    (resumed,) = stored_runs(tmp_path / "again" / "results")
    whole = Run.at(results, resumed.id)
    assert '"resumed"' in resumed.events.read_text()
    assert resumed.weights.read_bytes() == whole.weights.read_bytes()
    assert [without_times(r) for r in read(resumed.path)] == [without_times(r) for r in read(whole.path)]
    told = in_words(json.loads(whole.summary.read_text()))
    assert not FOREIGN.findall(told + again.stdout + done.stdout)
    card = (publish(whole, tmp_path / "model") / "README.md").read_text()
    assert not FOREIGN.findall(card)


@pytest.mark.slow
def test_two_ranks_with_m_sharpness_are_one_process(tmp_path: Path) -> None:
    """About 15 s. Every shard's ascent is divided by its own characters, the step by all."""
    for ranks in ("1", "2"):
        done = start(tmp_path, "method=sam", "method.m=48", f"runtime.ranks={ranks}", f"results_dir={ranks}")
        assert done.returncode == 0, done.stderr
    (one,), (two,) = (stored_runs(tmp_path / ranks) for ranks in ("1", "2"))
    assert one.id == two.id
    weights, others = load_file(one.weights), load_file(two.weights)
    for name, tensor in weights.items():
        torch.testing.assert_close(others[name], tensor, rtol=1e-4, atol=1e-5)
