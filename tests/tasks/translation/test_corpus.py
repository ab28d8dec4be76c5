"""Byte-pair encoding, the prepared files, and the embedded corpus."""

import os
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from sam_repro.errors import UserError
from sam_repro.tasks.translation import grammar
from sam_repro.tasks.translation.bpe import END, EOS, UNKNOWN, Codes, Dictionary, learn
from sam_repro.tasks.translation.corpus import Corpus
from sam_repro.tasks.translation.prepare import Preparation, prepared
from sam_repro.tasks.translation.text import SPLITS, lines_of

TRAIN = [
    ("ein Haus", "a house"),
    ("das Haus ist alt", "the house is old"),
    ("ein Auto", "a car"),
    ("der Zug", "the train"),
]


def write(folder: Path, train: list[tuple[str, str]] = TRAIN, test: tuple[str, str] = ("Ein Zug", "A train")) -> Path:
    folder.mkdir(exist_ok=True)
    for split, pairs in (("train", train), ("valid", [test]), ("test", [test])):
        for language, lines in zip(("de", "en"), zip(*pairs, strict=True), strict=True):
            (folder / f"{split}.{language}").write_text("".join(line + "\n" for line in lines))
    return folder


def reference(words: dict[str, int], merges: int) -> list[tuple[str, str]]:
    """Sennrich's loop as it is printed in the paper, with a count of every pair in every turn."""
    split = {word: [*word[:-1], word[-1] + END] for word in words}
    found = []
    for _ in range(merges):
        counts: Counter[tuple[str, str]] = Counter()
        for word, symbols in split.items():
            for pair in pairwise(symbols):
                counts[pair] += words[word]
        best = max(counts, key=lambda pair: counts[pair])
        assert list(counts.values()).count(counts[best]) == 1, "the test's words leave no choice"
        found.append(best)
        for word, symbols in split.items():
            joined: list[str] = []
            for symbol in symbols:
                joined[-1:] = [best[0] + symbol] if joined and (joined[-1], symbol) == best else [*joined[-1:], symbol]
            split[word] = joined
    return found


def test_merges_are_learnt_as_the_paper_has_it() -> None:
    dice = random.Random(0)
    words = {"".join(dice.choice("abc") for _ in range(dice.randint(1, 7))): dice.randint(1, 9999) for _ in range(200)}
    learnt = learn(words, 25)
    assert learnt == reference(words, 25)
    symbols = Codes(learnt).symbols("abcabcabca")
    assert "".join(symbols) == "abcabcabca" + END
    assert 1 < len(symbols) < 10


def test_learning_and_applying_are_functions_of_the_words() -> None:
    words = {f"{a}{b}{c}": 1 for a in "abcdef" for b in "ghij" for c in "klmnop"}  # every pair as often as the next
    assert learn(words, 20) == learn(dict(reversed(words.items())), 20)
    assert len(learn(words, 20)) == 20


def test_text_becomes_numbers_and_text_again(tmp_path: Path) -> None:
    corpus = Corpus(prepared(write(tmp_path / "text"), Preparation(merges=12), tmp_path / "cache"))
    train = corpus.pairs("train")
    assert [corpus.target.decode(train.target[i])[0] for i in range(len(train))] == [en for _, en in TRAIN]
    assert [corpus.source.decode(train.source[i])[0] for i in range(len(train))] == [de.lower() for de, _ in TRAIN]
    assert all(train.source[i][-1] == EOS for i in range(len(train)))
    assert isinstance(train.source.ids, np.memmap)
    assert train.source.ids.dtype == np.uint16
    assert corpus.references("test") == ["a train"]
    assert len(corpus.source) % 8 == 0
    assert UNKNOWN in corpus.source.encode(["Qualle"])[0]
    again = corpus.source.encode([de for de, _ in TRAIN])
    assert np.array_equal(again.ids, train.source.ids)


def test_symbols_come_from_training_pairs_alone(tmp_path: Path) -> None:
    how = Preparation(merges=5)
    plain = Corpus(prepared(write(tmp_path / "a"), how, tmp_path / "cache"))
    other = Corpus(prepared(write(tmp_path / "b", test=("xxxx yyyy xxxx", "zzzz zzzz zzzz")), how, tmp_path / "cache"))
    for side in ("source", "target"):
        assert getattr(plain, side).codes.merges == getattr(other, side).codes.merges
        assert getattr(plain, side).dictionary == getattr(other, side).dictionary


def test_pairs_that_do_not_fit_are_left_out_of_training(tmp_path: Path) -> None:
    train = [*TRAIN, ("eins", "one two three")]
    corpus = Corpus(prepared(write(tmp_path / "text", train), Preparation(merges=2), tmp_path / "cache"))
    assert len(corpus.pairs("train")) == len(TRAIN)
    assert corpus.facts["left_out"] == 1
    with pytest.raises(UserError, match="of no pair"):
        prepared(write(tmp_path / "none", train[-1:]), Preparation(merges=2), tmp_path / "cache")


def test_separate_merges_do_not_look_at_the_other_language(tmp_path: Path) -> None:
    corpus = Corpus(prepared(write(tmp_path / "text"), Preparation(merges=4, joint=False), tmp_path / "cache"))
    words = Counter(word for de, _ in TRAIN for word in de.lower().split())
    assert corpus.source.codes.merges == learn(words, 4)
    assert corpus.source.codes.merges != corpus.target.codes.merges


def test_a_corpus_is_prepared_once_and_anew_when_a_file_changes(tmp_path: Path) -> None:
    text, cache, how = write(tmp_path / "text"), tmp_path / "cache", Preparation(merges=3)
    first = prepared(text, how, cache)
    made = os.stat(first / "corpus.json").st_mtime_ns
    assert prepared(text, how, cache) == first
    assert os.stat(first / "corpus.json").st_mtime_ns == made
    (text / "valid.en").write_text("Another train\n")
    assert prepared(text, how, cache) != first
    assert prepared(text, Preparation(merges=4), cache) != prepared(text, how, cache)


def test_what_has_no_name_of_a_language_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no language"):
        prepared(tmp_path, Preparation(source="../de"), tmp_path)
    with pytest.raises(UserError, match="both de"):
        prepared(tmp_path, Preparation(target="de"), tmp_path)


def test_the_embedded_corpus_is_what_its_grammar_says(tmp_path: Path) -> None:
    grammar.write(tmp_path)
    for split in SPLITS:
        for language in ("de", "en"):
            name = f"{split}.{language}.gz"
            assert lines_of(tmp_path / name) == lines_of(grammar.FOLDER / name), name


def test_copying_alone_does_not_translate_it_and_names_are_open() -> None:
    train, test = grammar.pairs("train"), grammar.pairs("test")
    known = {word for _, english in train for word in english.split()}
    new = [english for _, english in test if set(english.split()) - known]
    assert len(new) >= len(test) // 10
    shared = [len(set(german.split()) & set(english.split())) / len(english.split()) for german, english in test]
    assert sum(shared) / len(shared) < 0.4
    assert not set(train) & set(test)


def test_a_dictionary_orders_symbols_by_count() -> None:
    dictionary = Dictionary.of({"ab": 3, "cb": 1}, Codes([]))
    assert dictionary.symbols == ["b" + END, "a", "c"]
    assert dictionary.text([5, 4, 6, 4, EOS]) == "ab cb"
