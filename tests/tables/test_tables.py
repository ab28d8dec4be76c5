"""Claims joined with a ledger, and every format made of it."""

import base64
import builtins
import csv
import hashlib
import io
import json
import math
import re
import shutil
import statistics as reference
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import ROOT
from PIL import Image, ImageChops
from report.samples import all_files, cell, curves_of, epochs, finish

from sam_repro.errors import UserError
from sam_repro.report import curves, page, render_data, render_md, render_tex, studies, text, write
from sam_repro.report.__main__ import main
from sam_repro.runs import ledger
from sam_repro.runs.entry import Entry
from sam_repro.runs.faults import usable
from sam_repro.tables import discrepancies, spec
from sam_repro.tables.claims import claims
from sam_repro.tables.plan import Planned, plan
from sam_repro.tables.points import points
from sam_repro.tables.results import Joined, join
from sam_repro.tables.table import Table

# Without their miniatures: these tests are about one table at several budgets.
NOISE, CIFAR = (replace(spec.load(ref), miniature=None) for ref in ("asam/6", "asam/2"))
PLANS = {budget: plan([NOISE, CIFAR], budget) for budget in ("paper", "mini", "smoke")}
FULL, MINI = PLANS["paper"], PLANS["mini"]


def entries(results: Path) -> Mapping[str, Entry]:
    lines, problems = ledger.read(results)
    kept, faults = usable(lines)
    assert not problems
    assert not faults
    return {entry["run_id"]: entry for entry in kept}


def joined(results: Path, table: Table = NOISE, budget: str = "paper") -> Joined:
    planned: list[Planned] = PLANS[budget][table.ref]
    return join(table, planned, entries(results), budget, results)


def test_values_are_those_of_the_ledger(tmp_path: Path) -> None:
    tops = {0: 94.45, 1: 94.5, 2: 94.6}
    finish(tmp_path, cell(FULL["asam/6"], "0", "sgd"), tops)
    result = joined(tmp_path).result("0", "sgd")
    assert result.best is not None
    assert result.last is not None
    assert result.best.mean == pytest.approx(reference.mean(tops.values()))
    assert result.best.std == pytest.approx(reference.stdev(tops.values()))
    assert result.last.mean < result.best.mean - 0.2, "the last epoch is not the best one"
    assert (result.planned, result.finished, result.succeeded) == (3, 3, 3)
    assert result.verdict.kind == "agrees"


def test_the_epoch_picked_on_validation_stands_where_runs_have_one(tmp_path: Path) -> None:
    one, other = (cell(FULL["asam/6"], "0", column) for column in ("sgd", "sam"))
    finish(tmp_path, one, {0: 94.45, 1: 94.5, 2: 94.6}, picks=6)
    finish(tmp_path, other, {0: 95.0})
    found = joined(tmp_path)
    with_it, without = found.result("0", "sgd"), found.result("0", "sam")
    assert without.picked is None
    assert with_it.picked is not None
    assert with_it.picked.mean == pytest.approx(reference.mean(epochs(top, s)[5]["test_accuracy"] for s, top in
                                                              enumerate((94.45, 94.5, 94.6))))  # fmt: skip
    assert with_it.values == joined(tmp_path, replace(NOISE, statistic="best")).result("0", "sgd").values
    picked = joined(tmp_path, replace(NOISE, statistic="picked")).result("0", "sgd")
    assert picked.values.keys() == {0, 1, 2}
    assert reference.mean(picked.values.values()) == pytest.approx(with_it.picked.mean)
    shown = text.measured(with_it.picked, 2)
    views = (render_md.render(found), page.render([found], entries(tmp_path), tmp_path))
    assert all(shown in view and "epoch picked on validation" in view for view in views)
    assert json.loads(render_data.render_json(found))["cells"][0]["picked_mean"] == round(with_it.picked.mean, 6)
    (tmp_path / "ledger.jsonl").write_text("")
    finish(tmp_path, one, {0: 94.45})
    assert "picked on validation" not in render_md.render(joined(tmp_path))


def test_an_empty_ledger_measures_nothing(tmp_path: Path) -> None:
    table = joined(tmp_path)
    assert {result.verdict.kind for result in table.results} == {"not_run"}
    assert not table.any_run


