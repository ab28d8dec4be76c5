"""Scores: sums of parts are the whole's, and the whole's are sacrebleu's own."""

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics.chrf import CHRF

from sam_repro.tasks.translation.bleu import Judge

FOUND = [
    "it costs $5 in all",
    "the cat sat on the mat .",
    "a dog , I think !",
    "it is old and the train is late today .",
]
WANTED = [
    "it costs $5 in total",
    "The cat sat on a mat .",
    "a dog I think !",
    "it is old and the train is very late today .",
]


def said(texts: list[str]) -> list[tuple[str, str]]:
    return [(text, text.replace(" .", ".").replace(" ,", ",").replace(" !", "!")) for text in texts]


def test_scores_are_those_of_sacrebleu() -> None:
    judge = Judge(lower=True)
    scores = judge.scores(judge.sums(said(FOUND), said(WANTED)))
    found, wanted = ([text for _, text in said(texts)] for texts in (FOUND, WANTED))
    assert scores["bleu"] == sacrebleu.corpus_bleu(found, [wanted], lowercase=True).score
    assert scores["chrf"] == CHRF(lowercase=True).corpus_score(found, [wanted]).score
    how = {"tokenize": "none", "smooth_method": "none", "force": True}
    tokenised = sacrebleu.corpus_bleu(FOUND, [WANTED], lowercase=True, **how)
    assert scores["bleu_tokenised"] == tokenised.score
    assert scores["bleu"] != scores["bleu_tokenised"]


def test_sums_of_parts_are_the_sum_of_the_whole() -> None:
    judge = Judge(lower=True)
    whole = judge.sums(said(FOUND), said(WANTED))
    parts = [judge.sums(said(FOUND[i : i + 1]), said(WANTED[i : i + 1])) for i in range(4)]
    assert np.sum(parts, axis=0).tolist() == whole
    assert len(whole) == judge.size


def test_the_signature_says_how_it_was_counted() -> None:
    signatures = Judge(lower=True).signatures()
    assert signatures["bleu"] == "nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:2.6.0"
    assert "tok:none" in signatures["bleu_tokenised"]
    assert signatures["chrf"].startswith("nrefs:1|case:lc")
    assert "case:mixed" in Judge(lower=False).signatures()["bleu"]


def test_perfect_and_hopeless_translations() -> None:
    judge = Judge(lower=False)
    best = judge.scores(judge.sums(said(WANTED), said(WANTED)))
    assert best == pytest.approx({"bleu": 100, "bleu_tokenised": 100, "chrf": 100})
    assert judge.scores(judge.sums(said(["x"] * 4), said(WANTED)))["bleu_tokenised"] == 0
