"""The methods once more, on flat fp64 vectors, from the papers' formulas. Shares no code with `sam_repro`.

A method is a function (state, w, grad, t) -> final gradient. `grad(w, data)` is the mean gradient of that data at w
as a flat fp64 vector, `layout` says which slice of the vector is which parameter, and `state` is a dict to keep.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Slot:
    name: str
    shape: tuple[int, ...]
    lo: int
    hi: int


State = dict[str, Tensor]
Layout = Sequence[Slot]
Grad = Callable[[Tensor, str], Tensor]
Scheduled = Callable[[int], float]
Operator = Callable[[Tensor, Tensor, Layout, float, bool], Tensor]


def norm(v: Tensor) -> float:
    return math.sqrt((v * v).sum().item())


def inner(a: Tensor, b: Tensor) -> float:
    return float((a * b).sum().item())


# ---------------------------------------------------------------- operators T as vectors


def t_elementwise(w: Tensor, g: Tensor, layout: Layout, eta: float, biases: bool) -> Tensor:
    t = torch.ones_like(w)
    for s in layout:
        if biases or "weight" in s.name:
            t[s.lo : s.hi] = w[s.lo : s.hi].abs() + eta
    return t


def t_filterwise(w: Tensor, g: Tensor, layout: Layout, eta: float, biases: bool) -> Tensor:
    t = t_elementwise(w, g, layout, eta, biases)
    for s in layout:
        if len(s.shape) == 4:
            size = s.shape[1] * s.shape[2] * s.shape[3]
            for f in range(s.shape[0]):
                a, b = s.lo + f * size, s.lo + (f + 1) * size
                t[a:b] = norm(w[a:b]) + eta
    return t


def t_fisher(w: Tensor, g: Tensor, layout: Layout, eta: float, biases: bool) -> Tensor:
    return 1 / (1 + eta * g**2).sqrt()


def ball(d: Tensor, t: Tensor, rho: float) -> Tensor:
    return rho * t * t * d / norm(t * d)


# ---------------------------------------------------------------- noise


def key(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256("/".join(str(p) for p in parts).encode()).digest()[:8], "big") >> 1


def noise(w: Tensor, layout: Layout, gamma: float, seed: int, t: int, draw: int = 0, root: bool = False) -> Tensor:
    source = torch.Generator().manual_seed(key(seed, t, 0, f"noise{draw}"))
    out = torch.zeros_like(w)
    for s in layout:
        z = torch.randn(s.shape, generator=source).double().reshape(-1)
        rows = s.shape[0] if len(s.shape) > 1 else 1
        size = (s.hi - s.lo) // rows
        for r in range(rows):
            a, b = s.lo + r * size, s.lo + (r + 1) * size
            length = norm(w[a:b])
            out[a:b] = z[r * size : (r + 1) * size] * gamma * (math.sqrt(length) if root else length)
    return out


def isotropic_noise(w: Tensor, layout: Layout, gamma: float, seed: int, t: int) -> Tensor:
    source = torch.Generator().manual_seed(key(seed, t, 0, "noise0"))
    return gamma * torch.cat([torch.randn(s.shape, generator=source).double().reshape(-1) for s in layout])


def mask(layout: Layout, share: float, seed: int, t: int, w: Tensor) -> Tensor:
    source = torch.Generator().manual_seed(key(seed, t, 0, "mask"))
    out = torch.zeros_like(w)
    for s in layout:
        out[s.lo : s.hi] = (torch.rand(s.shape, generator=source) < share).double().reshape(-1)
    return out


# ---------------------------------------------------------------- the methods


def plain(state: State, w: Tensor, grad: Grad, t: int, layout: Layout) -> Tensor:
    return grad(w, "batch")


def sam(
    state: State, w: Tensor, grad: Grad, t: int, layout: Layout, rho: float, data: str = "batch", decay: float = 0.0
) -> Tensor:
    g = grad(w, data) + decay * w
    return grad(w + rho * g / norm(g), "batch")


def asam(
    state: State,
    w: Tensor,
    grad: Grad,
    t: int,
    layout: Layout,
    rho: float,
    eta: float,
    operator: Operator = t_elementwise,
    biases: bool = False,
) -> Tensor:
    g = grad(w, "batch")
    return grad(w + ball(g, operator(w, g, layout, eta, biases), rho), "batch")


def asam_linf(state: State, w: Tensor, grad: Grad, t: int, layout: Layout, rho: float, eta: float) -> Tensor:
    g = grad(w, "batch")
    return grad(w + rho * t_elementwise(w, g, layout, eta, False) * torch.sign(g), "batch")


def rsam(
    state: State,
    w: Tensor,
    grad: Grad,
    t: int,
    layout: Layout,
    rho: float,
    gamma: float,
    lam: float,
    seed: int,
    root: bool = False,
) -> Tensor:
    d0 = noise(w, layout, gamma, seed, t, root=root)
    d = d0 + lam * grad(w + d0, "batch")
    return grad(w + rho * d / norm(d), "batch")


def rsam_isotropic(
    state: State,
    w: Tensor,
    grad: Grad,
    t: int,
    layout: Layout,
    rho: float,
    gamma: float,
    lam: float,
    seed: int,
) -> Tensor:
    d0 = isotropic_noise(w, layout, gamma, seed, t)
    d = d0 + lam * grad(w + d0, "batch")
    return grad(w + rho * d / norm(d), "batch")


def rsam_not_projected(
    state: State, w: Tensor, grad: Grad, t: int, layout: Layout, rho: float, gamma: float, seed: int
) -> Tensor:
    d0 = noise(w, layout, gamma, seed, t)
    g = grad(w + d0, "batch")
    return grad(w + d0 + rho * g / norm(g), "batch")


def gsam_rho(rho_max: float, rho_min: float, lr: float, lr_min: float, lr_max: float) -> float:
    return max(rho_min, rho_min + (rho_max - rho_min) * (lr - lr_min) / (lr_max - lr_min))


def gsam(state: State, w: Tensor, grad: Grad, t: int, layout: Layout, rho: Scheduled, alpha: float) -> Tensor:
    g = grad(w, "batch")
    h = grad(w + rho(t) * g / norm(g), "batch")
    unit = h / norm(h)
    return h - alpha * (g - inner(g, unit) * unit)


def rgsam(
    state: State,
    w: Tensor,
    grad: Grad,
    t: int,
    layout: Layout,
    rho: Scheduled,
    alpha: float,
    gamma: float,
    lam: float,
    seed: int,
) -> Tensor:
    d0 = noise(w, layout, gamma, seed, t)
    g = grad(w + d0, "batch")
    d = d0 + lam * g
    h = grad(w + rho(t) * d / norm(d), "batch")
    unit = h / norm(h)
    return h - alpha * (g - inner(g, unit) * unit)


def fsam_direction(state: State, g: Tensor, sigma: float, lam: float, official: bool) -> Tensor:
    if official:
        before = state.get("m")
        state["m"] = g.clone() if before is None else lam * before + (1 - lam) * g
        return g if before is None else g - sigma * before
    state["m"] = lam * state.get("m", torch.zeros_like(g)) + (1 - lam) * g
    return g - sigma * state["m"]


def fsam(
    state: State,
    w: Tensor,
    grad: Grad,
    t: int,
    layout: Layout,
    rho: float,
    sigma: float,
    lam: float,
    official: bool = False,
) -> Tensor:
    d = fsam_direction(state, grad(w, "batch"), sigma, lam, official)
    return grad(w + rho * d / norm(d), "batch")


def fsam_in_ball(
    state: State,
    w: Tensor,
    grad: Grad,
    t: int,
    layout: Layout,
    rho: float,
    sigma: float,
    lam: float,
    operator: Operator,
    eta: float,
    biases: bool,
) -> Tensor:
    g = grad(w, "batch")
    operated = operator(w, g, layout, eta, biases)
    d = fsam_direction(state, g, sigma, lam, False)
    return grad(w + ball(d, operated, rho), "batch")


def sam_noise(state: State, w: Tensor, grad: Grad, t: int, layout: Layout, rho: float) -> Tensor:
    g, full = grad(w, "batch"), grad(w, "full")
    d = g - inner(g, full) / inner(full, full) * full
    return grad(w + rho * d / norm(d), "batch")


def lpf_sgd(
    state: State,
    w: Tensor,
    grad: Grad,
    t: int,
    layout: Layout,
    gamma: Scheduled,
    draws: int,
    seed: int,
    split: bool = True,
) -> Tensor:
    """Every noise has its part of the batch, whose gradient counts as many samples as it has, or all of it."""
    total = torch.zeros_like(w)
    for k in range(draws):
        of_noise = w + noise(w, layout, gamma(t), seed, t, draw=k)
        total += grad(of_noise, f"{k}/{draws}") if split else grad(of_noise, "batch") / draws
    return total


def looksam(state: State, w: Tensor, grad: Grad, t: int, layout: Layout, rho: float, every: int, look: float) -> Tensor:
    g = grad(w, "batch")
    if t % every:
        return g + look * norm(g) / norm(state["v"]) * state["v"]
    h = grad(w + rho * g / norm(g), "batch")
    cosine = inner(g, h) / (norm(g) * norm(h))
    state["v"] = h - norm(h) * cosine * g / norm(g)
    return h


def looksam_by_tensor(
    state: State, w: Tensor, grad: Grad, t: int, layout: Layout, rho: float, every: int, look: float
) -> Tensor:
    """The ascent is along the whole gradient; what is kept of it, and how much is added, is each parameter's own."""
    g = grad(w, "batch")
    if t % every:
        for s in layout:
            mine, v = g[s.lo : s.hi], state["v"][s.lo : s.hi]
            g[s.lo : s.hi] = mine + look * norm(mine) / norm(v) * v
        return g
    h = grad(w + rho * g / norm(g), "batch")
    state["v"] = h.clone()
    for s in layout:
        mine, adv = g[s.lo : s.hi], h[s.lo : s.hi]
        cosine = inner(mine, adv) / (norm(mine) * norm(adv))
        state["v"][s.lo : s.hi] = adv - norm(adv) * cosine * mine / norm(mine)
    return h


def esam(state: State, w: Tensor, grad: Grad, t: int, layout: Layout, rho: float, share: float, seed: int) -> Tensor:
    g = grad(w, "batch")
    return grad(w + rho * g / norm(g) * mask(layout, share, seed, t, w) / share, "kept")


class Momentum:
    """SGD with momentum and l2 weight decay, as torch.optim.SGD defines it."""

    def __init__(self, lr: float, momentum: float, decay: float) -> None:
        self.lr, self.momentum, self.decay = lr, momentum, decay
        self.buffer: Tensor | None = None

    def step(self, w: Tensor, g: Tensor, lr: float) -> Tensor:
        g = g + self.decay * w
        self.buffer = g if self.buffer is None else self.momentum * self.buffer + g
        return w - lr * self.buffer
