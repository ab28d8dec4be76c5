"""The page's building blocks: a table whose heads sort, its lines, a list of notes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from sam_repro.report.text import NONE
from sam_repro.tables.plan import PAPER
from sam_repro.tables.results import Joined


def sortable(head: Sequence[str], rows: Sequence[str], *, small: bool = False) -> str:
    """A table whose heads sort; on a phone, where the heads don't fit, a list does, which the script puts above it."""
    heads = "".join(f'<th scope="col"><button>{escape(label) or "row"}</button></th>' for label in head)
    kind = "stack sortable small" if small else "stack sortable"
    return (
        f'<div class="wide"><table class="{kind}"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def line(
    name: str,
    head: Sequence[str],
    cells: Sequence[str],
    keys: Sequence[float | None] | None = None,
    *,
    anchor: str | None = None,
    html: bool = False,
    labels: bool = True,
) -> str:
    """A row of a small table. The cells are HTML, the name where it says so; a key sorts its cell as a number; links
    point to the anchor. Without `labels` the cells are text, and `named_by_style` names them where they are stacked.
    """
    found = [f'<th scope="row">{name if html else escape(name)}</th>']
    for label, cell, key in zip(head[1:], cells, keys or [None] * len(cells), strict=True):
        number = "" if key is None else f' data-value="{key:.6g}"'
        if cell == NONE:  # the style shows a dash, or no line where cells stand below each other
            found.append("<td></td>")
            continue
        named = f' data-label="{escape(label)}"' if labels else ""
        found.append(f"<td{named}{number}>{f'<span>{cell}</span>' if labels else cell}</td>")
    place = f' id="{escape(anchor)}"' if anchor else ""
    return f"<tr{place}>{''.join(found)}</tr>"


def named_by_style(where: str, head: Sequence[str]) -> str:
    """The names of a table's columns where its cells stand below each other: once, and not in each of its many rows."""
    names = enumerate(head[1:], start=2)
    rules = (f'  {where} td:nth-child({n})::before {{ content: "{name}"; }}\n' for n, name in names)
    return f"@media (max-width: 56rem) {{\n{''.join(rules)}}}\n"


_IMPLIED = re.compile(
    "</t[dh]>(?=<t[dh]|</tr>)|</tr>(?=<tr|</tbody>|</thead>)|</t(?:head|body)>(?=<tbody|</table>)|</li>(?=<li|</ul>)"
)


def brief(html: str) -> str:
    """Without the ends that HTML implies, of a cell, a row, an item where the next begins: a twentieth of the page."""
    return _IMPLIED.sub("", html)


def picture(file: Path, results: Path, words: str) -> str:
    """A picture that lies beside the page, which would be too large with all inside; nothing where it is not there."""
    try:
        with file.open(encoding="utf-8") as drawn:
            size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawn.read(1000))
    except FileNotFoundError:
        return ""
    room = f' width="{float(size[1]):.0f}" height="{float(size[2]):.0f}"' if size else ""
    source = file.relative_to(results).as_posix()
    return f'<img class="picture" loading="lazy" src="{escape(source)}"{room} alt="{escape(words)}">'


def anchor_of(joined: Joined, *names: str) -> str:
    """Of a table, of a row's curves, of a cell: letters that need no escape in a link."""
    words = "-".join((joined.table.paper, joined.table.number, joined.budget, *names))
    return re.sub(r"[^A-Za-z0-9_.-]", lambda letter: f"_{ord(letter[0]):x}", words)


def file_of(joined: Joined) -> str:
    """Of the table's files, from the folder of the results, without the format."""
    folder, budget = ("figures" if joined.table.figure else "tables"), joined.budget
    return f"{folder}/{joined.table.ref}{'' if budget == PAPER else f'.{budget}'}"


def listing(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<ul class="notes">{items}</ul>' if items else ""
