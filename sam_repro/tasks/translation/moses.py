"""Moses' tokenisation, which the field's prepared corpora and tokenised scores rest on, at the speed of a dictionary.

sacremoses applies some forty expressions to each line. What they do to a word depends on its neighbours in two cases
only: a full stop on the first letter of the next word, and an apostrophe at an edge. So words are tokenised once each,
and lines of the second case as a whole.
"""

from __future__ import annotations

import re

from sacremoses import MosesDetokenizer, MosesTokenizer

_PLAIN = re.compile(r"[A-Za-z0-9À-ÖØ-öø-ÿ]+").fullmatch
_APOSTROPHE_AT_AN_EDGE = re.compile(r"(?:^|\s)'|'(?:\s|$)").search


class Moses:
    """The tokeniser of one language and its inverse. Tokens are separated by single spaces; &, quotes and brackets are
    escaped as Moses does it."""

    def __init__(self, language: str, lower: bool = False) -> None:
        self.lower = lower
        self._tokeniser = MosesTokenizer(language)
        self._detokeniser = MosesDetokenizer(language)
        self._known: dict[tuple[str, str], str] = {}

    def tokenise(self, line: str) -> str:
        text = self._line(line) if _APOSTROPHE_AT_AN_EDGE(line) else self._words(line.split())
        return text.lower() if self.lower else text

    def detokenise(self, tokens: str) -> str:
        return str(self._detokeniser.detokenize(tokens.split()))

    def _line(self, line: str) -> str:
        return str(self._tokeniser.tokenize(line, return_str=True))

    def _words(self, words: list[str]) -> str:
        found = []
        for i, word in enumerate(words):
            if _PLAIN(word):
                found.append(word)
                continue
            # A full stop ends a sentence or an abbreviation, by what comes after it.
            after = words[i + 1][0] if word[-1] == "." and i + 1 < len(words) else ""
            tokens = self._known.get((word, after))
            if tokens is None:
                tokens = self._line(f"{word} {after}")
                tokens = self._known[word, after] = tokens.rpartition(" ")[0] if after else tokens
            if tokens:
                found.append(tokens)
        return " ".join(found)
