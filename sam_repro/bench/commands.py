"""The benchmarks behind `sam-repro bench`: each prints a table or, with --json, its measurements, ratios and bars.

    sam-repro bench update   the update beyond the two passes, against pytorch_optimizer's; bytes a parameter
    sam-repro bench step     a whole training step of every method, against plain SGD's
    sam-repro bench input    augmented batches, against torchvision's PIL DataLoader; --pictures: of JPEG files
    sam-repro bench start    --help, --cfg job, a mistake, the plan of every table
    sam-repro bench train    the default SAM step, against a plain fp32 loop around pytorch_optimizer's SAM
    sam-repro bench decode   beam search over 32 sentences, against one at a time
    sam-repro bench translation   training on translations, against torch.nn.Transformer and padded batches
    sam-repro bench study    products with the Hessian and the Gauss-Newton matrix, against curvlinops
    sam-repro bench ranks    a step of two and four ranks over a shaped link, flat and overlapped (root, iproute2)

Absolute times belong to one machine; ratios are measured side by side, contestants taking turns in one run. The bars
are the project's own; the exit code is 0 whether they are met or not. Set OMP_NUM_THREADS to the cores that are free;
on a busy machine to 1, with --clock cpu.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sam_repro.bench.timing import CLOCKS, Bar, hardware
from sam_repro.errors import USER_ERROR, UserError, command, hint
from sam_repro.machine import cores
from sam_repro.words import HELP, parse

# At least so many times faster than pytorch_optimizer's, malloc tuned and not; at most so many extra bytes a parameter,
# swapping and copying. ASAM works through scratch, at most one tensor: the largest is 0.4 bytes a parameter.
UPDATE = {"sam": (2.5, 5.0, 0.0, 4.0), "asam": (2.0, 5.0, 0.4, 4.0), "fsam": (2.3, 4.0, 4.0, 8.0)}
# At most so many times torch's default SGD step, by setting of malloc and model.
TO_SGD = {
    ("malloc tuned", "wrn-28-10"): {"sam": 1.0, "asam": 1.5, "fsam": 1.3},
    ("malloc tuned", "vit-b-16"): {"sam": 1.0},
    ("malloc as it comes", "wrn-28-10"): {"sam": 1.0},
}
INPUT, INPUT_WITH_CUTOUT = 20.0, 15.0
BATCH = {"ranks": 8}  # images a step where nobody says it; elsewhere 128


@dataclass(frozen=True)
class Options:
    rounds: int | None  # turns that each contestant gets after the warm-up
    batch: int  # images a step
    model: str | None
    methods: str | None
    clock: str | None
    pictures: bool = False


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
    """Bars are about WRN-28-10, one about ViT-B; where a model was not measured there is none."""
    bars = []
    for (setting, model), most in TO_SGD.items():
        measured = results[setting].get(model, {}).get("ratio to sgd", {})
        for name, bar in most.items() if measured else ():
            what = f"{name} update on {model}, times torch's default SGD step, {setting}"
            bars.append(Bar(what, measured[f"{name}: ours"], bar, at_least=False))
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
    if options.pictures:
        from sam_repro.bench import pictures

        return pictures.run(options.rounds or 7, cores(), options.clock or "wall"), pictures.table
    if options.clock:
        raise UserError("--clock means nothing to input without --pictures")
    from sam_repro.bench import input as bench_input

    images, source = bench_input.cifar_images("data")
    rounds = options.rounds or 5
    result = {"hardware": hardware(), "data": source} | bench_input.measure(images, rounds)
    what = "images a second / the better torchvision loader"
    bars = [
        Bar(what, result["ratio"], INPUT, at_least=True),
        Bar(f"{what}, with cutout", result["ratio_with_cutout"], INPUT_WITH_CUTOUT, at_least=True),
    ]
    result["bars"] = [bar.as_json() for bar in bars]

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


def study(options: Options) -> Measured:
    from sam_repro.bench import study as bench_study

    model, rounds, clock = options.model or "resnet8", options.rounds or 5, options.clock or "wall"
    return bench_study.run(model, rounds, options.batch, clock), bench_study.table


def decode(options: Options) -> Measured:
    from sam_repro.bench import decode as bench_decode

    return bench_decode.run(rounds=options.rounds or 3, clock=options.clock or "wall"), bench_decode.table


def translation(options: Options) -> Measured:
    from sam_repro.bench import translation as bench_translation

    return bench_translation.run(rounds=options.rounds or 5, clock=options.clock or "wall"), bench_translation.table


def ranks(options: Options) -> Measured:
    from sam_repro.bench import ranks as bench_ranks

    chosen = options.methods.split(",") if options.methods else bench_ranks.METHODS
    model = options.model or "wrn_28_2"
    return bench_ranks.run(model, options.rounds or 5, options.batch, chosen), bench_ranks.table


BENCHES = {
    "update": update,
    "step": step,
    "input": input_,
    "start": start,
    "train": train,
    "decode": decode,
    "translation": translation,
    "study": study,
    "ranks": ranks,
}
# Which of the options a bench reads; --rounds and --json are everybody's.
TAKES = {
    "update": {"model"},
    "step": {"model", "methods", "clock"},
    "train": {"model", "clock"},
    "decode": {"clock"},
    "translation": {"clock"},
    "study": {"model", "clock"},
    "ranks": {"model", "methods"},
    "input": {"pictures", "clock"},
}


FLAGS = {"--json": False, "--pictures": False} | dict.fromkeys(
    ("--rounds", "--batch", "--model", "--methods", "--clock"), True
)
USAGE = f"""{__doc__}
  --json           measurements, ratios and bars as one JSON object
  --rounds N       turns that each contestant gets after the warm-up
  --batch N        step, train, study, ranks: images a step, or a batch (128; ranks: 8)
  --model NAME     step, train, study, ranks: a name of configs/model (resnet18; study: resnet8); update: of its lists
  --methods A,B    step: names of configs/method; left out: every kind; ranks: some of its own
  --pictures       input: photographs in files, by as many workers as there are cores
  --clock wall|cpu step, train, decode, translation, study, input --pictures: wall or CPU time"""


@command
def main(words: list[str]) -> int:
    if not words or set(words) & set(HELP):
        print(USAGE)
        return 0 if words else USER_ERROR
    name, options, as_json = chosen(words)
    result, table = BENCHES[name](options)
    print(json.dumps({"bench": name} | result, indent=1) if as_json else text(result, table(result)))
    return 0


def chosen(words: list[str]) -> tuple[str, Options, bool]:
    """The bench, its options, and whether to print JSON."""
    given = parse(words, FLAGS, settings=())
    name, flags = " ".join(given.names), given.flags
    if name not in BENCHES:
        raise UserError(f"no bench {name!r}, {hint(name, BENCHES)}")
    for flag in ("model", "methods", "clock", "pictures"):
        if f"--{flag}" in flags and flag not in TAKES.get(name, ()):
            raise UserError(f"--{flag} means nothing to {name}")
    clock = flags.get("--clock")
    if clock is not None and clock not in CLOCKS:
        raise UserError(f"--clock {clock}: {hint(clock, CLOCKS)}")
    rounds = at_least("--rounds", flags["--rounds"], 1) if "--rounds" in flags else None
    batch = at_least("--batch", flags.get("--batch", str(BATCH.get(name, 128))), 2)
    options = Options(rounds, batch, flags.get("--model"), flags.get("--methods"), clock, "--pictures" in flags)
    return name, options, "--json" in flags


def at_least(flag: str, value: str, least: int) -> int:
    if not value.isdecimal() or int(value) < least:
        raise UserError(f"{flag} must be at least {least}, is {value}")
    return int(value)


def text(result: dict[str, Any], table: str) -> str:
    lines = [table, ""]
    lines += [str(Bar(b["what"], b["measured"], b["bar"], b["at_least"])) for b in result["bars"]]
    n = f"n = {result['rounds']} rounds; " if "rounds" in result else ""
    return "\n".join([*lines, n + ", ".join(f"{key} {value}" for key, value in result["hardware"].items())])
