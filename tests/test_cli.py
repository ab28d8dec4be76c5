"""One command line: every command by every door, mistakes in one line, a reader who leaves."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from commands import ROOT, TINY, Cli, command, disk_of

from sam_repro import __version__, errors
from sam_repro.cli import COMMANDS, main
from sam_repro.errors import UserError
from sam_repro.words import Words, parse

MISTAKES = {
    "method=asam --help": "--help comes first, as in sam-repro --help or, of a group, sam-repro --help method",
    "budget=smoke method=sam method.m=256": "method.m is 256 and must divide loop.batch_size=128",
    "budget=smoke method=sam_larger method.ascent_batch=64": "must exceed loop.batch_size=128",
    "+experiment=demo +experiment=recipe/grammar": "experiment is said twice: leave one out",
    "--package x --cfg job": "--package: there is no such flag",
    "fetch cifar10 cifar100": "name one data set",
    "fetch imagenet": "--pack makes one file of it, --from FOLDER",
    "evaluate on=cifar10": "run: name the run to evaluate",
    "study spectrum runs=": "runs: name them",
    "report plan asam/2 device=": "device= needs a value",
    "help": "there is no command 'help'. Did you mean '--help'?",
    "repot": "there is no command 'repot'. Did you mean 'report'?",
    "report lst": "there is no report 'lst': did you mean 'list'?",
    "report plan asam/2 --fromat json": "--fromat: there is no such flag. Did you mean '--format'?",
    "report plan asam/2 --format jsn": "--format jsn: did you mean 'json'?",
    "report plan asam/2 --format": "--format needs a value",
    "report plan --json=1": "--json takes no value",
    "report plan asam/2 hours=3": "hours= is no setting of plan",
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


def test_what_may_not_be_written_is_the_users_to_mend(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A real file system that is mounted for reading: whoever runs this may be root, whom no permission stops."""

    @errors.command
    def careless(words: list[str]) -> int:
        return len(Path(words[0], "numbers.json").write_text("{}"))

    with disk_of(tmp_path / "disk", "1m"):
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path / "disk")], check=True)
        assert careless([str(tmp_path / "disk")]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {tmp_path}/disk/numbers.json: read-only file system; ")
    assert said.count("\n") == 1
    with pytest.raises(FileNotFoundError):  # this is not the user's
        careless([str(tmp_path / "nowhere")])


def test_a_full_disk_is_told_as_such_by_what_only_renders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with disk_of(tmp_path / "disk", "16k"):
        assert main(["report", "render", "asam/2", "--results-dir", str(tmp_path / "disk")]) == 74
    said = capsys.readouterr().err
    assert said.startswith("error: the disk is full")
    assert "None" not in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("words", ["iwslt14 --from nowhere", "imagenet --pack --from nowhere"])
def test_fetching_from_nowhere_leaves_nothing(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fetch", *words.split(), "--root", str(tmp_path / "new")]) == 2
    assert "nowhere" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_the_version_is_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith(f"sam_repro {__version__} (Hydra ")


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
    home = parse(["results_dir=~/x", "--out", "~/y", "label=~/z"], {"--out": True})
    assert (home.settings, home.flags) == (
        {"results_dir": f"{Path.home()}/x", "label": "~/z"}, {"--out": f"{Path.home()}/y"},
    )  # fmt: skip


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


@pytest.mark.parametrize(
    ("closed", "ranks"), [("<&- >&- 2>&-", 1), *(pytest.param(c, 2, marks=pytest.mark.slow) for c in (">&-", "2>&-"))]
)
def test_a_run_without_the_usual_files_trains_all_the_same(tmp_path: Path, closed: str, ranks: int) -> None:
    words = shlex.join(command(*TINY, "method.m=8", f"runtime.ranks={ranks}"))
    done = subprocess.run(f"{words} {closed}", shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list(tmp_path.glob("results/runs/*/DONE"))) == 1


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
