"""What a table is about, judged: for each of its pairs of columns, whether the better one is better here too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sam_repro.tables.results import Joined
from sam_repro.tables.spec import Pair
from sam_repro.tables.statistics import COVERAGE, Sample
from sam_repro.tables.verdicts import SAME, Group, Point, holm, point, welch

# Of a lost effect, to be shown with the claimed sign all the same.
CHANCE = (1 - COVERAGE) / 2


@dataclass(frozen=True)
class Shown:
    pair: Pair
    row: str  # labels
    better: str
    worse: str
    point: Point
    holds: bool  # the sign stands after Holm's correction over the table's pairs


def points(joined: Joined) -> list[Shown]:
    """Of the pairs that both have runs. Where the paper prints no difference, its sign is that the first is better."""
    labels = {line.id: line.label for line in (*joined.table.rows, *joined.table.columns)}
    found = list[tuple[Pair, Point]]()
    for pair in joined.table.pairs:
        better, worse = (joined.measured(joined.result(pair.row, c)) for c in (pair.better, pair.worse))
        if better is not None and worse is not None:
            claimed = 1.0 if pair.claimed is None else pair.claimed
            found.append((pair, point(welch(_group(better), _group(worse)), claimed)))
    stands = holm([1.0 if p.difference.p is None else p.difference.p for _, p in found])
    return [
        Shown(pair, labels[pair.row], labels[pair.better], labels[pair.worse], p, ok and p.verdict == SAME)
        for (pair, p), ok in zip(found, stands, strict=True)
    ]


def by_chance(shown: Sequence[Shown]) -> float:
    """How many signs would show if every effect were lost."""
    return CHANCE * len(shown)


def _group(sample: Sample) -> Group:
    return Group(sample.mean, sample.std, sample.n)
