"""The truth, by dense float64 NumPy, for theory and tests alike. Shares no code with the library.

Complements are written out and n x n matrices are formed: slow, and easy to believe.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
norm = np.linalg.norm


def power(values: Array, exponent: float) -> Array:
    """Values to a power, where a value of 0 stays 0 for every exponent."""
    return np.where(values > 0, np.where(values > 0, values, 1) ** exponent, 0.0)


def embedding(vectors: Array, values: Array, alpha: float) -> Array:
    """The leading vectors, one per value, times the values to the power alpha."""
    return vectors[:, : values.size] * power(values, alpha)


def pip(e: Array) -> Array:
    """All inner products."""
    return e @ e.T


def pip_loss(e: Array, f: Array) -> float:
    """Frobenius norm of the difference of all inner products."""
    return float(norm(pip(e) - pip(f)))


def projector_distance(x: Array, y: Array) -> float:
    """Frobenius norm of the difference of the projectors onto two orthonormal frames."""
    return pip_loss(x, y)


def complement(x: Array) -> Array:
    """Orthonormal columns for everything orthogonal to the columns of `x`."""
    return np.linalg.qr(x, mode="complete")[0][:, x.shape[1] :]


def principal_sines(x: Array, y: Array) -> Array:
    """Sines of the principal angles between two frames, largest first, one per column of `x`."""
    sines = np.linalg.svd(x.T @ complement(y), compute_uv=False)[: x.shape[1]]
    return np.pad(sines, (0, x.shape[1] - sines.size))


def eigen(signal: Array) -> tuple[Array, Array]:
    """Eigenvectors of a symmetric matrix and its absolute eigenvalues, largest first."""
    values, vectors = np.linalg.eigh(signal)
    order = np.argsort(-np.abs(values), kind="stable")
    return vectors[:, order], np.abs(values)[order]


def best_magnitude(a: Array, b: Array) -> float:
    """The smallest norm of a - q b over q >= 0, by ternary search between 0 and |a| / |b|."""
    if not b.any():
        return float(norm(a))
    low, high = 0.0, 1.0
    b = b * (norm(a) / norm(b))
    for _ in range(80):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if norm(a - left * b) < norm(a - right * b) else (left, high)
    return float(norm(a - (low + high) / 2 * b))


class Bound(NamedTuple):
    """The terms of the bound, and the loss that it bounds."""

    bias: float
    magnitude: Array
    direction: Array
    direction_exact: Array
    block: Array
    loss: float
    scale: float
    """Norms of all strengths, to measure rounding errors by."""

    @property
    def telescoped(self) -> float:
        """The bound as Theorem 1 should have it."""
        return float(self.bias + self.magnitude.sum() + self.direction.sum())


def bound(
    ideal: tuple[Array, Array],
    sources: Sequence[tuple[Array, Array]],
    weights: Sequence[Array],
    alpha: float,
    source_alphas: Sequence[float],
) -> Bound:
    """All terms from their definitions; ideal and sources are (vectors, values).

    `weights[j]` is a number or one for each dimension.
    """
    vectors, values = ideal
    sizes = [len(mu) for _, mu in sources]
    n, missing = vectors.shape[0], max(sum(sizes) - len(values), 0)
    strength = np.pad(power(values, 2 * alpha), (0, missing))
    u = np.pad(vectors, ((0, 0), (0, missing)))
    meta, terms, start = np.zeros((n, n)), [], 0
    scale = norm(strength)
    for (q, mu), c, source_alpha in zip(sources, weights, source_alphas, strict=True):
        k = len(mu)
        p, a = u[:, start : start + k], strength[start : start + k]
        b = (c * power(mu, source_alpha)) ** 2
        steps = np.abs(a - np.append(a[1:], 0.0))
        ideal_block, source_block = p @ np.diag(a) @ p.T, q @ np.diag(b) @ q.T
        terms.append(
            (
                norm(a - b),
                sum(steps[i] * projector_distance(p[:, : i + 1], q[:, : i + 1]) for i in range(k)),
                norm(ideal_block - q @ np.diag(a) @ q.T),
                norm(ideal_block - source_block),
            )
        )
        meta += source_block
        scale += norm(b)
        start += k
    loss = norm(u @ np.diag(strength) @ u.T - meta)
    bias = norm(strength[start:])
    magnitude, direction, exact, block = np.array(terms).T
    return Bound(float(bias), magnitude, direction, exact, block, float(loss), float(scale))
