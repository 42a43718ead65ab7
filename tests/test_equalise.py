"""The estimated ideal, against dense NumPy and against ideals that are known."""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import scipy.sparse
from helpers import EPS, cast, rotation

from jaxmeta import Spectrum, decompose
from jaxmeta.crossvalidation import cross_validated, held_out_strengths, shared_square
from jaxmeta.eigen import leading_eigenpairs, multiply_by
from jaxmeta.equalise import equalise, estimate_ideal, restore
from jaxmeta.shrinkage import rie_strengths

N = 40


def wigner(rng, n, scales):
    """Symmetric noise of standard deviation 1 / (s_i s_j)."""
    z = rng.normal(size=(n, n))
    return (z + z.T) / 2**0.5 / np.outer(scales, scales)


def dense(estimate):
    vectors, values = map(np.asarray, estimate.spectrum)
    return vectors * (values * np.asarray(estimate.signs)) @ vectors.T


def pairs_of(matrix):
    n = matrix.shape[0]
    return leading_eigenpairs(multiply_by(matrix), n=n, rank=n, key=jax.random.key(0))


@pytest.mark.parametrize("as_given", [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_array])
def test_equalise(rng, as_given):
    signal, scales = rng.normal(size=(6, 6)), cast(rng.uniform(0.5, 2, 6))
    signal[rng.uniform(size=(6, 6)) < 0.5] = 0
    given = as_given(signal.astype(scales.dtype))
    before = given.copy()
    found = equalise(given, scales)
    if scipy.sparse.issparse(given):
        assert (given != before).nnz == 0
        found = found.toarray()
    expected = np.outer(scales, scales) * signal
    np.testing.assert_allclose(found, expected, rtol=4 * EPS)


def test_restore_undoes_equalise(rng):
    """All eigenpairs of the equalised signal, unshrunk, give the signal back."""
    scales = cast(rng.uniform(0.3, 3, N))
    signal = cast(wigner(rng, N, np.ones(N)))
    values, vectors = jnp.linalg.eigh(equalise(signal, scales))
    estimate = restore(values, vectors, scales)
    np.testing.assert_allclose(dense(estimate), signal, atol=200 * EPS * oracles.norm(signal))
    gram = np.asarray(estimate.spectrum.vectors.T @ estimate.spectrum.vectors)
    np.testing.assert_allclose(gram, np.eye(N), atol=100 * EPS)
    assert (np.diff(estimate.spectrum.values) <= 0).all()


@pytest.mark.parametrize("k", [None, 1, 5])
def test_estimate_against_dense_numpy(rng, k):
    scales = rng.uniform(0.3, 3, N)
    u = rotation(rng, N)[:, :3]
    signal = cast(u * [90, -60, 30] @ u.T + wigner(rng, N, scales))
    scales = cast(scales)
    found = estimate_ideal(pairs_of(equalise(signal, scales)), sigma=1.0, scales=scales, k=k)

    s = np.asarray(scales, float)
    values, vectors = np.linalg.eigh(np.asarray(signal, float) * np.outer(s, s))
    order = np.argsort(-np.abs(values))
    values, vectors = values[order], vectors[:, order]
    distance = values[:, None] - values
    shift = np.mean(distance / (distance**2 + 1), axis=1)
    shrunk = np.sign(values) * np.maximum(np.sign(values) * (values - 2 * N * shift), 0)
    if k is None:
        k = np.sum(np.abs(values) > 2 * N**0.5)
    w = vectors[:, :k] / s[:, None]
    expected = w * shrunk[:k] @ w.T
    assert found.spectrum.values.shape == (k,)
    np.testing.assert_allclose(dense(found), expected, atol=2000 * EPS * oracles.norm(expected))


@hypothesis.settings(max_examples=10)
@hypothesis.given(st.integers(0, 2**32 - 1))
def test_equal_scales_are_those_of_one_sigma(seed):
    rng = np.random.default_rng(seed)
    signal, ones = cast(5 * np.ones((N, N)) + wigner(rng, N, np.ones(N))), cast(np.ones(N))
    pairs = pairs_of(signal)
    found = estimate_ideal(pairs, sigma=1.0, scales=ones, k=N)
    expected = np.asarray(rie_strengths(jnp.asarray(pairs.spectrum), sigma=1.0))
    scale = float(expected.max())
    got = np.asarray(found.spectrum.values)
    np.testing.assert_allclose(got, -np.sort(-expected), atol=100 * EPS * scale)


@hypothesis.settings(max_examples=10)
@hypothesis.given(st.integers(0, 2**32 - 1))
def test_words_in_another_order(seed):
    rng = np.random.default_rng(seed)
    scales = rng.uniform(0.3, 3, N)
    signal = 5 * np.ones((N, N)) + wigner(rng, N, scales)
    order = rng.permutation(N)

    def estimate(m, s):
        pairs = pairs_of(equalise(cast(m), cast(s)))
        return dense(estimate_ideal(pairs, sigma=1.0, scales=cast(s), k=3))

    there = estimate(signal[order][:, order], scales[order])
    here = estimate(signal, scales)
    # The third direction is one of the noise, and as near to the next as those are.
    np.testing.assert_allclose(there, here[order][:, order], atol=1e5 * EPS * oracles.norm(here))


