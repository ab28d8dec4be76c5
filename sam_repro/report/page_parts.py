"""The page's building blocks: a table whose heads sort, its lines, a list of notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def sortable(head: Sequence[str], rows: Sequence[str], *, small: bool = False) -> str:
    """A table whose heads sort; on a phone, where the heads don't fit, a list above it does."""
    heads = "".join(f'<th scope="col"><button>{escape(label) or "row"}</button></th>' for label in head)
    choices = "".join(
        f'<option value="{sign}{number}">{escape(label) or "row"} {arrow}</option>'
        for number, label in enumerate(head, start=1)
        for sign, arrow in (("", "↑"), ("-", "↓"))
    )
    kind = "stack sortable small" if small else "stack sortable"
    return (
        f'<label class="sorter">Sort by <select><option value="">as listed</option>{choices}</select></label>'
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
) -> str:
    """A row of a small table. The cells are HTML; a key sorts its cell as a number; links point to the anchor."""
    found = [f'<th scope="row">{escape(name)}</th>']
    for label, cell, key in zip(head[1:], cells, keys or [None] * len(cells), strict=True):
        number = "" if key is None else f' data-value="{key:.9g}"'
        found.append(f'<td data-label="{escape(label)}"{number}><span>{cell}</span></td>')
    place = f' id="{escape(anchor)}"' if anchor else ""
    return f"<tr{place}>{''.join(found)}</tr>"


def listing(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<ul class="notes">{items}</ul>' if items else ""
