"""Byte-pair encoding (Sennrich et al. 2016): frequent words are one symbol, rare ones several.

A word's last symbol ends in `END`, so that symbols join to words again. A line feed can't be part of a word.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise

import numpy as np

END = "\n"
START, PAD, EOS, UNKNOWN = range(4)  # fairseq's first four; START is its own and is nowhere used
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
_ROUND = 8  # a dictionary's size is rounded up to a multiple, which suits matrix products

Merge = tuple[str, str]
Ids = np.ndarray


def learn(words: Mapping[str, int], merges: int) -> list[Merge]:
    """The `merges` most frequent pairs, each counted after the ones before it were merged."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    if not words:
        return []
    # Symbols at a word's end are named beforehand: the library would number them in the order of a hash table, and
    # among pairs of equal count the numbers decide.
    ends = sorted({word[-1] + END for word in words})
    letters = set(chain.from_iterable(word[:-1] for word in words)) | {word[-1] for word in words}
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(" ")
    trainer = trainers.BpeTrainer(
        vocab_size=len(letters) + len(ends) + merges,
        special_tokens=ends,
        end_of_word_suffix=END,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_repeated(words), trainer)
    found = json.loads(tokenizer.to_str())["model"]["merges"]
    return [(a, b) for a, b in found]


def _repeated(words: Mapping[str, int]) -> Iterable[str]:
    """Every word as often as it occurs, some hundred a line: the library counts by itself."""
    for word, count in words.items():
        line = " ".join([word] * min(count, 256))
        for _ in range(count // 256):
            yield line
        if count % 256:
            yield " ".join([word] * (count % 256))


class Codes:
    """Learnt merges, applied: a word's symbols."""

    def __init__(self, merges: Sequence[Merge]) -> None:
        self.merges = list(merges)
        self._symbols: dict[str, list[str]] = {}

    @cached_property
    def _ranks(self) -> dict[Merge, int]:
        return {merge: rank for rank, merge in enumerate(self.merges)}

    def symbols(self, word: str) -> list[str]:
        found = self._symbols.get(word)
        if found is None:
            found = self._symbols[word] = self._merged([*word[:-1], word[-1] + END])
        return found

    def _merged(self, parts: list[str]) -> list[str]:
        """The earliest learnt merge first, wherever it applies, until none does."""
        ranks, never = self._ranks, len(self.merges)
        while len(parts) > 1:
            rank, first = min((ranks.get(pair, never), i) for i, pair in enumerate(pairwise(parts)))
            if rank == never:
                break
            pair = (parts[first], parts[first + 1])
            joined, i = parts[:first], first
            while i < len(parts):
                if i + 1 < len(parts) and (parts[i], parts[i + 1]) == pair:
                    joined.append(pair[0] + pair[1])
                    i += 2
                else:
                    joined.append(parts[i])
                    i += 1
            parts = joined
        return parts


@dataclass(frozen=True)
class Dictionary:
    """A language's symbols and their numbers, the most frequent first."""

    symbols: list[str]

    def __len__(self) -> int:
        return -(-(len(SPECIALS) + len(self.symbols)) // _ROUND) * _ROUND

    @cached_property
    def ids(self) -> dict[str, int]:
        return {symbol: i for i, symbol in enumerate(self.symbols, start=len(SPECIALS))}

    @classmethod
    def of(cls, words: Mapping[str, int], codes: Codes) -> Dictionary:
        """Of the symbols that a language's training words consist of."""
        counts: Counter[str] = Counter()
        for word, count in words.items():
            for symbol in codes.symbols(word):
                counts[symbol] += count
        return cls(sorted(counts, key=lambda symbol: (-counts[symbol], symbol)))

    def text(self, ids: Iterable[int]) -> str:
        """The tokens that the symbols make, separated by spaces. What is no symbol of a text is left out."""
        first, size = len(SPECIALS), len(self.symbols)

        def part(i: int) -> str:
            if i == UNKNOWN:
                return "<unk>" + END
            return self.symbols[i - first] if first <= i < first + size else ""

        return "".join(part(int(i)) for i in ids).replace(END, " ").strip()


def encode(lines: Iterable[str], codes: Codes, dictionary: Dictionary) -> tuple[Ids, Ids]:
    """(all sentences' ids one after the other, each with its `EOS`; where each begins, and the end)."""
    known: dict[str, list[int]] = {}
    flat: list[int] = []
    starts = [0]
    for line in lines:
        for word in line.split():
            ids = known.get(word)
            if ids is None:
                ids = known[word] = [dictionary.ids.get(symbol, UNKNOWN) for symbol in codes.symbols(word)]
            flat += ids
        flat.append(EOS)
        starts.append(len(flat))
    kind = np.uint16 if len(dictionary) <= 1 << 16 else np.int32
    return np.array(flat, kind), np.array(starts, np.int64)
