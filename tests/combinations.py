"""What plans should make of rows, in float64 NumPy."""

import numpy as np
from helpers import cast, exactly, rotation, rounded

from jaxmeta.weightings import Observed, weigh

N = 40
WIDTHS = (6, 4, 3)
SIGMAS = (0.01, 0.015, 0.02)


def draw(rng, n=N, widths=WIDTHS, condition=10.0):
    return tuple(
        rounded(
            rng.normal(size=(n, k)) * np.geomspace(1, 1 / condition, k) @ rotation(rng, k) + 0.2
        )
        for k in widths
    )


def unit(x):
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(lengths == 0, 1, lengths)


def default(fitted, rows):
    """The default of files, fitted to some rows and applied to others."""
    parts, ranks = [], []
    for e, x in zip(fitted, rows, strict=True):
        centre = unit(e).mean(axis=0)
        _, s, vt = np.linalg.svd(unit(e) - centre, full_matrices=False)
        parts.append((unit(x) - centre) @ vt.T * s**-0.5 / np.sqrt(s.sum()))
        ranks.append(s.sum() ** 2 / np.sum(s**2))
    return np.concatenate(
        [p * (r / sum(ranks)) ** 0.5 for p, r in zip(parts, ranks, strict=True)], axis=1
    )


def leading(fitted, rows, k, centre=0.0):
    """The leading directions of a concatenation."""
    both = np.concatenate(fitted, axis=1)
    middle = both.mean(axis=0) if centre else 0
    _, _, vt = np.linalg.svd(both - middle, full_matrices=False)
    return (np.concatenate(rows, axis=1) - middle) @ vt[:k].T


def by_noise(name, fitted, rows):
    observed, turned = [], []
    for e, x, sigma in zip(fitted, rows, SIGMAS, strict=True):
        _, s, vt = np.linalg.svd(e, full_matrices=False)
        observed.append(Observed(cast(s**2), len(e), 0.5, sigma))
        turned.append(x @ vt.T)
    weights = weigh(name, observed)
    return np.concatenate([x * exactly(c) for x, c in zip(turned, weights, strict=True)], axis=1)


def padded_mean(rows):
    return sum(np.pad(x, ((0, 0), (0, max(WIDTHS) - x.shape[1]))) for x in rows) / len(rows)


TRUTH = {
    "default": default,
    "UW": lambda _, x: np.concatenate(x, axis=1),
    "UW-unit": lambda _, x: np.concatenate(list(map(unit, x)), axis=1),
    "AVG": lambda _, x: padded_mean(x),
    "SVD": lambda e, x: leading(e, x, 200),
    "PCA": lambda e, x: leading(e, x, 200, centre=1),
    "1TON": lambda e, x: leading(e, x, 200),
    **{name: lambda e, x, name=name: by_noise(name, e, x) for name in ("SW", "DW", "aligned")},
}
