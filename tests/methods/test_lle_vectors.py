"""Vectors that their neighbours make up best, against dense float64 NumPy."""

import jax
import numpy as np
import pytest
import scipy.sparse
from helpers import DTYPE, EPS, assert_close, exactly, rounded
from reconstruction import distortion, neighbours_of, smallest

from jaxmeta import eigen
from jaxmeta.methods import lle_vectors
from jaxmeta.methods.lle_vectors import best_reconstructed

pytestmark = pytest.mark.slow

KEY = jax.random.key(0)
LARGE = 403  # a multiple of nothing


@pytest.fixture
def _small(monkeypatch):
    """Matrices of this size go through the loop of large ones."""
    monkeypatch.setattr(eigen, "DENSE", 64)
    monkeypatch.setattr(eigen, "SURVEY", 4)
    monkeypatch.setattr(lle_vectors, "AT_ONCE", np.inf)


def smooth(rng):
    """Rows that average over words that are near in a cube, with some noise."""
    near = neighbours_of(rng.uniform(size=(LARGE, 3)), 8)
    matrix = np.zeros((LARGE, LARGE))
    np.put_along_axis(matrix, near, rng.uniform(0.5, 1.5, near.shape), axis=1)
    return matrix / matrix.sum(axis=1, keepdims=True)


def with_outliers(rng):
    """The same with three rows of huge weights, which still sum to one."""
    matrix = smooth(rng)
    for v in (7, 100, 300):
        matrix[v, v + 10] += 40
        matrix[v, v + 20] -= 40
    return matrix


def two_parts(rng):
    """Two sets of words without a neighbour in common: 0 is an eigenvalue twice."""
    matrix = smooth(rng) + 0.01 * np.eye(LARGE)  # for words that lose all their neighbours
    apart = np.arange(LARGE) < 150
    matrix *= apart[:, None] == apart[None, :]
    return matrix / matrix.sum(axis=1, keepdims=True)


def assert_smallest(found, matrix, k, *, constant, tolerance=1e-2):
    """Values, residuals and span are those of the dense Q."""
    q = distortion(matrix)
    values, vectors = smallest(q, k + 1, constant=constant)
    largest = np.linalg.eigvalsh(q)[-1]
    # Of our numbers, and of the oracle's in 64 bit.
    p, rounding = exactly(found.embedding), (64 * EPS + LARGE * np.finfo(float).eps) * largest
    assert_close(p.T @ p, np.eye(k), scale=1, terms=256)
    rows = np.argmax(np.abs(p), axis=0)
    assert (p[rows, np.arange(k)] > 0).all()
    residuals = np.linalg.norm(q @ p - p * exactly(found.eigenvalues), axis=0)
    assert_close(found.residuals, residuals, scale=largest, terms=32)
    allowed = tolerance * values[k - 1] + rounding
    assert residuals.max() <= allowed
    assert np.abs(exactly(found.eigenvalues) - values[:k]).max() <= allowed
    # The span holds all eigenvectors that are clear of the first one outside.
    clear = values[:k] < values[k] - 20 * allowed
    left = vectors[:, :k][:, clear]
    left = left - p @ (p.T @ left)
    assert np.linalg.norm(left) <= 0.1
    assert abs(found.largest / largest - 1) < 0.02
    if constant:
        assert_close(p.sum(axis=0), np.zeros(k), scale=LARGE**0.5, terms=512)


@pytest.mark.one_leg
@pytest.mark.parametrize(
    ("make", "constant", "k"),
    [
        (smooth, True, 1),
        (smooth, True, 20),
        (smooth, False, 1),
        (smooth, False, 20),
        (with_outliers, True, 20),
        (with_outliers, False, 1),
        (two_parts, True, 1),
        (two_parts, False, 20),
    ],
)
@pytest.mark.usefixtures("_small")
def test_last_eigenvectors_by_the_loop(rng, make, constant, k):
    matrix = rounded(make(rng))
    found = best_reconstructed(
        scipy.sparse.csr_array(matrix.astype(DTYPE)), k=k, constant=constant, key=KEY
    )
    assert_smallest(found, matrix, k, constant=constant)


@pytest.mark.one_leg
@pytest.mark.usefixtures("_small")
def test_dense_matrices_are_decomposed_at_once(rng, monkeypatch):
    """Both ways have the same span, and each is taken where it is the cheaper one."""
    at_once, found = lle_vectors._all_at_once, []
    monkeypatch.setattr(lle_vectors, "_all_at_once", lambda *a: found.append(True) or at_once(*a))
    matrix, spans = scipy.sparse.csr_array(smooth(rng)).astype(DTYPE), []
    for limit in (0, np.inf):
        monkeypatch.setattr(lle_vectors, "AT_ONCE", limit)
        result = best_reconstructed(matrix, k=5, constant=True, key=KEY, tolerance=1e-4)
        spans.append(exactly(result.embedding))
    assert found == [True]
    assert_close(spans[0] @ spans[0].T, spans[1] @ spans[1].T, scale=1, terms=256)


@pytest.mark.parametrize("constant", [True, False])
def test_last_eigenvectors_all_at_once(rng, constant):
    matrix = rounded(smooth(rng))
    found = best_reconstructed(
        scipy.sparse.csr_array(matrix.astype(DTYPE)), k=5, constant=constant, key=KEY
    )
    assert_smallest(found, matrix, 5, constant=constant, tolerance=0)
