"""The sweep's command line, its slots, and what it does before anything is trained."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from commands import ROOT
from report.samples import finish

from sam_repro.config.overrides import quoted
from sam_repro.errors import UserError
from sam_repro.sweep.__main__ import main, sweep
from sam_repro.sweep.launchers.slurm import private
from sam_repro.sweep.options import parse
from sam_repro.sweep.slots import slots
from sam_repro.tables import spec
from sam_repro.tables.choosing import of_ledger
from sam_repro.tables.plan import plan
from sam_repro.tables.status import states


def test_two_runs_on_each_gpu_round_after_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    places = slots("0-2,5", per_gpu=2, cpu_slots=1, ranks=1)
    assert [place.env["CUDA_VISIBLE_DEVICES"] for place in places] == ["0", "1", "2", "5"] * 2
    assert [p.env["CUDA_VISIBLE_DEVICES"] for p in slots("0-3", 1, 1, ranks=2)] == ["0,1", "2,3"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "6,GPU-7f")
    assert [p.env["CUDA_VISIBLE_DEVICES"] for p in slots("0-1", 1, 1, 1)] == ["6", "GPU-7f"]


def test_threads_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sam_repro.sweep.slots.cores", lambda: 16)
    assert [place.threads for place in slots(None, 1, cpu_slots=3, ranks=1)] == [5, 5, 5]
    assert [place.threads for place in slots("0-1", per_gpu=2, cpu_slots=1, ranks=1)] == [4] * 4
    assert slots("0-3", per_gpu=1, cpu_slots=1, ranks=4)[0].threads == 4
    assert slots(None, 1, cpu_slots=64, ranks=1)[0].threads == 1


def test_words() -> None:
    options = parse(["table=asam/2", "gpus=0-1", "per_gpu=3", "stale=60", "runtime.ranks=2", "track=none", "--dry-run"])
    assert (options.gpus, options.per_gpu, options.stale, options.ranks) == ("0-1", 3, 60.0, 2)
    assert options.overrides == ["runtime.ranks=2", "track=none"]
    assert options.dry_run
    assert parse(["asam/2", "table=asam/5", "table=rsam/1"]).table == "asam/2,asam/5,rsam/1", "none is dropped"
    assert parse(["asam/2", "cells=*/sam", "cells=*/sgd"]).patterns == ["*/sgd"], "the later counts"
    assert parse(["asam/2", "results_dir=~/x"]).results == Path.home() / "x"
    assert parse(["table=x", "launcher=slurm", "hydra.launcher.partition=gpu"]).submit == {"partition": "gpu"}


SMOKE = ["table=asam/2", "budget=smoke"]
MISTAKES = {
    "nothing": (["budget=smoke"], "table: name one"),
    "table": (["table=asam/22"], "unknown table 'asam/22': did you mean 'asam/2'?"),
    "cell": ([*SMOKE, "cells=resnet21/sam"], "cells=resnet21/sam: no cell matches"),
    "budget": (["table=asam/2", "budget=smok"], "Did you mean 'smoke'?"),
    "override": ([*SMOKE, "loop.batchsize=3"], "loop.batchsize: there is no such key"),
    "value": ([*SMOKE, "loop.batch_size=-3"], "loop.batch_size must be at least 1"),
    "seed": ([*SMOKE, "seed=1"], "budget.seeds"),
    "seed with a plus": ([*SMOKE, "++seed=1"], "budget.seeds"),
    "force with a plus": ([*SMOKE, "+force=true"], "force"),
    "hydra with a plus": ([*SMOKE, "+hydra.callbacks.x={_target_: os.system}"], "hydra.callbacks.x: not in a sweep"),
    "code": ([*SMOKE, "+model.x={_target_: os.system}"], "calls no code"),
    "force": ([*SMOKE, "force=true"], "force"),
    "a study's table": (["table=asam/1"], "there is nothing to train"),
    "gpus": ([*SMOKE, "gpus=3-1"], "gpus=3-1"),
    "no gpu here": ([*SMOKE, "gpus=0-1"], "gpus=0-1: this machine shows no GPU"),
    "a gpu twice": ([*SMOKE, "gpus=0,0"], "per_gpu=2"),
    "ranks": ([*SMOKE, "gpus=0-2", "runtime.ranks=2"], "does not divide"),
    "slots": ([*SMOKE, "slots=0"], "slots must be a whole number"),
    "both": ([*SMOKE, "slots=2", "gpus=0"], "per_gpu"),
    "stale": ([*SMOKE, "stale=soon"], "stale must be a number"),
    "flag": ([*SMOKE, "--dryrun"], "Did you mean '--dry-run'?"),
    "two columns": (
        [*SMOKE, "column=a:method=sam", "column=b:method=asam"],
        "there is one already, a",
    ),
    "a column's seed": ([*SMOKE, "column=a:method=sam,seed=4"], "budget.seeds"),
    "a column's folder": ([*SMOKE, "column=a:method=sam,results_dir=x"], "outside of the column"),
    "a column's name": ([*SMOKE, "column=my col:method=sam"], "a name has letters, digits"),
    "shards": ([*SMOKE, "cells=resnet20/sam", "method.m=7"], "method.m is 7 and must divide loop.batch_size=128"),
    "launcher": ([*SMOKE, "launcher=kubernetes"], "local and slurm"),
    "launcher's key": (
        [*SMOKE, "launcher=slurm", "hydra.launcher.partitoin=x"],
        "Did you mean 'hydra.launcher.partition'?",
    ),
    "data": ([*SMOKE, "dataset.root=nowhere"], "the files of cifar10"),
    "results folder": ([*SMOKE, "results_dir=/proc/1/nothing"], "results_dir=/proc/1/nothing: can't write"),
    "results file": ([*SMOKE, "results_dir=file/results"], "choose another folder"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_and_nothing_is_written(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words, message = MISTAKES[mistake]
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    Path("file").touch()
    assert main(words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_dry_run_prints_commands_and_writes_nothing(tmp_path: Path) -> None:
    words = [*SMOKE, "cells=resnet20/*", "results_dir=a b", "--dry-run"]
    code = (
        "import sys; from sam_repro.sweep.__main__ import main\n"
        "code = main(sys.argv[1:]); print('torch' in sys.modules, code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True,
        env={"PATH": "/usr/bin", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[0] == "3 runs, 0 done, 3 to train"
    assert [line.split(" (")[0] for line in lines if line.startswith("#")] == [
        f"# asam/2 resnet20 {method} seed 0" for method in ("sgd", "sam", "asam")
    ]
    assert lines[2].startswith("python -m sam_repro +experiment=asam_cifar10_resnet20 ")
    assert lines[-1] == "False 0"  # and torch was not imported
    assert not list(tmp_path.iterdir())


def test_the_dry_runs_command_is_the_run(tmp_path: Path) -> None:
    """The quoting goes through a shell and through Hydra, and the id is the planned one."""
    words = [*SMOKE, "cells=resnet20/sam", "results_dir=a ='b", "--dry-run"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "sweep.py"), *words],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    head, line = done.stdout.splitlines()[-2:]
    shown = subprocess.run(
        line.replace("python", sys.executable, 1) + " --cfg job", shell=True, cwd=tmp_path, capture_output=True,
        text=True, timeout=60, check=True, env={"PATH": "/usr/bin", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "results_dir: a ='b" in shown.stdout
    assert head.startswith("# asam/2 resnet20 sam seed 0 (")


def test_a_trained_run_is_judged_on_the_tables_other_test_sets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """rsam/4 is done when it is evaluated; a run that was trained elsewhere, or long ago, is evaluated too."""
    cells = plan([spec.load("rsam/4")])["rsam/4"]
    mine = [cell for cell in cells if cell.cell.row == "vit_b16/sam"]
    finish(tmp_path, mine[0], {0: 79.0})
    words = ["table=rsam/4", "cells=vit_b16/sam/*", f"results_dir={tmp_path}", "dataset.root=/data"]
    assert main([*words, "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "1 runs, 1 done, 0 to train" in out
    name = mine[0].runs[0].id
    assert f"evaluate run={name} 'on=[real,v2,r,c]' results_dir={tmp_path} dataset.root=/data" in out
    entries = of_ledger(tmp_path)
    assert [run.state for run in states(mine[:1], entries, tmp_path)] == ["done"]
    (judged,) = states(mine, entries, tmp_path)
    assert (judged.state, judged.trained) == ("missing", True)
    values = {"last": 1.0, "best": 1.0, "best_epoch": None}
    entries[name]["metrics"] |= {f"imagenet_{test}_accuracy": values for test in ("real", "v2", "r", "c")}
    assert [run.state for run in states(mine, entries, tmp_path)] == ["done"]


def test_a_run_of_more_than_a_day_is_no_miniature(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """ViT-B at the mini budget takes a day on a slow machine; a table with a miniature takes that."""
    monkeypatch.setattr("sam_repro.sweep.__main__.look_for", lambda data: None)
    monkeypatch.setattr("sam_repro.sweep.__main__.found_device", lambda: "cpu")
    monkeypatch.setattr("sam_repro.tables.cost.cores", lambda: 1)
    words = parse(["table=rsam/3", "cells=vit_b16/sam", "budget=mini", f"results_dir={tmp_path}"])
    with pytest.raises(UserError, match=r"rsam/3 vit_b16 sam takes about 3\d hours on cpu, more than a day"):
        sweep(words)
    assert not list(tmp_path.iterdir())


def test_quoting_leaves_plain_paths_alone() -> None:
    assert quoted("results/a-b.c") == "results/a-b.c"


def test_a_mistake_raises_before_slots_are_made() -> None:
    with pytest.raises(UserError, match="per_gpu: name the GPUs too"):
        parse(["table=asam/2", "per_gpu=2"])


def test_what_jobs_run_lies_where_nobody_else_writes(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        assert stat.S_IMODE(private(tmp_path / "results" / "slurm").stat().st_mode) == 0o700
        (tmp_path / "results" / "slurm").chmod(0o777)
        assert stat.S_IMODE(private(tmp_path / "results" / "slurm").stat().st_mode) == 0o700
    finally:
        os.umask(old)
    (tmp_path / "link").symlink_to(tmp_path / "results")
    with pytest.raises(UserError, match="is a link or another user's"):
        private(tmp_path / "link")
