"""The page in a real Chromium: on a desktop, on a phone, printed. Needs Debian's chromium and chromium-driver."""

import base64
import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from PIL import Image
from report.browser import CHROMIUM, DRIVER, Browser, browser
from report.samples import cell, finish

from sam_repro.report.__main__ import main
from sam_repro.tables import spec
from sam_repro.tables.plan import plan

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium and chromium-driver are not installed"),
]
TABLE = "#asam-6-paper"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("results")
    for budget in ("paper", "smoke"):
        planned = plan([spec.load("asam/6"), spec.load("asam/2")], budget)
        for row, top in (("0", 94.5), ("20", 91.4), ("40", 95.2)):
            finish(results, cell(planned["asam/6"], row, "sgd"), {0: top, 1: top + 0.1, 2: top - 0.1}, folders=True)
        finish(
            results,
            cell(planned["asam/2"], "vgg19_bn", "sgd"),
            {0: 93.8, 1: None, 2: 93.9, 3: 94.0, 4: None},
            folders=True,
        )
    assert main(["render", "--format", "html", "--results-dir", str(results)]) == 0
    return results / "index.html"


@pytest.fixture(scope="module")
def desktop(page: Path) -> Iterator[Browser]:
    with browser(1200, 900) as window:
        window.open(page)
        yield window


@pytest.fixture(scope="module")
def phone(page: Path) -> Iterator[Browser]:
    with browser(390, 844, mobile=True) as window:
        window.open(page)
        yield window


def rows(window: Browser, table: str = TABLE) -> list[str]:
    return window.run(
        f"return [...document.querySelector('{table} table').tBodies[0].rows].map(r => r.cells[0].textContent)"
    )


def test_no_error_and_no_network(desktop: Browser, page: Path) -> None:
    assert desktop.log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in desktop.log("performance")]
    asked = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
    assert asked <= {page.resolve().as_uri(), "data:,"}, "only the page itself"


def test_a_click_on_a_head_sorts_and_a_second_one_turns_it_round(desktop: Browser) -> None:
    assert rows(desktop) == ["0%", "20%", "40%", "60%", "80%"]
    head = f"{TABLE} thead th:nth-child(2) button"
    desktop.click(head)
    assert rows(desktop) == ["80%", "60%", "20%", "0%", "40%"], "by the measured value, else by the claimed one"
    assert desktop.run(f"return document.querySelector('{TABLE} th:nth-child(2)').ariaSort") == "ascending"
    desktop.click(head)
    assert rows(desktop) == ["40%", "0%", "20%", "60%", "80%"]
    desktop.click(f"{TABLE} thead th:nth-child(1) button")
    assert rows(desktop) == ["0%", "20%", "40%", "60%", "80%"]
    assert desktop.run(f"return document.querySelectorAll('{TABLE} table:first-of-type [aria-sort]').length") == 1


def test_a_filter_shows_the_cells_that_have_all_that_is_chosen(desktop: Browser) -> None:
    shown = "return [...document.querySelectorAll('#cells tbody tr')].filter(r => !r.hidden).length"
    everything = desktop.run(shown)
    choose = (
        "const f = document.querySelector('#cells form'); f.querySelector('[name=budget]').value = arguments[0];"
        "f.querySelector('input').value = arguments[1]; f.dispatchEvent(new Event('input'))"
    )
    desktop.run(choose, "smoke", "asam/6 sam")
    assert 0 < desktop.run(shown) < everything
    assert desktop.run("return document.querySelector('#cells output').textContent") == f"{desktop.run(shown)} cells"
    desktop.run(choose, "", "")
    assert desktop.run(shown) == everything


WIDTHS = (360, 390, 480, 600, 768, 896, 900, 1024, 1280, 1440, 1920)


