"""A process that has imported torch once and forks the command line for whoever asks: most of a short run is imports.

What runs is `sam_repro.cli.main` in a process of its own, with its own folder, environment, output and exit code. The
ranks that it starts are forked too, where a user's are spawned: CUDA would not survive it, and nothing here uses CUDA.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class Nursery:
    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.communicate()

    def run(self, folder: Path, *words: str, seconds: int = 120, **env: str) -> tuple[int, str]:
        """(exit code, what it said)."""
        said = folder / "said.txt"
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([str(folder), str(said), words, env, seconds]), file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline()), said.read_text()


def child(folder: str, said: str, words: list[str], env: dict[str, str]) -> None:
    """As `python -m sam_repro WORDS` in that folder."""
    os.setsid()
    os.chdir(folder)
    os.environ |= env
    sys.path.insert(0, folder)
    sys.argv = ["sam_repro", *words]
    out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number in (1, 2):
        os.dup2(out, number)
    code = 1
    try:
        from sam_repro import launch
        from sam_repro.cli import main

        launch.START = "fork"
        code = main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def serve() -> None:
    import torch._dynamo  # noqa: F401  the first step of any optimizer imports it

    import sam_repro.start
    import sam_repro.train  # noqa: F401

    def late(*_: Any) -> None:
        os.killpg(pid, signal.SIGKILL)

    signal.signal(signal.SIGALRM, late)
    for line in sys.stdin:
        folder, said, words, env, seconds = json.loads(line)
        pid = os.fork()
        if pid == 0:
            child(folder, said, words, env)
        signal.alarm(seconds)
        _, status = os.waitpid(pid, 0)
        signal.alarm(0)
        with suppress(ProcessLookupError):  # a rank that hangs is nobody's afterwards
            os.killpg(pid, signal.SIGKILL)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve()
