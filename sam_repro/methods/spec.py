"""The algebra of sharpness-aware methods: one point of it is a `Spec`, as a configuration says it.

Every method of the papers computes one *final gradient* by answering the same few questions, the axes below:

    start      where the first gradient is taken: at w, or at w + d0 with Gaussian noise d0
    ascent     on which data the ascent gradient g is taken
    direction  how the ascent direction d follows from g
    geometry   the diagonal operator T that shapes the ball: eps = rho * T^2 d / l2(T d)
    scope      which parameters are perturbed
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

from sam_repro.methods import own
from sam_repro.methods.axes import AXES, OPEN, Point, chosen, declared, fields, option, options, point
from sam_repro.methods.option import Option, Problem

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

    own: dict[str, Any] = dataclasses.field(default_factory=dict)  # what only options of the user's own declare

    @property
    def said(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in declared() if getattr(self, name) is not None}

    @property
    def point(self) -> Point:
        """The options with their values."""
        return point(self.said, self.own)

    @property
    def ascends(self) -> bool:
        """Whether there is a perturbation at all."""
        return bool(chosen("ascent", self.said, {}).ascends)

    @property
    def several_passes(self) -> bool:
        """Over the same samples."""
        return self.ascends or self.canonical()["draws"] > self.parts

    @property
    def follows_lr(self) -> bool:
        """Whether the radius moves with the learning rate."""
        return bool(self.ascends and chosen("radius", self.said, {}).follows_lr)

    @property
    def chooses_samples(self) -> bool:
        """Whether a pass is over a part of the batch only: which part, each rank decides in its own share."""
        ascent = chosen("ascent", self.said, {})
        return bool(min(ascent.share, ascent.kept) < 1 or ascent.parts > 1)

    @property
    def parts(self) -> int:
        """Into how many a step splits the batch, each of which is passed once."""
        return int(chosen("ascent", self.said, {}).parts)

    @property
    def by_kernel(self) -> bool:
        """Whether what a kernel is changes its numbers, as far as known without executing an option of the user's."""
        known = [axis for axis in AXES if ":" not in self.said.get(axis, "")]
        return any(chosen(axis, self.said, {}).by_kernel for axis in known)

    def canonical(self) -> dict[str, Any]:
        """Every axis and field with its value, said or not: what a run's identity is made of."""
        return {name: field.default for name, field in declared().items()} | self.said | {"own": self.own}

    def concise(self) -> Self:
        """The same point with what is so anyway left unsaid: a stored one says every field, read or not."""
        unsaid: dict[str, Any] = {n: None for n, field in declared().items() if getattr(self, n) == field.default}
        return dataclasses.replace(self, **unsaid)

    def problems(self) -> list[Problem]:
        """(field, what is wrong and how to mend it), for every rule that this point breaks."""
        said = self.said
        if unknown := _unknown(said) or [*own.problems(self._own().values(), fields(), self.own)]:
            return unknown
        at = self.point
        found = [
            (name, wrong) for name, f in fields().items() if name in said and (wrong := f.allowed.broken_by(said[name]))
        ]
        found += _unread(at, said)
        for one in at.options():
            found += one.problems(at)
        return found

    def _own(self) -> dict[str, type[Option]]:
        """The options that are the user's own, by axis."""
        return {axis: option(axis, name) for axis, name in self.said.items() if axis in OPEN and ":" in name}

    def settled(self) -> Self:
        """With every field of the user's own options said, in its type: so that what is equal is known by one id."""
        at, values = self.point, dict[str, Any]()
        for axis, kind in self._own().items():
            values |= {name: getattr(getattr(at, axis), name) for name in own.types_of(kind, fields())}
        return dataclasses.replace(self, own=values)

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


def _unknown(said: dict[str, Any]) -> list[Problem]:
    """Options that are none of their axis."""
    found = misnamed(said)
    for axis in OPEN:
        name = said.get(axis, "")
        if ":" in name and (wrong := own.misfit(AXES[axis], option(axis, name), fields())):
            found.append((axis, f"is {name}, which {wrong}"))
    return found


def misnamed(said: dict[str, Any]) -> list[Problem]:
    """Names that are no option's here. The user's own are not looked for."""
    return [
        (axis, f"must be one of {', '.join(options(axis))}, is {name!r}")
        for axis, name in said.items()
        if axis in AXES and name not in options(axis) and not (axis in OPEN and ":" in name)
    ]


def _unread(at: Point, said: dict[str, Any]) -> Iterator[Problem]:
    """What was said and is not read, with the reason and who reads it."""
    read = {field.name for one in at.options() for field in dataclasses.fields(one)}
    for name in said:
        field = fields().get(name)
        axis = name if field is None else field.axis
        if not at.reads(axis):
            yield name, "has no meaning without an ascent: set method.ascent=batch or leave it out"
        elif field is not None and name not in read:
            instead = said.get(axis, AXES[axis].default)
            verb = "reads" if len(field.readers) == 1 else "read"
            yield name, f"is not read with {axis}={instead}: {axis}={' or '.join(field.readers)} {verb} it"
