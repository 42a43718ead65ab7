r"""From co-occurrence counts to signal matrices.

$X_{ij}$ says how often words $i$ and $j$ were seen near each other. Three signals are made of it
(section 4.1 of the paper): `log_count`, which GloVe factorises; `shifted_pmi`, which skip-gram with
negative sampling does; and `ppmi`, which LSA does. Pointwise mutual information compares a count
with what it would be by chance: with row sums $r_i$, column sums $c_j$ and total $T$,
$\mathrm{PMI}_{ij} = \log(X_{ij}\,T / r_i c_j)$.

Counts are a dense array or a SciPy sparse matrix, of floats or of integers; they need be neither
square nor symmetric, but symmetric counts give an exactly symmetric signal. Each function gives the
same numbers for both kinds:

* Dense counts run in JAX, under `jit`, `vmap` and `grad`. Derivatives are finite also where a count
  is 0. A count that is negative or NaN gives NaN.
* Sparse counts stay sparse, and so does their signal, a `csr_array`. This is for the host: sums and
  logarithms are in float64, and a count that is negative or not finite raises.

The signal has the dtype of the counts; integers give JAX's default. Cost: the number of entries, of
a sparse matrix the stored ones.
"""

from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax import lax
from jaxtyping import Array, Float, Real

from jaxmeta import _checks
from jaxmeta._types import Scalar

__all__ = ["log_count", "ppmi", "shifted_pmi"]

_SHIFT = "pass the number of negative samples, or 1 for the PMI itself"

Sparse: TypeAlias = scipy.sparse.sparray | scipy.sparse.spmatrix
Counts: TypeAlias = Real[Array, "n m"] | Sparse
Signal: TypeAlias = Float[Array, "n m"] | scipy.sparse.csr_array


def log_count(counts: Counts) -> Signal:
    r"""GloVe's signal, $\log(1 + X_{ij})$.

    The paper prints $\log X_{ij}$, which has no value for a pair that was never seen; its released
    code adds the 1.

    >>> import jax.numpy as jnp
    >>> print(log_count(jnp.array([[3, 1], [1, 0]])).round(2))
    [[1.39 0.69]
     [0.69 0.  ]]
    """
    if scipy.sparse.issparse(counts):
        stored, dtype = _stored(counts)
        return _with_data(stored, np.log1p(stored.data), dtype)
    return _log_count(_dense(counts))


@jax.jit
def _log_count(x: Array) -> Array:
    return jnp.where(x < 0, jnp.nan, jnp.log1p(x))


def shifted_pmi(counts: Counts, *, shift: Scalar, unobserved: Scalar = 0.0) -> Signal:
    r"""The signal of skip-gram with negative sampling, $\mathrm{PMI}_{ij} - \log\beta$.

    `shift` is $\beta$, the number of negative samples; 1 gives the PMI itself. Pairs that were
    never seen, whose PMI is $-\infty$, get `unobserved` as it is. Its default 0 is that of the
    released code, and it is no low value: every pair seen less than $\beta$ times as often as by
    chance is below it. Sparse counts allow no other, since what is not stored is 0.

    Dense signals have an error of a few $\epsilon$: one logarithm of a quotient. (Four logarithms
    cancel, with an error of $\epsilon\log T$.)

    >>> import jax.numpy as jnp
    >>> print(shifted_pmi(jnp.array([[3, 1], [1, 0]]), shift=1.0, unobserved=-9.0).round(2))
    [[-0.06  0.22]
     [ 0.22 -9.  ]]
    """
    _checks.positive("shift", shift, _SHIFT)
    _checks.scalar("unobserved", unobserved)
    if scipy.sparse.issparse(counts):
        if unobserved != 0:
            raise ValueError(
                f"unobserved: got {unobserved}, expected 0 with sparse counts, which do not store "
                "unobserved pairs; pass a dense array, counts.toarray()."
            )
        stored, dtype = _stored(counts)
        return _with_data(stored, _stored_pmi(stored) - np.log(float(shift)), dtype)
    x = _dense(counts)
    return _shifted_pmi(x, jnp.asarray(shift, x.dtype), jnp.asarray(unobserved, x.dtype))


