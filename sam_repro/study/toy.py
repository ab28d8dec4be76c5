"""The toy problem of ASAM section 5.1 (figure 3), run by the very code that trains networks.

    L(w) = |w1 ReLU(w2) - 0.04|        its minimisers: w1 w2 = 0.04 with w2 > 0

    sam-repro study toy method=asam method.rho=0.05 'w0=[0.2,0.05]' lr=0.1 steps=100 --json
    sam-repro study toy                         # figure 3: SAM and ASAM from both of the paper's starts
    sam-repro study toy 'methods=[sam,asam,fsam,looksam]' method.rho=0.05

Plain gradient descent in fp64 on one parameter, named "weight" so that a geometry treats it as a weight. At the kinks
the subgradients are torch's: 0 for |x| at x = 0, 0 for ReLU(x) at x = 0. There is one sample: a pass over the batch,
a part of it, another batch or the whole training set is the same pass, so SAM-full and SAM-db are SAM here, and
SAM-noise, whose direction is what the full gradient does not explain, is plain descent.

The paper states both starts and rho = 0.05 for SAM. It leaves open the step size, the number of steps, and ASAM's rho
and eta. Here: rho = 0.05 for ASAM as well, eta = 0.01 as everywhere in that paper, and 1000 steps of 0.01, since the
way *along* the valley, which tells SAM from ASAM, comes from bouncing across it and is slow. A larger lr bounces
farther (about lr |w|) and makes every method drift towards (0.2, 0.2): with 0.1 ASAM ends near there as well.

From (0.3, 0.033) SAM never moves: its perturbation points along (-w2, -w1), 0.05 of it carries w2 below zero, where
ReLU is flat and the gradient vanishes. ASAM's ball shrinks with the weights; for eta = 0 it perturbs w to
w (1 - rho / sqrt(2)) below the valley, so that every rho < sqrt(2) works. With eta > 0 that bound is smaller.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from sam_repro import CONFIGS
from sam_repro.errors import UserError, hint
from sam_repro.methods.spec import Spec
from sam_repro.words import HELP, Words, parse

if TYPE_CHECKING:
    from torch import Tensor

TARGET = 0.04
STARTS = ((0.2, 0.05), (0.3, 0.033))
FIGURE = {"rho": 0.05}  # of SAM beside ASAM, which is what is drawn when no method is named


@dataclass
class Settings:
    """What the command line may set."""

    method: str | None = None
    methods: list[str] = field(default_factory=list)  # to draw side by side
    w0: list[float] | None = None  # null: (0.2, 0.05) with --json, else both of the paper's starts
    lr: float = 0.01
    steps: int = 1000
    seed: int = 0  # of the methods that draw noise
    results_dir: str = "results"


@dataclass(frozen=True)
class Run:
    method: str
    spec: Spec
    w0: tuple[float, float]
    trajectory: list[list[float]]  # steps + 1 points, the start included
    perturbation: list[list[float]]  # where each step's last gradient was taken, less where the step began


def loss(w: Tensor) -> Tensor:
    return (w[0] * w[1].relu() - TARGET).abs()


def run(name: str, fields: dict[str, Any], w0: Sequence[float], lr: float, steps: int, seed: int = 0) -> Run:
    """`steps` steps of gradient descent with a method of configs/method, its fields overridden."""
    import torch

    from sam_repro.methods import Moment, Pass, build

    w = torch.tensor(w0, dtype=torch.float64, requires_grad=True)
    try:
        method = build(name, [("weight", w)], seed=seed, **fields)
    except ValueError as error:
        raise UserError(f"method={name}: {error}") from error
    last = w.detach().clone()

    def grad_fn(_: Pass) -> Tensor:
        last.copy_(w.detach())
        value = loss(w)
        value.backward()  # type: ignore[no-untyped-call]
        return value.detach()

    optimizer = torch.optim.SGD([w], lr=lr)
    trajectory, perturbation = [w.tolist()], []
    for step in range(steps):
        before = w.detach().clone()
        method.estimate(grad_fn, at=Moment(step, step / steps, lr, 0.0, lr))
        method.end_step()
        optimizer.step()
        trajectory.append(w.tolist())
        perturbation.append((last - before).tolist())
        if not all(map(math.isfinite, trajectory[-1])):
            raise UserError(f"lr={lr:g} with method={name} diverges at step {step + 1}: make lr or the radius smaller")
    return Run(name, method.spec, (float(w0[0]), float(w0[1])), trajectory, perturbation)


def settings(given: Words) -> tuple[Settings, dict[str, Any]]:
    """The settings, and the fields of the method that `method.FIELD=VALUE` overrides."""
    known = [f.name for f in dataclasses.fields(Settings)]
    known += [f"method.{f.name}" for f in dataclasses.fields(Spec)]
    node, fields = OmegaConf.structured(Settings), dict[str, Any]()
    if given.names:
        raise UserError(f"{given.names[0]!r} is not KEY=VALUE")
    for key, text in given.settings.items():
        if key not in known:
            raise UserError(f"no setting {key!r}, {hint(key, known)}")
        try:
            value = OmegaConf.from_dotlist([f"value={text}"]).value
            if key.startswith("method."):
                fields[key.removeprefix("method.")] = value
            else:
                node[key] = value
        except (OmegaConfBaseException, yaml.YAMLError) as error:
            raise UserError(f"{key}={text}: {str(error).splitlines()[0]}") from error
    typed = OmegaConf.to_object(node)
    assert isinstance(typed, Settings)
    return check(typed), fields


def check(s: Settings) -> Settings:
    names = sorted(file.stem for file in (CONFIGS / "method").glob("*.yaml"))
    for name in [*s.methods, *([] if s.method is None else [s.method])]:
        if name not in names:
            raise UserError(f"no method {name!r}, {hint(name, names)}")
    for key, broken, message in (
        ("method", s.method is not None and bool(s.methods), "and methods= exclude each other: give one of them"),
        ("w0", s.w0 is not None and (len(s.w0) != 2 or not all(map(math.isfinite, s.w0))), "needs two finite numbers"),
        ("lr", not 0 < s.lr < math.inf, f"must be positive, is {s.lr:g}"),
        ("steps", s.steps < 1, f"must be at least 1, is {s.steps}"),
    ):
        if broken:
            raise UserError(f"{key} {message}")
    return s


def main(words: Sequence[str]) -> int:
    if set(words) & set(HELP):
        print(__doc__)
        return 0
    given = parse(words, {"--json": False})
    s, fields = settings(given)
    if "--json" in given.flags:
        if s.methods:
            raise UserError("methods= is for the picture: with --json give one, method=NAME")
        one = run(s.method or "sam", fields, s.w0 or STARTS[0], s.lr, s.steps, s.seed)
        parts = {"method": one.method, "w0": one.w0, "trajectory": one.trajectory, "perturbation": one.perturbation}
        print(json.dumps(parts))
        return 0

    from sam_repro.study.toy_figure import draw

    names = s.methods or ([s.method] if s.method else ["sam", "asam"])
    if names == ["sam", "asam"]:
        fields = FIGURE | fields
    starts = STARTS if s.w0 is None else [(s.w0[0], s.w0[1])]
    runs = [[run(name, fields, start, s.lr, s.steps, s.seed) for name in names] for start in starts]
    try:
        paths = draw(runs, s.lr, Path(s.results_dir) / "figures")
    except OSError as error:
        raise UserError(
            f"results_dir={s.results_dir} can't be written ({error.strerror}): choose another folder"
        ) from error
    print(*paths, sep="\n")
    return 0
