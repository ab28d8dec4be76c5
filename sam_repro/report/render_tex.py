"""A table as LaTeX (booktabs): a row of claims and a row of measurements for each row of the paper's.

Where the paper's layout has more than eight columns, rows and columns are swapped (`laid_out.py`).
"""

from __future__ import annotations

from sam_repro.report import text
from sam_repro.report.laid_out import laid_out
from sam_repro.report.render_md import heading, notes
from sam_repro.tables.results import Joined

_ESCAPES = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "<": r"$<$", ">": r"$>$", "–": "--",
    "τ": r"$\tau$", "Ψ": r"$\Psi$", "∞": r"$\infty$", "λ": r"$\lambda$", "ρ": r"$\rho$", "→": r"$\to$",
    "“": "``", "”": "''",
}  # fmt: skip


def render(joined: Joined) -> str:
    table, layout = joined.table, laid_out(joined)
    lines = [
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{escape(table.title)} ({escape(heading(joined))}; {escape(table.source)}).}}",
        rf"  \begin{{tabular}}{{ll{'r' * len(layout.head)}}}",
        r"    \toprule",
        "    & & " + " & ".join(escape(line.label) for line in layout.head) + r" \\",
        r"    \midrule",
    ]
    for line, cells in layout.lines:
        claims = [escape(text.claimed(result.cell.claim)) for result in cells]
        ours = [escape(text.measured(joined.measured(result), text.decimals(result))) for result in cells]
        if not table.own:
            lines.append(f"    {escape(line.label)} & claimed & " + " & ".join(claims) + r" \\")
        lines.append(f"    {escape(line.label) if table.own else ''} & measured & " + " & ".join(ours) + r" \\")
    lines += [r"    \bottomrule", r"  \end{tabular}"]
    lines += [rf"  \par\footnotesize {escape(note)}" for note in notes(joined)]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def escape(words: str) -> str:
    return "".join(_ESCAPES.get(letter, letter) for letter in words)
