"""`python -m sam_repro.report`: claims, plans, states and tables. Imports no torch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sam_repro.outcome import USER_ERROR
from sam_repro.schema import UserError

FORMATS = ("md", "tex", "html", "json", "csv")

USAGE = """\
python -m sam_repro.report list
python -m sam_repro.report claims [TABLE] [--json]
python -m sam_repro.report plan [TABLE] [budget=mini] [device=a100] [--json]
python -m sam_repro.report status [TABLE] [budget=mini] [--json]
python -m sam_repro.report render [TABLE] [budget=mini] [--format md|tex|html|json|csv]
python -m sam_repro.report runs RUN_ID_OR_FOLDER... [--out DIRECTORY]
python -m sam_repro.report import LEDGER_FILE
python -m sam_repro.report verify
"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    try:
        return _run(options)
    except UserError as error:
        print("error: " + " ".join(str(error).split()), file=sys.stderr)
        return USER_ERROR
    except BrokenPipeError:  # `| head`
        sys.stderr.close()
        return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m sam_repro.report", usage=USAGE, description="The papers' tables: claimed beside measured."
    )
    parser.add_argument("command", choices=("list", "claims", "plan", "status", "render", "runs", "import", "verify"))
    parser.add_argument(
        "words",
        nargs="*",
        metavar="TABLE | KEY=VALUE | RUN | FILE",
        help="a table as `list` names it; budget=, device=, results_dir=",
    )
    parser.add_argument("--results-dir", default="results", type=Path)
    parser.add_argument("--format", choices=FORMATS)
    parser.add_argument("--json", action="store_true", help="for programs (claims, plan, status)")
    parser.add_argument(
        "--out", type=Path, help="where `runs` writes its table and picture (default: RESULTS_DIR/demo)"
    )
    return parser.parse_intermixed_args(arguments)


def _run(options: argparse.Namespace) -> int:
    from sam_repro.report import commands

    words = [word for word in options.words if "=" not in word or options.command in ("runs", "import")]
    settings = dict(word.split("=", 1) for word in options.words if word not in words)
    results = Path(settings.pop("results_dir", options.results_dir))
    match options.command:
        case "runs":
            return commands.runs(words, results, options.out or results / "demo")
        case "import":
            return commands.import_ledger(_only(words, "a ledger file"), results)
    table = _only(words, "a table", optional=True)
    known = {"plan": ("budget", "device"), "status": ("budget",), "render": ("budget",)}.get(options.command, ())
    for key in settings:
        if key not in known:
            raise UserError(
                f"{key}= is no setting of {options.command}" + (f": there are {', '.join(known)}" if known else "")
            )
    match options.command:
        case "list":
            return commands.list_tables()
        case "claims":
            return commands.print_claims(table, options.json)
        case "plan":
            return commands.plan(
                table, settings.get("budget", "paper"), settings.get("device", "a100"), results, options.json
            )
        case "status":
            return commands.status(table, settings.get("budget", "paper"), results, options.json)
        case "render":
            return commands.render(table, settings.get("budget"), options.format, results)
        case _:
            return commands.verify(results)


def _only(words: Sequence[str], what: str, *, optional: bool = False) -> str | None:
    if len(words) > 1:
        raise UserError(f"name one {what.removeprefix('a ')}, not {len(words)}: {' '.join(words)}")
    if not words and not optional:
        raise UserError(f"name {what}")
    return words[0] if words else None


if __name__ == "__main__":
    sys.exit(main())
