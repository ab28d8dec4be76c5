"""A published table as data: configs/table/<paper>/<table>.yaml (or figure/) -> `Table`.

    title: what the caption says
    source: {paper: ..., where: table 2}
    metric: test_accuracy        # key of the ledger's metrics; a row or column may name its own
    unit: "%"
    statistic: best              # the paper reports the maximum over the epochs; or last; or picked, on validation
    kind: printed                # or log, missing: see `Claim`; own: our own question, of which nobody claims anything
    n: 5                         # runs an entry, as printed; null where the paper is silent
    seeds: 5                     # runs of ours; default n
    baseline: sgd                # differences against this column (or, in a row, against the row named there)
    paired: true                 # taken seed by seed, the points too; declared before the first run
    margin: 0.5                  # within which two levels are one, in the unit; default half a point of accuracy
    experiment: NAME             # of configs/experiment, for every row that names none of its own
    overrides: [...]             # of every cell, then the column's, the row's, the cell's; the later one wins
    columns: {sgd: {label: SGD, overrides: [...]}}
    rows: {resnet20: {label: ResNet-20, experiment: NAME, overrides: [...], claims: {sgd: 93.18 ± 0.21}}}
    cells: {resnet20/sgd: [...]} # a cell's own overrides
    footnotes: [...]             # and `discrepancies: [ids]` of docs/discrepancies.yaml, as rows and columns may have
    points: [[sam, sgd], [asam, sgd]]  # what the table is about: the first column, or row, is said to be better
    said: [{words: ..., above: [asam, sam]}]  # what the paper says of it in words: sam_repro.tables.said
    miniature: {...}             # the same question for a laptop, in these same words: sam_repro.tables.miniature;
                                 # and `without: {row or column: why}`, what it leaves out, and `stands_for`
    no_miniature: why            # of a table that has none
    tune: {...}                  # values to be chosen on a validation split: sam_repro.tables.tuning
    extends: asam/2              # all that stands there, and this on top: sam_repro.tables.extend

A cell is its row's experiment with these overrides on top; the recipe stands in the experiment alone. A column without
overrides takes the experiment's own method. A claim is the printed text, so that the YAML can be laid beside the paper;
"94.60" alone needs quotes to stay text. A table of results that no training run gives says `not_run: why`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from sam_repro import CONFIGS
from sam_repro.errors import UserError, hint
from sam_repro.files.read import DamagedError, read_yaml
from sam_repro.files.strict import Fields, Kinds, mapping, shown, typed_keys
from sam_repro.tables import said
from sam_repro.tables.cells import cell_of, pairs_of
from sam_repro.tables.discrepancies import refs
from sam_repro.tables.extend import Column, extended, with_column
from sam_repro.tables.miniature import claimed_of, inherited, without
from sam_repro.tables.papers import FILE as PAPER
from sam_repro.tables.table import OWN, STATISTICS, Line, Pair, Table
from sam_repro.tables.tuning import tuned, with_choices
from sam_repro.tables.verdicts import MARGIN

_WORD = (str, int, float)  # a label may look like a number
_LINE: Kinds = {"label": _WORD, "overrides": object, "metric": str, "unit": str, "footnote": str, "discrepancies": list}
_OF_BOTH: Kinds = {"discrepancies": list, "n": int, "seeds": int, "baseline": _WORD, "experiment": str}
_ROW: Kinds = _LINE | _OF_BOTH | {"claims": dict, "succeeded": dict}
_TABLE: Kinds = (
    _OF_BOTH
    | dict.fromkeys(("title", "metric", "unit", "statistic", "kind", "not_run", "no_miniature"), str)
    | dict.fromkeys(
        ("source", "columns", "rows", "cells", "miniature", "tune", "chosen", "without", "stands_for"), dict
    )
    | dict.fromkeys(("footnotes", "points", "said"), list)
    | {"overrides": object, "margin": (int, float), "paired": bool}
)
_SOURCE: Kinds = {"paper": _WORD, "where": _WORD}


def names(configs: Path = CONFIGS) -> list[str]:
    """Every table's and figure's name, papers in alphabetical order."""
    return sorted(_files(configs))


def _files(configs: Path) -> dict[str, Path]:
    """asam/2 -> configs/table/asam/2.yaml; figures, whose cells have no claims, are in configs/figure."""
    roots = (configs / "figure", configs / "table")
    files = [(root, file) for root in roots for file in root.glob("*/*.yaml") if file.name != PAPER]
    return {file.relative_to(root).with_suffix("").as_posix(): file for root, file in files}


def load(ref: str, configs: Path = CONFIGS, added: Column | None = None) -> Table:
    """The table of this name; with a column more it is another table, asam/2+mine."""
    try:
        return _load(ref, configs, added)
    except UserError as mistake:  # names in the file, which mistakes are told by, may have line breaks
        raise UserError(" ".join(str(mistake).split())) from mistake


def _load(ref: str, configs: Path, added: Column | None) -> Table:
    data = _read(ref, configs)
    figure = _files(configs)[ref].parents[1].name == "figure"
    if added:
        ref, data = f"{ref}+{added.id}", with_column(f"table {ref}", data, added)
    table = _table(ref, data, figure=figure)
    if not data.get("miniature"):
        return table
    small = _table(ref, inherited(f"table {ref} miniature", data), figure=table.figure)
    pairs = claimed_of(ref, data, table.pairs, small.pairs)
    left_out = without(ref, data["miniature"], {line.id: line.label for line in (*table.rows, *table.columns)})
    return replace(table, miniature=replace(_small(small, pairs), without=left_out))


def _small(table: Table, pairs: tuple[Pair, ...]) -> Table:
    trials = table.trials and replace(table.trials, is_miniature=True)
    return replace(table, pairs=pairs, trials=trials, is_miniature=True)


def _read(ref: str, configs: Path, extending: tuple[str, ...] = ()) -> Fields:
    """What the table's file says, on top of the table that it extends."""
    known = _files(configs)
    if ref not in known:
        of_file = f"table {extending[-1]} extends the " if extending else ""
        raise UserError(f"{of_file}unknown table {ref!r}: {hint(ref, sorted(known))}")
    if ref in extending:
        raise UserError(f"table {ref}: it extends itself, by way of {', '.join(extending)}")
    try:
        data = read_yaml(known[ref])
    except (DamagedError, FileNotFoundError) as error:
        raise UserError(f"table {ref}: {' '.join(str(error).split())}") from None
    own = with_choices(ref, mapping(f"table {ref}", data), configs)
    if not isinstance(base := own.pop("extends", ""), str):
        raise UserError(f"table {ref}: extends must be the name of a table, is {shown(base)}")
    if not base:
        return own
    return dict(extended(_read(base, configs, (*extending, ref)), own))


