"""What a table is about, judged: for each of its pairs of cells, whether the better one is better here too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sam_repro.tables.plan import PAPER
from sam_repro.tables.results import Joined, Result
from sam_repro.tables.said import Answer
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
    holds: bool  # the sign, of an own question either sign, stands after Holm's correction over the table's pairs
    own: bool = False  # a question of our own: nobody claims which is the better one


def points(joined: Joined) -> list[Shown]:
    """Of the pairs that both have runs of the paper's budget, or of a miniature.

    Where the paper prints no difference, its sign is that the first is better, whichever way that is.
    """
    if not _judged(joined):
        return []
    found = list[tuple[Pair, Point, bool]]()
    for pair in joined.table.pairs:
        better, worse = joined.result(*pair.better), joined.result(*pair.worse)
        if (difference := joined.difference(better, worse)) is not None:
            upwards = 1.0 if joined.higher_is_better(better.cell.metric) else -1.0
            claimed = upwards if pair.claimed is None else pair.claimed
            found.append((pair, point(difference, claimed), _unfinished(better) or _unfinished(worse)))
    stands = holm([1.0 if p.difference.p is None else p.difference.p for _, p, _ in found])
    return [
        Shown(pair, *_labels(joined, pair), p, so_far, ok and _counts(p, own=joined.table.own), joined.table.own)
        for (pair, p, so_far), ok in zip(found, stands, strict=True)
    ]


def _counts(found: Point, *, own: bool) -> bool:
    return found.verdict != UNDECIDED if own else found.verdict == SAME


def said(joined: Joined) -> list[Answer]:
    """What the paper says in words, judged where points are."""
    if not _judged(joined):
        return []
    table = joined.table

    def values(row: str, column: str) -> Mapping[int, float]:
        return joined.result(row, column).values

    falling = {cell.metric for cell in table.cells if not joined.higher_is_better(cell.metric)}
    higher = not falling
    return [judge_said(one, values, table.margin, paired=table.paired, higher=higher) for one in table.said]


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
    """How many signs would show if every effect were lost."""
    return sum(2 * CHANCE if one.own else CHANCE for one in shown)
