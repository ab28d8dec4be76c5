"""Spectra of a symmetric matrix of which only products are known: Lanczos, densities, traces, the largest eigenvalues.

`lanczos` orthogonalises each new vector against all earlier ones, twice: without that, rounding lets converged
eigenvalues come back as ghosts, and the density counts them again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Product = Callable[[Array], Array]


@dataclass(frozen=True)
class Probe:
    """What one random start gives: a quadrature of the spectral measure, and an estimate of the trace."""

    nodes: Array  # Ritz values
    weights: Array  # they add up to one
    trace: float  # size times v^T A v of a start v of length one


def lanczos(product: Product, size: int, steps: int, seed: int) -> Probe:
    """q_1 random of length one; alpha_k = q_k^T A q_k; beta_k q_{k+1} = A q_k less its part in the span of q_1..q_k.

    The eigenvalues of the tridiagonal matrix are the nodes, its eigenvectors' squared first entries the weights.
    """
    # Signs, not normals: v^T A v of a diagonal matrix is then its trace exactly, and varies less for any other.
    start = np.random.default_rng(seed).choice([-1.0, 1.0], size) / np.sqrt(size)
    basis, alphas, betas = np.empty((min(steps, size), size)), list[float](), list[float]()
    vector = start
    for k in range(len(basis)):
        basis[k] = vector
        after = np.asarray(product(vector), dtype=np.float64)
        alphas.append(float(vector @ after))
        for _ in range(2):
            after = after - basis[: k + 1].T @ (basis[: k + 1] @ after)
        length = float(np.linalg.norm(after))
        scale = max(map(abs, [*alphas, *betas]))
        if length <= 1e-10 * scale or k == len(basis) - 1:  # the span holds all that this start can see
            break
        betas.append(length)
        vector = after / length
    betas = betas[: len(alphas) - 1]
    nodes, vectors = np.linalg.eigh(np.diag(alphas) + np.diag(betas, 1) + np.diag(betas, -1))
    return Probe(nodes, vectors[0] ** 2, size * alphas[0])


def density(probes: Sequence[Probe], at: Array, width: float) -> tuple[Array, Array]:
    """Mean over the probes of sum_i weight_i N(t; node_i, width^2), and its standard error."""
    each = []
    for probe in probes:
        bells = np.exp(-0.5 * ((at[:, None] - probe.nodes) / width) ** 2) / (width * np.sqrt(2 * np.pi))
        each.append(bells @ probe.weights)
    found = np.array(each)
    error = found.std(0, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.zeros(len(at))
    return found.mean(0), error


def largest(product: Product, size: int, count: int, tolerance: float, seed: int) -> list[float]:
    """The largest eigenvalues, descending, by scipy's implicitly restarted Lanczos."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    start = np.random.default_rng(seed).standard_normal(size)
    operator: Any = LinearOperator((size, size), matvec=product, dtype=np.float64)
    found = eigsh(operator, k=count, which="LA", tol=tolerance, v0=start, return_eigenvectors=False)
    return sorted(map(float, found), reverse=True)
