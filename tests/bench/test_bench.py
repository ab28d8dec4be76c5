"""Every benchmark at its smallest prints what it documents; the ratios that are robust are held by slow tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import ROOT
from every import METHODS

from sam_repro.bench import commands as bench
from sam_repro.bench import start as bench_start
from sam_repro.bench import step as bench_step
from sam_repro.bench import train as bench_train
from sam_repro.bench import update as bench_update
from sam_repro.bench.timing import Bar, ratio, stopwatch, take_turns
from sam_repro.methods.factory import read

TINY = ["--model", "resnet8", "--batch", "4", "--rounds", "1"]


def printed(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "bench.py"), *arguments, "--json"], cwd=ROOT, capture_output=True,
        text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def check_common(result: dict[str, Any], name: str) -> None:
    assert result["bench"] == name
    assert {"cpu", "threads", "torch", "python"} <= set(result["hardware"])
    assert result["bars"]
    for bar in result["bars"]:
        assert set(bar) == {"what", "measured", "bar", "at_least", "met"}
        assert bar["met"] == (bar["measured"] >= bar["bar"] if bar["at_least"] else bar["measured"] <= bar["bar"])


def check_step(result: dict[str, Any], names: Sequence[str]) -> None:
    assert list(result["ratios"]) == list(result["milliseconds"]) == ["loop", *names]
    assert result["ratios"]["plain"] == 1
    assert result["rounds"] == 1
    assert result["passes"]["sam"] == 2
    assert result["passes"]["sam_full"] == bench_step.BATCHES + 1
    assert [bar["what"] for bar in result["bars"]] == [
        "SAM step / SGD step",
        *(f"{name} step / (its passes x SGD's)" for name in names[1:]),
    ]


@pytest.mark.timing
def test_step_measures_methods_beside_plain_sgd() -> None:
    result = bench_step.run("resnet8", rounds=1, batch=4, names=["sam", "looksam", "sam_full"])
    check_step(result, ["plain", "sam", "looksam", "sam_full"])
    assert result["ratios"]["looksam"] < 3  # of one step; its cadence of five takes more than six plain ones
    assert result["ratios"]["sam_full"] > 3


@pytest.mark.parametrize("method", ["sam", "asam", "fsam", "looksam"])
def test_an_update_takes_the_memory_that_a_plan_counts(method: str) -> None:
    """In vectors of the model's size, where every method copies; a geometry works through one tensor more at a time."""
    layout = [(f"weight{i}", (64, 64)) for i in range(40)]
    make = bench_update.ours(method, swap=False)
    # On a busy machine torch's profiler may lose its first events, so that a measurement is too small, never too large.
    taken = max(bench_update.Contender(layout, make).bytes_a_parameter() for _ in range(3))
    assert round(taken) == 4 * read(method).vectors()


@pytest.mark.slow
def test_step_measures_every_kind_of_method() -> None:
    result = printed("step", *TINY)
    check_common(result, "step")
    assert set(bench_step.METHODS) == set(METHODS)
    check_step(result, bench_step.METHODS)


@pytest.mark.slow
def test_train_gives_each_contestant_a_process() -> None:
    assert bench_train.peer("resnet8", 4, "cpu")() > 0
    with bench_train.Worker(bench_train.OURS, "resnet8", 4, "cpu") as ours:
        assert ours._process.pid != os.getpid()
        assert all(0 < ours() < 60 for _ in range(2))
    assert ours._process.returncode == 0


def test_a_contestant_that_dies_is_told() -> None:
    with bench_train.Worker("nobody", "resnet8", 4, "wall") as nobody, pytest.raises(RuntimeError, match="code 2"):
        nobody()


@pytest.mark.slow
def test_train_prints_what_it_documents() -> None:
    result = printed("train", *TINY)
    check_common(result, "train")
    assert list(result["ratios"]) == ["pytorch_optimizer", "pytorch_optimizer, malloc tuned"]
    assert set(result["milliseconds"]) == {"ours", *result["ratios"]}
    assert "fp32" in result["settings"]["pytorch_optimizer"]
    assert "malloc tuned" in result["settings"]["ours"]


@pytest.mark.timing
def test_start_times_commands_and_looks_for_torch() -> None:
    result = bench_start.run(rounds=1, names=["nothing", "--help", "a mistake"])
    assert list(result["median_seconds"]) == list(result["ratios"]) == ["nothing", "--help", "a mistake"]
    assert result["ratios"]["nothing"] == 1
    assert [bar["bar"] for bar in result["bars"]] == [0.3, 0.5, 0]
    assert not any(result["imports_torch"].values())


def test_the_look_for_torch_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").touch()
    (tmp_path / "guilty.py").write_text("import torch")
    (tmp_path / "innocent.py").touch()
    monkeypatch.chdir(tmp_path)
    for name in ("guilty", "innocent"):
        monkeypatch.setitem(bench_start.COMMANDS, name, (["-m", name], None))
        assert bench_start.imports_torch(name) == (name == "guilty")


