"""The picture of accuracy over cost, and the grid, of a table with many columns."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from report.samples import cell, finish

from sam_repro.report import bands, page, passes, render_md, render_tex, write
from sam_repro.report.__main__ import main
from sam_repro.tables import spec
from sam_repro.tables.cost import cost
from sam_repro.tables.plan import PAPER, plan
from sam_repro.tables.results import Joined, Result
from sam_repro.tables.statistics import sample
from sam_repro.tables.tuning import assumed

REF = "ours/methods"
LONG = "SGD, twice the epochs"
SHADE = r'<rect class="shade" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"'


@cache
def table() -> Joined:
    """Every method once, nothing measured; a cell without a choice takes the first trial's values."""
    methods = assumed(next(one for one in spec.load_all() if one.ref == REF))
    return write.joined([methods], {PAPER: plan(methods.with_trials(PAPER))}, {}, Path("nowhere"))[0]


def measured(runs: Mapping[str, int], rows: Collection[str] = ("40", "0")) -> Joined:
    """These columns with so many runs, each mean another, and not in the columns' order."""
    places = {line.id: place for place, line in enumerate(table().table.columns)}

    def ended(result: Result) -> Result:
        n = runs.get(result.cell.column, 0)
        if not n or result.cell.row not in rows:
            return result
        assert result.config is not None
        top = 40 + 7 * places[result.cell.column] % 22
        found = sample([top + 0.1 * seed for seed in range(n)])
        return replace(result, finished=n, succeeded=n, last=found, passes_each=cost(result.config).passes)

    return replace(table(), results=tuple(map(ended, table().results)))


def every(but: Collection[str] = ()) -> dict[str, int]:
    return {line.id: 5 for line in table().table.columns if line.id not in but}


def drawn(joined: Joined) -> str:
    found = bands.render(joined)
    assert found is not None
    ET.fromstring(found)
    return found


def marks(svg: str) -> list[tuple[str, float, float]]:
    """Of each mark with its interval, as they stand in the file: name, from the left, mean."""
    pattern = r'<g><title>(.*?): ([\d.]+) \[[^<]*</title><line[^>]* x1="([\d.]+)"'
    return [(name, float(x), float(mean)) for name, mean, x in re.findall(pattern, svg)]


def names(svg: str) -> list[tuple[str, float, float]]:
    """Of each name below a mark: it, and where it ends."""
    pattern = r'<text class="name" transform="translate\(([\d.]+) ([\d.]+)\)[^>]*>([^<]*)<'
    return [(name, float(x), float(y)) for x, y, name in re.findall(pattern, svg)]


def lines(svg: str) -> Iterator[tuple[str, float, float, float]]:
    """Of each line of text that is not turned: it, its left and right end by a wide font, and where it stands."""
    for attributes, words in re.findall(r"<text ([^>]*)>([^<]*)<", svg):
        if "transform" not in attributes:
            x, y = (float(re.search(rf'\b{key}="([\d.]+)"', attributes)[1]) for key in "xy")  # type: ignore[index]
            wide = (7.6 if "head" in attributes else 7.0) * len(words)
            before = {"middle": wide / 2, "end": wide}
            left = x - next((part for anchor, part in before.items() if f'"{anchor}"' in attributes), 0)
            yield words, left, left + wide, y


def test_every_measured_column_stands_once_in_each_panel_with_its_name() -> None:
    svg = drawn(measured(every()))
    labels = sorted(line.label for line in table().table.columns)
    assert sorted(name for name, _, _ in marks(svg)) == sorted(labels * 2)
    assert sorted(name for name, _, _ in names(svg)) == sorted(labels * 2)
    for (mark, x, _), (name, end, _) in zip(marks(svg), names(svg), strict=True):
        assert (mark, end) == (name, pytest.approx(x + 4, abs=0.2)), "below its mark"


def test_columns_stand_by_cost_and_then_by_mean() -> None:
    joined = measured(every(), rows=["0"])
    costs = {line.label: joined.result("0", line.id).passes_each for line in joined.table.columns}
    found = marks(drawn(joined))
    assert [name for name, _, _ in found] == sorted(
        costs, key=lambda name: (costs[name], next(mean for other, _, mean in found if other == name))
    )
    places = [x for _, x, _ in found]
    assert places == sorted(places)
    assert min(b - a for a, b in pairwise(places)) > 18, "so that names do not touch"
    numbers = re.findall(r'<text class="cost"[^>]*>([^<]*)<', drawn(joined))
    assert numbers == ["1.1", "1.3", "1.6", "2.0", "2.2", "5.5"], "a band for each cost"
    shades = [(float(x), float(x) + float(wide)) for x, wide in re.findall(SHADE, drawn(joined))]
    assert len(shades) == len(numbers)
    assert all(right + 10 < left for (_, right), (left, _) in pairwise(shades)), "with something between them"
    assert shades[-1][1] == pytest.approx(bands.WIDTH - bands.EDGE, abs=0.2), "over the whole width"
    assert all(any(left + 5 < x < right - 5 for left, right in shades) for x in places)


@pytest.mark.parametrize("columns", [every(), {"sgd_long": 5, "sam_larger": 5}, every(["sgd", "lpf_sgd", "looksam"])])
def test_nothing_lies_outside_or_on_top_of_another(columns: dict[str, int]) -> None:
    svg = drawn(measured(columns))
    width, height = (float(part) for part in re.search(r'viewBox="0 0 (\d+) (\d+)"', svg).groups())  # type: ignore[union-attr]
    assert width <= 800, "GitHub shows it whole"
    for name, x, y in names(svg):
        reach = 7.0 * len(name)
        assert x - reach * math.cos(bands.SLOPE) - 8 >= 0, name
        assert y + reach * math.sin(bands.SLOPE) + 8 <= height, name
    flat = list(lines(svg))
    assert all(left >= 0 and right <= width and 12 <= y <= height - 4 for _, left, right, y in flat)
    for place, (words, left, right, y) in enumerate(flat):
        for other, start, end, beside in flat[place + 1 :]:
            assert right < start or end < left or abs(y - beside) > 11, (words, other)
    numbers = [float(x) for x in re.findall(r' (?:x|x1|x2|cx)="([-\d.]+)"', svg)]
    assert min(numbers) >= 0
    assert max(numbers) <= width