def load_all(configs: Path = CONFIGS) -> list[Table]:
    return [load(ref, configs) for ref in names(configs)]


def _table(ref: str, data: Any, *, figure: bool) -> Table:
    where = f"table {ref}"
    fields = typed_keys(where, data, _TABLE, needed={"title", "source", "columns", "rows"})
    if fields.get("statistic", "best") not in STATISTICS:
        raise UserError(f"{where}: statistic must be {', '.join(STATISTICS)}, is {fields['statistic']!r}")
    if fields.get("kind", "printed") not in ("printed", "log", "missing", OWN):
        raise UserError(f"{where}: kind must be printed, log, missing or {OWN}, is {fields['kind']!r}")
    source = typed_keys(f"{where} source", fields["source"], _SOURCE, needed=_SOURCE)
    columns = {
        str(k): typed_keys(f"{where} column {k}", v or {}, _LINE)
        for k, v in mapping(f"{where} columns", fields["columns"]).items()
    }
    rows = {
        str(k): typed_keys(f"{where} row {k}", v or {}, _ROW)
        for k, v in mapping(f"{where} rows", fields["rows"]).items()
    }
    own = {str(k): v for k, v in mapping(f"{where} cells", fields.get("cells") or {}).items()}
    for name in own:
        if name not in [f"{row}/{column}" for row in rows for column in columns]:
            raise UserError(f"{where}: cells names {name!r}, which is no row/column of it")
    cells = []
    for row, r in rows.items():
        printed = mapping(f"{where} row {row} claims", r.get("claims") or {})
        for column in printed:
            if column not in columns:
                raise UserError(f"{where} row {row}: claim for the unknown column {column!r}: {hint(column, columns)}")
        cells += [cell_of(ref, fields, (row, r), (column, c), own) for column, c in columns.items()]
    table = Table(
        ref=ref,
        title=str(fields["title"]),
        source=f"{source['paper']}, {source['where']}",
        statistic=fields.get("statistic", "best"),
        rows=tuple(Line(k, str(v.get("label", k)), v.get("footnote"), refs(where, v)) for k, v in rows.items()),
        columns=tuple(Line(k, str(v.get("label", k)), v.get("footnote"), refs(where, v)) for k, v in columns.items()),
        cells=tuple(cells),
        footnotes=tuple(str(x) for x in fields.get("footnotes") or ()),
        not_run=fields.get("not_run"),
        figure=figure,
        pairs=pairs_of(where, fields.get("points") or [], rows, columns, cells),
        said=said.read(where, fields.get("said") or [], list(rows), list(columns)),
        discrepancies=refs(where, fields),
        margin=_margin(where, fields.get("margin")),
        paired=bool(fields.get("paired")),
        no_miniature=fields.get("no_miniature"),
    )
    return tuned(table, fields)


def _margin(where: str, margin: float | None) -> float:
    if margin is None:
        return MARGIN
    if isinstance(margin, bool) or not 0 < margin < math.inf:
        raise UserError(f"{where}: margin must be a finite number above 0, is {margin}")
    return float(margin)
