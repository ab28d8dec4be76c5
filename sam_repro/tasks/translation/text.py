"""Parallel text: two files whose lines belong together, plain or gzip. What is wrong is said with file and line."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Sequence
from pathlib import Path

from sam_repro.errors import UserError
from sam_repro.files.read import opened

SPLITS = ("train", "valid", "test")
MOST = 1 << 32  # bytes of a file once unpacked: a small archive may hold endless zeros

Pairs = tuple[list[str], list[str]]


def find(root: Path, split: str, language: str) -> Path:
    """`split.language` or `split.language.gz` in the folder."""
    text = root / f"{split}.{language}"
    packed = text.with_name(text.name + ".gz")
    for path in (text, packed):
        if path.is_file():
            return path
    raise UserError(f"{text} is missing, and so is {packed.name}: a corpus has {'|'.join(SPLITS)} in both languages")


def lines_of(path: Path) -> list[str]:
    """Of a file in UTF-8. A line ends at a line feed and nowhere else: other separators belong to the text."""
    return decoded(content_of(path), path)


def content_of(path: Path) -> bytes:
    with opened(path) as file:
        try:
            if path.suffix != ".gz":
                content = file.read(MOST + 1)
            else:
                with gzip.open(file) as unpacked:
                    content = unpacked.read(MOST + 1)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise UserError(f"{path} is no whole gzip file ({error})") from None
    if len(content) > MOST:
        raise UserError(f"{path} holds more than {MOST} bytes")
    return content


def decoded(content: bytes, path: Path | str) -> list[str]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} line {content.count(10, 0, error.start) + 1} is no UTF-8") from None
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    if not lines:
        raise UserError(f"{path} is empty: it has no line 1")
    return [line.removesuffix("\r") for line in lines]


def digest(root: Path, languages: Sequence[str]) -> str:
    """Of a corpus' lines, packed or not."""
    found = hashlib.sha256()
    for split in SPLITS:
        for language in languages:
            found.update(f"{split}.{language}\0".encode() + content_of(find(root, split, language)) + b"\0")
    return found.hexdigest()


def read_pairs(source: Path, target: Path) -> Pairs:
    """Two files as they belong together: as many lines, none of them blank."""
    sides = lines_of(source), lines_of(target)
    for path, lines in zip((source, target), sides, strict=True):
        blank = next((number for number, line in enumerate(lines, start=1) if not line.strip()), None)
        if blank:
            raise UserError(f"{path} line {blank} is empty: take the pair out of both files")
    counts = [len(lines) for lines in sides]
    if counts[0] != counts[1]:
        short, long = (source, target) if counts[0] < counts[1] else (target, source)
        raise UserError(
            f"{long} line {min(counts) + 1} has no partner: {short} has {min(counts)} lines, not {max(counts)}"
        )
    return sides


def kept(source: Sequence[str], target: Sequence[str], longest: int, ratio: float) -> list[int]:
    """Which tokenised pairs are fit for training, as clean-corpus-n.perl of Moses has it.

    Both sides have 1 to `longest` tokens, the longer at most `ratio` times as many as the shorter.
    """
    found = []
    for i, (a, b) in enumerate(zip(source, target, strict=True)):
        m, n = a.count(" ") + 1 if a else 0, b.count(" ") + 1 if b else 0
        if 0 < m <= longest and 0 < n <= longest and max(m, n) <= ratio * min(m, n):
            found.append(i)
    return found
