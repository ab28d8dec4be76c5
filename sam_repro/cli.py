"""`sam-repro COMMAND ...`, or `python -m sam_repro COMMAND ...`: one command line. Without a command it trains.

A command is a module with a `main`, which is imported when it is asked for: most of them need neither torch nor Hydra.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from sam_repro import signals
from sam_repro.errors import UserError, command, nearest
from sam_repro.words import HELP

# Command -> (its module, what it does).
COMMANDS = {
    "train": ("sam_repro.start", "train a run, or go on with it: the default, so that the word may be left out"),
    "evaluate": ("sam_repro.evaluate", "judge a finished run on other test sets"),
    "sweep": ("sam_repro.sweep_and_show", "train what is missing of a table"),
    "report": ("sam_repro.report.__main__", "claims, plans, states and tables"),
    "runs": ("sam_repro.runs.__main__", "list, compare, export and remove what has been run"),
    "study": ("sam_repro.study.__main__", "look at methods and stored runs: what the papers draw"),
    "bench": ("sam_repro.bench.commands", "measure the project against the alternatives"),
    "fetch": ("sam_repro.data.fetch", "get a data set, once a machine, and verify it"),
}


@command
def main(words: list[str]) -> int:
    signals.begin()
    name = "train"
    if words and words[0] in COMMANDS:
        name, *words = words
    elif words and words[0].isidentifier():
        _refuse(words[0])
    if name == "train" and set(words[:1]) & set(HELP):
        return _help(words[1:])
    sys.argv = [sys.argv[0], *words]  # Hydra's own parser reads it
    return int(import_module(COMMANDS[name][0]).main(words))


def _refuse(word: str) -> None:
    """What is no command and no KEY=VALUE either."""
    from sam_repro.config.overrides import known

    if word in known():
        raise UserError(f"{word}: write {word}=VALUE")
    close = nearest(word, [*COMMANDS, *HELP, *known()]) or " --help lists them"
    raise UserError(f"there is no command {word!r}.{close}")


def _help(groups: list[str]) -> int:
    if groups:
        from sam_repro.config import reference

        print(*map(reference.text, groups), sep="\n\n")
    else:
        from sam_repro.config import help

        print(help.help_page({name: line for name, (_, line) in COMMANDS.items()}))
    return 0


def run(name: str, words: Sequence[str] | None = None) -> int:
    """The command of this name with this process's words: what a script of its own does."""
    return main([name, *(sys.argv[1:] if words is None else words)])
