"""The papers' bounds on quadratics, L(w) = <w, A w> / 2, of which every constant that they name is known.

A is diagonal with eigenvalues from mu to beta; a mini-batch's gradient is A w + xi with xi uniform on a sphere of
radius sqrt(M), so that its variance is M and its length is bounded. All draws step at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Quadratic:
    size: int = 20
    mu: float = 0.1
    beta: float = 1.0
    variance: float = 1.0  # M
    start: float = 3.0  # |w_0|

    @property
    def values(self) -> Array:
        return np.linspace(self.mu, self.beta, self.size)

    def begin(self, draws: int, rng: np.random.Generator) -> Array:
        return self.start * _sphere(draws, self.size, rng)

    def gradient(self, w: Array) -> Array:
        return w * self.values

    def noise(self, draws: int, rng: np.random.Generator) -> Array:
        return math.sqrt(self.variance) * _sphere(draws, self.size, rng)

    def loss(self, w: Array) -> Array:
        found: Array = (w * w * self.values).sum(-1) / 2
        return found

    @property
    def longest_step(self) -> float:
        """G: no stochastic gradient is longer while the rate is at most 1 / beta. A step shrinks w by 1 - rate mu and
        adds at most rate sqrt(M), so |w| never exceeds the larger of |w_0| and sqrt(M) / mu."""
        noise = math.sqrt(self.variance)
        return self.beta * max(self.start, noise / self.mu) + noise


def _sphere(draws: int, size: int, rng: np.random.Generator) -> Array:
    drawn = rng.standard_normal((draws, size))
    found: Array = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return found


def average_errors(q: Quadratic, decay: float, rate: float, steps: int, draws: int, seed: int) -> Array:
    """F-SAM theorem 1, measured: |m_T - grad L(w_T)| [T, draws] of the weighted mean of stochastic gradients,
    m_T = sum_t decay^(T-t) g_t / sum_t decay^(T-t), along steps w - rate g."""
    rng = np.random.default_rng(seed)
    w, total, weight, found = q.begin(draws, rng), np.zeros((draws, q.size)), 0.0, []
    for _ in range(steps):
        g = q.gradient(w) + q.noise(draws, rng)
        total, weight = decay * total + g, decay * weight + 1
        found.append(np.linalg.norm(total / weight - q.gradient(w), axis=1))
        w = w - rate * g
    return np.stack(found)


def average_bound(q: Quadratic, decay: float, rate: float, steps: int, delta: float, variance: float) -> Array:
    """(4 sqrt(M) sqrt(1 - decay) sqrt(log(e^(1/4) / delta)) + G beta rate / (1 - decay)) / (1 - decay^T), for each T.

    The supplement prints e^(-1/4) in (21); from (20) it is e^(1/4), which the larger bound here has.
    """
    noise = 4 * math.sqrt(variance * (1 - decay) * (0.25 - math.log(delta)))
    bias = q.longest_step * q.beta * rate / (1 - decay)
    found: Array = (noise + bias) / (1 - decay ** np.arange(1, steps + 1, dtype=np.float64))
    return found


def projections(q: Quadratic, sigma: float, batches: int, draws: int, seed: int) -> Array:
    """F-SAM lemma 1, measured: <g - sigma m, grad L> / |grad L|^2, m the mean of other batches at the same w."""
    rng = np.random.default_rng(seed)
    full = q.gradient(q.begin(draws, rng))
    g = full + q.noise(draws, rng)
    m = full + np.mean([q.noise(draws, rng) for _ in range(batches)], axis=0)
    found: Array = ((g - sigma * m) * full).sum(1) / (full * full).sum(1)
    return found


def squared_gradients(q: Quadratic, rate: float, radius: float, steps: int, draws: int, seed: int) -> Array:
    """F-SAM theorem 2, measured: the mean over steps t <= T of |grad L(w_t)|^2, [T, draws], under SAM's step with
    rho_t = radius / sqrt(t), rate_t = rate / sqrt(t) and the direction g - m of F-SAM (decay 0.6)."""
    rng = np.random.default_rng(seed)
    w, m, total, found = q.begin(draws, rng), np.zeros((draws, q.size)), np.zeros(draws), []
    for t in range(1, steps + 1):
        noise = q.noise(draws, rng)
        g = q.gradient(w) + noise
        total += (q.gradient(w) ** 2).sum(1)
        found.append(total / t)
        m = 0.6 * m + 0.4 * g
        d = g - m
        ahead = w + radius / math.sqrt(t) * d / np.linalg.norm(d, axis=1, keepdims=True)
        w = w - rate / math.sqrt(t) * (q.gradient(ahead) + noise)
    return np.stack(found)


def squared_bound(q: Quadratic, rate: float, radius: float, steps: int) -> Array:
    """(2 Delta / rate + Theta + Pi log T) / sqrt(T), Theta = rate (2 beta M + radius^2 beta^3), Pi = (radius beta)^2.

    Delta is the largest that |w_0| allows. With rates that fall as 1 / sqrt(t) the sum of their squares is 1 + log T at
    most and not the 1 of (45), so Theta is taken (1 + log T) times, and so is Pi.
    """
    at = np.arange(1, steps + 1, dtype=np.float64)
    gap = q.beta * q.start**2 / 2
    theta = 2 * q.beta * q.variance * rate + radius**2 * q.beta**3 * rate
    found: Array = (2 * gap / rate + (theta + radius**2 * q.beta**2) * (1 + np.log(at))) / np.sqrt(at)
    return found


def gaps(samples: int, size: int, rho: float, eta: float, draws: int, seed: int) -> tuple[Array, Array]:
    """ASAM, first version, theorem 3, measured: L_D(w) less the worst L_S in the ellipsoid, and |w|^2, of each
    training set; w is its minimiser. The loss is |w - x|^2 / (2 size), at most 1, x uniform on {-.2, .8}^size.

    At the minimiser the worst loss is the longest axis's: rho^2 max(|w| + eta)^2 / (2 size) above L_S(w).
    """
    rng = np.random.default_rng(seed)
    gap, square = [], []
    for _ in range(draws):
        x = rng.integers(0, 2, (samples, size)) - 0.5 + 0.3
        w = x.mean(0)
        train = ((x - w) ** 2).sum(1).mean() / (2 * size)
        true = (0.25 + ((w - 0.3) ** 2).mean()) / 2
        gap.append(true - train - rho**2 * (np.abs(w) + eta).max() ** 2 / (2 * size))
        square.append((w * w).sum())
    return np.array(gap), np.array(square)


def gap_bound(square: Array, samples: int, size: int, rho: float, eta: float, delta: float) -> Array:
    """sqrt((k log(1 + |w|^2 / (eta rho)^2 (1 + sqrt(log n / k))^2) + 4 log(n / delta)) / (n - 1)), O(1) as 0."""
    inside = square / (eta * rho) ** 2 * (1 + math.sqrt(math.log(samples) / size)) ** 2
    found: Array = np.sqrt((size * np.log1p(inside) + 4 * math.log(samples / delta)) / (samples - 1))
    return found


def smoothness(steepness: float, gammas: list[float], side: int) -> tuple[float, float, list[float]]:
    """R-SAM theorem 1 on the net f(x) = tanh(s (a x + b)) of two weights, L its mean absolute error at four samples:
    alpha = max |grad L|, beta = max |H|, and max |H_gamma| of L's mean over N(0, gamma^2), on a grid of weights."""
    from scipy.ndimage import gaussian_filter

    edge = 6.0  # of the square of weights; what is measured stands 4 gamma and more from it
    a = np.linspace(-edge, edge, side)
    w1, w2 = np.meshgrid(a, a, indexing="ij")
    loss = np.zeros_like(w1)
    for x, y in ((-1.0, -1.0), (-0.3, 1.0), (0.4, -1.0), (1.0, 1.0)):
        loss += np.abs(np.tanh(steepness * (w1 * x + w2)) - y) / 4
    step = float(a[1] - a[0])
    inner = (slice(2, -2),) * 2
    alpha = float(np.hypot(*np.gradient(loss, step))[inner].max())
    beta = _largest(loss, step, inner)
    found = []
    for gamma in gammas:
        smooth = gaussian_filter(loss, gamma / step, truncate=4.0)
        cut = math.ceil(4 * gamma / step) + 2
        found.append(_largest(smooth, step, (slice(cut, -cut),) * 2))
    return alpha, beta, found


def _largest(loss: Array, step: float, where: tuple[slice, slice]) -> float:
    """The largest |eigenvalue| of the second differences."""
    first = np.gradient(loss, step)
    (h11, h12), (_, h22) = (np.gradient(part, step) for part in first)
    middle, spread = (h11 + h22) / 2, np.hypot((h11 - h22) / 2, h12)
    return float((np.abs(middle) + spread)[where].max())
