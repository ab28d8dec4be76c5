"""Files are whole or absent, whatever happens to the writer and the disk."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sam_repro.files.atomic import open_atomic, remove_leftovers, write_atomic


def test_text_and_bytes_replace_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, "line\r\nümlaut\n")
    assert path.read_bytes() == "line\r\nümlaut\n".encode()
    write_atomic(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert os.listdir(tmp_path) == ["file"]


def test_a_reader_of_the_old_content_is_not_disturbed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"old" * 100_000)
    with open(path, "rb") as reader:
        assert reader.read(3) == b"old"
        write_atomic(path, b"new" * 100_000)
        assert reader.read() == b"old" * 99_999
    assert path.read_bytes() == b"new" * 100_000


def test_others_may_read_the_file_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_atomic(tmp_path / "file", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


def test_an_exception_keeps_the_old_content_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, "old")

    def write_half() -> None:
        with open_atomic(path) as file:
            file.write(b"half of the ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_missing_folder_is_an_error_and_stays_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomic(tmp_path / "none" / "file", "x")
    assert os.listdir(tmp_path) == []


def test_a_full_disk_keeps_the_old_content_and_leaves_nothing_behind(small_disk: Path) -> None:
    path = small_disk / "checkpoint"
    write_atomic(path, b"a" * 20_000)
    with pytest.raises(OSError, match="No space left"):
        write_atomic(path, b"b" * 60_000)
    assert path.read_bytes() == b"a" * 20_000
    assert os.listdir(small_disk) == ["checkpoint"]


def test_a_killed_writer_leaves_the_old_or_the_new_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    script = (
        "import itertools, sys\n"
        "from sam_repro.files.atomic import write_atomic\n"
        "for number in itertools.count():\n"
        "    write_atomic(sys.argv[1], bytes([number % 256]) * 2_000_000)\n"
    )
    for wait in (0.0, 0.013, 0.029):
        writer = subprocess.Popen([sys.executable, "-c", script, str(path)])
        while not path.exists():
            assert writer.poll() is None
            time.sleep(0.001)
        time.sleep(wait)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        content = path.read_bytes()
        assert len(content) == 2_000_000
        assert len(set(content)) == 1
    remove_leftovers(tmp_path)
    assert os.listdir(tmp_path) == ["file"]