def test_the_difference_is_paired_over_common_seeds_only_where_the_table_declares_it(tmp_path: Path) -> None:
    finish(tmp_path, cell(FULL["asam/6"], "20", "sgd"), {0: 91.0, 1: 92.0})
    finish(tmp_path, cell(FULL["asam/6"], "20", "sam"), {1: 92.5, 2: 99.0})
    pairs = joined(tmp_path, replace(NOISE, paired=True)).result("20", "sam").difference
    assert pairs is not None
    assert (pairs.rule, pairs.value) == ("one run: no interval", pytest.approx(0.5))
    unpaired = joined(tmp_path).result("20", "sam").difference
    assert unpaired is not None
    assert (unpaired.rule, unpaired.value) == ("Welch", pytest.approx(95.75 - 91.5))
    assert joined(tmp_path).result("20", "sgd").difference is None, "the baseline has no baseline"


def test_collapsed_runs_count_as_in_the_paper(tmp_path: Path) -> None:
    """VGG19-BN, SGD: 3 of 5, by divergence or stuck at 10 % alike; the mean is that of the three."""
    finish(tmp_path, cell(FULL["asam/2"], "vgg19_bn", "sgd"), {0: 93.8, 1: None, 2: 93.9, 3: 10.0, 4: 94.0})
    table = joined(tmp_path, CIFAR)
    result = table.result("vgg19_bn", "sgd")
    assert (result.finished, result.succeeded, result.collapsed) == (5, 3, 2)
    assert result.best is not None
    assert result.best.mean == pytest.approx(93.9)
    assert "2 collapsed" in render_md.render(table)


def test_what_a_run_reached_before_it_collapsed_does_not_count(tmp_path: Path) -> None:
    planned = cell(FULL["asam/2"], "vgg19_bn", "sgd")
    finish(tmp_path, planned, {0: 93.8})
    reached = dict(ledger.read(tmp_path)[0][0])
    del reached["finished"]
    ledger.append(tmp_path, {**reached, "run_id": planned.runs[1].id, "seed": 1, "status": "collapsed"})
    result = joined(tmp_path, CIFAR).result("vgg19_bn", "sgd")
    assert (result.finished, result.succeeded) == (2, 1)


def test_a_mean_of_survivors_makes_no_point(tmp_path: Path) -> None:
    """As long as the one that is ahead lost a larger share of its runs; what it says shows how many."""
    finish(tmp_path, cell(FULL["asam/6"], "20", "sgd"), {0: 80.0, 1: 80.1, 2: 80.2})
    finish(tmp_path, cell(FULL["asam/6"], "20", "sam"), {0: 90.0, 1: 90.1, 2: None})
    (shown,) = (one for one in points(joined(tmp_path)) if one.pair.better == ("20", "sam"))
    assert (shown.point.verdict, shown.holds, shown.failed) == ("same sign shown", False, ((1, 3), (0, 3)))
    assert text.point(shown).endswith("same sign shown; 1 of 3 runs failed, and 0 of 3")
    result = joined(tmp_path).result("20", "sam")
    assert result.passes_each == result.passes / 3, "here a failed run has spent as much as the others"


def test_a_run_without_the_tables_statistic_did_not_fail(tmp_path: Path) -> None:
    """One that held out no validation split has no picked epoch."""
    finish(tmp_path, cell(FULL["asam/6"], "20", "sgd"), {0: 91.0, 1: 91.1})
    assert joined(tmp_path).result("20", "sgd").finished == 2
    picked = joined(tmp_path, replace(NOISE, statistic="picked")).result("20", "sgd")
    assert (picked.finished, picked.collapsed, picked.verdict.kind) == (0, 0, "not_run")


def test_all_runs_collapsed(tmp_path: Path) -> None:
    finish(tmp_path, cell(FULL["asam/2"], "vgg19_bn", "sam"), dict.fromkeys(range(5)))
    result = joined(tmp_path, CIFAR).result("vgg19_bn", "sam")
    assert result.verdict.kind == "undecided", "one of five succeeded in the paper: p = 1"
    assert "0 of 5 succeeded, claimed 1 of 5" in result.verdict.text
    assert result.best is None


def test_a_short_budget_at_chance_is_no_collapse(tmp_path: Path) -> None:
    finish(tmp_path, cell(MINI["asam/2"], "vgg19_bn", "sgd"), {0: 10.0, 1: 10.5})
    assert joined(tmp_path, CIFAR, "mini").result("vgg19_bn", "sgd").succeeded == 2


