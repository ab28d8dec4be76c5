"""What a paper says of a table or figure in words, as claims of a type, so that runs can judge them.

    said:
      - {words: "p = 2 shows better accuracies than p = ∞", best: [elementwise_p2, elementwise_pinf]}
      - {words: "a smaller eigenvalue ratio compared with SAM", below: [fsam, sam], at: [ratio]}
      - {words: "detrimental effects of strengthening the full gradient", falls: [sam]}

above, below  the first column is above (below) each of the others, in every row or in those of `at`
best          the first column's best cell is better than the best of each of the others: above, or below where less is
alike         the first column is within the table's margin of each of the others, in every row or in those of `at`
falls, rises  down the rows, in their order, each column falls (rises): the slope of a straight line through all runs

Rows may stand for columns and columns for rows. Each part of a claim has a 95 % interval, Welch's or the slope's; the
claim is shown where every part is, its opposite where one part is on the other side, else it is undecided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sam_repro.errors import UserError, hint
from sam_repro.files.strict import Kinds, shown, typed_keys
from sam_repro.tables.verdicts import AGREES, DIFFERS, UNDECIDED, Difference, interval, minus, within

COMPARED, TRENDS = ("above", "below", "best", "alike"), ("falls", "rises")
SHOWN, OPPOSITE, NOT_RUN = "shown", "opposite shown", "not run"
_KEYS: Kinds = {"words": str, "at": list, **dict.fromkeys((*COMPARED, *TRENDS), list)}
Names = tuple[str, ...]
Values = Callable[[str, str], Mapping[int, float]]  # of a row and a column, by seed
Ran = Callable[[str, str], object]  # of a row and a column: true or not


@dataclass(frozen=True)
class Said:
    words: str
    kind: str  # one of COMPARED or TRENDS
    of: tuple[str, ...]  # columns, or rows
    at: tuple[str, ...]  # the rows, or columns, that they are compared in
    of_rows: bool  # `of` names rows


@dataclass(frozen=True)
class Answer:
    said: Said
    verdict: str
    parts: tuple[tuple[Names, Difference], ...]  # what was compared, by the names of rows and columns, and its outcome
    so_far: bool = False  # not all runs that it is about have ended


def read(where: str, data: Any, rows: Sequence[str], columns: Sequence[str]) -> tuple[Said, ...]:
    """The `said:` of a table."""
    if not isinstance(data, list):
        raise UserError(f"{where}: said must be a list of claims, is {shown(data)}")
    return tuple(_said(f"{where} said {number}", one, rows, columns) for number, one in enumerate(data, start=1))


def _said(where: str, data: Any, rows: Sequence[str], columns: Sequence[str]) -> Said:
    fields = typed_keys(where, data, _KEYS, needed={"words"})
    kinds = [kind for kind in (*COMPARED, *TRENDS) if kind in fields]
    if len(kinds) != 1:
        raise UserError(f"{where}: say one of {', '.join((*COMPARED, *TRENDS))}, not {len(kinds)}")
    of = [str(name) for name in fields[kinds[0]] or ()]
    if len(of) < (least := 2 if kinds[0] in COMPARED else 1):
        raise UserError(f"{where}: {kinds[0]} needs {least} names or more, has {len(of)}")
    of_rows = not set(of) <= set(columns) and set(of) <= set(rows)
    _known(where, of, rows if of_rows else columns)
    others = columns if of_rows else rows
    at = [str(name) for name in fields.get("at") or others]
    _known(f"{where} at", at, others)
    return Said(fields["words"], kinds[0], tuple(of), tuple(at), of_rows)


def _known(where: str, names: Sequence[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise UserError(f"{where} names {name!r}: {hint(name, known)}")


def judged(
    said: Said, values: Values, margin: float, *, paired: bool = False, higher: bool = True, ran: Ran | None = None
) -> Answer:
    """By the runs that there are; a part that has none leaves the claim undecided, or not run where no part has any.

    higher: whether more is better.
    ran: whether a row and a column have run, where runs that failed have no values.
    """
    found = list(_trends(said, values) if said.kind in TRENDS else _compared(said, values, paired, higher))
    known = tuple((name, difference) for name, difference in found if difference is not None)
    if not known:
        return Answer(said, NOT_RUN, ())
    kind = "below" if said.kind == "best" and not higher else said.kind
    answers = [_answer(kind, difference, margin) for _, difference in known]
    verdict = OPPOSITE if OPPOSITE in answers else SHOWN if set(answers) == {SHOWN} else UNDECIDED
    # A best row, or a trend, may be another once the rest has run; so may what is said of every row be shown by fewer.
    if not _all_there(said, ran or values) and (verdict == SHOWN or said.kind in ("best", *TRENDS)):
        verdict = UNDECIDED
    return Answer(said, verdict, known)


def _all_there(said: Said, ran: Ran) -> bool:
    return all(ran(line, place) if said.of_rows else ran(place, line) for line in said.of for place in said.at)


def _compared(said: Said, values: Values, paired: bool, higher: bool) -> Iterator[tuple[Names, Difference | None]]:
    def of(line: str, place: str) -> Mapping[int, float]:
        return values(line, place) if said.of_rows else values(place, line)

    def best(line: str) -> Mapping[int, float]:
        measured = [found for place in said.at if (found := of(line, place))]
        choose = max if higher else min
        return choose(measured, key=lambda found: math.fsum(found.values()) / len(found), default={})

    first, *others = said.of
    for other in others:
        if said.kind == "best":
            yield (first, other), minus(best(first), best(other))
            continue
        for place in said.at:
            yield (place, first, other), minus(of(first, place), of(other, place), paired=paired)


def _trends(said: Said, values: Values) -> Iterator[tuple[Names, Difference | None]]:
    for line in said.of:
        points = list[tuple[float, float]]()
        for step, place in enumerate(said.at):
            found = values(line, place) if said.of_rows else values(place, line)
            points += [(float(step), value) for value in found.values()]
        yield (line,), _slope(points)


def _slope(points: Sequence[tuple[float, float]]) -> Difference | None:
    """Of a straight line by least squares: its interval is Student's with two degrees less than there are runs."""
    steps = {x for x, _ in points}
    if len(steps) < 2:
        return None
    x_mean, y_mean = (math.fsum(part) / len(points) for part in zip(*points, strict=True))
    spread = math.fsum((x - x_mean) ** 2 for x, _ in points)
    slope = math.fsum((x - x_mean) * (y - y_mean) for x, y in points) / spread
    if len(points) < 3:
        return Difference(slope, None, None, None, "two runs: no interval")
    left = math.fsum((y - y_mean - slope * (x - x_mean)) ** 2 for x, y in points)
    return interval(slope, left / (len(points) - 2) / spread, len(points) - 2, "slope")


def _answer(kind: str, found: Difference, margin: float) -> str:
    if kind == "alike":
        return {AGREES: SHOWN, DIFFERS: OPPOSITE}.get(within(found, margin), UNDECIDED)
    if found.low is None or found.high is None or found.low <= 0 <= found.high:
        return UNDECIDED
    return SHOWN if (found.low > 0) == (kind in ("above", "best", "rises")) else OPPOSITE
