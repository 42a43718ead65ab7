"""What tests hold the library against: the dense truth of the theory, and exact arithmetic."""

import math
import operator
from fractions import Fraction

import numpy as np

from theory.dense import (
    best_magnitude,
    bound,
    complement,
    norm,
    pip_loss,
    power,
    principal_sines,
    projector_distance,
)

__all__ = [
    "best_magnitude",
    "bound",
    "complement",
    "exact",
    "exact_pip_loss",
    "inexact",
    "lemma1",
    "norm",
    "pip_loss",
    "power",
    "principal_sines",
    "source_weight",
    "tight",
    "tiny_sines",
]


def lemma1(x, y):
    return projector_distance(x, y), np.sqrt(2) * norm(x.T @ complement(y))


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
