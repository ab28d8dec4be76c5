"""The methods once more, on flat fp64 vectors, from the papers' formulas. Shares no code with `sam_repro`.

A method is a function (state, w, grad, t) -> final gradient. `grad(w, data)` is the mean gradient of that data at w
as a flat fp64 vector, `layout` says which slice of the vector is which parameter, and `state` is a dict to keep.
"""

import hashlib
import math
from dataclasses import dataclass

import torch


@dataclass
class Slot:
    name: str
    shape: tuple
    lo: int
    hi: int


def norm(v):
    return (v * v).sum().item() ** 0.5


def inner(a, b):
    return (a * b).sum().item()


# ---------------------------------------------------------------- operators T as vectors


def t_elementwise(w, g, layout, eta, biases):
    t = torch.ones_like(w)
    for s in layout:
        if biases or "weight" in s.name:
            t[s.lo : s.hi] = w[s.lo : s.hi].abs() + eta
    return t


def t_filterwise(w, g, layout, eta, biases):
    t = t_elementwise(w, g, layout, eta, biases)
    for s in layout:
        if len(s.shape) == 4:
            size = s.shape[1] * s.shape[2] * s.shape[3]
            for f in range(s.shape[0]):
                a, b = s.lo + f * size, s.lo + (f + 1) * size
                t[a:b] = norm(w[a:b]) + eta
    return t


def t_fisher(w, g, layout, eta, biases):
    return 1 / (1 + eta * g**2).sqrt()


def ball(d, t, rho):
    return rho * t * t * d / norm(t * d)


# ---------------------------------------------------------------- noise


def key(*parts):
    return int.from_bytes(hashlib.sha256("/".join(str(p) for p in parts).encode()).digest()[:8], "big") >> 1


def noise(w, layout, gamma, seed, t, draw=0, root=False):
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


def isotropic_noise(w, layout, gamma, seed, t):
    source = torch.Generator().manual_seed(key(seed, t, 0, "noise0"))
    return gamma * torch.cat([torch.randn(s.shape, generator=source).double().reshape(-1) for s in layout])


def mask(layout, share, seed, t, w):
    source = torch.Generator().manual_seed(key(seed, t, 0, "mask"))
    out = torch.zeros_like(w)
    for s in layout:
        out[s.lo : s.hi] = (torch.rand(s.shape, generator=source) < share).double().reshape(-1)
    return out


# ---------------------------------------------------------------- the methods


def plain(state, w, grad, t, layout):
    return grad(w, "batch")


def sam(state, w, grad, t, layout, rho, data="batch", decay=0.0):
    g = grad(w, data) + decay * w
    return grad(w + rho * g / norm(g), "batch")


def asam(state, w, grad, t, layout, rho, eta, operator=t_elementwise, biases=False):
    g = grad(w, "batch")
    return grad(w + ball(g, operator(w, g, layout, eta, biases), rho), "batch")


def asam_linf(state, w, grad, t, layout, rho, eta):
    g = grad(w, "batch")
    return grad(w + rho * t_elementwise(w, g, layout, eta, False) * torch.sign(g), "batch")


def rsam(state, w, grad, t, layout, rho, gamma, lam, seed, root=False):
    d0 = noise(w, layout, gamma, seed, t, root=root)
    d = d0 + lam * grad(w + d0, "batch")
    return grad(w + rho * d / norm(d), "batch")


def rsam_isotropic(state, w, grad, t, layout, rho, gamma, lam, seed):
    d0 = isotropic_noise(w, layout, gamma, seed, t)
    d = d0 + lam * grad(w + d0, "batch")
    return grad(w + rho * d / norm(d), "batch")


def rsam_not_projected(state, w, grad, t, layout, rho, gamma, seed):
    d0 = noise(w, layout, gamma, seed, t)
    g = grad(w + d0, "batch")
    return grad(w + d0 + rho * g / norm(g), "batch")


def gsam_rho(rho_max, rho_min, lr, lr_min, lr_max):
    return max(rho_min, rho_min + (rho_max - rho_min) * (lr - lr_min) / (lr_max - lr_min))


def gsam(state, w, grad, t, layout, rho, alpha):
    g = grad(w, "batch")
    h = grad(w + rho(t) * g / norm(g), "batch")
    unit = h / norm(h)
    return h - alpha * (g - inner(g, unit) * unit)


def rgsam(state, w, grad, t, layout, rho, alpha, gamma, lam, seed):
    d0 = noise(w, layout, gamma, seed, t)
    g = grad(w + d0, "batch")
    d = d0 + lam * g
    h = grad(w + rho(t) * d / norm(d), "batch")
    unit = h / norm(h)
    return h - alpha * (g - inner(g, unit) * unit)


def fsam_direction(state, g, sigma, lam, official):
    if official:
        before = state.get("m")
        state["m"] = g.clone() if before is None else lam * before + (1 - lam) * g
        return g if before is None else g - sigma * before
    state["m"] = lam * state.get("m", torch.zeros_like(g)) + (1 - lam) * g
    return g - sigma * state["m"]


def fsam(state, w, grad, t, layout, rho, sigma, lam, official=False):
    d = fsam_direction(state, grad(w, "batch"), sigma, lam, official)
    return grad(w + rho * d / norm(d), "batch")


def fsam_in_ball(state, w, grad, t, layout, rho, sigma, lam, operator, eta, biases):
    g = grad(w, "batch")
    operated = operator(w, g, layout, eta, biases)
    d = fsam_direction(state, g, sigma, lam, False)
    return grad(w + ball(d, operated, rho), "batch")


def sam_noise(state, w, grad, t, layout, rho):
    g, full = grad(w, "batch"), grad(w, "full")
    d = g - inner(g, full) / inner(full, full) * full
    return grad(w + rho * d / norm(d), "batch")


def lpf_sgd(state, w, grad, t, layout, gamma, draws, seed):
    total = torch.zeros_like(w)
    for k in range(draws):
        total += grad(w + noise(w, layout, gamma(t), seed, t, draw=k), "batch")
    return total / draws


def looksam(state, w, grad, t, layout, rho, every, look):
    g = grad(w, "batch")
    if t % every:
        return g + look * norm(g) / norm(state["v"]) * state["v"]
    h = grad(w + rho * g / norm(g), "batch")
    cosine = inner(g, h) / (norm(g) * norm(h))
    state["v"] = h - norm(h) * cosine * g / norm(g)
    return h


def esam(state, w, grad, t, layout, rho, share, seed):
    g = grad(w, "batch")
    return grad(w + rho * g / norm(g) * mask(layout, share, seed, t, w) / share, "kept")


class Momentum:
    """SGD with momentum and l2 weight decay, as torch.optim.SGD defines it."""

    def __init__(self, lr, momentum, decay):
        self.lr, self.momentum, self.decay, self.buffer = lr, momentum, decay, None

    def step(self, w, g, lr):
        g = g + self.decay * w
        self.buffer = g if self.buffer is None else self.momentum * self.buffer + g
        return w - lr * self.buffer