def test_it_is_nearer_to_the_ideal_than_any_weights_of_the_observed_directions(rng):
    n = 200
    u = rotation(rng, n)[:, :4]
    scales = np.geomspace(0.4, 2.5, n)
    ideal = u * [120, -90, 70, 60] @ u.T
    signal = ideal + wigner(rng, n, scales)
    found = estimate_ideal(
        pairs_of(equalise(cast(signal), cast(scales))), sigma=1.0, scales=cast(scales)
    )
    _, vectors = np.linalg.eigh(signal)
    best = vectors * np.einsum("ij,ij->j", vectors, ideal @ vectors) @ vectors.T
    assert oracles.norm(dense(found) - ideal) < 0.95 * oracles.norm(best - ideal)


def test_a_word_that_never_varies_and_one_without_counts(rng):
    signal = cast(wigner(rng, N, np.ones(N)) + 10)
    signal = signal.at[0].set(0).at[:, 0].set(0)
    scales = cast(np.r_[10.0, 10.0, np.ones(N - 2)])
    found = estimate_ideal(pairs_of(equalise(signal, scales)), sigma=1.0, scales=scales)
    assert np.isfinite(dense(found)).all()
    np.testing.assert_allclose(dense(found)[0], 0, atol=1000 * EPS)


def test_what_is_wrong(rejected):
    scales = cast(np.ones(3))
    rejected("scales: got 3 for shape .4, 4.", equalise, cast(np.eye(4)), scales)
    pairs = pairs_of(cast(np.diag([3.0, 2.0, 1.0])))
    rejected("k: got 4, expected 1 to 3", estimate_ideal, pairs, sigma=1.0, scales=scales, k=4)


# Cross-validated strengths.


def halves(rng, n, sigma):
    u = rotation(rng, n)[:, :3]
    ideal = u * [12.0, -9.0, 6.0] @ u.T
    return ideal, [ideal + sigma * wigner(rng, n, np.ones(n)) for _ in range(2)]


def test_held_out_strengths_against_numpy(rng):
    _, (first, second) = halves(rng, N, 0.3)
    values, vectors = np.linalg.eigh(first)
    spectrum = Spectrum(cast(vectors), cast(np.abs(values)))
    expected = np.sign(values) * np.einsum("ij,ij->j", vectors, second @ vectors)
    for given in (cast(second), scipy.sparse.csr_array(cast(second))):
        found = held_out_strengths(spectrum, cast(np.sign(values)), multiply_by(given))
        np.testing.assert_allclose(found, expected, atol=200 * EPS * np.abs(values).max())
        np.testing.assert_allclose(
            shared_square(type(given)(cast(first)) if scipy.sparse.issparse(given) else cast(first),
                          given),
            np.sum(first * second), rtol=100 * EPS)  # fmt: skip


def test_the_curve_is_the_loss_against_the_other_half(rng):
    _, (first, second) = halves(rng, N, 0.3)
    values, vectors = np.linalg.eigh(first)
    order = np.argsort(-np.abs(values))
    values, vectors = values[order], vectors[:, order]
    spectrum = decompose(cast(first))
    total = shared_square(cast(first), cast(second))
    found = cross_validated(
        [spectrum], [cast(np.sign(values))], [multiply_by(cast(second))], total=total
    )
    weights = cast(rng.uniform(0, 1.5, (1, N)))
    for w, curve in ((np.ones(N), found.curve), (np.asarray(weights[0]), found.loss_of(weights))):
        for k in (1, 3, N):
            kept = vectors[:, :k] * (w**2 * values)[:k] @ vectors[:, :k].T
            # The noise of the other half is in its square, and not in the product of both.
            square = np.sum((kept - second) ** 2) - np.sum(second**2) + float(total)
            np.testing.assert_allclose(curve[k - 1] ** 2, max(square, 0), atol=1e3 * EPS * total)
    assert found.dimension == 1 + np.argmin(found.curve)


def test_strengths_of_one_half_are_unbiased(rng):
    """On the same half they are too large."""
    gaps = []
    for _ in range(40):
        ideal, (first, second) = halves(rng, N, 0.5)
        _, vectors = np.linalg.eigh(first)
        u = vectors[:, -1]
        gaps.append([u @ second @ u - u @ ideal @ u, u @ first @ u - u @ ideal @ u])
    mean, error = np.mean(gaps, 0), np.std(gaps, 0) / 40**0.5
    assert abs(mean[0]) < 3 * error[0]
    assert mean[1] > 10 * error[1]


def test_what_is_wrong_with_parts(rejected):
    one = decompose(cast(np.eye(2)))
    signs, multiply = cast(np.ones(2)), multiply_by(cast(np.eye(2)))
    rejected("signs: got 2 entries", cross_validated, [one], [signs] * 2, [multiply], total=1.0)
    rejected("others: got 0 entries", cross_validated, [one], [signs], [], total=1.0)
    rejected("got shapes", shared_square, cast(np.eye(2)), cast(np.eye(3)))
