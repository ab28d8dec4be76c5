"""Files of one JSON object a line, as `metrics.jsonl`, `events.jsonl` and the ledger are.

JSON has no NaN and no infinity: they are written as the strings "NaN", "Infinity" and "-Infinity", and `decode` turns
them back into floats. A line that a killed writer left half-written is never valid JSON: its last brace is missing.
"""

from __future__ import annotations

import errno
import json
import math
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from io import BufferedReader
from typing import Any

from sam_repro.files.read import opened

MOST = 1 << 20  # bytes of a line; those of a run have some hundred, those of the ledger some thousand
_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def encode(record: Mapping[str, Any]) -> str:
    """One line, its newline included. Keys keep their order, floats their shortest exact form."""
    return json.dumps(to_json(record), allow_nan=False) + "\n"


def encode_indented(record: Mapping[str, Any]) -> str:
    """A whole file for a person to read, in the same encoding."""
    return json.dumps(to_json(record), allow_nan=False, indent=2) + "\n"


def decode(line: str | bytes) -> dict[str, Any]:
    """The record of one line. Raises ValueError if it is damaged."""
    try:
        record = json.loads(line)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    return {key: _from_json(value) for key, value in record.items()}


def append(descriptor: int, text: str) -> None:
    """Add whole lines at the end of an open file, on a line of their own even if its last line was torn.

    The descriptor must have been opened with O_RDWR | O_APPEND. If the disk is full the file is cut back to what it
    was and the error goes on to the caller.
    """
    size = os.fstat(descriptor).st_size
    torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
    rest = memoryview((("\n" if torn else "") + text).encode())
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, size)
        raise


def open_to_append(path: str | os.PathLike[str]) -> int:
    """A descriptor for `append`. What is no regular file is an OSError, as a folder is."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EEXIST, "is no file", str(path))
    return descriptor


def read_lines(path: str | os.PathLike[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """The records of a file, and one sentence for each line that is damaged. A file that is not there is empty.

    Raises `DamagedError` where no file stands. A line of a hundred megabytes is passed over, not read.
    """
    records, problems = [], []
    try:
        with opened(path) as file:
            for number, line in enumerate(iter(lambda: file.readline(MOST), b""), start=1):
                if not line.strip():
                    continue
                try:
                    records.append(_whole(line, file))
                except (ValueError, RecursionError) as error:
                    problems.append(f"{path} line {number} is damaged and skipped ({type(error).__name__})")
    except FileNotFoundError:
        return [], []
    return records, problems


def _whole(line: bytes, file: BufferedReader) -> dict[str, Any]:
    """The record of a line, of which the file may hold more than was read."""
    if len(line) < MOST or line.endswith(b"\n"):
        return decode(line)
    while (rest := file.readline(MOST)) and not rest.endswith(b"\n"):
        pass
    raise ValueError("too long")


def to_json(value: Any) -> Any:
    """The value with text for what JSON has not."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def _from_json(value: Any) -> Any:
    if isinstance(value, str):
        return _NON_FINITE.get(value, value)
    if isinstance(value, dict):
        return {key: _from_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_from_json(item) for item in value]
    return value
