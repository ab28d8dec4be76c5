"""Parallel text: what is wrong is one line with file and line number; Moses' tokens; which pairs are kept."""

import gzip
import random
from pathlib import Path

import pytest
from sacremoses import MosesTokenizer

from sam_repro.errors import UserError
from sam_repro.tasks.translation.moses import Moses
from sam_repro.tasks.translation.text import find, kept, lines_of, read_pairs


def two(folder: Path, source: bytes, target: bytes) -> tuple[Path, Path]:
    paths = folder / "train.de", folder / "train.en"
    for path, content in zip(paths, (source, target), strict=True):
        path.write_bytes(content)
    return paths


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        (b"a\nb\nc\n", b"a\nb\n", "train.de line 3 has no partner"),
        (b"a\n", b"a\nb", "train.en line 2 has no partner"),
        (b"a\n \nc\n", b"a\nb\nc\n", "train.de line 2 is empty"),
        (b"a\nb\n", b"a\n\n", "train.en line 2 is empty"),
        (b"a\nb\n\xff\n", b"a\nb\nc\n", "train.de line 3 is no UTF-8"),
        (b"a\n", b"", "train.en is empty"),
    ],
)
def test_a_mistake_names_file_and_line(tmp_path: Path, source: bytes, target: bytes, said: str) -> None:
    with pytest.raises(UserError) as mistake:
        read_pairs(*two(tmp_path, source, target))
    assert said in str(mistake.value)
    assert "\n" not in str(mistake.value)


def test_a_line_ends_at_a_line_feed_alone(tmp_path: Path) -> None:
    """A separator that Python's `splitlines` knows would put all that follows beside the wrong partner."""
    text = "one\u2028still one\r\ntwo\x85still two\n"
    assert read_pairs(*two(tmp_path, text.encode(), b"1\n2\n")) == (
        ["one\u2028still one", "two\x85still two"],
        ["1", "2"],
    )


def test_gzip_is_read_and_a_cut_one_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(b"a b\nc\n" * 100)
    path = tmp_path / "train.de.gz"
    path.write_bytes(packed)
    assert find(tmp_path, "train", "de") == path
    assert lines_of(path)[:2] == ["a b", "c"]
    path.write_bytes(packed[:-9])
    with pytest.raises(UserError, match="no whole gzip file"):
        lines_of(path)
    with pytest.raises(UserError, match=r"valid\.de is missing"):
        find(tmp_path, "valid", "de")


def test_pairs_are_kept_by_length_and_ratio() -> None:
    source = ["a b", "a b", "a", "", "a b c", "a b c d"]
    target = ["a b c", "a b c d", "a", "a", "a b c", "a b c d"]
    assert kept(source, target, longest=3, ratio=1.5) == [0, 2, 4]


@pytest.mark.parametrize("language", ["de", "en"])
def test_words_apart_are_tokenised_as_lines_are(language: str) -> None:
    """Against sacremoses on whole lines, of random words and punctuation in every order."""
    dice = random.Random(0)
    words = """Dr. z.B. No. Nr. 5 3,5 wort Wort don't dogs' 'tis "Haus" -- ... etc. (a) x, ?! U.S. end. . ' a.' ß &"""
    pieces = [*words.split(), *["é", "<b>", "[1]", "100%", "e-mail", "1.", "..", "Mr.", "”so“", "5's"], "\u00a0x"]
    ours, theirs = Moses(language), MosesTokenizer(language)
    for _ in range(1500):
        line = " ".join(dice.choice(pieces) for _ in range(dice.randint(1, 7)))
        assert ours.tokenise(line) == theirs.tokenize(line, return_str=True), line


def test_text_comes_back_from_its_tokens() -> None:
    moses = Moses("en")
    text = 'He said: "Don\'t go (yet), Mr. Smith!" & left.'
    assert "&quot;" in moses.tokenise(text)
    assert moses.detokenise(moses.tokenise(text)) == text
