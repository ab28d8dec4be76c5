"""env.json: on what a run ran. Never fails: what can't be found out is null. Imports no torch."""

from __future__ import annotations

import os
import platform
import re
import socket
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from sam_repro import CONFIGS
from sam_repro.machine import cores, cpu

_PACKAGE = "sam-repro"
_CODE = (Path(__file__).resolve().parents[1], CONFIGS)  # what a run is made by
_ABOUT_RUNS = ("table", "figure", "study")  # configurations that say which runs there are; no run reads them


def environment(*, gpus: Sequence[str] = (), ranks: int = 1, device: str | None = None) -> dict[str, Any]:
    """The content of env.json.

    gpus    names of the devices that the run uses, one a rank
    ranks   processes of the run
    device  as the run resolved it ("cpu", "cuda")
    """
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": list(sys.argv),
        "host": socket.gethostname(),
        "ranks": ranks,
        "device": device,
        "hardware": {
            "gpus": list(gpus),
            "cpu": cpu(),
            "cores": cores(),
            "memory_gb": _memory_gb(),
        },
        "os": platform.platform(),
        "python": platform.python_version(),
        "packages": package_versions(),
        "git": git_state(),
    }


def package_versions() -> dict[str, str | None]:
    """The installed version of this package and of each direct dependency, null where one is missing."""
    try:
        requirements = metadata.requires(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        requirements = []
    names = {_PACKAGE, "torch"}
    for requirement in requirements:
        if "extra ==" not in requirement:
            names.add(re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0])
    return {name: _version(name) for name in sorted(names)}


def git_state(code: Sequence[Path] = _CODE) -> dict[str, Any] | None:
    """Commit of the checkout that the code runs from, and whether its tracked files were changed; null outside of one.

    Of the code and the configs alone: a run that adds its line to the ledger does not change how the next one is made,
    nor does a sweep that writes down what a table's trials chose.
    """
    folder, places = code[0], [str(place) for place in code]
    places += [
        f":(exclude){configs / room}" for configs in code[1:] for room in _ABOUT_RUNS if (configs / room).is_dir()
    ]
    # An installed wheel may lie inside somebody's repository (a .venv): only a tracked source file makes a checkout.
    if _git(folder, "ls-files", "--error-unmatch", ".") is None:
        return None
    sha = _git(folder, "rev-parse", "HEAD")
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", *places)
    return {"sha": sha, "dirty": bool(changes) if changes is not None else None} if sha else None


def in_history(sha: str, code: Sequence[Path] = _CODE) -> bool:
    """Whether that commit can be looked up in the checkout that the code runs from, and leads to what is there."""
    if not re.fullmatch(
        "[0-9a-f]{40}", sha
    ):  # it may come from outside, and git takes what looks like an option for one
        return False
    return _git(code[0], "merge-base", "--is-ancestor", sha, "HEAD") is not None


def _git(folder: Path, *arguments: str) -> str | None:
    return _output("git", "-C", str(folder), *arguments)


def _output(*command: str) -> str | None:
    """What a command prints; null if it is not there, fails or hangs."""
    variables = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL, env=variables, check=True
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout.strip()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (OSError, ValueError):
        return None
