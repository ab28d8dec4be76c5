"""`python -m sam_repro.report`: claims, plans, states and tables. Imports no torch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sam_repro.errors import USER_ERROR, UserError

COMMANDS = ("list", "claims", "plan", "status", "render", "runs", "import", "verify", "judge")
FORMATS = ("md", "tex", "html", "json", "csv")
DATA = ("json", "csv")
OFFERED = {"render": FORMATS, "claims": DATA, "plan": DATA, "status": DATA}  # command -> its formats
SETTINGS = {"plan": ("budget", "device"), "status": ("budget",), "render": ("budget",)}

USAGE = """\
python -m sam_repro.report list
python -m sam_repro.report claims [TABLE] [--format json|csv]
python -m sam_repro.report plan [TABLE] [budget=mini] [device=a100] [--format json|csv]
python -m sam_repro.report status [TABLE] [budget=mini] [--format json|csv]
python -m sam_repro.report render [TABLE] [budget=mini] [--format md|tex|html|json|csv]
python -m sam_repro.report runs RUN_ID_OR_FOLDER... [--out DIRECTORY]
python -m sam_repro.report import LEDGER_FILE
python -m sam_repro.report verify
python -m sam_repro.report judge < LINES_OF_JSON
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
    parser.add_argument(
        "command", choices=("list", "claims", "plan", "status", "render", "runs", "import", "verify", "judge")
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="TABLE | KEY=VALUE | RUN | FILE",
        help="a table as `list` names it; budget=, device=, results_dir=",
    )
    parser.add_argument("--results-dir", default="results", type=Path)
    parser.add_argument("--format", choices=FORMATS)
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    parser.add_argument(
        "--out", type=Path, help="where `runs` writes its table and picture (default: RESULTS_DIR/demo)"
    )
    return parser.parse_intermixed_args(arguments)


def _run(options: argparse.Namespace) -> int:
    from sam_repro.report import commands

    words, settings = _settings(options)
    results = Path(settings.pop("results_dir", options.results_dir))
    for key in settings:
        if key not in (known := SETTINGS.get(options.command, ())):
            raise UserError(
                f"{key}= is no setting of {options.command}" + (f": there are {', '.join(known)}" if known else "")
            )
    form = _format(options)
    match options.command:
        case "runs":
            return commands.runs(words, results, options.out or results / "demo")
        case "import":
            return commands.import_ledger(_only(words, "a ledger file"), results)
        case "list" | "verify" | "judge" if words:
            raise UserError(f"{options.command} takes no table: {' '.join(words)}")
    table = _only(words, "a table", optional=True)
    match options.command:
        case "list":
            return commands.list_tables()
        case "claims":
            return commands.print_claims(table, form)
        case "plan":
            return commands.plan(table, settings.get("budget", "paper"), settings.get("device", "a100"), results, form)
        case "status":
            return commands.status(table, settings.get("budget", "paper"), results, form)
        case "judge":
            return commands.judge_lines()
        case "render":
            return commands.render(table, settings.get("budget"), form, results)
        case _:
            return commands.verify(results)


def _settings(options: argparse.Namespace) -> tuple[list[str], dict[str, str]]:
    """The words, and the settings among them. A run's folder or a ledger may have an = in its name."""
    words, settings = list[str](), dict[str, str]()
    for word in options.words:
        key, equals, value = word.partition("=")
        if equals and (key in ("results_dir", "budget", "device") or options.command not in ("runs", "import")):
            settings[key] = value
        else:
            words.append(word)
    return words, settings


def _format(options: argparse.Namespace) -> str | None:
    """What to print in; None is text. Refused where it would be ignored."""
    form: str | None = options.format
    if options.json and form not in (None, "json"):
        raise UserError(f"--json and --format {form} contradict each other")
    form = "json" if options.json else form
    offered = OFFERED.get(options.command, ())
    if form is not None and form not in offered:
        text = f"its formats are {', '.join(offered)}" if offered else "it prints text only"
        raise UserError(f"{options.command} has no format {form}: {text}")
    return form


def _only(words: Sequence[str], what: str, *, optional: bool = False) -> str | None:
    if len(words) > 1:
        raise UserError(f"name one {what.removeprefix('a ')}, not {len(words)}: {' '.join(words)}")
    if not words and not optional:
        raise UserError(f"name {what}")
    return words[0] if words else None


if __name__ == "__main__":
    sys.exit(main())
