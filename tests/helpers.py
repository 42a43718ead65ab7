"""What the tests share: the dtype of this run, and comparison relative to its eps."""

import jax
import jax.numpy as jnp
import numpy as np

DTYPE = jnp.zeros(()).dtype  # float64 in one run of the suite, float32 in the other
EPS = float(jnp.finfo(DTYPE).eps)
IN_64_BIT = jnp.float64 == DTYPE


def cast(tree, dtype=DTYPE):
    """NumPy arrays as JAX arrays of one dtype."""
    return jax.tree.map(lambda x: jnp.asarray(np.asarray(x), dtype), tree)


def rounded(x, dtype=DTYPE):
    """The float64 numbers that `x` becomes in `dtype`: what an oracle has to be given."""
    return np.asarray(x).astype(dtype).astype(np.float64)


def exactly(x):
    """The float64 array with the numbers of `x`."""
    return np.asarray(x).astype(np.float64)


def assert_close(actual, expected, *, scale, terms=16, eps=EPS):
    """Assert that |actual - expected| <= terms * eps * scale, entry by entry.

    `scale` is the norm of what is summed up, `terms` how many roundings of that size there are.
    NaN is close to nothing.
    """
    actual, expected = exactly(actual), exactly(expected)
    assert actual.shape == expected.shape, f"shapes {actual.shape} and {expected.shape}"
    error = np.max(np.abs(actual - expected), initial=0.0)
    allowed = terms * eps * float(scale)
    assert error <= allowed, f"error {error:.2e} > {allowed:.2e}\n{actual}\n{expected}"


def assert_trees_close(actual, expected, *, scale, terms=16, eps=EPS):
    """`assert_close` for every leaf; integers must be equal."""
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for x, y in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        if jnp.issubdtype(x.dtype, jnp.integer):
            np.testing.assert_array_equal(x, y)
        else:
            assert_close(x, y, scale=scale, terms=terms, eps=eps)


def rotation(rng, k):
    """A random orthogonal matrix."""
    return np.linalg.qr(rng.normal(size=(k, k)))[0]
