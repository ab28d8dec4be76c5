"""What data-parallel ranks say to each other in a step, and how much of a step that takes, before anything is started.

An all-reduce of B bytes over n ranks moves 2 (n - 1) / n B through the slowest link of a ring, after a fixed delay. A
step without `method.m` averages the gradient of each of its passes, one with it the final gradient alone; F-SAM's
shared average and a full gradient are one more. Nothing is taken to overlap, so that a share is the most it can be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from sam_repro.config.schema import Config
from sam_repro.errors import UserError, hint
from sam_repro.tables.cost import cost, model_cost
from sam_repro.tables.plan import Planned


@dataclass(frozen=True)
class Link:
    ranks: int
    ends: int  # that the slowest link joins: GPUs, or nodes
    bytes_a_second: float  # that NCCL's all-reduce reaches in common, for large messages
    delay: float  # seconds a collective
    words: str


LINKS = {
    "nvlink": Link(8, 8, 230e9, 40e-6, "8 GPUs on NVLink and NVSwitch (A100)"),
    "pcie": Link(8, 8, 18e9, 80e-6, "8 GPUs on PCIe 4.0"),
    "25gbit": Link(32, 4, 2.8e9, 300e-6, "4 nodes of 8 GPUs on 25 Gbit/s"),
}


@dataclass(frozen=True)
class Exchange:
    """Of one step."""

    collectives: float
    megabytes: float  # through the slowest link
    computing: float  # seconds
    talking: float

    @property
    def share(self) -> float:
        return self.talking / (self.computing + self.talking)


def link_of(name: str) -> Link:
    if name not in LINKS:
        raise UserError(f"hardware.link={name}: {hint(name, LINKS)}")
    return LINKS[name]


def collectives(config: Config, ranks: int = 1) -> float:
    """Gradients that a step averages over the ranks, the mean over steps with and without ascent."""
    method, at, batch = config.method, config.method.point, config.loop.batch_size
    # A direction that needs the gradient over the whole training set takes more passes the larger that set is.
    full = bool(at.direction.passes(batch, 2 * batch, method.m) > at.direction.passes(batch, batch, method.m))
    if method.m is not None:
        shards: int = batch // method.m // ranks
        return 1.0 + bool(method.ema_shared) + full * shards
    between: float = at.between.every
    return ((1 + between) / between if at.ascent.ascends else float(method.draws or 1)) + full


def exchange(config: Config, device: str, link: Link) -> Exchange | None:
    """None where the model's size is not known, or its batch can't be shared among so many."""
    batch, m = config.loop.batch_size, config.method.m
    model = model_cost(config)
    if model is None or batch % link.ranks or (m is not None and (batch // m) % link.ranks):
        return None
    spent = cost(replace(config, runtime=replace(config.runtime, ranks=link.ranks)))
    number, hours = collectives(config, link.ranks), spent.hours(device)
    if hours is None:
        return None
    moved = number * 4.0 * model.parameters * 2 * (link.ends - 1) / link.ends
    talking = number * link.delay + moved / link.bytes_a_second
    return Exchange(number, moved / 1e6, 3600 * hours / spent.steps, talking)


def rows(cells: Iterable[tuple[str, Planned]], device: str, link: Link) -> list[dict[str, Any]]:
    """A row for each cell that is trained; None for what can't be said."""
    found = []
    for table, planned in cells:
        if planned.config is None:
            continue
        what = exchange(planned.config, device, link)
        said = {"batch": planned.config.loop.batch_size, "exchange": what and asdict(what) | {"share": what.share}}
        found.append({"table": table, "row": planned.cell.row, "column": planned.cell.column, **said})
    return found
