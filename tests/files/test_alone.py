"""A lock that works where flock does not."""

import errno
import fcntl
import multiprocessing
import os
import time
from pathlib import Path

import pytest

from sam_repro.files.alone import alone


def _enter(path: Path, log: Path) -> None:
    with alone(path):
        for word in ("in", "out"):
            with log.open("a") as file:
                file.write(f"{word} {os.getpid()}\n")
            time.sleep(0.1)


@pytest.mark.parametrize("answer", [None, errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
@pytest.mark.filterwarnings("ignore:flock not supported")
def test_one_at_a_time_whatever_flock_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: int | None
) -> None:
    def no_flock(*_: object) -> None:
        raise OSError(answer, "no locks here")

    if answer is not None:
        monkeypatch.setattr(fcntl, "flock", no_flock)
    context = multiprocessing.get_context("fork")
    log = tmp_path / "log"
    both = [context.Process(target=_enter, args=(tmp_path / ".lock", log)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(30)
        assert process.exitcode == 0
    lines = [line.split() for line in log.read_text().splitlines()]
    assert [word for word, _ in lines] == ["in", "out", "in", "out"]
    assert lines[0][1] == lines[1][1] != lines[2][1]


def test_another_trouble_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "the disk")

    monkeypatch.setattr(fcntl, "flock", broken)
    with pytest.raises(OSError, match="the disk"), alone(tmp_path / ".lock"):
        raise AssertionError("entered")
