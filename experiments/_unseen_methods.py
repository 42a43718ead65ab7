"""Ways to combine files: concatenation, the default and what is like it, by word forms."""

import itertools
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from scipy.optimize import nnls

import jaxmeta
from jaxmeta.prepare import unit_rows
from jaxmeta.spelling import WordForms


def standard(matrix: np.ndarray) -> np.ndarray:
    """`standardise`, with rows of zeros below, so that programs are compiled for few sizes."""
    n = len(matrix)
    size = -(-n // 8192) * 8192 if n > 8192 else n
    rows = jnp.pad(jnp.asarray(matrix, jnp.float32), ((0, size - n), (0, 0)))
    return np.asarray(jaxmeta.standardise(rows, present=jnp.arange(size) < n))[:n]


def _steeper(ready: np.ndarray) -> np.ndarray:
    """The same at an exponent of .75: columns are on principal axes, with lengths of s^.5."""
    made = ready * np.sqrt(np.linalg.norm(ready, axis=0))
    return made / np.linalg.norm(made)


def covariance(sources: Sequence[np.ndarray]) -> np.ndarray:
    """Of inner products over all pairs of words, up to 1/n^2: those of sources i and j."""
    found = np.zeros((len(sources), len(sources)))
    for i, j in itertools.combinations_with_replacement(range(len(sources)), 2):
        found[i, j] = found[j, i] = np.linalg.norm(sources[i].T @ sources[j]) ** 2
    return found


def mean_product(source: np.ndarray, pairs: np.ndarray) -> float:
    a, b = source[pairs.T]
    return float(np.einsum("ij,ij->i", a, b).mean())


def differences(sources: Sequence[np.ndarray], forms: WordForms) -> tuple[np.ndarray, np.ndarray]:
    """Mean products of word forms, and by chance, in mean squared row norms."""
    of = [
        [len(source) * mean_product(source, pairs) for source in sources]
        for pairs in (forms.related, forms.chance)
    ]
    return np.array(of[0]), np.array(of[1])


def separating(products: np.ndarray, difference: np.ndarray) -> np.ndarray:
    r"""Squared weights $q \ge 0$ with the largest $(\delta^\top q)^2 / q^\top Cq$.

    `products` are $C$, `difference` is $\delta$.
    Without a difference above 0 there is nothing to go by: `difference` of ones is the default's.
    """
    if not (difference > 0).any():
        difference = np.ones_like(difference)
    scale = np.sqrt(np.diag(products))
    inner = products / np.outer(scale, scale)
    # A copy has no covariance of its own: the ridge shares the weight out between the two.
    root = np.linalg.cholesky(inner + 1e-6 * np.eye(len(inner)))
    found, _ = nnls(root.T, np.linalg.solve(root, difference / scale))
    return found / scale


def combinations(
    sources: Sequence[np.ndarray],
    ready: Sequence[np.ndarray],
    forms: WordForms,
    names: Sequence[str],
) -> dict[str, list[np.ndarray]]:
    """Parts of the concatenation by each method, and single files, as they are.

    `ready` are the sources, standardised.
    """
    products = covariance(ready)
    variance = np.diag(products)
    ones = np.ones(len(ready))
    above, chance = differences(ready, forms) if forms.enough else (ones, 0 * ones)
    squares = {
        "default": 1 / variance,  # as rank_weights has it
        "default, equal weights": ones,
        "default, unit PIP norm": variance**-0.5,
        "default, covariances": separating(products, ones),
        "word forms": separating(products, above),
        "word forms less chance": separating(products, above - chance),
    }
    steeper = [_steeper(source) for source in ready]
    rank = 1 / np.diag(covariance(steeper))
    made = {name: [source] for name, source in zip(names, sources, strict=True)}
    made |= {
        "as they are": list(sources),
        "unit rows": [np.asarray(unit_rows(source)) for source in sources],
    }
    for method, q in squares.items():
        made[method] = [c * e for c, e in zip(np.sqrt(q / q.sum()), ready, strict=True)]
    made["default, exponent .75"] = [
        c * e for c, e in zip(np.sqrt(rank / rank.sum()), steeper, strict=True)
    ]
    return made


METHODS = (
    "as they are",
    "unit rows",
    "default",
    "default, equal weights",
    "default, unit PIP norm",
    "default, covariances",
    "default, exponent .75",
    "word forms",
    "word forms less chance",
)