def test_a_long_first_name_pushes_the_plot_to_the_right() -> None:
    joined = measured(every())
    columns = tuple(
        replace(line, label="A name of a baseline & co as long as this") if line.id == "sgd" else line
        for line in joined.table.columns
    )
    svg = drawn(replace(joined, table=replace(joined.table, columns=columns)))
    name, x, _ = next(one for one in names(svg) if one[0].startswith("A name"))
    assert x - 7.0 * len(name) * math.cos(bands.SLOPE) > 0


def test_baselines_go_on_across_and_have_marks_of_their_own() -> None:
    svg = drawn(measured(every(), rows=["0"]))
    legend, panel = svg.split("no label noise", 1)
    assert [legend.count("level of"), panel.count('class="across"')] == [2, 2]
    assert f"level of {LONG}" in legend
    colours = dict(re.findall(r'<g><title>(.*?): [^<]*</title><line class="bar" stroke="(#\w+)"', panel))
    assert colours["SGD"] != colours[LONG]
    assert {colours["SGD"], colours[LONG]}.isdisjoint({colours["SAM"], colours["LPF-SGD"]})
    assert colours["SAM"] == colours["LPF-SGD"], "a method that is not the baseline's, at the baseline's cost"
    assert panel.count("<rect x=") == 1, "SGD alone is a square"


def test_what_has_no_interval_is_named() -> None:
    svg = drawn(measured({**every(["sam_db", "esam"]), "gsam": 1, "rsam": 3}))
    assert svg.count(f"not run yet, 2 of {len(every())}: ESAM; SAM-db<") == 2
    assert svg.count("no interval yet: GSAM (1 of 5)<") == 2
    assert "R-SAM (n = 3)" in [name for name, _, _ in names(svg)]
    assert "n = 3 to 5 seeds, mean and 95 % interval, test accuracy after the last epoch." in svg
    half = drawn(measured(every(), rows=["40"]))
    assert "Not drawn, since nothing of it has an interval yet: no label noise." in half
    assert "n = 5 seeds" in half
    assert bands.render(measured({})) is None


def test_the_same_results_give_the_same_bytes() -> None:
    joined = measured(every(["gsam"]))
    assert drawn(joined) == drawn(replace(joined, results=tuple(joined.results)))


def few(joined: Joined) -> Joined:
    """The first eight columns alone."""
    kept = joined.table.columns[:8]
    cells = tuple(one for one in joined.table.cells if one.column in {line.id for line in kept})
    return replace(joined, table=replace(joined.table, columns=kept, cells=cells), trials=None)


def test_more_than_eight_columns_stand_down_the_side() -> None:
    joined = measured({"sgd": 5}, rows=["40"])
    grid = render_md.render(joined).split("\n\n")[2].splitlines()
    assert grid[0] == "|  | 40 % label noise | no label noise |"
    assert grid[2] == "| SGD | 40.20 ± 0.16 | – |"
    assert len(grid) == 2 + len(every())
    tex = render_tex.render(joined)
    assert r"\begin{tabular}{llrr}" in tex
    assert r"SGD & measured & 40.20 $\pm$ 0.16 & -- \\" in tex
    html = page.render([joined], {}, Path("nowhere"))
    assert '<th scope="row">SAM-db<td' in html
    assert 'data-label="40 % label noise" data-value="40.2"><a class="ours" href="#ours-methods-paper-40-sgd">' in html


def test_eight_columns_stand_as_the_table_has_them() -> None:
    joined = few(measured({"sgd": 5}, rows=["40"]))
    grid = render_md.render(joined).split("\n\n")[2].splitlines()
    assert grid[0].startswith("|  | SGD | SGD, twice the epochs | LPF-SGD |")
    assert len(grid) == 2 + 2
    assert r"\begin{tabular}{llrrrrrrrr}" in render_tex.render(joined)


def test_a_table_of_our_own_is_drawn_as_soon_as_two_columns_have_an_interval(tmp_path: Path) -> None:
    methods = spec.load(REF)
    planned = plan([methods])[REF]
    picture = tmp_path / f"tables/{REF}.svg"
    finish(tmp_path, cell(planned, "0", "sgd"), {0: 65.0, 1: 66.0}, passes=1092.0)
    assert main(["render", REF, "--results-dir", str(tmp_path)]) == 0
    assert not picture.exists(), "a single column compares nothing"
    finish(tmp_path, cell(planned, "0", "sam"), {0: 64.0, 1: 65.0}, passes=2184.0)
    assert main(["render", REF, "--results-dir", str(tmp_path)]) == 0
    first = picture.read_bytes()
    assert [name for name, _, _ in marks(first.decode())] == ["SGD (n = 2)", "SAM (n = 2)"]
    assert main(["render", REF, "--results-dir", str(tmp_path)]) == 0
    assert picture.read_bytes() == first


def test_a_table_of_our_own_with_few_columns_is_drawn_over_an_axis_of_passes() -> None:
    joined = few(measured({"sgd": 5, "sam": 5}))
    assert passes.render(joined) is not None
    assert write._picture(joined) == passes.render(joined)