@pytest.mark.slow
def test_start_prints_what_it_documents() -> None:
    result = printed("start", "--rounds", "1")
    check_common(result, "start")
    assert list(result["median_seconds"]) == ["nothing", "--help", "--cfg job", "a mistake", "plan of every table"]
    assert not any(result["imports_torch"].values())
    assert all(result["min_seconds"][name] <= median for name, median in result["median_seconds"].items())


def test_the_bars_of_the_update_are_about_wrn_28_10() -> None:
    def measured(times: float, used: float, ratio_: float = 1.0) -> dict[str, Any]:
        extra = {f"{name}: {how}": used for name in bench.UPDATE for how in ("ours", "ours, copying")}
        faster = {name: {"times faster": times} for name in bench.UPDATE}
        to_sgd = {f"{name}: ours": ratio_ for name in bench.UPDATE}
        one = {"ours against pytorch_optimizer": faster, "bytes a parameter": extra, "ratio to sgd": to_sgd}
        return {"wrn-28-10": one, "vit-b-16": {"ratio to sgd": to_sgd}}

    def missed(tuned: dict[str, Any], plain: dict[str, Any]) -> list[str]:
        bars = bench.update_bars({"malloc tuned": tuned, "malloc as it comes": plain})
        return [bar.what for bar in bars if not bar.met]

    assert missed(measured(2.5, 0.04), measured(6.0, 9.0)) == []
    assert missed(measured(2.1, 0.0), measured(6.0, 0.0)) == [
        f"{name} update, times faster, malloc tuned" for name in ("sam", "fsam")
    ]
    assert missed(measured(9.0, 4.0), measured(9.0, 0.0)) == [
        f"{n}: ours, extra bytes a parameter" for n in ("sam", "asam")
    ]
    assert missed(measured(9.0, 0.0, 1.4), measured(9.0, 0.0, 0.9)) == [
        f"{name} update on {model}, times torch's default SGD step, malloc tuned"
        for name, model in (("sam", "wrn-28-10"), ("fsam", "wrn-28-10"), ("sam", "vit-b-16"))
    ]
    assert bench.update_bars({"malloc tuned": {}, "malloc as it comes": {}}) == []


@pytest.mark.proof
def test_update_and_input_print_their_bars() -> None:
    for name, arguments, bars in (("update", ["--model", "wrn-28-10"], 16), ("input", [], 2)):
        result = printed(name, "--rounds", "1", *arguments)
        check_common(result, name)
        assert len(result["bars"]) == bars


# On one thread and by CPU time, so that whatever else runs does not decide.
QUIET = ["--clock", "cpu", "--rounds", "3"]


@pytest.mark.proof
def test_a_sam_step_costs_two_sgd_steps() -> None:
    """The passes alone are 2.00. Of three rounds the ratio is known to a percent, of nine to half of one."""
    assert printed("step", "--methods", "plain,sam", *QUIET, "--rounds", "9")["ratios"]["sam"] <= bench_step.AT_MOST


@pytest.mark.proof
def test_the_default_step_beats_a_plain_fp32_loop() -> None:
    assert printed("train", *QUIET)["ratios"]["pytorch_optimizer"] >= bench_train.AT_LEAST


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["trian"], "did you mean 'train'?"),
        (["step", "--rounds", "0"], "--rounds must be at least 1"),
        (["start", "--model", "resnet18"], "--model means nothing to start"),
        (["input", "--clock", "cpu"], "--clock means nothing to input"),
        (["update", "--model", "resnet18"], "resnet-18"),
        (["step", "--model", "resnet19"], "resnet18"),
        (["step", "--methods", "plain,asm"], "asam"),
        (["train", "--model", "resnet19"], "resnet18"),
        (["ranks", "--methods", "sam,asm"], "asm: ranks measures plain, sam"),
        (["ranks", "--batch", "6"], "a multiple of 4"),
    ],
)
def test_mistakes_are_one_line_and_code_2(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert says in err
    assert err.count("\n") == 1


def test_turns_rotate_and_the_warm_up_is_thrown_away() -> None:
    log: list[str] = []

    def contestant(name: str) -> Any:
        def turn() -> float:
            log.append(name)
            return float(len(log))

        return turn

    taken = take_turns({name: contestant(name) for name in "abc"}, rounds=3, warmup=1)
    assert "".join(log) == "cab" + "abc" + "bca" + "cab"
    assert taken == {"a": [4, 9, 11], "b": [5, 7, 12], "c": [6, 8, 10]}


def test_a_disturbed_round_does_not_move_the_ratio() -> None:
    assert ratio([2.0, 20.0, 2.2], [1.0, 10.0, 1.1]) == pytest.approx(2.0)
    assert ratio([2.0, 2.0, 90.0], [1.0, 1.0, 1.0]) == 2.0


def test_a_stopwatch_measures_the_job() -> None:
    import time

    assert 0.02 <= stopwatch(lambda: time.sleep(0.02))() < 2
    assert stopwatch(lambda: time.sleep(0.02), "cpu")() < 0.01


def test_bars_say_whether_they_are_met() -> None:
    assert not Bar("x", 2.04, 2.03, at_least=False).met
    assert Bar("x", 1.7, 1.7, at_least=True).met
    assert str(Bar("x", 1.5, 1.7, at_least=True)) == "MISSED x: 1.5, at least 1.7"
