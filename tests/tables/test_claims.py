"""Every number of the specs against the papers' own text, parsed by code that knows nothing of the specs."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pins
import pytest

from sam_repro.tables import spec
from sam_repro.tables.claims import claims

PRINTED_FILE = Path(__file__).with_name("printed.txt")
PRINTED = PRINTED_FILE.read_text(encoding="utf-8")
PAPERS = Path(__file__).resolve().parents[3] / "shared" / "papers"
FILES = {"asam": "004_ce4ec6f5f8242e6a.txt", "rsam": "002_8279b529133002c4.txt"}

IDS = {
    "τ (rank corr.)": "tau", "mini-batch size": "batch_size", "learning rate": "learning_rate",
    "weight decay": "weight_decay", "dropout rate": "dropout", "Ψ (avg.)": "psi", "DenseNet-121": "densenet121",
    "ResNet-20": "resnet20", "ResNet-56": "resnet56", "VGG19-BN": "vgg19_bn", "ResNeXt29-32x4d": "resnext29_32x4d",
    "WRN-28-2": "wrn_28_2", "WRN-28-10": "wrn_28_10", "PyramidNet-272": "pyramidnet272", "Top1": "top1",
    "Top5": "top5", "Validation": "validation", "Test": "test", "ResNet-18": "resnet18", "ResNet-50": "resnet50",
    "ViT-B-16": "vit_b16", "ViT-S-16": "vit_s16", "SGD": "sgd", "SAM": "sam", "ASAM": "asam", "Adam": "adam",
    "Adam+SAM": "adam+sam", "Adam+ASAM": "adam+asam", "SGD+M": "sgdm", "RMSProp": "rmsprop", "AdamW": "adamw",
    "LPF-SGD": "lpf_sgd", "R-SAM": "rsam", "ImageNet": "imagenet", "ImageNet-Real": "imagenet_real",
    "ImageNet-v2": "imagenet_v2", "ImageNet-R": "imagenet_r", "ImageNet-C": "imagenet_c", "0%": "0", "20%": "20",
    "40%": "40", "60%": "60", "80%": "80",
}  # fmt: skip


def printed_lines() -> dict[str, list[str]]:
    """table -> the lines of the paper."""
    blocks = re.split(r"^=== (\S+)\n", PRINTED, flags=re.M)[1:]
    return {name: body.strip("\n").split("\n") for name, body in zip(blocks[::2], blocks[1::2], strict=True)}


def value(text: str) -> tuple[float, float | None, bool]:
    """mean, deviation, whether the deviation is a bound."""
    text = re.sub(r"</?b>", "", text).replace(r"\pm", "±")
    mean, _, std = (part.strip() for part in text.partition("±"))
    return float(mean), float(std.lstrip("<")) if std else None, std.startswith("<")


def printed_cells() -> dict[tuple[str, str, str], tuple[float, float | None, bool]]:
    found = {}
    for table, lines in printed_lines().items():
        body = [line.split("\t") for line in lines if "\t" in line]
        if table == "asam/1":
            columns, body = ["sharpness_p2", "adaptive_p2", "sharpness_pinf", "adaptive_pinf"], body[2:]
        elif body:
            columns, body = [IDS[name] for name in body[0] if name in IDS], body[1:]
        model = ""
        for line in body:
            label = re.sub(r"</?b>|\*| \[†\]", "", line[0])
            model = IDS[label] if label else model
            row = model
            if table == "rsam/3":
                row += ("+mixup" if line[2] == "✓" else "") + ("+randaug" if line[3] == "✓" else "")
            if table == "rsam/4":
                row += "/" + IDS[line[1]]
            for column, text in zip(columns, line[-len(columns) :], strict=True):
                found[table, row, column] = value(text)
    rsam, gsam, again, rgsam = map(float, re.findall(r"([\d.]+)%", printed_lines()["rsam/fig3a"][0]))
    assert gsam == again
    for column, mean in (("rsam", rsam), ("gsam", gsam), ("rgsam", rgsam)):
        found["rsam/fig3a", "vit_b16", column] = (mean, None, False)
    return found


@pytest.fixture(scope="module")
def objects() -> list[dict]:
    done = subprocess.run(
        [sys.executable, "-m", "sam_repro.report", "claims", "--json"], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_every_number_is_the_papers(objects: list[dict]) -> None:
    ours = {
        (f"{c['paper']}/{c['table']}", c["row"], c["column"]): (c["mean"], c["std"], c["std_is_upper_bound"])
        for c in objects
        if c["kind"] == "printed" and f"{c['paper']}/{c['table']}" not in pins.pinned()
    }
    if lacking := sorted({table for table, _, _ in ours} - printed_lines().keys()):
        pytest.fail(
            f"copy the lines of {lacking[0]} from the paper's text into {PRINTED_FILE.name}, or pin its claims by "
            f"python tests/renew.py {' '.join(lacking)}",
            pytrace=False,
        )
    assert ours == printed_cells()
    assert len(ours) >= 24 + 24 + 24 + 6 + 6 + 15 + 21 + 21 + 12 + 30 + 3


def test_the_excerpt_is_verbatim() -> None:
    if not PAPERS.is_dir():
        pytest.skip("the papers' texts are not beside this checkout")
    for table, lines in printed_lines().items():
        text = (PAPERS / FILES[table.split("/")[0]]).read_text(encoding="utf-8")
        for line in lines:
            assert line in text, (table, line)


def test_runs_and_success_rates_are_the_papers(objects: list[dict]) -> None:
    at = {(f"{c['paper']}/{c['table']}", c["row"], c["column"]): c for c in objects}
    for table in ("asam/2", "asam/3"):
        note = next(line for line in printed_lines()[table] if "success rate" in line)
        rates = re.findall(r"(SGD|SAM|ASAM):? (\d)/(\d)", note)
        assert len(rates) == 3
        for method, succeeded, n in rates:
            cell = at[table, "vgg19_bn", IDS[method]]
            assert (cell["succeeded"], cell["n"]) == (int(succeeded), int(n))
        assert {at[table, "pyramidnet272", c]["n"] for c in ("sgd", "sam", "asam")} == {3}
        assert at[table, "resnet20", "sgd"]["n"] == 5
    assert {c["n"] for c in objects if (c["paper"], c["table"]) in {("asam", "4"), ("asam", "5"), ("asam", "6")}} == {3}
    assert {c["n"] for c in objects if c["paper"] == "rsam"} == {None}, "R-SAM states no number of runs"


def test_a_claim_has_the_footnotes_of_its_row_and_column(objects: list[dict]) -> None:
    at = {(f"{c['paper']}/{c['table']}", c["row"], c["column"]): c["footnotes"] for c in objects}
    for table, rates in (("asam/2", ("3/5", "1/5", "3/5")), ("asam/3", ("5/5", "4/5", "4/5"))):
        for column in ("sgd", "sam", "asam"):
            assert any(
                "success rate: SGD: {}, SAM: {}, ASAM: {}".format(*rates) in x for x in at[table, "vgg19_bn", column]
            )
            pyramid = at[table, "pyramidnet272", column]
            assert any("tested 3 times" in note for note in pyramid)
            assert not any("5 independent runs" in note for note in pyramid), "of these there are 3"
            assert not any(
                "success rate" in note or "PyramidNet-272 is" in note for note in at[table, "resnet20", column]
            )
        assert at[table, "resnet20", "sgd"] == list(spec.load(table).footnotes)


def test_a_columns_footnote_goes_with_its_claims() -> None:
    table = spec.load("asam/6")
    first, *others = table.columns
    table = replace(table, columns=(replace(first, footnote="of a column"), *others))
    noted = {c["column"] for c in claims([table]) if "of a column" in c["footnotes"]}
    assert noted == {first.id}


def test_released_logs_and_missing_claims(objects: list[dict]) -> None:
    assert {(c["paper"], c["table"]) for c in objects if c["kind"] == "log"} >= {("fsam", "logs")}
    logs = {c["column"]: c["mean"] for c in objects if (c["paper"], c["table"]) == ("fsam", "logs")}
    assert logs == {"sam": 80.78, "fsam": 81.19, "fsam_0.95": 81.32}
    missing = [c for c in objects if c["kind"] == "missing"]
    assert {c["paper"] for c in missing if f"{c['paper']}/{c['table']}" not in pins.pinned()} == {"fsam"}
    assert all(c["mean"] is None and c["std"] is None for c in missing)
    assert {c["row"] for c in missing} >= {"vgg16_bn", "resnet18", "wrn_28_10", "pyramidnet110"}


def test_every_claim_names_its_source_and_unit(objects: list[dict]) -> None:
    for claim in objects:
        assert claim["source"]
        assert claim["metric"]
        if claim["paper"] != "fsam":
            number = claim["table"]
            assert f"table {number}" in claim["source"] or "figure 3a" in claim["source"]
    assert {c["unit"] for c in objects if c["metric"] == "test_accuracy"} == {"%"}


HEAD = "title: x\nsource: {paper: a, where: b}\n"
TABLE = HEAD + "metric: m\nn: 1\ncolumns: {a: {}}\n"
BROKEN = {
    "{title: x": "expected",
    HEAD + "colums: {}\nrows: {}\n": "unknown key 'colums': did you mean 'columns'?",
    HEAD + "columns: {a: {}}\n": "rows is missing",
    TABLE + "rows: {r: {claims: {b: '1'}}}\n": "unknown column 'b'",
    TABLE + "rows: {r: {claims: {a: 94.60}}}\n": "in quotes",
    TABLE + "rows: {r: {claims: {a: 9O.1}}}\n": "not of the form",
    TABLE + "rows: {r: [1]}\n": "must be a mapping",
    HEAD + "metric: m\ncolumns: {a: {}}\nrows: {r: {}}\n": "seeds must be",
    HEAD + "n: 1\ncolumns: {a: {}}\nrows: {r: {}}\n": "no metric",
    TABLE + "overrides: seed\nrows: {r: {}}\n": "list of key=value",
    TABLE + "experiment: [demo]\nrows: {r: {}}\n": "experiment can't be ['demo']",
    TABLE + "rows: {r: {}, r: {}}\n": "twice",
    TABLE + "rows: {r: {}}\ncells: {r/b: []}\n": "no row/column",
    TABLE + "baseline: z\nrows: {r: {}}\n": "no cell of the table",
    HEAD + "metric: m\nn: 1\ncolumns: {a: {seeds: 1}}\nrows: {r: {}}\n": "unknown key 'seeds'",
    TABLE + "statistic: median\nrows: {r: {}}\n": "best, last, picked",
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_spec_is_one_line(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "table" / "asam"
    folder.mkdir(parents=True)
    (folder / "9.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(spec.UserError) as caught:
        spec.load("asam/9", tmp_path)
    assert BROKEN[text] in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "asam/9" in str(caught.value)


def test_a_later_override_of_a_key_replaces_the_earlier(tmp_path: Path) -> None:
    cell = spec.load("asam/2").cell("pyramidnet272", "sam")
    assert [o for o in cell.overrides if o.startswith("method=")] == ["method=sam"]
    (tmp_path / "table" / "asam").mkdir(parents=True)
    (tmp_path / "table/asam/9.yaml").write_text(
        TABLE.replace("a: {}", "a: {overrides: [seed=1, loop.clip=1]}")
        + "experiment: demo\noverrides: [loop.batch_size=128, track=none]\n"
        "rows: {r: {overrides: [loop.batch_size=256]}, s: {experiment: other}}\ncells: {r/a: [seed=2]}\n"
    )
    table = spec.load("asam/9", tmp_path)
    assert table.cell("r", "a").overrides == (
        "+experiment=demo", "track=none", "loop.clip=1", "loop.batch_size=256", "seed=2",
    )  # fmt: skip
    assert table.cell("s", "a").overrides[0] == "+experiment=other", "a row's own experiment replaces the table's"


def test_unknown_cells_name_the_nearest() -> None:
    with pytest.raises(spec.UserError, match="did you mean 'resnet20'"):
        spec.load("asam/2").cell("resnet2O", "sgd")
    with pytest.raises(spec.UserError, match="did you mean 'asam/2'"):
        spec.load("asam2")


def test_claims_as_a_list_has_all_cells() -> None:
    tables = [table for table in spec.load_all() if not table.figure]
    found = claims(tables)
    assert len(found) == sum(len(table.rows) * len(table.columns) for table in tables if not table.own)
    assert len(found) >= 219, "one that shipped is lost"


def test_figures_are_no_claims(objects: list[dict]) -> None:
    figures = [table for table in spec.load_all() if table.figure]
    assert {table.ref for table in figures} >= {"asam/fig4_cifar10", "rsam/fig3b", "fsam/figA1"}
    assert not {f"{c['paper']}/{c['table']}" for c in objects} & {table.ref for table in figures}
    assert all(cell.claim.kind == "missing" for table in figures for cell in table.cells)