@jax.jit
def _shifted_pmi(x: Array, shift: Array, unobserved: Array) -> Array:
    x = jnp.where(x < 0, jnp.nan, x)
    rows, columns = jnp.sum(x, axis=1), jnp.sum(x, axis=0)
    if x.shape[0] == x.shape[1]:
        # The two are summed in different order. Where they have the same terms they are to be the
        # same to the last bit, for a symmetric signal; derivatives are still those of two sums.
        symmetric = jnp.all(x == x.T)
        columns += lax.stop_gradient(jnp.where(symmetric, rows - columns, 0))
    total = jnp.sum(rows)
    # The product comes first, as it is the same for i, j and j, i; sums below 1e19 do not overflow.
    by_chance = rows[:, None] * columns[None, :] / jnp.where(total == 0, 1, total)
    observed = x != 0  # NaN is
    # Unobserved pairs are kept out of quotient and logarithm, whose derivatives are infinite there.
    ratio = jnp.where(observed, x, 1) / jnp.where(observed, by_chance, 1)
    return jnp.where(observed, jnp.log(ratio) - jnp.log(shift), unobserved)


def ppmi(counts: Counts, *, shift: Scalar = 1.0) -> Signal:
    r"""LSA's signal, positive PMI: $\max(\mathrm{PMI}_{ij} - \log\beta,\ 0)$.

    The paper has no shift, $\beta = 1$. Pairs that were never seen get 0, and so do pairs seen less
    than $\beta$ times as often as by chance; those are no longer stored in a sparse signal.

    >>> import scipy.sparse
    >>> print(ppmi(scipy.sparse.csr_array([[3, 1], [1, 0]])).toarray().round(2))
    [[0.   0.22]
     [0.22 0.  ]]
    """
    _checks.positive("shift", shift, _SHIFT)
    if scipy.sparse.issparse(counts):
        stored, dtype = _stored(counts)
        pmi = _stored_pmi(stored) - np.log(float(shift))
        return _with_data(stored, np.maximum(pmi, 0), dtype)
    x = _dense(counts)
    return _ppmi(x, jnp.asarray(shift, x.dtype))


@jax.jit
def _ppmi(x: Array, shift: Array) -> Array:
    return jnp.maximum(_shifted_pmi(x, shift, jnp.zeros_like(shift)), 0)


def _dense(counts: Array) -> Array:
    """Dense counts as an array of floats."""
    if hasattr(counts, "dtype") and jnp.issubdtype(counts.dtype, jnp.integer):
        counts = jnp.asarray(counts, jnp.result_type(float))
    _checks.array("counts", counts, 2)
    return jnp.asarray(counts)


def _stored(counts: Sparse) -> tuple[scipy.sparse.csr_array, np.dtype]:
    """A float64 copy of sparse counts that stores only what is not 0, and the dtype of signals."""
    dtype = counts.dtype
    if np.issubdtype(dtype, np.integer):
        counts, dtype = counts.astype(np.float64), jnp.result_type(float)
    _checks.array("counts", counts, 2)
    stored = scipy.sparse.csr_array(counts, dtype=np.float64, copy=True)
    stored.sum_duplicates()
    stored.eliminate_zeros()
    wrong = ~((stored.data > 0) & np.isfinite(stored.data))
    if wrong.any():
        place = int(np.argmax(wrong))
        i, j = (int(index[place]) for index in stored.tocoo().coords)
        raise ValueError(
            f"counts[{i}, {j}]: got {stored.data[place]}, expected a finite number that is not "
            "negative; pass counts of co-occurrences, not a signal."
        )
    return stored, dtype


def _stored_pmi(stored: scipy.sparse.csr_array) -> np.ndarray:
    """The PMI of each stored count."""
    i, j = stored.tocoo().coords
    # Added up one by one, in the same order for rows and for columns of a symmetric matrix.
    rows, columns = (
        np.bincount(index, stored.data, minlength=size)
        for index, size in zip((i, j), stored.shape, strict=True)
    )
    return np.log(stored.data * rows.sum() / (rows[i] * columns[j]))


def _with_data(stored: scipy.sparse.csr_array, data: np.ndarray, dtype: np.dtype):
    stored.data = data.astype(dtype)
    stored.eliminate_zeros()
    return stored
