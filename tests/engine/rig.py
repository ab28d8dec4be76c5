"""The real stepper on a small problem in double precision, so that equal means equal and not merely close."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn

from sam_repro import data, methods
from sam_repro.config.compose_many import compose_all
from sam_repro.config.schema import Config, Precision
from sam_repro.data import Data
from sam_repro.engine import optimizer
from sam_repro.engine.batchnorm import RunningStatistics
from sam_repro.engine.precision import LossScale
from sam_repro.engine.ranks import Ranks
from sam_repro.engine.schedule import Schedule
from sam_repro.engine.state import TrainState
from sam_repro.engine.step import Outcome, Stepper
from sam_repro.engine.task import Task
from sam_repro.errors import UserError
from sam_repro.tasks.classification.task import Classification

CPU = torch.device("cpu")
SAMPLES = 64


class Net(nn.Module):
    """Convolution, batch norm, dropout, linear. Takes single-precision images whatever its weights' precision."""

    def __init__(self, norm: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, stride=4)
        self.norm = nn.BatchNorm2d(6) if norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(6 * 8 * 8, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.norm(self.conv(x.to(self.conv.weight.dtype))))
        logits: Tensor = self.linear(self.dropout(x.flatten(1)))
        return logits


def config(*overrides: str) -> Config:
    return copy.deepcopy(_composed(*overrides))


@cache
def _composed(*overrides: str) -> Config:
    small = ("loop.batch_size=16", f"budget.train_images={SAMPLES}", "budget.test_images=16")
    whole = (*small, "runtime.precision=fp32", "runtime.channels_last=false", *overrides)
    (found,) = compose_all([whole]).values()
    if isinstance(found, UserError):
        raise found
    return found


class Rig(Stepper):
    """Takes its steps on the samples `ids`."""

    def __call__(  # type: ignore[override]
        self, ids: Tensor, epoch: int, step: int, log: bool = True, probe: bool = False
    ) -> Outcome:
        return super().__call__(next(self.shards([ids], epoch, step)), log=log, probe=probe)


def stepper(
    c: Config, net: nn.Module, ranks: Ranks | None = None, forward: Callable[[Tensor], Tensor] | None = None
) -> Rig:
    return rigged(c, net, Classification(c, pictures(c)), ranks or Ranks(0, 1, CPU), forward)


_PICTURES: dict[str, Data] = {}


def pictures(c: Config) -> Data:
    """Read once a process: unpacking and padding them takes longer than most tests' steps."""
    asked = (c.dataset, c.augment, c.budget, c.seed)
    if (key := repr(asked)) not in _PICTURES:
        _PICTURES[key] = data.load(*asked, CPU)
    return _PICTURES[key]


def rigged(
    c: Config, net: nn.Module, task: Task, ranks: Ranks, forward: Callable[[Tensor], Tensor] | None = None
) -> Rig:
    schedule = Schedule(c.schedule, c.base_optimizer.lr, SAMPLES // c.loop.batch_size, 10)
    method = methods.build(c.method, net, seed=c.seed)
    statistics, scale = RunningStatistics(net, c.loop.batchnorm), LossScale(c.runtime.precision is Precision.fp16)
    state = TrainState(net, method, optimizer.build(c.base_optimizer, net), statistics, scale)
    return Rig(c, task, state, schedule, ranks, forward)


def net(dtype: torch.dtype = torch.float64, norm: bool = True, dropout: float = 0.0) -> Net:
    torch.manual_seed(1)
    return Net(norm, dropout).to(dtype)


def train(s: Rig, steps: int, probe: bool = False) -> list[Outcome]:
    batch = s.config.loop.batch_size
    per_epoch = SAMPLES // batch
    outcomes = []
    for step in range(steps):
        epoch, i = divmod(step, per_epoch)
        outcomes.append(s(s.data.order(epoch)[i * batch : (i + 1) * batch], epoch, step, probe=probe))
    return outcomes


def weights(n: nn.Module) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in n.parameters()])


def buffers(n: nn.Module) -> Tensor:
    return torch.cat([b.detach().double().reshape(-1) for b in n.buffers()])
