"""The benchmarks behind `scripts/bench.py`: each prints a table or, with --json, its measurements, ratios and bars.

    python scripts/bench.py update   the update beyond the two passes, against pytorch_optimizer's; bytes a parameter
    python scripts/bench.py step     a whole training step of every method, against plain SGD's
    python scripts/bench.py input    augmented batches, against torchvision's PIL DataLoader
    python scripts/bench.py start    --help, --cfg job, a mistake, the plan of every table
    python scripts/bench.py train    the default SAM step, against a plain fp32 loop around pytorch_optimizer's SAM

Absolute times belong to one machine; ratios are measured side by side, contestants taking turns in one run. The bars
are the project's own; the exit code is 0 whether they are met or not. Set OMP_NUM_THREADS to the cores that are free;
on a busy machine to 1, with --clock cpu.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from sam_repro.bench.timing import CLOCKS, Bar, hardware
from sam_repro.errors import UserError

USER_ERROR = 2
# At least so many times faster than pytorch_optimizer's, malloc tuned and not; at most so many extra bytes a parameter,
# swapping and copying. ASAM works through scratch, at most one tensor: the largest is 0.4 bytes a parameter.
UPDATE = {"sam": (2.5, 6.0, 0.0, 4.0), "asam": (1.7, 4.0, 0.4, 4.0), "fsam": (2.0, 4.0, 4.0, 8.0)}
INPUT = 15.0
Options = argparse.Namespace
Measured = tuple[dict[str, Any], Callable[[dict[str, Any]], str]]


def update(options: Options) -> Measured:
    from sam_repro.bench import update as bench_update

    models = (options.model,) if options.model else bench_update.MODELS
    if models[0] not in bench_update.MODELS:
        raise UserError(f"--model {models[0]}: update measures {', '.join(bench_update.MODELS)}")
    result = bench_update.run(models, options.rounds or 15)
    result["bars"] = [bar.as_json() for bar in update_bars(result["results"])]
    return result, bench_update.table


def update_bars(results: dict[str, Any]) -> list[Bar]:
    """Bars are about WRN-28-10; where it was not measured there is none."""
    bars = []
    for setting, column in (("malloc tuned", 0), ("malloc as it comes", 1)):
        measured = results[setting].get("wrn-28-10")
        for name, values in UPDATE.items() if measured else ():
            faster = measured["ours against pytorch_optimizer"][name]["times faster"]
            bars.append(Bar(f"{name} update, times faster, {setting}", faster, values[column], at_least=True))
            extra = measured["bytes a parameter"]
            if column == 0:
                for how, at_most in (("ours", values[2]), ("ours, copying", values[3])):
                    used = round(extra[f"{name}: {how}"], 1)
                    bars.append(Bar(f"{name}: {how}, extra bytes a parameter", used, at_most, at_least=False))
    return bars


def input_(options: Options) -> Measured:
    from sam_repro.bench import input as bench_input

    images, source = bench_input.cifar_images("data")
    rounds = options.rounds or 5
    result = {"hardware": hardware(), "data": source} | bench_input.measure(images, rounds)
    bar = Bar("images a second / the better torchvision loader", result["ratio"], INPUT, at_least=True)
    result["bars"] = [bar.as_json()]

    def table(r: dict[str, Any]) -> str:
        lines = [f"{name:<24}{speed:>10,} images/s" for name, speed in r["images_per_second"].items()]
        return "\n".join([*lines, f"ratio {r['ratio']}, with cutout {r['ratio_with_cutout']} ({r['data']})"])

    return result, table


def step(options: Options) -> Measured:
    from sam_repro.bench import step as bench_step

    chosen = options.methods.split(",") if options.methods else bench_step.METHODS
    model, batch = options.model or "resnet18", options.batch
    return bench_step.run(model, options.rounds or 7, batch, chosen, options.clock or "wall"), bench_step.table


def start(options: Options) -> Measured:
    from sam_repro.bench import start as bench_start

    return bench_start.run(options.rounds or 9), bench_start.table


def train(options: Options) -> Measured:
    from sam_repro.bench import train as bench_train

    model, rounds, clock = options.model or "resnet18", options.rounds or 9, options.clock or "wall"
    return bench_train.run(model, rounds, options.batch, clock), bench_train.table


BENCHES = {"update": update, "step": step, "input": input_, "start": start, "train": train}
# Which of the options a bench reads; --rounds and --json are everybody's.
TAKES = {"update": {"model"}, "step": {"model", "methods", "clock"}, "train": {"model", "clock"}}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="bench.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bench", metavar="|".join(BENCHES))
    parser.add_argument("--json", action="store_true", help="measurements, ratios and bars as one JSON object")
    parser.add_argument("--rounds", type=int, help="turns that each contestant gets after the warm-up")
    parser.add_argument("--model", help="step, train: a name of configs/model (resnet18); update: one of its lists")
    parser.add_argument("--methods", help="step: names of configs/method, with commas; default: every kind")
    parser.add_argument("--batch", type=int, default=128, help="step, train: images a step (%(default)s)")
    parser.add_argument("--clock", choices=CLOCKS, help="step, train: wall time, or CPU time for a busy machine")
    options = parser.parse_args(arguments)
    try:
        check(options)
        result, table = BENCHES[options.bench](options)
    except UserError as error:
        print("error: " + " ".join(str(error).split()), file=sys.stderr)
        return USER_ERROR
    if options.json:
        print(json.dumps({"bench": options.bench} | result, indent=1))
    else:
        print(text(result, table(result)))
    return 0


def check(options: Options) -> None:
    if options.bench not in BENCHES:
        close = difflib.get_close_matches(options.bench, BENCHES, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(BENCHES)}"
        raise UserError(f"no bench {options.bench!r}, {hint}")
    if options.rounds is not None and options.rounds < 1:
        raise UserError(f"--rounds must be at least 1, is {options.rounds}")
    if options.batch < 2:
        raise UserError(f"--batch must be at least 2, is {options.batch}")
    for name in ("model", "methods", "clock"):
        if getattr(options, name) and name not in TAKES.get(options.bench, ()):
            raise UserError(f"--{name} means nothing to {options.bench}")


def text(result: dict[str, Any], table: str) -> str:
    lines = [table, ""]
    lines += [str(Bar(b["what"], b["measured"], b["bar"], b["at_least"])) for b in result["bars"]]
    n = f"n = {result['rounds']} rounds; " if "rounds" in result else ""
    return "\n".join([*lines, n + ", ".join(f"{key} {value}" for key, value in result["hardware"].items())])
