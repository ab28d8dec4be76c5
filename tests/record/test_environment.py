"""env.json says what is true, and nothing makes it fail."""

import json
import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from sam_repro.record.environment import environment, git_state, in_history


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@t", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_what_is_in_it() -> None:
    env = environment(gpus=["A100"], ranks=2, device="cuda")
    assert json.loads(json.dumps(env)) == env
    assert env["packages"]["wandb"] == metadata.version("wandb")
    assert env["packages"]["torch"] == metadata.version("torch")
    assert env["python"] == platform.python_version()
    assert env["hardware"]["gpus"] == ["A100"]
    assert env["hardware"]["cores"] == len(os.sched_getaffinity(0))
    assert env["hardware"]["memory_gb"] > 0
    assert env["command"] == sys.argv
    assert (env["ranks"], env["device"]) == (2, "cuda")


def test_commit_and_changes_of_a_checkout(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "package").mkdir(parents=True)
    git(tmp_path, "init", "-q", str(checkout))
    (checkout / "package" / "code.py").write_text("a = 1\n")
    (checkout / "configs").mkdir()
    (checkout / "configs" / "sam.yaml").write_text("rho: 0.05\n")
    (checkout / "configs" / "table").mkdir()
    (checkout / "configs" / "table" / "chosen.yaml").touch()
    (checkout / "ledger.jsonl").touch()
    code = (checkout / "package", checkout / "configs")
    git(checkout, "add", ".")
    git(checkout, "commit", "-qm", "first")
    sha = git(checkout, "rev-parse", "HEAD")
    assert git_state(code) == {"sha": sha, "dirty": False}
    (checkout / "results").mkdir()
    (checkout / "results" / "new").write_text("what runs write is not a change of the code")
    assert git_state(code) == {"sha": sha, "dirty": False}
    assert git_state([checkout / "results"]) is None  # inside a repository, but not part of it, as a .venv is
    (checkout / "ledger.jsonl").write_text("a run has ended\n")
    (checkout / "configs" / "table" / "chosen.yaml").write_text("a sweep has chosen\n")
    assert git_state(code) == {"sha": sha, "dirty": False}
    (checkout / "configs" / "sam.yaml").write_text("rho: 0.1\n")
    assert git_state(code) == {"sha": sha, "dirty": True}
    git(checkout, "checkout", "-q", "configs")
    (checkout / "package" / "code.py").write_text("a = 2\n")
    assert git_state(code) == {"sha": sha, "dirty": True}


def test_a_commit_that_was_taken_back_is_not_in_the_history(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    code, commits = tmp_path / "code.py", list[str]()
    for number in range(3):
        code.write_text(f"a = {number}\n")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-qm", str(number))
        commits.append(git(tmp_path, "rev-parse", "HEAD"))
    git(tmp_path, "reset", "-q", "--hard", commits[1])
    assert [in_history(sha, [tmp_path]) for sha in commits] == [True, True, False]
    assert not any(in_history(sha, [tmp_path]) for sha in ("0" * 40, "HEAD", "--octopus", ""))


def test_outside_of_a_checkout_there_is_no_commit(tmp_path: Path) -> None:
    assert git_state([tmp_path]) is None
    assert git_state([tmp_path / "not there"]) is None


def test_nothing_makes_it_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("git") is None
    assert environment()["git"] is None
    broken = tmp_path / "git"
    broken.write_text("#!/bin/sh\necho git has failed; exit 9\n")
    broken.chmod(0o755)
    assert environment()["git"] is None


def test_the_gpus_are_those_of_the_run_not_of_the_machine() -> None:
    assert environment()["hardware"]["gpus"] == []
    assert environment(gpus=["NVIDIA A100"] * 2, ranks=2, device="cuda")["hardware"]["gpus"] == ["NVIDIA A100"] * 2