def test_budgets_do_not_mix(tmp_path: Path) -> None:
    for seed in (0, 1):
        finish(tmp_path, cell(MINI["asam/6"], "0", "sgd"), {seed: 94.5})
    assert not joined(tmp_path).any_run
    assert joined(tmp_path, NOISE, "mini").result("0", "sgd").verdict.kind == "other_budget"


def fill(results: Path, reverse: bool = False) -> None:
    planned = [cell(FULL["asam/6"], row, column) for row in ("0", "20") for column in ("sgd", "sam")]
    planned += [cell(MINI["asam/6"], "40", "asam"), cell(FULL["asam/2"], "vgg19_bn", "sgd")]
    for p in reversed(planned) if reverse else planned:
        seeds = [run.seed for run in p.runs]
        claim = p.cell.claim.mean
        assert claim is not None
        finish(results, p, {s: claim + 0.1 * s for s in (reversed(seeds) if reverse else seeds)}, folders=True)


def write_all(results: Path) -> None:
    found = entries(results)
    plans = {budget: PLANS[budget] for budget in write.budgets(found, [CIFAR, NOISE])}
    write.everything([CIFAR, NOISE], plans, found, results, None, page=True)


def test_rendering_twice_changes_no_byte(tmp_path: Path) -> None:
    fill(tmp_path)
    write_all(tmp_path)
    first = all_files(tmp_path)
    write_all(tmp_path)
    assert all_files(tmp_path) == first
    assert {"index.html", "tables/asam/6.md", "tables/asam/6.mini.csv", "tables/asam/2.tex"} <= set(first)


def test_the_page_is_made_of_ledger_and_curves_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine has neither the runs' folders, which are not committed, nor this one's processor."""
    fill(tmp_path)
    broken = tmp_path / "runs" / cell(FULL["asam/2"], "resnet20", "sgd").runs[0].id
    broken.mkdir()
    (broken / "error.txt").write_text("a run that failed here")
    write_all(tmp_path)
    page_here = (tmp_path / "index.html").read_bytes()
    shutil.rmtree(tmp_path / "runs")
    monkeypatch.setattr("sam_repro.tables.cost.cores", lambda: 97)
    write_all(tmp_path)
    assert (tmp_path / "index.html").read_bytes() == page_here


def details(html: str) -> list[tuple[list[Any], list[Any]]]:
    """What each cell shows when it is opened, as the page's script reads it: of its table, and of itself."""
    (data,) = re.findall(r'<script type="application/json" id="details">(.*?)</script>', html)
    return [(about, one) for *about, cells in json.loads(data) for one in cells]


def test_every_cell_opens_its_command_runs_and_cost(tmp_path: Path) -> None:
    fill(tmp_path)
    write_all(tmp_path)
    html = (tmp_path / "index.html").read_text()
    rows = re.findall(r'<tr data-[^>]* id="([^"]+)"><th scope="row"><details><summary>[^<]*</summary></details>', html)
    opened = dict(zip(rows, details(html), strict=True))
    assert len(opened) == sum(len(t.cells) for t in (NOISE, NOISE, CIFAR))
    for anchor in opened:
        assert f'href="#{anchor}"' in html, "a number in its table leads to it"
    (about, done), (_, missing) = opened["asam-6-paper-0-sgd"], opened["asam-6-paper-80-asam"]
    assert about[:3] == ["sam-repro sweep table=asam/6", "", "A100"]
    assert missing[0] == "cells=80/asam"
    count, passes, hours = missing[1]
    assert (count, passes) == (3, "156.0 k"), "200 epochs of 390 whole batches, two passes each"
    assert hours
    assert missing[8] == "0 to 2"
    assert opened["asam-6-mini-40-asam"][0][1] == " budget=mini"
    assert done[2] == [part for run in cell(FULL["asam/6"], "0", "sgd").runs for part in (run.seed, run.id)]
    assert about[4:] == ["asam-6-paper", True]
    assert f'<div id="{about[4]}{done[6]}"><svg' in html
    assert 'id="asam-6-paper-rows"' in html
    for link in re.findall(r'href="((?:tables|figures)/[^"]*)" download', html):
        assert (tmp_path / link).is_file()


def test_a_forest_plot_of_levels_and_points(tmp_path: Path) -> None:
    fill(tmp_path)
    text = page.render([joined(tmp_path)], entries(tmp_path), tmp_path)
    levels, shown = re.findall(r'<ul class="forest">(.*?)</ul>', text)
    ground = re.findall(r'<use href="#([^"]*)"/>', levels)
    assert levels.count('class="band"') == levels.count(f'<g id="{ground[0]}">') == 1
    assert levels.count("<circle") == 1 + len(ground) == 4, "a cell each, on the margin's band"
    assert shown.count("<circle") == shown.count('class="claimed"') == 2
    assert re.search(r'<li class="\w+"><span>0%: SAM over SGD [^<]*</span><svg [^>]*aria-hidden="true">', shown)


