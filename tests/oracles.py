"""Dense float64 NumPy for everything that the library computes; no code in common with it.

Complements are written out and n x n matrices are formed: slow, and easy to believe.
"""

import math
import operator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import scipy.optimize

norm = np.linalg.norm


def power(values, exponent):
    """values ** exponent, with 0 ** anything = 0."""
    positive = values > 0
    return np.where(positive, np.where(positive, values, 1.0) ** exponent, 0.0)


def pip_loss(e, f):
    return norm(e @ e.T - f @ f.T)


def complement(x):
    """Orthonormal columns for everything orthogonal to the columns of `x`."""
    return np.linalg.qr(x, mode="complete")[0][:, x.shape[1] :]


def lemma1(x, y):
    return projector_distance(x, y), np.sqrt(2) * norm(x.T @ complement(y))


def projector_distance(x, y):
    return norm(x @ x.T - y @ y.T)


def principal_sines(x, y):
    sines = np.linalg.svd(x.T @ complement(y), compute_uv=False)
    return np.pad(sines, (0, x.shape[1] - sines.size))


def exact(x):
    """The same numbers as fractions, so that sums and products of them do not round."""
    return np.vectorize(lambda v: Fraction(float(v)), otypes=[object])(np.asarray(x))


def inexact(x):
    return np.asarray(x, dtype=np.float64)


def exact_pip_loss(e, f):
    """The loss with all its digits, however close the inner products are."""
    e, f = exact(e), exact(f)
    return norm(inexact(e @ e.T - f @ f.T))


def tiny_sines(x, y):
    """Sines of angles far below eps: the projection away from `y` in exact arithmetic."""
    left, y = exact(x), exact(y)
    for _ in range(3):  # y is orthonormal up to eps; three passes take that to its fourth power
        left = left - y @ (y.T @ left)
    return np.linalg.svd(inexact(left), compute_uv=False)


class Bound(NamedTuple):
    """The terms of the bound, and the loss that it bounds."""

    bias: float
    magnitude: np.ndarray
    direction: np.ndarray
    direction_exact: np.ndarray
    block: np.ndarray
    loss: float
    scale: float  # norms of all strengths, to measure rounding errors by


def bound(ideal, sources, weights, alphas, source_alphas) -> Bound:
    """All terms from their definitions. `weights[j]` is a number or one for each dimension."""
    vectors, values = ideal
    sizes = [len(mu) for _, mu in sources]
    n, missing = vectors.shape[0], max(sum(sizes) - len(values), 0)
    strength = np.pad(power(values, 2 * alphas), (0, missing))
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
    bias = norm(strength[start:])
    loss = norm(u @ np.diag(strength) @ u.T - meta)
    return Bound(bias, *np.array(terms).T, loss, scale)


def tight(ideal, sources, weights, alpha, source_alphas, order):
    """The tight bound with the sources in the given order."""
    terms = bound(
        ideal,
        [sources[j] for j in order],
        [weights[j] for j in order],
        alpha,
        [source_alphas[j] for j in order],
    )
    return terms.bias + terms.block.sum()


def source_weight(a, b):
    """The c that minimises |a - c^2 b|, from the normal equation in exact numbers; 0 for b = 0.

    SciPy's nnls is no oracle here: it takes a product of 1e-24 beside one of 1e24 for nothing.
    """
    if not b.any():
        return 0.0
    a, b = ([Fraction(float(x)) for x in values] for values in (a, b))
    square = sum(map(operator.mul, a, b)) / sum(x * x for x in b)
    # A square root by halves of the exponent, as the square may be below the smallest float.
    exponent = (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    return math.ldexp(math.sqrt(square / Fraction(2) ** (2 * exponent)), exponent)


def best_magnitude(a, b):
    """The smallest |a - c^2 b|, by a search over c^2."""
    if not b.any() or not a.any():
        return norm(a)
    found = scipy.optimize.minimize_scalar(
        lambda s: norm(a - s * (norm(a) / norm(b)) * b), bounds=(0, 2), method="bounded"
    )
    return found.fun
