"""How alike two embeddings are, by definition: with all n x n inner products, in long double."""

import itertools
from functools import partial

import numpy as np
from helpers import exactly, rounded

from jaxmeta.similarity import (
    cka,
    procrustes_distance,
    unbiased_cka,
    unbiased_hsic,
)

FUNCTIONS = [cka, unbiased_cka, unbiased_hsic, procrustes_distance]
ALIGNMENTS = [cka, unbiased_cka]
# Rows and columns: the usual, few rows, more columns than rows. A new shape compiles for a second.
SHAPES = [(16, 4, 3), (2, 1, 3), (3, 2, 1), (5, 7, 9)]


def named(function):
    return function.__name__


def wide(x):
    """With more digits than float64, where the platform has them."""
    return np.asarray(x).astype(np.longdouble)


def centred_inner_products(x):
    """All n x n of them."""
    x, h = wide(x), np.eye(len(x), dtype=np.longdouble) - np.longdouble(1) / len(x)
    return h @ x @ x.T @ h


def frobenius(x):
    return np.sqrt((x * x).sum())


def dense_cka(e, f):
    p, q = centred_inner_products(e), centred_inner_products(f)
    return float((p * q).sum() / (frobenius(p) * frobenius(q)))


def u_statistic(e, f):
    """HSIC_1 by its definition: the mean over all four rows that differ."""
    k, m = (x @ x.T for x in (wide(e), wide(f)))
    terms = [
        k[i, j] * m[i, j] + k[i, j] * m[q, r] - 2 * k[i, j] * m[i, q]
        for i, j, q, r in itertools.permutations(range(len(k)), 4)
    ]
    return sum(terms) / len(terms)


def u_alignment(e, f):
    return float(u_statistic(e, f) / np.sqrt(u_statistic(e, e) * u_statistic(f, f)))


def song(e, f):
    """HSIC_1 as in Song et al. 2012, Eq. 5, of n x n matrices with nothing on the diagonal."""
    n = len(e)
    k, m = (x @ x.T for x in (wide(e), wide(f)))
    np.fill_diagonal(k, 0)
    np.fill_diagonal(m, 0)
    chance = k.sum() * m.sum() / ((n - 1) * (n - 2))
    return ((k * m).sum() + chance - 2 / wide(n - 2) * (k @ m).sum()) / (n * (n - 3))


def song_alignment(e, f):
    return float(song(e, f) / np.sqrt(song(e, e) * song(f, f)))


def dense_distance(e, f):
    """What is left after the rotation that NumPy finds in float64."""
    width = max(e.shape[1], f.shape[1])
    e, f = (
        np.pad(exactly(wide(x) - wide(x).mean(0)), ((0, 0), (0, width - x.shape[1])))
        for x in (e, f)
    )
    e, f = e / np.linalg.norm(e), f / np.linalg.norm(f)
    u, _, vt = np.linalg.svd(f.T @ e)
    return np.linalg.norm(e - f @ u @ vt)


def size_of(e, f):
    """What HSIC_1 is rounded relative to."""
    p, q = centred_inner_products(e), centred_inner_products(f)
    n = len(p)
    return float(frobenius(p) * frobenius(q)) / (n * max(n - 3, 1))


def drawn(rng, n, *widths, offset=0.0):
    """Embeddings that share something."""
    shared = rng.normal(size=(n, min(widths)))
    return tuple(
        rounded(
            np.pad(shared, ((0, 0), (0, k - shared.shape[1]))) + rng.normal(size=(n, k)) + offset
        )
        for k in widths
    )


NOTHING = {
    "zero": np.zeros,
    "constant": partial(np.full, fill_value=0.1),
    "large": lambda shape: np.full(shape, 1e6 / 3),
}


def by_columns(e, f):
    """The dense alignment, for many rows: its inner products are those of columns."""
    e, f = (exactly(wide(x) - wide(x).mean(0)) for x in (e, f))
    return np.linalg.norm(e.T @ f) ** 2 / np.linalg.norm(e.T @ e) / np.linalg.norm(f.T @ f)
