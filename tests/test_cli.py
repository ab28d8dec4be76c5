"""One command line: every command by every door, mistakes in one line, a reader who leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from commands import ROOT, TINY, Cli, command

from sam_repro.cli import COMMANDS, main
from sam_repro.errors import UserError
from sam_repro.words import Words, parse

MISTAKES = {
    "help": "there is no command 'help'. Did you mean '--help'?",
    "repot": "there is no command 'repot'. Did you mean 'report'?",
    "report lst": "there is no report 'lst': did you mean 'list'?",
    "report plan asam/2 --fromat json": "--fromat: there is no such flag. Did you mean '--format'?",
    "report plan asam/2 --format jsn": "--format jsn: did you mean 'json'?",
    "report plan asam/2 --format": "--format needs a value",
    "report plan --json=1": "--json takes no value",
    "study toi": "no study 'toi', did you mean 'toy'?",
    "study toy --jsn": "--jsn: there is no such flag. Did you mean '--json'?",
    "study toy sam": "'sam' is not KEY=VALUE",
    "bench trian": "no bench 'trian', did you mean 'train'?",
    "bench step --clock cup": "--clock cup: did you mean 'cpu'?",
    "bench step --batch 1": "--batch must be at least 2",
    "fetch cifar11": "there is no data set 'cifar11' to fetch: did you mean 'cifar10'?",
    "fetch cifar10 --from nmp": "--from nmp: did you mean 'npm'?",
    "sweep table": "table: write KEY=VALUE",
    "evaluate rnu=3": "rnu: there is no such option. Did you mean 'run'?",
    "evaluate --run=3": "--run: there is no such flag. There are --help",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_one_line_whichever_the_command(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["sam-repro"])
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert MISTAKES[words] in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_every_command_has_help_and_needs_no_torch_for_it(name: str, tmp_path: Path) -> None:
    code = "import sys; from sam_repro.cli import main; code = main(sys.argv[1:]); assert 'torch' not in sys.modules"
    done = subprocess.run(
        [sys.executable, "-c", code, *name.split(), "--help"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"sam-repro {name if name != 'train' else '[train]'}" in done.stdout
    assert "scripts/" not in done.stdout


@pytest.mark.parametrize(
    ("door", "says"),
    [
        (["-m", "sam_repro", "report", "list"], "asam/2"),
        (["-m", "sam_repro.report", "list"], "asam/2"),
        (["-m", "sam_repro.sweep", "--help"], "sam-repro sweep table="),
        (["-m", "sam_repro.study", "--help"], "sam-repro study"),
        (["-m", "sam_repro.evaluate", "--help"], "sam-repro evaluate"),
        (["-m", "sam_repro.data.fetch", "--help"], "sam-repro fetch"),
        ([str(ROOT / "scripts" / "sweep.py"), "--help"], "sam-repro sweep table="),
        ([str(ROOT / "scripts" / "fetch_data.py"), "--help"], "sam-repro fetch"),
        ([str(ROOT / "scripts" / "bench.py"), "--help"], "sam-repro bench"),
    ],
)
def test_every_door_leads_to_its_command(door: list[str], says: str) -> None:
    done = subprocess.run([sys.executable, *door], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout


@pytest.mark.parametrize(
    "words",
    [["results_dir=a\nb"], ["sweep", "table=asam/2", "launcher=slurm", "hydra.launcher.partition=a\ntouch b"],
     ["report", "status", "results_dir=a\x1b[2J"]],
)  # fmt: skip
def test_a_line_break_in_a_value_is_refused_at_the_door(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job's script would run what stands behind it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["sam-repro"])
    assert main(words) == 2
    key = words[-1].partition("=")[0]
    err = capsys.readouterr().err
    assert err == f"error: {key!r}: a line break or another control character is in its value\n"
    assert not list(tmp_path.iterdir())


def test_words() -> None:
    given = parse(["a", "k=v=w", "--flag", "1", "--on", "b=c"], {"--flag": True, "--on": False}, settings=("k",))
    assert given == Words(["a", "b=c"], {"k": "v=w"}, {"--flag": "1", "--on": ""})
    assert parse(["b=c", "--flag=1=2"], {"--flag": True}) == Words([], {"b": "c"}, {"--flag": "1=2"})
    with pytest.raises(UserError, match="Did you mean '--flag'"):
        parse(["--flg"], {"--flag": True})


@pytest.mark.parametrize("words", [["--help"], ["report", "claims"], ["--cfg", "job"], ["seed=x"]])
def test_a_reader_who_leaves_is_no_error(words: list[str], tmp_path: Path) -> None:
    """As after `| true`: both streams' reader is gone before anything is written."""
    read, write = os.pipe()
    os.close(read)
    seen = tmp_path / "stderr"
    with open(seen, "wb") as stderr:
        out = write if words != ["seed=x"] else subprocess.DEVNULL
        err = stderr if words != ["seed=x"] else write
        code = subprocess.run(command(*words), cwd=tmp_path, stdout=out, stderr=err).returncode
    os.close(write)
    assert code == (2 if words == ["seed=x"] else 0)
    assert seen.read_bytes() == b""


@pytest.mark.slow
def test_a_run_goes_on_without_its_reader(tmp_path: Path, cli: Cli) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command(*TINY, "budget.max_epochs=1"), cwd=tmp_path, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "already done" in cli(*TINY, "budget.max_epochs=1").stdout


def test_more_threads_than_the_system_makes_are_refused(cli: Cli, tmp_path: Path) -> None:
    done = cli(*TINY, "runtime.threads=100000")
    assert done.returncode == 2
    assert done.stderr.startswith("error: runtime.threads=100000: this machine has ")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_multirun_says_which_job_is_which(cli: Cli) -> None:
    done = cli("-m", *TINY, "budget.max_epochs=1", "seed=3,4")
    assert done.returncode == 0, done.stderr
    jobs = [line for line in done.stdout.splitlines() if line.startswith("job ")]
    assert [(line.split(":")[0], "seed=3" in line, "seed=4" in line) for line in jobs] == [
        ("job 0", True, False),
        ("job 1", False, True),
    ]


def ranks_of(parent: int) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(parent).children():
        with suppress(psutil.Error):
            found += [child] if "spawn_main" in " ".join(child.cmdline()) else []
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_ranks_start_ends_without_a_traceback(number: int, tmp_path: Path) -> None:
    process = subprocess.Popen(
        command(*TINY, "schedule.epochs=3000", "budget.max_epochs=3000", "runtime.ranks=2", "method.m=8"),
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    while len(ranks := ranks_of(process.pid)) < 2:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    listening = [c for c in psutil.Process(process.pid).net_connections() if c.status == psutil.CONN_LISTEN]
    assert [c.laddr.ip for c in listening] == ["127.0.0.1"]
    os.killpg(process.pid, number)
    _, err = process.communicate(timeout=100)
    assert process.returncode == 75, err
    assert "Traceback" not in err
    assert not any(rank.is_running() for rank in ranks)