def shape(window: Browser, width: int, *, dark: bool = False) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    window.devtools("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    window.devtools("Emulation.setEmulatedMedia", {"features": [scheme]})


def test_nothing_is_clipped(page: Path) -> None:
    beyond = "e => e.getBoundingClientRect().right > innerWidth + 0.5"
    with browser(1280, 900) as window:
        window.open(page)
        window.run("document.querySelectorAll('details').forEach(d => d.open = true)")
        for width in WIDTHS:
            shape(window, width)
            assert window.run("return document.documentElement.scrollWidth <= innerWidth"), width
            everything = "document.querySelectorAll('td, th, .forest svg, .filter > *, code, .picture')"
            assert window.run(f"return [...{everything}].filter({beyond}).map(e => e.textContent)") == [], width


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Deque's accessibility rules, as npm has them; where there is no npm the older ones that a wheel brings."""
    if not shutil.which("npm"):
        return files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    folder = tmp_path_factory.mktemp("axe")
    subprocess.run(["npm", "pack", "--silent", "axe-core@4.14.0"], cwd=folder, check=True, capture_output=True)
    with tarfile.open(next(folder.glob("*.tgz"))) as packed:
        script = packed.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()


@pytest.mark.parametrize(("width", "dark"), [(360, False), (1280, True)])
def test_it_violates_no_rule_of_accessibility(page: Path, axe: str, width: int, dark: bool) -> None:
    with browser(width, 900) as window:
        shape(window, width, dark=dark)
        window.open(page)
        assert window.run("return matchMedia('(prefers-color-scheme: dark)').matches") is dark
        window.run("document.querySelectorAll('details').forEach(d => d.open = true)")
        window.devtools("Runtime.evaluate", {"expression": axe})
        found = "r => JSON.stringify(r.violations.map(v => [v.id, v.nodes.length, v.nodes[0].html]))"
        ask = {"expression": f"axe.run(document).then({found})", "awaitPromise": True, "returnByValue": True}
        assert json.loads(window.devtools("Runtime.evaluate", ask)["result"]["value"]) == []


def test_the_keyboard_is_enough(page: Path) -> None:
    with browser(1200, 900) as window:
        window.open(page)

        def press(key: str) -> None:
            text = {"text": "\r"} if key == "Enter" else {}
            code = {"Tab": 9, "Enter": 13}[key]
            for kind in ("keyDown", "keyUp"):
                event = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
                window.devtools("Input.dispatchKeyEvent", event | (text if kind == "keyDown" else {}))

        window.run("document.querySelector('#cells summary').focus()")
        press("Enter")
        assert window.run("return document.querySelector('#cells details').open")
        press("Tab")
        assert window.run("return document.activeElement.name") == "paper", "the filters come next"
        window.run(f"document.querySelector('{TABLE} thead th:nth-child(2) button').focus()")
        press("Enter")
        assert window.run(f"return document.querySelector('{TABLE} th:nth-child(2)').ariaSort") == "ascending"
        window.run("document.querySelector('#cells details').open = false")
        window.run(f"document.querySelector('{TABLE} a.ours').focus()")
        press("Enter")
        opened = "location.hash.slice(1)"
        assert window.run(f"return document.getElementById({opened}).querySelector('details').open")
        assert (
            window.run(f"const top = document.getElementById({opened}).getBoundingClientRect().top; return top") < 900
        )


def test_a_number_opens_its_cell(desktop: Browser) -> None:
    desktop.click(f'{TABLE} a.ours[href="#asam-6-paper-20-sgd"]')
    text = desktop.run("return document.getElementById('asam-6-paper-20-sgd').innerText")
    assert "sam-repro sweep table=asam/6 cells=20/sgd" in text
    assert text.count("seed ") == 3
    assert desktop.run("return document.querySelector('#asam-6-paper-20 svg') !== null"), "its curves"


def test_collapsed_runs_are_counted_in_their_cell(desktop: Browser) -> None:
    text = desktop.run("return document.querySelector('#asam-2-paper').innerText")
    assert "93.90 ± 0.10 (3/5)" in text
    assert "claimed 93.87 ± 0.09 (3/5)" in text


def colours(window: Browser, css: str) -> set[tuple[int, int, int]]:
    """Those that are seen of an element."""
    window.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    box = window.run(
        "const r = document.querySelector(arguments[0]).getBoundingClientRect();"
        "return {x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height, scale: 1}",
        css,
    )
    how = {"format": "png", "captureBeyondViewport": True, "clip": box}
    data = window.devtools("Page.captureScreenshot", how)["data"]
    with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
        return {colour for _, colour in picture.convert("RGB").getcolors(1 << 24)}


def test_what_is_drawn_once_is_seen_in_every_panel(desktop: Browser) -> None:
    band, line = (236, 239, 242), (213, 218, 224)
    for number in (1, 2, 3):
        seen = colours(desktop, f"{TABLE} .forest li:nth-child({number}) svg")
        assert band in seen, "the margin"
        assert min(map(max, seen)) > 60, "nothing is black"
    panel = f"{TABLE} .curves > div > svg"
    assert any(max(abs(a - b) for a, b in zip(colour, line, strict=True)) < 12 for colour in colours(desktop, panel))
    inside = (
        "const box = e => document.querySelector(e).getBoundingClientRect();"
        "const p = box(arguments[0]), l = box(arguments[1]);"
        "const unit = p.width / 320; return [(l.left - p.left) / unit, (l.right - p.left) / unit]"
    )
    left, right = desktop.run(inside, panel, f"{panel} .c0")
    assert (left, right) == (pytest.approx(40, abs=2), pytest.approx(310, abs=2)), "a curve is above its epochs"


def test_success_is_green_only_at_the_papers_budget(desktop: Browser) -> None:
    colours = "return [...document.querySelectorAll('{} .chip')].map(c => getComputedStyle(c).color)"
    green = desktop.run("return getComputedStyle(document.querySelector('.chip.agrees')).color")
    assert green in desktop.run(colours.format("#asam-6-paper"))
    below = desktop.run(colours.format("#asam-6-smoke"))
    assert below
    assert green not in below


def test_nothing_sticks_out_of_a_phone(phone: Browser) -> None:
    assert phone.run("return innerWidth") == 390
    assert phone.run("return document.documentElement.scrollWidth") == 390
    box = "const r = document.createRange(); r.selectNodeContents(e); return r.getBoundingClientRect()"
    right = f"const right = e => {{ {box}.right }}; "
    phone.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert max(phone.run(right + "return [...document.querySelectorAll('p, li, h2, td')].map(right)")) <= 390
    beyond = (
        "return [...document.querySelectorAll('td > *')].filter(e => right(e) > edge(e) + 0.5).map(e => e.textContent)"
    )
    edge = "const edge = e => e.parentNode.getBoundingClientRect().right; "
    assert phone.run(right + edge + beyond) == []


def test_each_cell_on_a_phone_is_named_by_its_column() -> None:
    """By the cell itself, or by the style for tables of text: of cells, of trials, of papers against code. The
    committed page has them all."""
    name = "const name = td => getComputedStyle(td, '::before').content.slice(1, -1); "
    head = "const head = td => td.closest('table').tHead.rows[0].cells[td.cellIndex].textContent.trim(); "
    cells = "const cells = [...document.querySelectorAll('table.stack td:not(:empty)')]; "
    wrong = "return cells.filter(td => name(td) !== head(td)).map(td => [td.closest('section').id, name(td), head(td)])"
    with browser(390, 844, mobile=True) as window:
        window.open(Path(__file__).parents[2] / "results" / "index.html")
        window.run("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert window.run(name + head + cells + wrong) == []
        for place in ("#cells", "#discrepancies", ".trials"):
            assert window.run(f"return document.querySelectorAll('{place} td:not(:empty)').length") > 0, place


def test_text_on_a_phone_is_large_enough(phone: Browser) -> None:
    sizes = phone.run(
        "return [...document.querySelectorAll('td span, p, li')].map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(sizes) >= 12


def test_a_phone_sorts_by_its_list(phone: Browser) -> None:
    assert not phone.run(f"return document.querySelector('{TABLE} thead').getBoundingClientRect().height > 1")
    choose = "const list = document.querySelector(arguments[0] + ' select'); list.value = arguments[1];"
    phone.run(choose + "list.dispatchEvent(new Event('change', {bubbles: true}))", TABLE, "-2")
    assert rows(phone)[0] == "40%"


def test_it_prints_with_everything_unfolded(desktop: Browser, tmp_path: Path) -> None:
    desktop.run("dispatchEvent(new Event('beforeprint'))")
    assert desktop.run("return [...document.querySelectorAll('details')].every(d => d.open)")
    desktop.print(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


def test_without_script_every_number_is_there(page: Path) -> None:
    """The page is complete as it is; the script only sorts."""
    text = page.read_text(encoding="utf-8").split("<script>")[0]
    for claim in (c.claim for table in spec.load_all() for c in table.cells if c.claim.text):
        assert claim.text.replace("<", "&lt;") in text


def test_screenshots_show_something(desktop: Browser, phone: Browser, tmp_path: Path) -> None:
    for window, width in ((desktop, 1200), (phone, 780)):
        window.screenshot(tmp_path / "shot.png")
        data = (tmp_path / "shot.png").read_bytes()
        assert int.from_bytes(data[16:20], "big") in (width, width - 15)
        assert len(data) > 20_000, "an empty page compresses to less"
