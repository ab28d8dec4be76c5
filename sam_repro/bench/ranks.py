"""What ranks say to each other costs: a step over a shaped link, flat and overlapped, beside its computing alone.

    sam-repro bench ranks [--rounds 5] [--batch 8] [--model wrn_28_2] [--methods plain,sam] [--json]

Two and four gloo ranks of one thread each, in network namespaces of their own whose links are shaped to 1 and 10 Gbit/s
(bench/links.py): as root, with iproute2, on this machine only. All ways take turns in the same processes, in fp32.

flat        one all-reduce of one buffer after the backward pass
overlapped  what the engine does: the same sums in buckets, most of which leave during the backward pass
alone       no communication at all: what no way can beat

`sam, m` has a shard a rank, and one all-reduce after the descent, which no pass is left to overlap.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sam_repro.bench.links import Network, network
from sam_repro.bench.timing import Bar, hardware, milliseconds, ratio, take_turns
from sam_repro.errors import UserError, end

FLAT, OVERLAPPED, ALONE = WAYS = ("flat", "overlapped", "alone")
WORLDS, RATES = (2, 4), (1, 10)  # Gbit/s
METHODS = ("plain", "sam", "sam+m", "fsam", "gsam")
PORT = 29_871
FP32 = "runtime.precision=fp32"  # which every processor computes at full speed
FASTER, NEVER_BELOW = 1.25, 0.97
A_THIRD = 0.3  # of a step, or nearly


def overrides(method: str, batch: int, world: int) -> list[str]:
    return [f"method.m={batch // world}"] if method.endswith("+m") else []


def ways(method: str) -> Sequence[str]:
    return (FLAT, ALONE) if method.endswith("+m") else WAYS


# ---------------------------------------------------------------------------------------------------- a rank's process


def serve(model: str, batch: int) -> None:
    """Answers "METHOD WAY" with the seconds of such a step, which all ranks begin together."""
    import torch
    import torch.distributed as dist

    from sam_repro.bench.alone import Alone
    from sam_repro.bench.step import Trainer, configure
    from sam_repro.config.schema import RuntimeConfig
    from sam_repro.engine.ranks import Ranks

    torch.set_num_threads(1)
    ranks = Ranks.join(RuntimeConfig())
    trainer = Trainer(configure(model, "plain", batch, FP32))
    flat, alone = (of(ranks.rank, ranks.world, ranks.device, overlaps=False) for of in (Ranks, Alone))
    by_way = {FLAT: flat, OVERLAPPED: ranks, ALONE: alone}
    steps: dict[str, Callable[[], float]] = {}
    for line in sys.stdin:
        method, way = line.split()
        if line not in steps:
            trainer.ranks = by_way[way]
            steps[line] = trainer.step(
                configure(model, method.removesuffix("+m"), batch, FP32, *overrides(method, batch, ranks.world))
            )
        dist.barrier()
        print(steps[line](), flush=True)
    ranks.leave()
    end(0)


# ---------------------------------------------------------------------------------------------------- the one that asks


@contextmanager
def processes(net: Network, model: str, batch: int) -> Iterator[list[subprocess.Popen[str]]]:
    world = len(net.names)
    started: list[subprocess.Popen[str]] = []
    try:
        for rank in range(world):
            env = os.environ | {
                "RANK": str(rank),
                "WORLD_SIZE": str(world),
                "LOCAL_RANK": str(rank),
                "LOCAL_WORLD_SIZE": str(world),
                "MASTER_ADDR": net.address(0),
                "MASTER_PORT": str(PORT),
                "GLOO_SOCKET_IFNAME": "eth0",
                "CUDA_VISIBLE_DEVICES": "",
                "TORCH_CPP_LOG_LEVEL": "ERROR",
                "OMP_NUM_THREADS": "1",
            }
            command = [*net.inside(rank), sys.executable, "-m", "sam_repro.bench.ranks", model, str(batch)]
            started.append(subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        yield started
    finally:
        for process in started:
            assert process.stdin is not None
            process.stdin.close()
        for process in started:
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()


def asked(ranks: Sequence[subprocess.Popen[str]], words: str) -> Callable[[], float]:
    """The seconds that the slowest rank took."""

    def turn() -> float:
        for process in ranks:
            assert process.stdin is not None
            print(words, file=process.stdin, flush=True)
        answers = [process.stdout.readline() for process in ranks if process.stdout is not None]
        if not all(answers):
            raise RuntimeError("a rank has ended: see its message above")
        return max(map(float, answers))

    return turn


def run(
    model: str,
    rounds: int,
    batch: int,
    methods: Sequence[str] = METHODS,
    worlds: Sequence[int] = WORLDS,
    rates: Sequence[float] = RATES,
) -> dict[str, Any]:
    if unknown := set(methods) - set(METHODS):
        raise UserError(f"--methods {','.join(sorted(unknown))}: ranks measures {', '.join(METHODS)}")
    if batch % max(worlds):
        raise UserError(f"--batch {batch}: choose a multiple of {max(worlds)}, the most ranks")
    results: dict[str, Any] = {}
    for world in worlds:
        with network(world) as net, processes(net, model, batch) as ranks:
            for rate in rates:
                net.shape(rate)
                turns = {f"{m} {way}": asked(ranks, f"{m} {way}") for m in methods for way in ways(m)}
                taken = take_turns(turns, rounds, warmup=1)
                results[f"{world} ranks, {rate} Gbit/s"] = {
                    method: {
                        "milliseconds": milliseconds({way: taken[f"{method} {way}"] for way in ways(method)}),
                        "communication": round(1 - ratio(taken[f"{method} {ALONE}"], taken[f"{method} {FLAT}"]), 3),
                        "overlapped, times faster": round(
                            ratio(taken[f"{method} {FLAT}"], taken[f"{method} {ways(method)[-2]}"]), 3
                        ),
                    }
                    for method in methods
                }
    return {
        "hardware": hardware(),
        "settings": {"model": model, "batch": batch, "precision": "fp32", "backend": "gloo", "threads a rank": 1},
        "rounds": rounds,
        "results": results,
        "bars": [bar.as_json() for bar in bars(results)],
    }


def bars(results: dict[str, Any]) -> list[Bar]:
    """1.25 x at 1 Gbit/s where about a third of a step is communication; nowhere slower than flat."""
    found = []
    for setting, by_method in results.items():
        for method, r in by_method.items():
            if method.endswith("+m"):
                continue
            much = setting.endswith(" 1 Gbit/s") and r["communication"] >= A_THIRD
            at_least = FASTER if much else NEVER_BELOW
            what = f"{method}, {setting}: overlapped, times faster than flat"
            found.append(Bar(what, r["overlapped, times faster"], at_least, at_least=True))
    return found


def table(result: dict[str, Any]) -> str:
    lines = []
    for setting, by_method in result["results"].items():
        lines += ["", f"{setting:<22}{'flat ms':>10}{'overlapped':>12}{'alone':>9}{'sent':>7}{'faster':>8}"]
        for method, r in by_method.items():
            ms = r["milliseconds"]
            between = f"{ms[OVERLAPPED]:>12.1f}" if OVERLAPPED in ms else f"{'-':>12}"
            lines.append(
                f"  {method:<20}{ms[FLAT]:>10.1f}{between}{ms[ALONE]:>9.1f}"
                f"{r['communication']:>7.0%}{r['overlapped, times faster']:>8.2f}"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("batch", type=int)
    options = parser.parse_args()
    serve(options.model, options.batch)
