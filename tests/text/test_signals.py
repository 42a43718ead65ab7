"""Signals of counts, against the formulas in a double loop; dense and sparse."""

import functools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from helpers import DTYPE, IN_64_BIT, assert_close, exactly
from hypothesis import given
from hypothesis import strategies as st

from jaxmeta import text
from jaxmeta.text.signals import log_count, ppmi, shifted_pmi

SIGNALS = {
    "log_count": log_count,
    "shifted_pmi": lambda counts: shifted_pmi(counts, shift=3.0),
    "ppmi": ppmi,
}
signals = pytest.mark.parametrize("signal", SIGNALS.values(), ids=SIGNALS)
formats = pytest.mark.parametrize(
    "form", ["csr_matrix", "csr_array", "csc_array", "coo_array", "lil_array", "dia_matrix"]
)
SHAPES = ((1, 1), (3, 5), (33, 33))
RANGES = {  # from rare to very frequent pairs; all of them exact in float32
    "few": lambda rng, shape: rng.integers(1, 5, shape),
    "huge": lambda rng, shape: 2.0 ** rng.integers(0, 31, shape),
    "weighted": lambda rng, shape: rng.integers(1, 4096, shape) / 64,
}


@st.composite
def counts(draw, symmetric=False):
    """Counts in float64 with zeros, and often with a word that never occurs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m = draw(st.sampled_from([s for s in SHAPES if s[0] == s[1] or not symmetric]))
    x = RANGES[draw(st.sampled_from(tuple(RANGES)))](rng, (n, m)).astype(np.float64)
    x *= rng.random((n, m)) < draw(st.sampled_from([0.0, 0.2, 0.7, 1.0]))
    if draw(st.booleans()):
        x[rng.integers(n)] = 0
        x[:, rng.integers(m)] = 0
    return np.triu(x) + np.triu(x, 1).T if symmetric else x


shifts = st.sampled_from([0.25, 1.0, 3.0, 15.0])


def oracle_pmi(x, shift, unobserved):
    """In a double loop over fractions: nothing is rounded but the logarithm."""
    x = [[Fraction(entry) for entry in row] for row in x.tolist()]
    rows, columns = [sum(row) for row in x], [sum(column) for column in zip(*x, strict=True)]
    total, shift = sum(rows), Fraction(shift)
    return np.array(
        [
            [
                math.log(entry * total / (r * c * shift)) if entry else unobserved
                for entry, c in zip(row, columns, strict=True)
            ]
            for row, r in zip(x, rows, strict=True)
        ]
    )


def size(expected):
    """What rounding errors are relative to: a logarithm, and the quotient that it is of."""
    return 1 + np.abs(exactly(expected)).max()


def sparse(x, dtype=DTYPE):
    return scipy.sparse.csr_array(x.astype(dtype))


def dense(x, dtype=DTYPE):
    return jnp.asarray(x, dtype)


# Values.


@given(x=counts())
def test_log_count(x):
    expected = np.log1p(x)
    assert_close(log_count(dense(x)), expected, scale=size(expected), terms=1)
    assert_close(log_count(sparse(x)).toarray(), expected, scale=size(expected), terms=1)


@given(x=counts(), shift=shifts, unobserved=st.sampled_from([0.0, -2.5]))
def test_shifted_pmi(x, shift, unobserved):
    expected = oracle_pmi(x, shift, unobserved)
    found = shifted_pmi(dense(x), shift=shift, unobserved=unobserved)
    assert_close(found, expected, scale=size(expected), terms=4)
    if unobserved == 0:
        found = shifted_pmi(sparse(x), shift=shift).toarray()
        assert_close(found, expected, scale=size(expected), terms=4)


@given(x=counts(), shift=shifts)
def test_ppmi(x, shift):
    expected = np.maximum(oracle_pmi(x, shift, unobserved=0), 0)
    assert_close(ppmi(dense(x), shift=shift), expected, scale=size(expected), terms=4)
    assert_close(ppmi(sparse(x), shift=shift).toarray(), expected, scale=size(expected), terms=4)


@given(x=counts(), shift=shifts)
@pytest.mark.parametrize("form", [dense, sparse])
def test_ppmi_is_the_positive_part(form, x, shift):
    clipped, whole = ppmi(form(x), shift=shift), shifted_pmi(form(x), shift=shift)
    if form is sparse:
        clipped, whole = clipped.toarray(), whole.toarray()
    np.testing.assert_array_equal(clipped, np.maximum(whole, 0))


@given(x=counts(symmetric=True))
@signals
def test_symmetric_counts_give_symmetric_signals(signal, x):
    x = x / 3  # so that sums depend on their order
    for found in (signal(dense(x)), signal(sparse(x)).toarray()):
        found = exactly(found)
        np.testing.assert_array_equal(found, found.T)


@signals
def test_large_symmetric_counts_give_symmetric_signals(rng, signal):
    """Large enough that rows and columns are summed in different order."""
    x = rng.lognormal(sigma=3, size=(300, 300))
    x = x + x.T
    for found in (signal(dense(x)), signal(sparse(x)).toarray()):
        found = exactly(found)
        np.testing.assert_array_equal(found, found.T)


def test_the_error_is_a_few_eps_however_large_the_counts(rng):
    """A sum of four logarithms has one of 30 eps at this size."""
    x = 2.0 ** rng.integers(20, 31, (100, 100))
    expected = oracle_pmi(x, 1.0, 0)
    assert_close(shifted_pmi(dense(x), shift=1.0), expected, scale=size(expected), terms=1)


def test_independent_words_have_no_pmi():
    """All powers of two: nothing is rounded, and a sparse signal stores nothing."""
    x = np.outer([1, 1, 2], [4, 2, 2])
    np.testing.assert_array_equal(shifted_pmi(dense(x), shift=1.0), np.zeros((3, 3)))
    assert shifted_pmi(sparse(x), shift=1.0).nnz == 0


# Sparse matrices.


@formats
@signals
def test_formats(rng, form, signal):
    x = rng.integers(1, 9, (7, 7)) * (rng.random((7, 7)) < 0.4)
    given_counts = getattr(scipy.sparse, form)(x.astype(DTYPE))
    found = signal(given_counts)
    assert isinstance(found, scipy.sparse.csr_array)
    assert not (found.data == 0).any()
    assert not found.toarray()[x == 0].any()
    np.testing.assert_array_equal(given_counts.toarray(), x)  # left alone
    expected = signal(dense(x))
    assert_close(found.toarray(), expected, scale=size(expected))


@pytest.mark.one_leg
@signals
def test_duplicates_and_stored_zeros(signal):
    """Duplicates are one count, a stored zero is a pair never seen; the input stays as it is."""
    data, indices, indptr = np.array([2.0, 1.0, 0.0, 4.0]), [1, 1, 0, 1], [0, 2, 4]
    given_counts = scipy.sparse.csr_array((data, indices, indptr), shape=(2, 2))
    expected = signal(scipy.sparse.csr_array(np.array([[0.0, 3.0], [0.0, 4.0]])))
    np.testing.assert_array_equal(signal(given_counts).toarray(), expected.toarray())
    np.testing.assert_array_equal(given_counts.data, data)
    assert given_counts.nnz == 4


@pytest.mark.one_leg
@signals
def test_a_large_matrix_is_never_dense(signal):
    """Dense, these counts would take 8 TB."""
    n = 1_000_000
    i = np.arange(n)
    x = scipy.sparse.coo_array((np.ones(2 * n), (np.tile(i, 2), np.append(i, (i + 1) % n)))).tocsr()
    assert signal(x).nnz <= 2 * n


# Types.


@signals
@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.int64])
def test_integers_become_floats(rng, signal, dtype):
    x = rng.integers(0, 9, (5, 5))
    expected = signal(dense(x))
    found = [signal(sparse(x, dtype)).todense()]
    if dtype != np.int64 or IN_64_BIT:
        found.append(signal(dense(x, dtype)))
    for signal_of_integers in found:
        assert signal_of_integers.dtype == DTYPE
        assert_close(signal_of_integers, expected, scale=size(expected))


@signals
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_keep_their_dtype(rng, signal, dtype):
    x = rng.integers(0, 9, (5, 5))
    assert signal(sparse(x, dtype)).dtype == dtype
    if dtype == np.float32 or IN_64_BIT:
        assert signal(dense(x, dtype)).dtype == dtype


@signals
def test_sparse_integers_are_summed_exactly(signal):
    """Beyond what float32 and int32 hold."""
    x = np.array([[2**24 + 1, 2**31], [2**33 + 1, 1]])
    expected = signal(sparse(x, np.float64)).toarray()
    found = signal(sparse(x, np.int64)).toarray()
    np.testing.assert_array_equal(found, expected.astype(DTYPE))


def test_numpy_arrays(rng, hooked):
    """Large integers too, which JAX would cut off in 32 bit."""
    if hooked:
        pytest.skip("annotations ask for arrays of JAX")
    for x in (np.array([[2**40, 1], [1, 7]]), rng.uniform(size=(3, 3))):
        for signal in SIGNALS.values():
            expected = signal(scipy.sparse.csr_array(x)).toarray()
            assert signal(x).dtype == DTYPE
            assert_close(signal(x), expected, scale=size(expected))


# Transformations.


@signals
def test_jit_and_vmap(rng, signal):
    batch = jnp.asarray(rng.integers(0, 9, (3, 5, 4)), DTYPE)
    together = jax.jit(jax.vmap(signal))(batch)
    for x, found in zip(batch, together, strict=True):
        assert_close(found, signal(x), scale=size(found))


def test_shifts_may_be_traced(rng):
    x, several = dense(rng.integers(1, 9, (4, 4))), jnp.array([1.0, 2.0, 5.0], DTYPE)
    for function in (shifted_pmi, ppmi):
        together = jax.vmap(lambda shift, f=function: f(x, shift=shift))(several)
        for shift, found in zip(several, together, strict=True):
            assert_close(found, function(x, shift=float(shift)), scale=8)
    by_shift = jax.jacfwd(lambda shift: shifted_pmi(x, shift=shift))(several[1])
    assert_close(by_shift, np.full((4, 4), -0.5), scale=1)


def jacobian(name, x):
    """Derivatives of each entry of a signal by each count, from the formula."""
    if name == "log_count":
        return np.diag(1 / (1 + x.ravel())).reshape(x.shape * 2)
    rows, columns = np.diag(1 / x.sum(1))[:, None, :, None], np.diag(1 / x.sum(0))[None, :, None, :]
    own = np.diag((1 / np.where(x > 0, x, 1)).ravel()).reshape(x.shape * 2)
    varies = x > 0 if name == "shifted_pmi" else oracle_pmi(x, 1.0, -1) > 0
    return (own - rows - columns + 1 / x.sum()) * varies[:, :, None, None]


@functools.cache
def derivatives(name):
    return [jax.jit(by(SIGNALS[name])) for by in (jax.jacfwd, jax.jacrev)]


@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.parametrize("kind", ["any", "symmetric", "rectangular"])
def test_gradients(rng, name, kind):
    """In every direction at symmetric counts too, as rows and columns are different sums.

    A pair that was never seen has a constant value, but as a count it adds to r, c and T.
    """
    x = rng.integers(1, 9, (4, 4 if kind != "rectangular" else 6)).astype(float)
    x = x + x.T if kind == "symmetric" else x
    x[1, 2] = x[2, 1] = 0
    for derivative in derivatives(name):
        assert_close(derivative(dense(x)), jacobian(name, x), scale=1)


@signals
@given(x=counts())
def test_gradients_are_finite_where_counts_are_not_there(signal, x):
    assert np.isfinite(gradient_of_sum(signal)(dense(x))).all()


@functools.cache
def gradient_of_sum(signal):
    return jax.jit(jax.grad(lambda x: jnp.sum(signal(x))))


# Wrong counts, and wrong words for them.


@signals
@pytest.mark.parametrize("wrong", [-0.5, -3.0, np.nan])
def test_wrong_dense_counts_give_nan(rng, signal, wrong):
    x = rng.integers(1, 9, (4, 4)).astype(np.float64)
    x[1, 2] = wrong
    assert np.isnan(exactly(signal(dense(x)))[1, 2])
    x[1] = -np.abs(x[1])  # a negative sum does not undo it
    assert np.isnan(exactly(signal(dense(x)))[1]).all()


@signals
@pytest.mark.parametrize("wrong", [-0.5, np.nan, np.inf])
def test_wrong_sparse_counts_raise(signal, wrong):
    x = sparse(np.array([[1.0, 2.0], [0.0, wrong]]))
    with pytest.raises(ValueError, match=r"counts\[1, 1\]: got .*expected a finite number.*; pass"):
        signal(x)


def test_nothing_is_seen():
    for x in (np.zeros((3, 4)), np.zeros((1, 1))):
        for signal in SIGNALS.values():
            np.testing.assert_array_equal(signal(dense(x)), x)
            assert signal(sparse(x)).nnz == 0
    np.testing.assert_array_equal(
        shifted_pmi(dense(np.zeros((2, 2))), shift=3.0, unobserved=-9.0), np.full((2, 2), -9)
    )


X = np.array([[3.0, 1.0], [1.0, 0.0]])
NUMBER = "expected a number above 0; .* or 1 for the PMI itself"
ERRORS = [
    (r"counts: got a list, .* jnp\.asarray", lambda: ppmi([[1.0]])),
    (r"counts: got .*\(3,\), expected a matrix", lambda: log_count(jnp.ones(3))),
    (r"counts: got .*\(3,\), expected a matrix", lambda: ppmi(jnp.arange(3))),
    (
        r"counts: got an array of shape \(3,\), expected a matrix",
        lambda: log_count(scipy.sparse.coo_array(np.ones(3))),
    ),
    ("counts: got dtype bool, expected float32", lambda: ppmi(jnp.ones((2, 2), bool))),
    ("counts: got dtype bool, expected float32", lambda: ppmi(scipy.sparse.csr_array(X > 0))),
    ("counts: got .* at least one", lambda: ppmi(jnp.ones((0, 3)))),
    ("counts: got .* at least one", lambda: ppmi(scipy.sparse.csr_array((0, 3)))),
    *(
        (f"shift: got {shift}, {NUMBER}", lambda f=f, k=kind, s=shift: f(k(X), shift=s))
        for f in (shifted_pmi, ppmi)
        for kind in (dense, sparse)
        for shift in (0.0, -1.0, math.nan)
    ),
    (r"shift: got .*\(3,\), expected one number", lambda: ppmi(dense(X), shift=jnp.ones(3))),
    (
        "unobserved: got -1.0, expected 0 with sparse counts.* pass a dense array",
        lambda: shifted_pmi(sparse(X), shift=1.0, unobserved=-1.0),
    ),
    (
        r"unobserved: got an array of shape \(2,\), expected one number",
        lambda: shifted_pmi(dense(X), shift=1.0, unobserved=jnp.ones(2)),
    ),
]


@pytest.mark.one_leg
@pytest.mark.parametrize(("message", "call"), ERRORS)
def test_bad_calls(message, call, hooked):
    if hooked:
        pytest.skip("jaxtyping checks the annotations, and objects before the library can")
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_signals_of_the_paper():
    counts = jnp.asarray([[3, 1], [1, 0]])
    expected = {
        "GloVe": log_count(counts),
        "SGNS": shifted_pmi(counts, shift=3.0),
        "LSA": ppmi(counts),
    }
    assert text.SIGNALS.keys() == expected.keys()
    for name, signal in text.SIGNALS.items():
        np.testing.assert_array_equal(signal(counts), expected[name])
