"""The truth, by dense matrices: n x n, complements and all. Shares no code with the library."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def strength(values: Array, exponent: float) -> Array:
    """Values to a power, where a value of 0 stays 0 for every exponent."""
    return np.where(values > 0, np.where(values > 0, values, 1) ** exponent, 0.0)


def embedding(vectors: Array, values: Array, alpha: float) -> Array:
    """The leading vectors, one per value, times the values to the power alpha."""
    return vectors[:, : values.size] * strength(values, alpha)


def pip(e: Array) -> Array:
    """All inner products."""
    return e @ e.T


def pip_loss(e: Array, f: Array) -> float:
    """Frobenius norm of the difference of all inner products."""
    return float(np.linalg.norm(pip(e) - pip(f)))


def projector_distance(x: Array, y: Array) -> float:
    """Frobenius norm of the difference of the projectors onto two orthonormal frames."""
    return pip_loss(x, y)


def frame(rng: np.random.Generator, n: int, k: int | None = None) -> Array:
    """k (or n) orthonormal columns, uniformly at random."""
    q, r = np.linalg.qr(rng.standard_normal((n, k or n)))
    return q * np.sign(np.diag(r))


def eigen(signal: Array) -> tuple[Array, Array]:
    """Eigenvectors of a symmetric matrix and its absolute eigenvalues, largest first."""
    values, vectors = np.linalg.eigh(signal)
    order = np.argsort(-np.abs(values), kind="stable")
    return vectors[:, order], np.abs(values)[order]


def symmetric_noise(rng: np.random.Generator, n: int) -> Array:
    """A symmetric Gaussian matrix with unit variance off the diagonal."""
    z = rng.standard_normal((n, n))
    return (z + z.T) / np.sqrt(2)
