"""The official archive of IWSLT'14 German-English, and other folders of parallel text, as plain lines.

The archive is read member by member, never unpacked: a link, or a name that leads elsewhere, is none of its files. What
fairseq's prepare-iwslt14.sh does is done here: tags go, of the cleaned training pairs every 23rd is for validation, and
the five development and test sets are one test set.
"""

from __future__ import annotations

import re
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from sam_repro.errors import UserError
from sam_repro.files.alone import alone
from sam_repro.files.atomic import write_atomic
from sam_repro.tasks.translation.moses import Moses
from sam_repro.tasks.translation.prepare import Preparation, prepared
from sam_repro.tasks.translation.text import MOST, SPLITS, Pairs, decoded, find, kept, read_pairs

NAME = "iwslt14"
SOURCE, TARGET = "de", "en"
VALID_EVERY = 23
TESTS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
_NO_TEXT = re.compile(r"<(url|talkid|keywords)>")
_TAGS = re.compile(r"</?(title|description)>")
_SEGMENT = re.compile(r'<seg id="[0-9]*">\s*(.*?)\s*</seg>')

Read = Callable[[str], list[str]]  # the lines of a file of this name


def fetch_iwslt14(path: Path, root: Path) -> Path:
    """The folder of the text, from an archive, its unpacked folder, or one of aligned files; it is prepared too."""
    found, folder = _pairs(path), root / NAME
    folder.mkdir(parents=True, exist_ok=True)
    with alone(root / f".fetch-{NAME}.lock"):
        for split, pairs in found.items():
            for language, lines in zip((SOURCE, TARGET), pairs, strict=True):
                write_atomic(folder / f"{split}.{language}", "".join(line + "\n" for line in lines))
                (folder / f"{split}.{language}.gz").unlink(missing_ok=True)
        prepared(folder, Preparation(SOURCE, TARGET))
    return folder


def _pairs(path: Path) -> dict[str, Pairs]:
    if path.is_dir():
        if (path / f"train.tags.{SOURCE}-{TARGET}.{SOURCE}").is_file():
            return official(lambda name: _of_folder(path, name))
        return {split: read_pairs(find(path, split, SOURCE), find(path, split, TARGET)) for split in SPLITS}
    if not path.is_file():
        raise UserError(f"--from {path}: there is no such file or folder")
    try:
        with tarfile.open(path) as tar:
            members = {PurePosixPath(member.name).name: member for member in tar if member.isreg()}
            return official(lambda name: _of_archive(tar, members, path, name))
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno:  # of the disk: those of gzip have no number
            raise
        raise UserError(f"--from {path}: no archive that can be read ({type(error).__name__}: {error})") from None


def _of_folder(folder: Path, name: str) -> list[str]:
    try:
        content = (folder / name).read_bytes()
    except OSError as error:
        raise UserError(f"{folder / name} can't be read ({error.strerror})") from None
    return decoded(content, folder / name)


def _of_archive(tar: tarfile.TarFile, members: dict[str, tarfile.TarInfo], path: Path, name: str) -> list[str]:
    member = members.get(name)
    file = None if member is None or member.size > MOST else tar.extractfile(member)
    if file is None:
        raise UserError(f"--from {path}: the archive has no file {name}")
    return decoded(file.read(), name)


def official(read: Read) -> dict[str, Pairs]:
    """train, valid and test of the official files."""
    languages = f"{SOURCE}-{TARGET}"
    train = _aligned(read, f"train.tags.{languages}.{{}}", _train_text)
    both = zip((Moses(SOURCE), Moses(TARGET)), train, strict=True)
    sides = [[moses.tokenise(line) for line in lines] for moses, lines in both]
    how = Preparation()
    fit = kept(sides[0], sides[1], how.longest, how.ratio)
    if len(fit) < VALID_EVERY:
        raise UserError(f"train.tags.{languages}.{SOURCE}: {len(fit)} pairs are left after cleaning, too few to split")
    valid = fit[VALID_EVERY - 1 :: VALID_EVERY]
    rest = sorted(set(fit) - set(valid))
    tests = [_aligned(read, f"IWSLT14.{name}.{languages}.{{}}.xml", _segments) for name in TESTS]
    return {
        "train": _chosen(train, rest),
        "valid": _chosen(train, valid),
        "test": ([line for pairs in tests for line in pairs[0]], [line for pairs in tests for line in pairs[1]]),
    }


def _chosen(pairs: Pairs, which: list[int]) -> Pairs:
    return [pairs[0][i] for i in which], [pairs[1][i] for i in which]


def _aligned(read: Read, name: str, text: Callable[[list[str]], list[str]]) -> Pairs:
    names = name.format(SOURCE), name.format(TARGET)
    sides = text(read(names[0])), text(read(names[1]))
    counts = [len(lines) for lines in sides]
    if counts[0] != counts[1]:
        lone = f"line {min(counts) + 1} has no partner"
        raise UserError(f"{names[0]} has {counts[0]} lines of text, {names[1]} {counts[1]}: {lone}")
    return sides


def _train_text(lines: list[str]) -> list[str]:
    """The sentences, titles and descriptions. Empty ones stay: cleaning takes them out with their partner."""
    return [" ".join(_TAGS.sub("", line).split()) for line in lines if not _NO_TEXT.search(line)]


def _segments(lines: list[str]) -> list[str]:
    found = (_SEGMENT.search(line) for line in lines)
    return [match[1].replace("’", "'") for match in found if match]
