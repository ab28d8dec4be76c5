"""matplotlib's SVG made fit for a page: ink of the reader's colour, no style attributes, nothing but what is drawn.

A dark screen has no black ink. So styles become plain attributes, ink becomes `currentColor`, and a style sheet of one
rule says what that is.
"""

from __future__ import annotations

import re
from html import escape

from sam_repro.report.figures.style import INK

SHEET = f"<style>svg{{color:{INK}}}@media (prefers-color-scheme:dark){{svg{{color:#ddd}}}}</style>"
_FONT = re.compile(r"font-family: [^;\"]*")
_STYLE = re.compile(r' style="([^"]*)"')
_PLACE = re.compile(r' (?:d|x|y|transform)="[^"]*"')
_IDS = re.compile(r' id="(?:[A-Za-z][A-Za-z0-9.]*_\d+|legend)"')
# Ticks: lines, whose definitions say how they are drawn.
_TICK = re.compile(r'(<use [^>]*?) fill="currentColor" stroke="currentColor" stroke-width="0\.\d"')
_GROUP = re.compile(r"<g\b[^>]*>|</g>")


def themed(source: str, title: str) -> str:
    found = re.sub(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<!--.*?-->", "", source, flags=re.S)
    found = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", found, flags=re.S)
    found = _STYLE.sub(lambda match: _attributes(_FONT.sub("font-family: sans-serif", match[1])), found)
    found = re.sub(re.escape(INK), "currentColor", _IDS.sub("", found), flags=re.I)
    found = _TICK.sub(r"\1", found)
    found = _PLACE.sub(lambda match: re.sub(r"(\.\d)\d+", r"\1", match[0]), _ungrouped(found))
    found = re.sub(r"\s*\n\s*", "\n", found)
    head = f'<title>{escape(title)}</title>{SHEET}<g stroke-linejoin="round" stroke-linecap="butt">'
    found = re.sub(r"(<svg[^>]*>)", lambda match: match[1].replace("<svg", '<svg role="img"', 1) + head, found, count=1)
    return found.strip().removesuffix("</svg>") + "</g></svg>\n"


def _ungrouped(source: str) -> str:
    """Without groups that say nothing of what is in them, of which matplotlib makes many."""
    open_, kept = list[bool](), list[str]()
    for part in re.split(f"({_GROUP.pattern})", source):
        if part == "</g>":
            kept.append(part if open_.pop() else "")
        elif _GROUP.fullmatch(part):
            open_.append(part != "<g>")
            kept.append(part if open_[-1] else "")
        else:
            kept.append(part)
    return "".join(kept)


def _attributes(style: str) -> str:
    pairs = [part.split(":", 1) for part in style.split(";") if ":" in part]
    return "".join(f' {key.strip()}="{value.strip()}"' for key, value in pairs)
