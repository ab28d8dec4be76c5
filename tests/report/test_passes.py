"""The picture of accuracy over cost."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

from sam_repro.report import passes
from sam_repro.tables.judged import Verdict
from sam_repro.tables.results import Joined, Result
from sam_repro.tables.statistics import sample
from sam_repro.tables.table import Cell, Claim, Line, Table

COLUMNS = (Line("sgd", "SGD", None), Line("long", "SGD <long>", None), Line("sam", "SAM & co", None))


def result(column: str, values: list[float], spent: float) -> Result:
    cell = Cell("p/1", "a", column, Claim("missing"), "test_accuracy", "%", (0, 1, 2), (), None)
    found = sample(values)
    verdict = Verdict("no_claim", "")
    n = len(values)
    return Result(
        cell, 3, n, n, found, found, None, dict(enumerate(values)), None, verdict, (), 1.0, spent * n, spent, None, None
    )


def joined(*results: Result) -> Joined:
    table = Table("p/1", "A <title>", "P", "last", (Line("a", "row", None),), COLUMNS, (), (), None, False)
    return Joined(replace(table, is_miniature=True), "mini", results, (), ())


def test_dearer_columns_stand_further_right_and_better_ones_higher(tmp_path: Path) -> None:
    svg = passes.render(
        joined(
            result("sgd", [70.0, 71.0, 72.0], 1000),
            result("long", [80.0, 81.0, 82.0], 2000),
            result("sam", [75.0, 76.0, 77.0], 2000),
        )
    )
    assert svg is not None
    ET.fromstring(svg)  # well-formed, the labels escaped
    bars = {
        label: (float(x), float(low), float(high))
        for label, x, low, high in re.findall(
            r'<title>([^<]*?): [^<]*</title><line[^>]* x1="([\d.]+)" x2="[\d.]+" y1="([\d.]+)" y2="([\d.]+)"', svg
        )
    }
    assert bars["SGD"][0] < bars["SGD &lt;long&gt;"][0] < bars["SAM &amp; co"][0], "equal costs stand side by side"
    assert bars["SGD"][1] > bars["SAM &amp; co"][1] > bars["SGD &lt;long&gt;"][1], "a better one is higher: a smaller y"
    assert all(low > high for _, low, high in bars.values())


def test_a_single_run_has_no_interval_and_no_place() -> None:
    single = joined(result("sgd", [70.0], 1000), result("long", [71.0], 2000), result("sam", [72.0], 2000))
    assert passes.render(single) is None


def test_a_fourth_panel_stands_below() -> None:
    """A picture of five panels in a line would have letters of six pixels on a page."""
    cells = [result("sgd", [70.0, 71.0], 1000), result("long", [80.0, 81.0], 2000), result("sam", [75.0, 76.0], 2000)]
    rows = tuple(Line(name, name, None) for name in "abcd")
    results = tuple(replace(one, cell=replace(one.cell, row=row.id)) for row in rows for one in cells)
    one = joined(*cells)
    svg = passes.render(replace(one, table=replace(one.table, rows=rows), results=results))
    assert svg is not None
    places = re.findall(r'<svg x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)">', svg)
    assert places == [
        ("0", "0", "330", "260"),
        ("330", "0", "330", "260"),
        ("660", "0", "330", "260"),
        ("0", "260", "330", "260"),
    ]
    assert 'viewBox="0 0 990 546"' in svg, "the legend below both"


def test_a_legend_that_is_wider_than_the_picture_goes_on_below_and_a_unit_stands_once() -> None:
    results = [result("sgd", [70.0, 71.0], 1000), result("long", [80.0, 81.0], 2000), result("sam", [75.0, 76.0], 2000)]
    whole = joined(*(replace(one, cell=replace(one.cell, unit="BLEU")) for one in results))
    columns = tuple(replace(line, label=f"{line.label}, a long name") for line in COLUMNS)
    svg = passes.render(replace(whole, table=replace(whole.table, columns=columns)))
    assert svg is not None
    width, height = (int(number) for number in re.search(r'viewBox="0 0 (\d+) (\d+)"', svg).groups())  # type: ignore[union-attr]
    texts = [(float(x), float(y), text) for x, y, text in re.findall(r'<text x="([\d.]+)" y="(\d+)">([^<]*)<', svg)]
    assert len(texts) == 3
    assert len({y for _, y, _ in texts}) > 1
    assert all(x + 6.6 * len(text) <= width and y < height for x, y, text in texts)
    assert svg.count("BLEU") == 1