def test_long_curves_are_thinned_and_keep_their_end() -> None:
    curve = [(float(epoch), 50 + epoch / 10) for epoch in range(1, 301)]
    drawn = curves.learning("a net", [(0, "SAM", curve)])
    ((_, points),) = curves_of(drawn)
    ((_, whole),) = curves_of(curves.learning("a net", [(0, "SAM", curve[-2:])]))
    assert len(points) <= curves.EACH[1] + 1
    four = curves.learning("a net", [(number, "SAM", curve) for number in range(4)])
    assert sum(len(one) for _, one in curves_of(four)) <= curves.POINTS + 4
    assert points[-1][0] == whole[-1][0]


def test_the_order_of_the_ledger_does_not_matter(tmp_path: Path) -> None:
    """Results that come from several machines in any order make the same tables."""
    contents = []
    for reverse in (False, True):
        folder = tmp_path / str(reverse)
        fill(folder, reverse)
        write_all(folder)
        contents.append(
            {name: data for name, data in all_files(folder).items() if not name.startswith(("runs", "ledger"))}
        )
    assert contents[0] == contents[1]


def test_json_and_csv_agree_with_each_other(tmp_path: Path) -> None:
    fill(tmp_path)
    write_all(tmp_path)
    cells = json.loads((tmp_path / "tables/asam/6.json").read_text())["cells"]
    lines = list(csv.DictReader(io.StringIO((tmp_path / "tables/asam/6.csv").read_text())))
    assert len(cells) == len(lines) == 15
    for one, other in zip(cells, lines, strict=True):
        assert (one["row"], one["column"], one["verdict"]) == (other["row"], other["column"], other["verdict"])
        assert str("" if one["best_mean"] is None else one["best_mean"]) == other["best_mean"]
        assert " ".join(one["run_ids"]) == other["run_ids"]


def test_markdown_is_a_table_with_equal_rows(tmp_path: Path) -> None:
    fill(tmp_path)
    text = render_md.render(joined(tmp_path))
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(blocks) == 2
    for block in blocks:
        assert len({line.count("|") for line in block}) == 1
    assert "| 0% | 94.50 ± 0.11 → 94.60 ± 0.10 |" in text


def test_latex_escapes_and_closes(tmp_path: Path) -> None:
    fill(tmp_path)
    tables = spec.load_all()
    planned = plan(tables)
    for table in tables:
        text = render_tex.render(join(table, planned[table.ref], entries(tmp_path), "paper", tmp_path))
        assert text.count(r"\begin{") == text.count(r"\end{") == 2
        assert text.isascii(), [letter for letter in text if not letter.isascii()]
        rows = [line for line in text.splitlines() if line.endswith(r"\\")]
        (columns,) = re.findall(r"\\begin\{tabular\}\{(l+r+)\}", text)
        assert {line.replace(r"\&", "").count("&") for line in rows} == {len(columns) - 1}
        assert "%" not in text.replace(r"\%", "")


def test_latex_escapes_each_special_letter() -> None:
    assert render_tex.escape("50 % & a_b #1 ±") == r"50 \% \& a\_b \#1 $\pm$"


def test_no_success_colour_below_the_papers_budget(tmp_path: Path) -> None:
    """Even where the value is exactly the claimed one."""
    p = cell(MINI["asam/6"], "0", "sgd")
    finish(tmp_path, p, {run.seed: 94.50 for run in p.runs})
    write_all(tmp_path)
    html = (tmp_path / "index.html").read_text()
    assert 'class="chip other_budget"' in html
    assert 'class="chip agrees"' not in html


def test_the_page_needs_no_other_file(tmp_path: Path) -> None:
    fill(tmp_path)
    write_all(tmp_path)
    html = (tmp_path / "index.html").read_text()
    for word in ("http://", "https://", "src=", "@import", "url("):
        assert word not in html, word
    assert html.count('class="chip agrees"') > 0
    assert len(curves_of(html)) >= 6
    for run in cell(FULL["asam/6"], "0", "sgd").runs:
        assert f'"{run.id}"' in html


