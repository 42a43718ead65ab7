r"""A signal matrix is made of counts $X_{ij}$ of words near words (section 4.1 of the paper).

Dense counts run in JAX, under `jit`, `vmap` and `grad`; negative ones give NaN. Sparse counts give
a `csr_array`, on the host, in float64 until the end; negative ones raise. Symmetric counts give an
exactly symmetric signal, in their dtype; integers give JAX's default. Cost: the number of entries.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax import lax
from jaxtyping import Array, Float, Real

from jaxmeta import _checks
from jaxmeta._checks import fail
from jaxmeta._types import Scalar
from jaxmeta.linalg import common_unit

__all__ = ["SIGNALS", "log_count", "ppmi", "shifted_pmi"]

Counts: TypeAlias = Real[Array, "n m"] | scipy.sparse.sparray | scipy.sparse.spmatrix
Signal: TypeAlias = Float[Array, "n m"] | scipy.sparse.csr_array


def log_count(counts: Counts) -> Signal:
    r"""$M_{ij} = \log(1 + X_{ij})$, the signal of GloVe.

    The paper prints $\log X_{ij}$, with no value for pairs never seen; its released code adds 1.

    >>> print(*log_count(jnp.array([[3, 1], [1, 0]])).round(2))
    [1.39 0.69] [0.69 0.  ]
    """
    x, dtype = _floats(counts)
    if scipy.sparse.issparse(x):
        return _with_data(x, np.log1p(x.data), dtype)
    return _log_count(x)


_log_count = jax.jit(lambda x: jnp.where(x < 0, jnp.nan, jnp.log1p(x)))


def shifted_pmi(counts: Counts, *, shift: Scalar, unobserved: Scalar = 0.0) -> Signal:
    r"""$M_{ij} = \log(X_{ij}\,T / r_i c_j) - \log\beta$, the signal of negative sampling.

    $r_i$, $c_j$ and $T$ are sums of rows, of columns and of all. `shift` is $\beta$, the number of
    negative samples; 1 gives the PMI itself. Pairs never seen, whose PMI is $-\infty$, get
    `unobserved` as it is: 0 is that of the released code, and the only one for sparse counts.

    >>> print(*shifted_pmi(jnp.array([[3, 1], [1, 0]]), shift=1.0, unobserved=-9.0).round(2))
    [-0.06  0.22] [ 0.22 -9.  ]
    """
    _checks.positive("shift", shift, "pass the number of negative samples, or 1 for the PMI itself")
    _checks.scalar("unobserved", unobserved)
    x, dtype = _floats(counts)
    if not scipy.sparse.issparse(x):
        return _shifted_pmi(x, jnp.asarray(shift, dtype), jnp.asarray(unobserved, dtype))
    if unobserved != 0:
        expected = "0 with sparse counts, which do not store unobserved pairs"
        fail("unobserved", str(unobserved), expected, "pass a dense array, counts.toarray()")
    i, j = x.tocoo().coords
    # Added up one by one, in the same order for rows and for columns of a symmetric matrix.
    rows, columns = (np.bincount(ends, x.data) for ends in (i, j))
    pmi = np.log(x.data * rows.sum() / (rows[i] * columns[j]))
    return _with_data(x, pmi - np.log(float(shift)), dtype)


@jax.jit
def _shifted_pmi(x: Array, shift: Array, unobserved: Array) -> Array:
    x = jnp.where(x < 0, jnp.nan, x)
    x = x / common_unit(x)
    rows, columns = jnp.sum(x, axis=1), jnp.sum(x, axis=0)
    if x.shape[0] == x.shape[1]:
        # The two are summed in different order. Where they have the same terms they are to be the
        # same to the last bit, for a symmetric signal; derivatives are still those of two sums.
        symmetric = jnp.all(x == x.T)
        columns += lax.stop_gradient(jnp.where(symmetric, rows - columns, 0))
    total = jnp.sum(rows)
    # The product comes first, as it is the same for i, j and j, i.
    by_chance = rows[:, None] * columns[None, :] / jnp.where(total == 0, 1, total)
    observed = x != 0  # NaN is
    # Unobserved pairs are kept out of quotient and logarithm, whose derivatives are infinite there.
    # One logarithm of the quotient has an error of a few epsilon; four of them would cancel.
    ratio = jnp.where(observed, x, 1) / jnp.where(observed, by_chance, 1)
    return jnp.where(observed, jnp.log(ratio) - jnp.log(shift), unobserved)


def ppmi(counts: Counts, *, shift: Scalar = 1.0) -> Signal:
    r"""$M_{ij} = \max(\mathrm{PMI}_{ij} - \log\beta,\ 0)$, the positive PMI of LSA.

    The paper has no shift, $\beta = 1$. Entries of 0 are not stored in a sparse signal.
    """
    signal: Any = shifted_pmi(counts, shift=shift)
    if scipy.sparse.issparse(signal):
        return _with_data(signal, np.maximum(signal.data, 0), signal.dtype)
    return jnp.maximum(signal, 0)


SIGNALS: dict[str, Callable[..., Any]] = {
    "GloVe": log_count,
    "SGNS": partial(shifted_pmi, shift=3.0),
    "LSA": ppmi,
}
"""The paper's signals, by the names of what they stand for."""


def _floats(counts: Any) -> tuple[Any, np.dtype]:
    """Give counts as floats, sparse ones as a copy in float64 without zeros, and their dtype."""
    sparse = scipy.sparse.issparse(counts)
    dtype = getattr(counts, "dtype", np.dtype(object))
    if jnp.issubdtype(dtype, jnp.integer):
        dtype = jnp.result_type(float)
        counts = counts.astype(np.float64) if sparse else jnp.asarray(counts, dtype)
    _checks.array("counts", counts, 2)
    if not sparse:
        dense = jnp.asarray(counts)
        return dense, dense.dtype
    stored = scipy.sparse.csr_array(counts, dtype=np.float64, copy=True)
    stored.sum_duplicates()
    stored.eliminate_zeros()
    wrong = ~((stored.data > 0) & np.isfinite(stored.data))
    if wrong.any():
        place = int(np.argmax(wrong))
        i, j = (int(index[place]) for index in stored.tocoo().coords)
        got, do = str(stored.data[place]), "pass counts of co-occurrences, not a signal"
        fail(f"counts[{i}, {j}]", got, "a finite number that is not negative", do)
    return stored, dtype


def _with_data(stored: scipy.sparse.csr_array, data: np.ndarray, dtype: np.dtype):
    stored.data = data.astype(dtype)
    stored.eliminate_zeros()
    return stored
