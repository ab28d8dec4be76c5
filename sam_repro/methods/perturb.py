"""The ascent step: eps = rho T^2 d / l2(T d), and the one way to move the weights there and back.

On a CPU the first half does everything to a tensor, or to a piece of one, while it is in cache; the second is one loop
over them. On an accelerator both take `torch._foreach_*` over all tensors at once. The formulas are the same lines.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from sam_repro.methods.directions import Equation
from sam_repro.methods.geometries import Geometry
from sam_repro.methods.passes import owns_storage
from sam_repro.methods.vector import Scalar, Tensors, axpy, dot, dots, flat, ratio, root, stretch, total

PIECE = 1 << 20  # elements of T at a time: little memory, a piece that stays in the last level of cache, few calls


@dataclass
class Group:
    """Parameters that are treated alike: their weights, gradients, and what the direction wants beside them."""

    kind: Hashable  # as the geometry has it; None where T is 1
    w: list[Tensor] = field(default_factory=list)
    g: list[Tensor] = field(default_factory=list)
    beside: list[list[Tensor]] = field(default_factory=list)


@dataclass
class Climb:
    """What is known after the ascent: eps = scale * u, with u = T^2 d left in the gradients' place."""

    scale: Scalar
    report: dict[str, Scalar]


def climb(geometry: Geometry, bend: Equation, groups: Sequence[Group], rho: float, lazy: bool, observe: bool) -> Climb:
    """Turn g into u = T^2 d in place, u = T sign(d) for p = inf, and find the scale that makes it eps."""
    linf = geometry.p == "linf"
    squares: Tensors = []  # whose sum is l2(T d)^2
    seen = Observed(lazy, linf) if observe else None
    for group in groups:
        # Only T takes memory of its own, and a filter's norm needs the whole filter.
        whole = group.kind is None or geometry.whole
        for w, d, *beside in pieces([group.w, group.g, *group.beside], lazy, whole):
            # T before the direction, for Fisher's is made of g.
            t = None if group.kind is None else geometry.operator(group.kind, w, d)
            if seen:
                seen.gradient(d)
            bend(d, beside)
            if seen:
                seen.direction(d, t)
            if linf:
                if seen:  # the norm is for the log alone
                    adapted = d if t is None else list(torch._foreach_mul(d, t))
                    squares += dots(adapted, adapted, lazy)
                torch._foreach_sign_(d)
            else:
                if t is not None:
                    torch._foreach_mul_(d, t)
                squares += dots(d, d, lazy)
            if t is not None:
                torch._foreach_mul_(d, t)
            if seen:
                seen.perturbation(d)
    norm = root(total(squares, lazy))
    scale = rho if linf else ratio(rho, norm)
    report: dict[str, Scalar] = {"radius": rho} if linf and not seen else {"ascent_norm": norm, "radius": rho}
    if seen:
        report |= seen.report(scale, rho)
    return Climb(scale, report)


class Observed:
    """Norms for the log, a few more reads of what is in cache anyway."""

    def __init__(self, lazy: bool, linf: bool):
        self._lazy = lazy
        self._linf = linf
        self._g2: Scalar = 0.0
        self._u2: Scalar = 0.0
        self._d2: Scalar = 0.0
        self._gap2: Scalar = 0.0
        self._gap_d: Scalar = 0.0
        self._d: list[Tensor] | None = None

    def gradient(self, g: Tensors) -> None:
        self._g2 = self._g2 + dot(g, g, self._lazy)

    def direction(self, d: Tensors, t: Tensors | None) -> None:
        self._d2 = self._d2 + dot(d, d, self._lazy)
        self._d = list(torch._foreach_clone(d)) if t is not None or self._linf else None

    def perturbation(self, u: Tensors) -> None:
        self._u2 = self._u2 + dot(u, u, self._lazy)
        if self._d is not None:
            gap = list(torch._foreach_sub(u, self._d))
            self._gap2 = self._gap2 + dot(gap, gap, self._lazy)
            self._gap_d = self._gap_d + dot(gap, self._d, self._lazy)

    def report(self, scale: Scalar, rho: float) -> dict[str, Scalar]:
        """`distance_to_sam` is l2(eps - rho d / l2(d)), from u - d, since subtracting the two norms cancels.

        eps - eps_sam = s (u - d) + (s - s_sam) d, and with l2(T d)^2 = l2(d)^2 + <u - d, d> for p = 2
        s - s_sam = -rho <u - d, d> / (l2(d) l2(T d) (l2(d) + l2(T d))).
        """
        length = root(self._d2)
        adapted = root(self._d2 + self._gap_d)
        shift = -1 * ratio(rho * self._gap_d, length * adapted * (length + adapted))
        if self._linf:
            shift = scale - ratio(rho, length)
        apart = scale * scale * self._gap2 + 2 * scale * shift * self._gap_d + shift * shift * self._d2
        return {
            "gradient_norm": root(self._g2),
            "perturbation_norm": scale * root(self._u2),
            "distance_to_sam": root(apart),
        }


