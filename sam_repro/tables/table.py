"""What a table is once it is read: claims, rows and columns, cells, and the pairs of cells that it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sam_repro.errors import UserError, hint
from sam_repro.tables.said import Said
from sam_repro.tables.verdicts import MARGIN

OWN = "own"  # a claim's kind where nobody claims anything: the table asks a question of our own
MINI = "mini"  # the budget that takes a table's miniature
STATISTICS = ("best", "last", "picked")  # of the epochs of a run, which of its values counts
Place = tuple[str, str]  # row, column
Overrides = tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    # printed: in the paper; log: in the authors' released logs; missing: the paper's number is not at hand; or OWN
    kind: str
    mean: float | None = None
    std: float | None = None
    std_bound: bool = False  # printed as "< std"
    decimals: int = 2
    n: int | None = None  # runs, None where the paper is silent
    succeeded: int | None = None  # of them, where some failed; mean and std are theirs
    text: str = ""


@dataclass(frozen=True)
class Line:
    """A row or a column."""

    id: str
    label: str
    footnote: str | None
    discrepancies: tuple[str, ...] = ()  # ids of docs/discrepancies.yaml


@dataclass(frozen=True)
class Cell:
    table: str  # "asam/2"
    row: str
    column: str
    claim: Claim
    metric: str
    unit: str
    seeds: tuple[int, ...]
    overrides: Overrides
    baseline: Place | None  # that this cell is compared with
    why_not: str | None = None  # it is not trained

    @property
    def name(self) -> str:
        return f"{self.table} {self.row} {self.column}"


@dataclass(frozen=True)
class Pair:
    """What the table is about: that one of its cells is better than another, in a row or in a column."""

    better: Place
    worse: Place
    claimed: float | None  # the printed difference, where both cells have a claim


@dataclass(frozen=True)
class Tune:
    """How the values that a table leaves free are chosen."""

    rule: str
    seeds: tuple[int, ...]  # of the trials
    columns: Mapping[str, tuple[Overrides, ...]]  # column -> its trials
    like: Mapping[str, str]  # column -> the one whose choice it takes


@dataclass(frozen=True)
class Table:
    ref: str  # "asam/2"
    title: str
    source: str
    statistic: str  # one of STATISTICS
    rows: tuple[Line, ...]
    columns: tuple[Line, ...]
    cells: tuple[Cell, ...]
    footnotes: tuple[str, ...]
    not_run: str | None
    figure: bool  # read from configs/figure: cells of a figure whose values are not at hand
    pairs: tuple[Pair, ...] = ()
    said: tuple[Said, ...] = ()  # in words, of these rows and columns
    discrepancies: tuple[str, ...] = ()  # those that concern every cell
    miniature: Table | None = None
    is_miniature: bool = False
    no_miniature: str | None = None  # why it has none
    without: tuple[
        tuple[str, str], ...
    ] = ()  # of a miniature: the labels of rows and columns that it leaves out, and why
    margin: float = MARGIN  # in the unit of the cells: within it two levels are one
    tune: Tune | None = field(default=None, hash=False)  # it holds mappings
    trials: Table | None = None  # of the values that are tuned, a column a trial
    paired: bool = False  # declared before the first run: differences are taken seed by seed

    @property
    def own(self) -> bool:
        """Whether it asks a question of our own, so that nobody claims anything."""
        return all(cell.claim.kind == OWN for cell in self.cells)

    def at(self, budget: str) -> Table:
        """The table that this budget trains: its miniature, if it has one."""
        return self.miniature if budget == MINI and self.miniature else self

    def with_trials(self, budget: str) -> list[Table]:
        """What this budget trains, and the trials that come before it."""
        table = self.at(budget)
        return [table, table.trials] if table.trials else [table]

    @property
    def paper(self) -> str:
        return self.ref.split("/")[0]

    @property
    def number(self) -> str:
        return self.ref.split("/", 1)[1]

    def concerning(self, row: str | None = None, column: str | None = None) -> tuple[str, ...]:
        """Ids of the discrepancies that concern a cell; those of every row or column where none is named."""
        lines = [x for x in self.rows if row in (None, x.id)] + [x for x in self.columns if column in (None, x.id)]
        return tuple(dict.fromkeys((*self.discrepancies, *(name for line in lines for name in line.discrepancies))))

    def cell(self, row: str, column: str) -> Cell:
        for known, ids, word in ((row, self.rows, "row"), (column, self.columns, "column")):
            if known not in [line.id for line in ids]:
                raise UserError(f"table {self.ref} has no {word} {known!r}: {hint(known, [x.id for x in ids])}")
        return next(c for c in self.cells if (c.row, c.column) == (row, column))


def layered(*layers: Iterable[str]) -> Overrides:
    """All layers in one list; of two overrides of one key the later stays: Hydra refuses a group named twice."""
    merged = dict[str, str]()
    for layer in layers:
        for override in layer:
            key = override.split("=", 1)[0]
            merged.pop(key, None)
            merged[key] = override
    return tuple(merged.values())
