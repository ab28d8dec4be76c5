"""`sam-repro report`: claims, plans, states and tables. Imports no torch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from sam_repro import signals
from sam_repro.errors import USER_ERROR, UserError, command, hint
from sam_repro.tables.cost import found_device
from sam_repro.tables.extend import column
from sam_repro.words import HELP, Words, parse, stored_in

FORMATS = ("md", "tex", "html", "json", "csv")
DATA = ("json", "csv")
# command -> its formats
OFFERED = {"render": FORMATS, "claims": DATA, "plan": DATA, "status": DATA, "discrepancies": ("json",)}
COMMANDS = (
    "list",
    "claims",
    "discrepancies",
    "plan",
    "status",
    "render",
    "wanted",
    "choose",
    "runs",
    "import",
    "verify",
    "judge",
)
SETTINGS = {
    "plan": ("budget", "device", "column", "hardware.link"),
    "status": ("budget", "column"),
    "render": ("budget", "column"),
    "choose": ("budget",),
    "wanted": ("hours", "device"),
    "discrepancies": ("table",),
}
FLAGS = {"--results-dir": True, "--format": True, "--json": False, "--out": True}

USAGE = """\
sam-repro report list
sam-repro report claims [TABLE] [--format json|csv]
sam-repro report discrepancies [TABLE] [--json]
sam-repro report plan [TABLE] [budget=mini] [device=a100] [hardware.link=nvlink] [--format json|csv]
sam-repro report status [TABLE] [budget=mini] [--format json|csv]
sam-repro report render [TABLE] [budget=mini] [--format md|tex|html|json|csv]
sam-repro report wanted hours=8 [device=a100]
sam-repro report choose TABLE [budget=mini]
sam-repro report runs RUN_ID_OR_FOLDER... [--out DIRECTORY]
sam-repro report import LEDGER_FILE
sam-repro report verify
sam-repro report judge < LINES_OF_JSON

The papers' tables: claimed beside measured. TABLE is a name that `list` prints; in plan, status and render a figure's
that `sam-repro study` measures, too. `choose` makes the file of a tuned table's choices from its trials in the ledger;
`wanted` says which missing runs decide most verdicts for the time.

  column=NAME:OVERRIDE,...   one column more in plan, status or render, as a sweep trains it
  device=NAME           that a plan is for: cpu, a100, h100, v100, rtx3090, rtx4090 or t4; else this machine's
  hardware.link=NAME    what its ranks would say to each other: nvlink, pcie (8 GPUs each) or 25gbit (4 nodes of 8)
  results_dir=results   where the ledger and the runs are; --results-dir too
  --json                the same as --format json
  --out DIRECTORY       where `runs` writes its table and picture (RESULTS_DIR/demo)"""


@command
def main(words: list[str]) -> int:
    if not words or set(words) & set(HELP):
        print(USAGE)
        return 0 if words else USER_ERROR
    return _run(parse(words, FLAGS, settings=("results_dir", "budget", "device", "column", "hours", "hardware.link")))


def _run(given: Words) -> int:
    from sam_repro.report import commands, ledger_commands, studies_view

    (name, *words), settings = given.names or [""], given.settings
    if name not in COMMANDS:
        raise UserError(f"there is no report {name!r}: {hint(name, COMMANDS)}")
    if name not in ("runs", "import"):  # a run's folder or a ledger may have an = in its name
        settings |= {key: value for key, equals, value in (word.partition("=") for word in words) if equals}
        words = [word for word in words if "=" not in word]
        words += [settings.pop("table")] if "table" in settings else []  # as a sweep has it
    folder = settings.pop("results_dir", given.flags.get("--results-dir"))
    # Where nothing has run yet there is still something to plan, to render and to import into.
    results = stored_in(folder) if name in ("status", "verify", "runs") else Path(folder or "results")
    for key in settings:
        if key not in (known := SETTINGS.get(name, ())):
            raise UserError(f"{key}= is no setting of {name}" + (f": there are {', '.join(known)}" if known else ""))
        if not settings[key]:
            raise UserError(f"{key}= needs a value")
    form = _format(name, given)
    added = column(settings["column"]) if "column" in settings else None
    match name:
        case "runs":
            return commands.runs(words, results, Path(given.flags.get("--out", results / "demo")))
        case "import":
            return ledger_commands.import_ledger(_only(words, "a ledger file"), results)
        case "list" | "verify" | "judge" | "wanted" if words:
            raise UserError(f"{name} takes no table: {' '.join(words)}")
    table = _only(words, "a table", optional=True)
    if table and name in ("plan", "status", "render") and not added and studies_view.measures(table):
        if name == "render":
            return studies_view.render(table, results)
        return studies_view.show(table, settings.get("budget", "paper"), results, form)
    match name:
        case "list":
            return commands.list_tables()
        case "claims":
            return commands.print_claims(table, form)
        case "discrepancies":
            return commands.discrepancies(table or settings.get("table"), form, results)
        case "plan":
            return commands.plan(
                table,
                settings.get("budget", "paper"),
                settings.get("device") or found_device(),
                results,
                form,
                added,
                settings.get("hardware.link"),
            )
        case "status":
            return commands.status(table, settings.get("budget", "paper"), results, form, added)
        case "wanted":
            if "hours" not in settings:
                raise UserError("hours: say how many, as in hours=8")
            return commands.wanted(settings["hours"], settings.get("device") or found_device(), results)
        case "choose":
            return commands.choose(_only(words, "a table"), settings.get("budget", "paper"), results)
        case "judge":
            return commands.judge_lines()
        case "render":
            return commands.render(table, settings.get("budget"), form, results, added)
        case _:
            return ledger_commands.verify(results)


def _format(name: str, given: Words) -> str | None:
    """What to print in; None is text. Refused where it would be ignored."""
    form = given.flags.get("--format")
    if form is not None and form not in FORMATS:
        raise UserError(f"--format {form}: {hint(form, FORMATS)}")
    if "--json" in given.flags and form not in (None, "json"):
        raise UserError(f"--json and --format {form} contradict each other")
    form = "json" if "--json" in given.flags else form
    offered = OFFERED.get(name, ())
    if form is not None and form not in offered:
        text = f"its formats are {', '.join(offered)}" if offered else "it prints text only"
        raise UserError(f"{name} has no format {form}: {text}")
    return form


def _only(words: Sequence[str], what: str, *, optional: bool = False) -> str | None:
    if len(words) > 1:
        raise UserError(f"name one {what.removeprefix('a ')}, not {len(words)}: {' '.join(words)}")
    if not words and not optional:
        raise UserError(f"name {what}")
    return words[0] if words else None


if __name__ == "__main__":
    signals.begin()
    sys.exit(main())
