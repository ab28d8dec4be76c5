"""The embedded parallel corpus: sentences of a small grammar, in a German of sorts and in English.

    python -m sam_repro.tasks.translation.grammar FOLDER     writes train|valid|test.de|.en.gz

To translate them one has to reorder words (the verb at the end of its clause, the adverb before the object, the subject
behind the verb), to read what agrees with what (articles and adjectives with gender, number and case, verbs with their
subject, "Lehrer" and "Schafe" with their article), and to copy names of which some were never seen. Copying alone gets
the names and the full stops.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from sam_repro.data.counter import key, scrambled_int
from sam_repro.files.atomic import write_atomic
from sam_repro.tasks.translation.text import SPLITS

SIZES = {"train": 6000, "valid": 300, "test": 300}
FOLDER = Path(__file__).parent / "embedded"

T = TypeVar("T")

# Gender, singular, plural; English singular and plural.
NOUNS = [
    ("m", "Hund", "Hunde", "dog", "dogs"), ("f", "Katze", "Katzen", "cat", "cats"),
    ("n", "Kind", "Kinder", "child", "children"), ("m", "Mann", "Männer", "man", "men"),
    ("f", "Frau", "Frauen", "woman", "women"), ("n", "Pferd", "Pferde", "horse", "horses"),
    ("m", "Lehrer", "Lehrer", "teacher", "teachers"), ("f", "Gans", "Gänse", "goose", "geese"),
    ("n", "Mädchen", "Mädchen", "girl", "girls"), ("m", "Vogel", "Vögel", "bird", "birds"),
    ("f", "Maus", "Mäuse", "mouse", "mice"), ("n", "Schaf", "Schafe", "sheep", "sheep"),
]  # fmt: skip
ADJECTIVES = [
    ("alt", "old"),
    ("klein", "small"),
    ("müde", "tired"),
    ("schnell", "fast"),
    ("still", "quiet"),
    ("rot", "red"),
]
# Third person singular and plural, infinitive; English third person singular, plain form.
VERBS = [
    ("sieht", "sehen", "sehen", "sees", "see"), ("sucht", "suchen", "suchen", "seeks", "seek"),
    ("findet", "finden", "finden", "finds", "find"), ("ruft", "rufen", "rufen", "calls", "call"),
    ("trägt", "tragen", "tragen", "carries", "carry"), ("hört", "hören", "hören", "hears", "hear"),
    ("fängt", "fangen", "fangen", "catches", "catch"), ("kennt", "kennen", "kennen", "knows", "know"),
]  # fmt: skip
MODALS = [("kann", "können", "can"), ("muss", "müssen", "must"), ("will", "wollen", "will")]
ADVERBS = [
    ("heute", "today"),
    ("oft", "often"),
    ("morgens", "in the morning"),
    ("im Garten", "in the garden"),
    ("leise", "quietly"),
]
THINKS = [("sagt", "says"), ("glaubt", "believes"), ("weiß", "knows")]
ARTICLES = {
    (gender, case): article
    for case, articles in (("nominative", "der die das die"), ("accusative", "den die das die"))
    for gender, article in zip("mfnp", articles.split(), strict=True)
}
IN_EN = (("m", "accusative"), ("p", "nominative"), ("p", "accusative"))
ENDINGS = {where: "en" if where in IN_EN else "e" for where in ARTICLES}
SYLLABLES = ("ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su", "ta", "vo", "wi", "ka", "lo", "mi")


class Dice:
    """Random choices that are a function of the numbers given, on every machine and version of Python."""

    def __init__(self, *place: int) -> None:
        self._state = key(*place)

    def below(self, bound: int) -> int:
        self._state = scrambled_int(self._state + 1)
        return self._state % bound

    def one_of(self, values: Sequence[T]) -> T:
        return values[self.below(len(values))]


def name(dice: Dice) -> str:
    """Of an open class: 16 + 256 + 4,096 names, of which many stand in one split only."""
    return "".join(dice.one_of(SYLLABLES) for _ in range(1 + dice.below(3))).capitalize()


def phrase(dice: Dice, case: str) -> tuple[str, str, bool]:
    """A noun phrase in both languages, and whether it is plural."""
    if dice.below(3) == 0:
        said = name(dice)
        return said, said, False
    gender, one, many, english_one, english_many = dice.one_of(NOUNS)
    plural = dice.below(3) == 0
    kind = "p" if plural else gender
    german, english = ARTICLES[kind, case], "the"
    if dice.below(2):
        adjective, translated = dice.one_of(ADJECTIVES)
        german += f" {adjective.removesuffix('e')}{ENDINGS[kind, case]}"
        english += f" {translated}"
    return f"{german} {many if plural else one}", f"{english} {english_many if plural else english_one}", plural


def clause(dice: Dice, subordinate: bool) -> tuple[str, str]:
    """A subject, a verb, perhaps a modal, an object, perhaps an adverb."""
    subject, who, plural = phrase(dice, "nominative")
    object_, whom, _ = phrase(dice, "accusative")
    singular, many, infinitive, third, plain = dice.one_of(VERBS)
    verb, does, last = (many, plain, "") if plural else (singular, third, "")
    if dice.below(3) == 0:
        modal, modals, english = dice.one_of(MODALS)
        verb, does, last = (modals if plural else modal), f"{english} {plain}", infinitive
    when, at = dice.one_of(ADVERBS) if dice.below(2) else ("", "")
    if subordinate:
        words = [subject, when, object_, last, verb]
    elif when and dice.below(2):
        words = [when, verb, subject, object_, last]
    else:
        words = [subject, verb, when, object_, last]
    return " ".join(filter(None, words)), " ".join(filter(None, [who, does, whom, at]))


def sentence(split: int, number: int) -> tuple[str, str]:
    dice = Dice(split, number)
    kind = dice.below(4)
    german, english = clause(dice, subordinate=kind in (0, 1))
    if kind == 0:
        speaker, (says, said) = name(dice), dice.one_of(THINKS)
        german, english = f"{speaker} {says} , dass {german}", f"{speaker} {said} that {english}"
    elif kind == 1:
        main, then = clause(dice, subordinate=False)
        first, _, rest = main.partition(" ")
        german, english = f"{first} {rest} , weil {german}", f"{then} because {english}"
    german, english = (text[0].upper() + text[1:] for text in (german, english))
    return german + " .", english + " ."


def pairs(split: str) -> list[tuple[str, str]]:
    """No pair of valid or test is one of train: those are drawn anew."""
    place = SPLITS.index(split)
    others = set(pairs("train")) if place else set()
    found: list[tuple[str, str]] = []
    number = 0
    while len(found) < SIZES[split]:
        drawn = sentence(place, number)
        number += 1
        if drawn not in others:
            found.append(drawn)
    return found


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        for language, lines in zip(("de", "en"), zip(*pairs(split), strict=True), strict=True):
            text = "".join(line + "\n" for line in lines)
            write_atomic(folder / f"{split}.{language}.gz", gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
