"""The algebra of sharpness-aware methods: one point of it is a `Spec`, as a configuration says it.

Every method of the papers computes one *final gradient* by answering the same few questions, the axes below:

    start      where the first gradient is taken: at w, or at w + d0 with Gaussian noise d0
    ascent     on which data the ascent gradient g is taken
    direction  how the ascent direction d follows from g
    geometry   the diagonal operator T that shapes the ball: eps = rho * T^2 d / l2(T d)
    radius     how rho moves during training
    descent    how the final gradient follows from the gradient at w + eps
    between    what the steps between do, where not every step ascends

A folder beside this file has the options of an axis, a file each, and each declares the fields that it reads. A `Spec`
has them all, flat: None is what was not said. What was said and is not read is refused, so that two configurations
that differ mean different things. Nothing here imports torch: the configuration shares this vocabulary and its rules.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, make_dataclass
from typing import TYPE_CHECKING, Any, Self

from sam_repro.methods.axes import ALWAYS, AXES, Point, declared, fields, options, point
from sam_repro.methods.option import Problem

if TYPE_CHECKING:

    @dataclass
    class Fields:
        """The fields of all options, each of its type or None, and for every axis the name of its option."""

        def __getattr__(self, name: str) -> Any: ...

else:
    Fields = make_dataclass(
        "Fields",
        [
            (name, f.type | None, dataclasses.field(default=None, metadata={"declared": f}))
            for name, f in declared().items()
        ],
    )


@dataclass
class Spec(Fields):
    """One point of the algebra. Where nothing is said it is the plain base optimizer."""

    @property
    def said(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in declared() if getattr(self, name) is not None}

    @property
    def point(self) -> Point:
        """The options with their values."""
        return point(self.said)

    @property
    def ascends(self) -> bool:
        """Whether there is a perturbation at all."""
        return self.point.ascent.ascends

    @property
    def several_passes(self) -> bool:
        return self.ascends or self.canonical()["draws"] > 1

    @property
    def follows_lr(self) -> bool:
        """Whether the radius moves with the learning rate."""
        return self.ascends and self.point.radius.follows_lr

    @property
    def chooses_samples(self) -> bool:
        """Whether a pass is over a part of the batch only: which part, each rank decides in its own share."""
        return min(self.point.ascent.share, self.point.ascent.kept) < 1

    def canonical(self) -> dict[str, Any]:
        """Every axis and field with its value, said or not: what a run's identity is made of."""
        return {name: field.default for name, field in declared().items()} | self.said

    def concise(self) -> Self:
        """The same point with what is so anyway left unsaid: a stored one says every field, read or not."""
        so_anyway = [name for name, field in declared().items() if getattr(self, name) == field.default]
        return dataclasses.replace(self, **dict.fromkeys(so_anyway))

    def problems(self) -> list[Problem]:
        """(field, what is wrong and how to mend it), for every rule that this point breaks."""
        said = self.said
        unknown = [
            (axis, f"must be one of {', '.join(options(axis))}, is {said[axis]!r}")
            for axis in AXES
            if axis in said and said[axis] not in options(axis)
        ]
        if unknown:
            return unknown
        at = self.point
        found = [
            (name, wrong) for name, f in fields().items() if name in said and (wrong := f.allowed.broken_by(said[name]))
        ]
        found += _unread(at, said)
        for option in at.options():
            found += option.problems(at)
        return found

    def passes(self, batch: int | None = None, train: int | None = None) -> float:
        """Cost of a step in forward and backward passes over the batch, the mean over steps with and without ascent.

        NaN where it depends on a size that is not given: the batch's and the training set's.
        """
        at = self.point
        first = at.ascent.passes(batch, train)
        if not at.ascent.ascends:
            return first
        first += at.direction.passes(batch, train, at.sharding.m)
        # Choosing the samples takes a forward pass over all of them, about a third of a forward and backward pass.
        second = 1.0 if at.ascent.kept == 1 else 1 / 3 + at.ascent.kept
        return (first + second + at.between.every - 1) / at.between.every

    def vectors(self) -> int:
        """Parameter-sized tensors that a step holds beside weights and gradient: what a plan of its memory needs."""
        at = self.point
        return sum(option.vectors for option in at.options()) + at.needs_first


def _unread(at: Point, said: dict[str, Any]) -> Iterator[Problem]:
    """What was said and is not read, with the reason and who reads it."""
    for name in said:
        field = fields().get(name)
        axis = name if field is None else field.axis
        if axis not in ALWAYS and not at.ascent.ascends:
            yield name, "has no meaning without an ascent: set method.ascent=batch or leave it out"
        elif field is not None and not field.reads(at):
            chosen = said.get(axis, AXES[axis].default)
            verb = "reads" if len(field.readers) == 1 else "read"
            yield name, f"is not read with {axis}={chosen}: {axis}={' or '.join(field.readers)} {verb} it"