def distance_to_sam(g: Tensors, where: Sequence[int], u: Tensors, scale: Scalar, rho: float, lazy: bool) -> Scalar:
    """l2(scale u - rho g / l2(g)), where u departs from g in more than T; `where` in g its tensors are. Consumes g.

    Element by element: where u is a multiple of g, as in F-SAM's first step, sums over both would cancel.
    """
    stretch(g, -1 * ratio(rho, root(dot(g, g, lazy))))
    axpy([g[i] for i in where], scale, u)
    return root(dot(g, g, lazy))


def pieces(columns: Sequence[list[Tensor]], lazy: bool, whole: bool) -> Iterator[list[list[Tensor]]]:
    """Rows of tensors that belong together, cut so that a row fits into the cache; everything at once if `lazy`."""
    if lazy:
        if columns[0]:
            yield [list(column) for column in columns]
        return
    for row in zip(*columns, strict=True):
        views = [] if whole or row[0].numel() <= PIECE else [flat(t) for t in row]
        if views and None not in views and all(t.stride() == row[0].stride() for t in row):
            cut = [torch.split(v, PIECE) for v in views if v is not None]
            yield from ([[part] for part in parts] for parts in zip(*cut, strict=True))
        else:
            yield [[t] for t in row]


class Weights:
    """The parameters. `move` takes some of them to w + scale * u, `restore` brings all of them back bit by bit.

    Where a weight and its u each own their memory, w + scale * u is written over u and the two memories change places:
    the way back is free. Elsewhere (bucket views, flat buffers, tied memory, another layout) the weight is copied to a
    buffer and back. Never is the perturbation subtracted again: that changes weights by rounding.
    """

    def __init__(self, params: Sequence[Tensor], swap: bool):
        self.params = list(params)
        self._swap = swap
        self._buffers: dict[int, Tensor] = {}
        self._away: list[tuple[Tensor, Tensor, bool]] = []  # parameter, its weights, whether memories were swapped

    def move(self, where: Sequence[int], by: Tensors, scale: Scalar) -> None:
        """Consumes `by`: its memory may become the weights'."""
        swapped: list[tuple[Tensor, Tensor]] = []
        copied: list[tuple[Tensor, Tensor]] = []
        for i, u in zip(where, by, strict=True):
            p = self.params[i]
            if self._may_swap(p, u):
                if p.grad is u:
                    p.grad = None  # its memory is the weights' from here on
                swapped.append((p, u))
                self._away.append((p, p.data, True))
            else:
                copied.append((p, u))
                self._away.append((p, self._buffer(i).copy_(p), False))
        if isinstance(scale, Tensor):
            torch._foreach_mul_(by, scale)
            if swapped:
                torch._foreach_add_([u for _, u in swapped], [p.detach() for p, _ in swapped])
            if copied:
                torch._foreach_add_([p.detach() for p, _ in copied], [u for _, u in copied])
        else:
            for p, u in reversed(swapped):  # the norm was read forwards: its last tensors are still in cache
                torch.add(p, u, alpha=scale, out=u)
            for p, u in copied:
                p.add_(u, alpha=scale)
        for p, u in swapped:
            p.data = u
        torch.clear_autocast_cache()  # it may hold the low-precision copy of the weights that were here

    def _buffer(self, i: int) -> Tensor:
        p, buffer = self.params[i], self._buffers.get(i)
        if buffer is None or (buffer.shape, buffer.dtype, buffer.device) != (p.shape, p.dtype, p.device):
            buffer = self._buffers[i] = torch.empty_like(p, requires_grad=False)
        return buffer

    def restore(self) -> None:
        for p, home, swapped in self._away:
            if swapped:
                p.data = home
            else:
                with torch.no_grad():
                    p.copy_(home)
        if self._away:
            torch.clear_autocast_cache()
        self._away.clear()

    def _may_swap(self, p: Tensor, u: Tensor) -> bool:
        return (
            self._swap
            and p.dtype == u.dtype
            and p.device == u.device
            and p.stride() == u.stride()
            and owns_storage(p)
            and owns_storage(u)
        )