def test_the_page_runs_its_own_script_alone_and_has_every_cell_to_filter(tmp_path: Path) -> None:
    fill(tmp_path)
    write_all(tmp_path)
    html = (tmp_path / "index.html").read_text()
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', html)
    assert policy.startswith("default-src 'none'; ")
    for tag in ("style", "script"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "style=" not in html
    assert " onclick=" not in html
    cells = html[html.index('<section id="cells">') :].partition("</section>")[0]
    assert cells.count("<tr data-kinds=") == sum(len(t.cells) for t in (NOISE, NOISE, CIFAR))
    options = [re.findall("<option>(.*?)</option>", of) for of in re.findall("<select name=.*?</select>", cells)]
    kinds = [row.split() for row in re.findall('data-kinds="(.*?)"', cells)]
    shown = [[values[int(k)] for values, k in zip(options, row, strict=True)] for row in kinds]
    assert any(row[-2:] == ["mini", "other budget"] for row in shown)
    assert len(html) < 1_000_000
    assert html.index('id="asam-6-paper"') < html.index('id="cells"'), "what was measured comes first"


def test_the_discrepancies_are_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "discrepancies.yaml"
    row = {
        "id": "asam-eta",
        "paper": "asam",
        "topic": "method",
        "says": "0.01",
        "code": "0 < x",
        "ours": "0.01",
        "official": None,
        "matters": "table 2",
        "seen": {"paper": "section 5.2", "code": "asam.py"},
    }
    file.write_text(yaml.safe_dump([row]))
    monkeypatch.setattr(discrepancies, "FILE", file)
    text = page.render([joined(tmp_path)], {}, tmp_path)
    assert '<section id="discrepancies"' in text
    assert '<a href="#discrepancies">' in text
    assert '<tr id="d1">' in text
    assert "0 &lt; x" in text
    for broken in ("{a: 1}", "[1]", "[a: b: c]"):
        file.write_text(broken)
        with pytest.raises(UserError, match=r"discrepancies\.yaml"):
            page.render([joined(tmp_path)], {}, tmp_path)
    file.unlink()
    assert (
        "discrepancies" not in page.render([joined(tmp_path)], {}, tmp_path).split("<script>")[0].split("</style>")[1]
    )


def test_every_shipped_discrepancy_is_on_the_page(tmp_path: Path) -> None:
    rows = yaml.safe_load(discrepancies.FILE.read_text())
    text = page.render([joined(tmp_path)], {}, tmp_path)
    assert rows
    places = {row["id"]: number for number, row in enumerate(rows, start=1)}
    for name in joined(tmp_path).table.concerning():  # from a cell to its row
        assert f'<tr id="d{places[name]}"><th scope="row">{places[name]} {name}<td' in text
        of_cells = {number for _, one in details(text) for number in ([*one, *[[]] * 8])[7]}
        assert f'<a href="#d{places[name]}">{places[name]}</a>' in text or places[name] in of_cells
    for row in rows:
        for field in ("says", "code", "ours", "official", "matters"):
            assert row[field] is None or escape(" ".join(row[field].split())) in text


def test_a_figure_is_drawn_of_what_was_measured(tmp_path: Path) -> None:
    table = spec.load("asam/fig4_cifar10")
    planned = plan([table], "smoke")[table.ref]
    values = {"0.05": 91.0, "0.5": 93.0, "1.0": 92.0}
    for row, value in values.items():
        finish(tmp_path, cell(planned, row, "filterwise_p2"), {0: value})
    drawn = curves.figure(join(table, planned, entries(tmp_path), "smoke", tmp_path))
    assert drawn is not None
    ((label, points),) = curves_of(drawn)
    assert label == "filter-wise, p = 2"
    heights = [height for _, height in points]
    assert sorted(range(3), key=lambda i: heights[i]) == [1, 2, 0], "higher on the page is a smaller y"
    assert curves.figure(join(table, planned, {}, "smoke", tmp_path)) is None


@pytest.mark.parametrize(("low", "high"), [(0.0, 100.0), (94.51, 94.52), (93.0, 93.0), (-0.5, 0.5), (10.0, 10.3)])
def test_ticks_are_few_and_enclose_the_range(low: float, high: float) -> None:
    ticks = curves.nice_ticks(low, high)
    assert 2 <= len(ticks) <= 7
    assert ticks[0] <= low
    assert ticks[-1] >= high
    assert len({f"{tick:g}" for tick in ticks}) == len(ticks), "each has a label of its own"


def same_file(kept: Path, content: bytes) -> bool:
    """To the byte; of a PNG up to one shade, which a coordinate's last bit moves."""
    if kept.suffix != ".png":
        return kept.read_bytes() == content
    old, new = (Image.open(file, formats=["PNG"]).convert("RGB") for file in (kept, io.BytesIO(content)))
    return old.size == new.size and max(high for _, high in ImageChops.difference(old, new).getextrema()) <= 1


def test_the_numbers_at_the_top_of_the_readme_are_those_of_the_ledger() -> None:
    made = (ROOT / "results/tables/asam/6.mini.md").read_text(encoding="utf-8")
    head = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Train something")[0].replace("**", "")
    shown = [line for line in head.splitlines() if " ± " in line]
    grid = made.partition("\nMeasured is")[0]
    assert len(shown) == sum(" ± " in line for line in grid.splitlines()), "each row that is measured, and no other"
    for line in shown:
        noise, _, cells = line.removeprefix("| ").partition(" | ")
        assert f"\n| {'no' if noise == 'none' else noise} label noise | {cells}\n" in made


def test_the_readme_says_how_many_methods_its_first_picture_shows() -> None:
    """Of each label of the noise, the methods with an interval: all but the two columns that they are compared with."""
    head = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Train something")[0]
    assert "](results/tables/ours/methods.svg)" in head
    table = json.loads((ROOT / "results/tables/ours/methods.json").read_text(encoding="utf-8"))
    methods = {column["id"] for column in table["columns"]} - {"sgd", "sgd_long"}
    shown = [(one["row"], one["column"]) for one in table["cells"] if one["last_low"] is not None]
    noisy, clean = (sum((row, column) in shown for column in methods) for row in ("40", "0"))
    assert f"({noisy} of {len(methods)} are measured at 40 %, {clean} on clean labels" in " ".join(head.split())


def as_python_3_12_adds(values: Iterable[Any], start: Any = 0, _sum: Callable[..., Any] = sum) -> Any:
    """Numbers with a fraction are added up without the rounding that earlier versions leave."""
    parts = list(values)
    return math.fsum([start, *parts]) if any(isinstance(part, float) for part in parts) else _sum(parts, start)


def test_the_committed_tables_are_those_of_the_committed_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed claim, footnote or recipe shows in results/ with the commit that changes it: `make tables`.

    Whatever Python makes them: what it adds up otherwise must not show.
    """
    monkeypatch.setattr(builtins, "sum", as_python_3_12_adds)
    kept = ROOT / "results"
    changed = subprocess.run(
        ["git", "status", "--porcelain", "results/ledger.jsonl"], cwd=ROOT, capture_output=True, text=True
    )
    if changed.returncode or changed.stdout:
        pytest.skip("no checkout, or a ledger with runs of one's own")
    shutil.copy(kept / "ledger.jsonl", tmp_path)
    shutil.copytree(kept / "curves", tmp_path / "curves")
    for numbers in (kept / "figures").glob(f"*/{studies.FILE}"):  # a picture is drawn from them alone
        (tmp_path / "figures" / numbers.parent.name).mkdir(parents=True)
        shutil.copy(numbers, tmp_path / "figures" / numbers.parent.name)
    assert main(["render", "--results-dir", str(tmp_path)]) == 0
    made = {name: content for name, content in all_files(tmp_path).items() if not name.startswith(("ledger", "curves"))}
    names = [f for folder in ("tables", "figures") for f in (kept / folder).rglob("*") if f.is_file()]
    names.append(kept / "index.html")
    assert sorted(made) == sorted(str(file.relative_to(kept)) for file in names), "run `make tables` and commit"
    stale = [name for name, content in made.items() if not same_file(kept / name, content)]
    assert not stale, f"run `make tables` and commit: {stale}"


def test_a_table_of_ones_own_question_has_no_claims(tmp_path: Path) -> None:
    text = "title: x\nsource: {paper: a, where: b}\nmetric: m\nkind: own\nseeds: 2\ncolumns: {a: {}}\nrows: {r: {}}\n"
    file = tmp_path / "table/mine/1.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    table = spec.load("mine/1", tmp_path)
    assert table.own
    assert not claims([table])
    assert not spec.load("asam/6").own
    file.write_text(text.replace("{r: {}}", '{r: {claims: {a: "91.00"}}}'))
    with pytest.raises(spec.UserError, match="a table of kind own has no claims"):
        spec.load("mine/1", tmp_path)
