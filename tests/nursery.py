"""A process that has imported torch once and forks the command line for whoever asks: most of a short run is imports.

What runs is `sam_repro.cli.main` in a process of its own, with its own session, folder, environment, output and exit
code, to be waited for, signalled and killed as any other. The ranks that it starts are forked too, where a user's are
spawned: CUDA would not survive it, and nothing here uses CUDA. A guardian between the two hands on the process' end.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

CALL = "--call"  # in place of a command's words
STARTUP = 120  # seconds for the imports, on a busy machine


class Started:
    """One of them, with what tests use of `subprocess.Popen`."""

    def __init__(self, door: str, folder: Path, words: tuple[str, ...], env: dict[str, str]) -> None:
        folder.mkdir(exist_ok=True)
        self.words, self.returncode = words, None
        self.files: list[IO[str]] = [tempfile.TemporaryFile("w+") for _ in range(3)]  # noqa: SIM115  they live as long as this
        json.dump([str(folder), words, env], self.files[0])
        self.files[0].flush()
        self.line = socket.socket(socket.AF_UNIX)
        self.line.connect(door)
        socket.send_fds(self.line, [b"!"], [file.fileno() for file in self.files])
        self.told = self.line.makefile("r")
        self.pid = int(self.told.readline())

    returncode: int | None

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self.line], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(list(self.words), timeout or 0)
            self.returncode = int(self.told.readline())
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        self.wait(timeout)
        out, err = (self._said(file) for file in self.files[1:])
        return out, err

    @staticmethod
    def _said(file: IO[str]) -> str:
        file.seek(0)
        return file.read()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def end(self) -> None:
        """Whatever of it is left: a rank that hangs is nobody's afterwards."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


class Nursery:
    def __enter__(self) -> Self:
        self.home = tempfile.TemporaryDirectory()
        self.door = f"{self.home.name}/door"
        self.process = subprocess.Popen([sys.executable, __file__, self.door], stdin=subprocess.PIPE)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.communicate()
        self.home.cleanup()

    def start(self, folder: Path, *words: str, **env: str) -> Started:
        ends = time.monotonic() + STARTUP
        while not os.path.exists(self.door):
            assert self.process.poll() is None
            assert time.monotonic() < ends, "torch was not imported in time"
            time.sleep(0.05)
        return Started(self.door, folder, words, {**os.environ, **env})

    def call(self, folder: Path, *words: str, timeout: float = 120, **env: str) -> subprocess.CompletedProcess[str]:
        started = self.start(folder, *words, **env)
        try:
            out, err = started.communicate(timeout)
        finally:
            started.end()
        assert started.returncode is not None
        return subprocess.CompletedProcess(words, started.returncode, out, err)

    def function(self, folder: Path, place: str, *words: str) -> Started:
        """A test's own `module:function` of these words, as a process of its own."""
        return self.start(folder, CALL, place, *words, PYTHONPATH=":".join(filter(None, sys.path)))

    def run(self, folder: Path, *words: str, **env: str) -> tuple[int, str]:
        """(exit code, what it said)."""
        done = self.call(folder, *words, **env)
        return done.returncode, done.stdout + done.stderr


def serve(door: str) -> None:
    before = dict(os.environ)
    import torch._dynamo  # noqa: F401  the first step of any optimizer imports it

    import sam_repro.start
    import sam_repro.train  # noqa: F401

    imported = {name: value for name, value in os.environ.items() if before.get(name) != value}
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # guardians leave nothing
    with socket.socket(socket.AF_UNIX) as calls:
        calls.bind(f"{door}.new")
        calls.listen()
        os.rename(f"{door}.new", door)
        while True:
            ready, _, _ = select.select([calls, sys.stdin], [], [])
            if calls not in ready:
                return  # the tests are over
            call, _ = calls.accept()
            if os.fork() == 0:
                guard(call, imported)
            call.close()


def guard(call: socket.socket, imported: dict[str, str]) -> None:
    """`imported`: what imports set in the environment."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, (request, *outputs), *_ = socket.recv_fds(call, 1, 3)
    os.lseek(request, 0, os.SEEK_SET)
    with open(request) as file:
        folder, words, env = json.load(file)
    pid = os.fork()
    if pid == 0:
        call.close()
        child(folder, words, imported | env, outputs)
    call.sendall(f"{pid}\n".encode())
    _, status = os.waitpid(pid, 0)
    with suppress(OSError):  # nobody waits any more
        call.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def child(folder: str, words: list[str], env: dict[str, str], outputs: list[int]) -> None:
    """As `python -m sam_repro WORDS` in that folder."""
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.path[:0] = [folder, *filter(None, env.get("PYTHONPATH", "").split(":"))]
    sys.argv = ["sam_repro", *words]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, file in enumerate((nothing, *outputs)):
        os.dup2(file, number)
    code = 1
    try:
        from sam_repro import launch
        from sam_repro.cli import main

        launch.START = "fork"
        code = called(*words[1:]) if words[:1] == [CALL] else main()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def called(place: str, *words: str) -> int:
    module, _, function = place.partition(":")
    getattr(importlib.import_module(module), function)(*words)
    return 0


if __name__ == "__main__":
    serve(sys.argv[1])
