"""From parallel text to what training reads: cleaned, tokenised, split into symbols, numbered, in binary files.

The result lies in the user's cache under a digest of the six files and of how they were prepared, so that it is made
once and never stale; it appears by one rename. Training maps it into memory (`Corpus`).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from sam_repro.data.declared import TextConfig
from sam_repro.errors import UserError
from sam_repro.files.alone import alone
from sam_repro.files.digest import file_sha256
from sam_repro.tasks.translation.bpe import Codes, Dictionary, Merge, encode, learn
from sam_repro.tasks.translation.moses import Moses
from sam_repro.tasks.translation.text import SPLITS, find, kept, read_pairs

_FORMAT = 1  # raise it when the same text and settings give other files
_WORTH_A_PROCESS = 20_000  # pairs of training


@dataclass(frozen=True)
class Preparation:
    """How text becomes numbers. Every field changes them."""

    source: str = "de"
    target: str = "en"
    merges: int = TextConfig.merges  # this and the rest: see there
    joint: bool = TextConfig.joint
    moses: bool = TextConfig.moses
    lower: bool = TextConfig.lower
    longest: int = TextConfig.longest
    ratio: float = TextConfig.ratio


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "sam_repro" / "parallel"


def prepared(root: Path, how: Preparation, cache: Path | None = None) -> Path:
    """The folder of `Corpus`, made if it is not there."""
    languages = (how.source, how.target)
    for language in languages:
        if not language.replace("-", "").replace("_", "").isalnum():
            raise UserError(f"{language!r} is no language: files are named train.LANGUAGE, as train.de")
    if how.source == how.target:
        raise UserError(f"source and target are both {how.source}: they are two languages")
    files = {(split, language): find(root, split, language) for split in SPLITS for language in languages}
    said = (
        {f"{split}.{language}": file_sha256(path) for (split, language), path in files.items()}
        | asdict(how)
        | {"format": _FORMAT}
    )
    said |= {package: version(package) for package in ("tokenizers", "sacremoses")}
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]
    cache = cache or cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / digest
    with alone(cache / f".{digest}.lock"):
        if not folder.is_dir():
            staging = cache / f".{digest}.partial"
            shutil.rmtree(staging, ignore_errors=True)
            staging.mkdir()
            _write(files, how, staging)
            (staging / "made_of.json").write_text(json.dumps(said, indent=1))
            staging.rename(folder)
    return folder


def _write(files: dict[tuple[str, str], Path], how: Preparation, folder: Path) -> None:
    languages = (how.source, how.target)
    pairs = {split: read_pairs(files[split, how.source], files[split, how.target]) for split in SPLITS}
    with _mapper(len(pairs["train"][0])) as each:
        text = [{split: pairs[split][side] for split in SPLITS} for side in range(2)]
        tokens = list(each(partial(_tokenised, how), languages, text))
        fit = kept(tokens[0]["train"], tokens[1]["train"], how.longest, how.ratio)
        if not fit:
            raise UserError(
                f"{files['train', how.source]}: of no pair have both sides 1 to {how.longest} tokens, "
                f"the longer at most {how.ratio:g} times the shorter"
            )
        for lines in tokens:
            lines["train"] = [lines["train"][i] for i in fit]
        words = list(each(_counted, [lines["train"] for lines in tokens]))
        merges = [learn(words[0] + words[1], how.merges)] * 2 if how.joint else [learn(w, how.merges) for w in words]
        list(each(partial(_number, folder), languages, merges, words, tokens))
    for split in SPLITS[1:]:
        references = "\n".join(line.lower() if how.lower else line for line in pairs[split][1])
        (folder / f"{split}.references").write_bytes(references.encode())
    facts = {"left_out": len(pairs["train"][0]) - len(fit)} | {split: len(pairs[split][0]) for split in SPLITS[1:]}
    (folder / "corpus.json").write_text(json.dumps(asdict(how) | {"train": len(fit)} | facts, indent=1))


@contextmanager
def _mapper(pairs: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """`map`; of a large corpus with a process a language, which starts without what this one has loaded."""
    if pairs < _WORTH_A_PROCESS:
        yield map
    else:
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            yield pool.map


def _tokenised(how: Preparation, language: str, text: dict[str, list[str]]) -> dict[str, list[str]]:
    if not how.moses:
        lower = str.lower if how.lower else str
        return {split: [lower(" ".join(line.split())) for line in lines] for split, lines in text.items()}
    moses = Moses(language, how.lower)
    return {split: [moses.tokenise(line) for line in lines] for split, lines in text.items()}


def _counted(lines: list[str]) -> Counter[str]:
    return Counter(word for line in lines for word in line.split())


def _number(
    folder: Path, language: str, merges: list[Merge], words: Counter[str], tokens: dict[str, list[str]]
) -> None:
    codes = Codes(merges)
    dictionary = Dictionary.of(words, codes)
    for split, lines in tokens.items():
        ids, starts = encode(lines, codes, dictionary)
        np.save(folder / f"{split}.{language}.ids.npy", ids)
        np.save(folder / f"{split}.{language}.starts.npy", starts)
    (folder / f"{language}.json").write_text(json.dumps({"symbols": dictionary.symbols, "merges": merges}))
