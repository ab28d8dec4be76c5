"""What a table is about, judged: for each of its pairs of cells, whether the better one is better here too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sam_repro.tables.plan import PAPER
from sam_repro.tables.results import Joined, Result
from sam_repro.tables.said import NOT_RUN, Answer, Said
from sam_repro.tables.said import judged as judge_said
from sam_repro.tables.statistics import COVERAGE
from sam_repro.tables.table import Pair
from sam_repro.tables.verdicts import SAME, UNDECIDED, Point, holm, point

# Of a lost effect, to be shown with the claimed sign all the same.
CHANCE = (1 - COVERAGE) / 2


@dataclass(frozen=True)
class Shown:
    pair: Pair
    where: str  # labels: of the row or the column that both cells share
    better: str
    worse: str
    point: Point
    so_far: bool  # not all runs of both have ended
    # The sign, of an own question either sign, stands after Holm's correction over the pairs that are measured, and the
    # one that is ahead lost no larger share of its runs than the other: a mean of survivors decides nothing.
    holds: bool
    failed: tuple[tuple[int, int], tuple[int, int]]  # runs of the better one, and of the worse: how many, of so many
    own: bool = False  # a question of our own: nobody claims which is the better one


def points(joined: Joined) -> list[Shown]:
    """Of the pairs that both have runs of the paper's budget, or of a miniature.

    Where the paper prints no difference, its sign is that the first is better, whichever way that is.
    """
    if not _judged(joined):
        return []
    found = list[tuple[Pair, Point, Result, Result]]()
    for pair in joined.table.pairs:
        better, worse = joined.result(*pair.better), joined.result(*pair.worse)
        if (difference := joined.difference(better, worse)) is not None:
            upwards = 1.0 if joined.higher_is_better(better.cell.metric) else -1.0
            claimed = upwards if pair.claimed is None else pair.claimed
            found.append((pair, point(difference, claimed), better, worse))
    stands = holm([1.0 if p.difference.p is None else p.difference.p for _, p, *_ in found])
    return [
        Shown(
            pair,
            *_labels(joined, pair),
            point=p,
            so_far=_unfinished(better) or _unfinished(worse),
            holds=ok and _counts(p, better, worse, own=joined.table.own),
            failed=((better.collapsed, better.finished), (worse.collapsed, worse.finished)),
            own=joined.table.own,
        )
        for (pair, p, better, worse), ok in zip(found, stands, strict=True)
    ]


def _counts(found: Point, better: Result, worse: Result, *, own: bool) -> bool:
    if found.verdict == UNDECIDED or not (own or found.verdict == SAME):
        return False
    ahead, behind = (better, worse) if found.verdict == SAME else (worse, better)
    return ahead.collapsed * behind.finished <= behind.collapsed * ahead.finished


def said(joined: Joined) -> list[Answer]:
    """What the paper says in words, judged where points are."""
    if not _judged(joined):
        return []
    table = joined.table

    def values(row: str, column: str) -> Mapping[int, float]:
        return joined.result(row, column).values

    falling = {cell.metric for cell in table.cells if not joined.higher_is_better(cell.metric)}
    higher = not falling

    def open_(one: Said) -> bool:
        places = ((line, place) if one.of_rows else (place, line) for line in one.of for place in one.at)
        return any(_unfinished(joined.result(*place)) for place in places)

    def ran(row: str, column: str) -> bool:
        return joined.result(row, column).finished > 0

    def answer(one: Said) -> Answer:
        found = judge_said(one, values, table.margin, paired=table.paired, higher=higher, ran=ran)
        return replace(found, so_far=found.verdict != NOT_RUN and open_(one))

    return [answer(one) for one in table.said]


def _judged(joined: Joined) -> bool:
    return joined.budget == PAPER or joined.table.is_miniature


def _unfinished(result: Result) -> bool:
    return result.finished < result.planned


def _labels(joined: Joined, pair: Pair) -> tuple[str, str, str]:
    rows = {line.id: line.label for line in joined.table.rows}
    columns = {line.id: line.label for line in joined.table.columns}
    (row, column), (other_row, other_column) = pair.better, pair.worse
    if row == other_row:
        return rows[row], columns[column], columns[other_column]
    return columns[column], rows[row], rows[other_row]


def by_chance(shown: Sequence[Shown]) -> float:
    """How many signs would show if every effect were lost. One without an interval shows none."""
    able = [one for one in shown if one.point.difference.low is not None]
    return math.fsum(2 * CHANCE if one.own else CHANCE for one in able)
