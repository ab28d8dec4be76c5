"""Reading files that may be anything: a run folder was written by this program, and who knows by whom since.

Whatever stands in a file's place (a folder, a pipe, gigabytes, bytes that are no text, values nested a thousand deep,
YAML aliases that multiply), the caller gets its content or one exception, at once: FileNotFoundError where there is
nothing, `DamagedError` for all the rest.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from typing import Any

import yaml

from sam_repro.errors import UserError
from sam_repro.files.strict import Loader

Path = str | os.PathLike[str]

MOST = 1 << 26  # bytes of a file that is read whole as JSON or YAML; those of a run folder have some thousand
DEEPEST = 64  # levels of YAML; a configuration has four
# What the parsers raise for a text that is not theirs.
_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError, yaml.YAMLError)


class DamagedError(UserError):
    """A file that can't be read, or holds something else than it should. The message is one line: the path and why."""


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    """A regular file, open for reading. To open a pipe would wait for its writer, so the opening never waits."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a path that holds a zero
        raise DamagedError(f"{path!s} can't be read ({getattr(error, 'strerror', None) or error})") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DamagedError(f"{path!s} is no file")
    with os.fdopen(descriptor, "rb") as file:
        yield file


def read_bytes(path: Path, most: int = MOST) -> bytes:
    with opened(path) as file:
        try:
            content = file.read(most + 1)
        except OSError as error:
            raise DamagedError(f"{path!s} can't be read ({error.strerror})") from None
    if len(content) > most:
        raise DamagedError(f"{path!s} has more than {most} bytes")
    return content


def read_text(path: Path, most: int = MOST) -> str:
    try:
        return read_bytes(path, most).decode()
    except UnicodeDecodeError:
        raise DamagedError(f"{path!s} is no text in UTF-8") from None


def read_json(path: Path) -> Any:
    text = read_text(path)
    try:
        return json.loads(text)
    except _UNREADABLE as error:
        raise DamagedError(f"{path!s} is no JSON ({_why(error)})") from None


def read_yaml(path: Path) -> Any:
    """Plain values. Aliases are refused: the few lines of a bomb become billions of values when somebody walks them."""
    text = read_text(path)
    try:
        depth = 0
        for event in yaml.parse(text, Loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > DEEPEST:
                raise ValueError("aliases" if depth <= DEEPEST else "nested too deep")
        return yaml.load(text, Loader)
    except _UNREADABLE as error:
        raise DamagedError(f"{path!s} is no YAML that can be used ({_why(error)})") from None


def _why(error: Exception) -> str:
    """The kind of what went wrong and its first words: a parser's message shows pieces of the file, on many lines."""
    text = str(error).partition("\n")[0]
    if isinstance(error, yaml.MarkedYAMLError) and error.problem and error.problem_mark:
        text = f"line {error.problem_mark.line + 1}: {error.problem}"
    words = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join([type(error).__name__, *words[:80].split()])
