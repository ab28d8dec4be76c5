"""How good translations are, as sums that add up over batches and ranks.

bleu            sacrebleu's, on text as a reader has it; its signature says how it was counted
bleu_tokenised  of the papers of 2018 to 2021: the same counts on Moses' tokens, as multi-bleu.perl
chrf            of characters, which needs no tokens

The three are labelled because they differ by a point or more on the same text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

Said = tuple[str, str]  # (tokens, text for a reader)


class Judge:
    def __init__(self, lower: bool) -> None:
        """lower: capitals do not count."""
        self._metrics: dict[str, Any] = {
            "bleu": BLEU(lowercase=lower),
            "bleu_tokenised": BLEU(lowercase=lower, tokenize="none", smooth_method="none", force=True),
            "chrf": CHRF(lowercase=lower),
        }
        self._sizes = [len(self._sums(metric, [""], [""])) for metric in self._metrics.values()]
        self.size = sum(self._sizes)

    def sums(self, found: Sequence[Said], references: Sequence[Said]) -> list[float]:
        """[size]: n-grams of these translations, of their references and of both, which add up to a corpus'."""
        sides = {"bleu": 1, "bleu_tokenised": 0, "chrf": 1}
        return [
            value
            for name, metric in self._metrics.items()
            for value in self._sums(metric, *([said[sides[name]] for said in all_] for all_ in (found, references)))
        ]

    @staticmethod
    def _sums(metric: Any, found: Sequence[str], references: Sequence[str]) -> list[float]:
        # Private, but sacrebleu's corpus_score is the sum of these and nothing else; its version is pinned.
        each = metric._extract_corpus_statistics(found, [references])
        return np.sum(np.array(each, np.float64), axis=0).tolist()  # type: ignore[no-any-return]

    def scores(self, sums: Sequence[float]) -> dict[str, float]:
        """Of 100, by name."""
        ends = np.cumsum(self._sizes)[:-1]
        parts = [[round(value) for value in part] for part in np.split(np.asarray(sums, np.float64), ends)]
        return {
            name: float(metric._compute_score_from_stats(part).score)
            for (name, metric), part in zip(self._metrics.items(), parts, strict=True)
        }

    def signatures(self) -> dict[str, str]:
        """How each was counted, in sacrebleu's words, with its version."""
        found = {}
        for name, metric in self._metrics.items():
            metric.num_refs = 1
            found[name] = str(metric.get_signature())
        return found
