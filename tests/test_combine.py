"""Concatenation with all kinds of weights."""

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import assert_close, cast, rounded
from hypothesis import given
from hypothesis import strategies as st
from strategies import embeddings, seeds

from jaxmeta import concatenate, pip_matrix


@pytest.fixture
def sources(rng):
    return tuple(rounded(rng.normal(size=(6, k))) for k in (2, 3, 1))


def test_without_weights(sources):
    expected = np.concatenate(sources, axis=1)
    np.testing.assert_array_equal(concatenate(cast(sources)), expected)
    np.testing.assert_array_equal(concatenate(list(cast(sources))), expected)
    np.testing.assert_array_equal(concatenate(cast(sources[:1])), sources[0])


@pytest.mark.parametrize(
    "weights",
    [
        (2.0, 0.5, -4.0),
        (2, 0, 4),
        [2.0, 0.0, 4.0],
        (2.0, np.array([1.0, 0.0, 8.0]), 4.0),
        (np.array([2.0, 1.0]), np.array([1.0, 0.0, 8.0]), np.array([0.5])),
    ],
)
def test_numbers_and_arrays_for_weights(sources, weights):
    """Powers of two, so that nothing rounds."""
    expected = np.concatenate([e * c for e, c in zip(sources, weights, strict=True)], axis=1)
    as_jax = [cast(c) if isinstance(c, np.ndarray) else c for c in weights]
    np.testing.assert_array_equal(concatenate(cast(sources), type(weights)(as_jax)), expected)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.int32])
def test_one_array_of_weights(sources, dtype):
    weights = jnp.array([2, 1, 4], dtype)
    expected = np.concatenate([2 * sources[0], sources[1], 4 * sources[2]], axis=1)
    np.testing.assert_array_equal(concatenate(cast(sources), weights), expected)


@given(parts=st.tuples(embeddings(2), embeddings(3)), seed=seeds)
def test_inner_products_are_the_weighted_sum(parts, seed):
    weights = rounded(np.random.default_rng(seed).normal(size=2))
    per_dimension = tuple(np.full(e.shape[1], c) for c, e in zip(weights, parts, strict=True))
    expected = sum(c**2 * e @ e.T for c, e in zip(weights, parts, strict=True))
    scale = sum(np.linalg.norm(c * e) ** 2 for c, e in zip(weights, parts, strict=True))
    for kind in (cast(weights), tuple(map(float, weights)), cast(per_dimension)):
        assert_close(pip_matrix(concatenate(cast(parts), kind)), expected, scale=scale)
