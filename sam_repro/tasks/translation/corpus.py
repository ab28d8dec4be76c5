"""A prepared corpus, mapped into memory: sentences as numbers, and back to text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sam_repro.files.read import read_json, read_text
from sam_repro.tasks.translation.bpe import Codes, Dictionary, encode
from sam_repro.tasks.translation.moses import Moses
from sam_repro.tasks.translation.prepare import Preparation
from sam_repro.tasks.translation.text import MOST

Ids = np.ndarray


@dataclass(frozen=True)
class Side:
    """One language of one split: all ids one after the other, each sentence's with its end mark."""

    ids: Ids  # uint16 or int32, memory-mapped
    starts: Ids  # int64, one more than there are sentences

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: int) -> Ids:
        return self.ids[self.starts[i] : self.starts[i + 1]]

    @cached_property
    def lengths(self) -> Ids:
        return np.diff(self.starts)

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]]) -> Side:
        starts = np.cumsum([0, *map(len, sentences)], dtype=np.int64)
        return cls(np.concatenate([np.asarray(s, np.int64) for s in sentences]), starts)


@dataclass(frozen=True)
class Pairs:
    """One split: sentence i of the source and of the target belong together."""

    source: Side
    target: Side

    def __len__(self) -> int:
        return len(self.source)

    def first(self, *limits: int | None) -> Pairs:
        """As many as the smallest of the limits that are given."""
        n = min([len(self), *(limit for limit in limits if limit is not None)])
        return Pairs(*(Side(side.ids, side.starts[: n + 1]) for side in (self.source, self.target)))


class Vocabulary:
    """One language: text to ids and back, by what was learnt on the training pairs."""

    def __init__(self, language: str, how: Preparation, stored: dict[str, Any]) -> None:
        self.how = how
        self.dictionary = Dictionary(stored["symbols"])
        self.codes = Codes([(a, b) for a, b in stored["merges"]])
        self.moses = Moses(language, how.lower) if how.moses else None

    def __len__(self) -> int:
        return len(self.dictionary)

    def tokens(self, line: str) -> str:
        """The line as it was prepared, before it was split into symbols."""
        if self.moses is not None:
            return self.moses.tokenise(line)
        text = " ".join(line.split())
        return text.lower() if self.how.lower else text

    def encode(self, lines: Sequence[str]) -> Side:
        return Side(*encode((self.tokens(line) for line in lines), self.codes, self.dictionary))

    def decode(self, ids: Sequence[int]) -> tuple[str, str]:
        """(tokens, text for a reader)."""
        tokens = self.dictionary.text(ids)
        return tokens, tokens if self.moses is None else self.moses.detokenise(tokens)


class Corpus:
    """What `prepared` made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.facts: dict[str, Any] = read_json(folder / "corpus.json")
        self.how = Preparation(**{field.name: self.facts[field.name] for field in fields(Preparation)})

    @cached_property
    def source(self) -> Vocabulary:
        return self._vocabulary(self.how.source)

    @cached_property
    def target(self) -> Vocabulary:
        return self._vocabulary(self.how.target)

    def pairs(self, split: str) -> Pairs:
        """Of "train", "valid" or "test"."""
        return Pairs(self._side(split, self.how.source), self._side(split, self.how.target))

    def references(self, split: str) -> list[str]:
        """The target's text of "valid" or "test", as it stands in the file but for its case."""
        return read_text(self.folder / f"{split}.references", MOST).split("\n")

    def _vocabulary(self, language: str) -> Vocabulary:
        return Vocabulary(language, self.how, read_json(self.folder / f"{language}.json"))

    def _side(self, split: str, language: str) -> Side:
        ids, starts = (
            np.load(self.folder / f"{split}.{language}.{part}.npy", mmap_mode="r", allow_pickle=False)
            for part in ("ids", "starts")
        )
        return Side(ids, starts)
