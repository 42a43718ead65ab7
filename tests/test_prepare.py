"""Preparing sources without a corpus, against dense NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from helpers import DTYPE, EPS, assert_close, cast, exactly, rotation, rounded
from hypothesis import given
from hypothesis import strategies as st
from strategies import WORDS, embeddings, seeds

from jaxmeta import concatenate, standardise
from jaxmeta.diagnosis import cosine_shares
from jaxmeta.prepare import (
    balanced_exponent,
    centre_rows,
    remove_leading,
    spectrum_power,
    unit_frobenius,
    unit_rows,
    unit_spectral,
)
from jaxmeta.quadratic import agreement_weights
from jaxmeta.weights import rank_weights


@given(e=embeddings(4))
def test_scales(e):
    """Rows, all of it, or the largest singular value at 1; what is zero stays so."""
    lengths = np.linalg.norm(e, axis=1, keepdims=True)
    expected = e / np.where(lengths == 0, 1, lengths)
    assert_close(unit_rows(cast(e)), expected, scale=1)
    size, largest = np.linalg.norm(e), np.linalg.norm(e, 2)
    assert_close(unit_frobenius(cast(e)), e / (size or 1), scale=1)
    assert_close(unit_spectral(cast(e)), e / (largest or 1), scale=1)


def test_centre_knows_the_words_that_are_there(rng):
    e = rounded(rng.normal(size=(WORDS, 3)) + 5)
    assert_close(centre_rows(cast(e)), e - e.mean(axis=0), scale=10)
    present = rng.uniform(size=WORDS) < 0.6
    spoilt = np.where(present[:, None], e, np.nan)
    found = exactly(centre_rows(cast(spoilt), present=jnp.asarray(present)))
    assert_close(found[present], e[present] - e[present].mean(axis=0), scale=10)
    np.testing.assert_array_equal(found[~present], 0)
    np.testing.assert_array_equal(centre_rows(cast(spoilt), present=jnp.zeros(WORDS, bool)), 0)


@given(e=embeddings(4), exponent=st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0]))
def test_spectrum_power(e, exponent):
    u, s, _ = np.linalg.svd(e, full_matrices=False)
    # What rounding makes of a value of 0 must not come back as a small power of eps.
    real = s > 64 * EPS * s[0]
    powers = np.where(real, np.where(real, s, 1) ** exponent, 0)
    found = exactly(spectrum_power(cast(e), exponent=exponent))
    sizes = np.sort(np.linalg.norm(found, axis=0))[::-1]
    if real.any() and (real == (s > 0)).all():
        spread = s[0] / s[real].min()
        assert_close(sizes, np.sort(powers)[::-1], scale=4 * spread * powers.max())
        if exponent == 1.0:
            assert_close(found @ found.T, e @ e.T, scale=s[0] ** 2)
        if exponent == 0.0 and s[real].min() > 0.1 * s[0]:
            assert_close(found @ found.T, u[:, real] @ u[:, real].T, scale=40)


def test_directions_of_no_strength_stay_so(rng):
    e = rounded(rng.normal(size=(WORDS, 2)) @ rng.normal(size=(2, 4)))
    for exponent in (0.0, 0.5):
        found = exactly(spectrum_power(cast(e), exponent=exponent))
        np.testing.assert_array_equal(found[:, 2:], 0)
        assert np.linalg.matrix_rank(found) == 2


@given(e=embeddings(4), count=st.integers(1, 4))
def test_remove_leading(e, count):
    found = exactly(remove_leading(cast(e), count=count))
    s = np.linalg.svd(e, compute_uv=False)
    left = np.linalg.svd(found, compute_uv=False)
    assert_close(left[: 4 - count], s[count:], scale=2 * s[0])
    assert_close(left[4 - count :], np.zeros(count), scale=2 * s[0])


def test_standardise(rng):
    e = rounded(rng.normal(size=(WORDS, 3)) * [5, 2, 1] @ rotation(rng, 3) + 4)
    rows = e / np.linalg.norm(e, axis=1, keepdims=True)
    u, s, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    expected = (u * s) @ u.T / s.sum()
    found = exactly(standardise(cast(e)))
    assert_close(found @ found.T, expected, scale=100)
    assert_close(found.sum(axis=0), np.zeros(3), scale=20)
    # The scale of a file, and of each of its rows, is no matter.
    scaled = cast(e * rng.uniform(0.1, 9, size=(WORDS, 1)))
    again = exactly(standardise(scaled))
    assert_close(again @ again.T, expected, scale=100)
    present = np.arange(WORDS) % 3 > 0
    part = exactly(
        standardise(cast(np.where(present[:, None], e, np.nan)), present=jnp.asarray(present))
    )
    alone = exactly(standardise(cast(e[present])))
    assert_close(part[present] @ part[present].T, alone @ alone.T, scale=100)
    np.testing.assert_array_equal(part[~present], 0)


def angle_cosine(x, y):
    return x @ y / np.linalg.norm(x) / np.linalg.norm(y)


@given(seed=seeds, k=st.sampled_from([2, 30]), reach=st.sampled_from([0.1, 1.0, 3.0]))
def test_balanced_exponent_is_at_equal_angles(seed, k, reach):
    s = rounded(np.exp(reach * np.random.default_rng(seed).uniform(-1, 1, k)))
    p = float(balanced_exponent(cast(s)))
    assert 0 < p < 1
    to_flat = angle_cosine(s ** (2 * p), np.ones(k))
    to_own = angle_cosine(s ** (2 * p), s**2)
    assert abs(to_flat - to_own) <= 64 * EPS * np.exp(2 * reach)
    # Values of 0 and the scale change nothing.
    padded = cast(np.append(4 * s, [0, 0]))
    assert abs(float(balanced_exponent(padded)) - p) <= 1e-4


def test_balanced_exponent_is_minimax():
    s = np.arange(1, 40.0) ** -0.7
    p = float(balanced_exponent(cast(s)))
    worst = [
        min(angle_cosine(s ** (2 * x), np.ones(39)), angle_cosine(s ** (2 * x), s**2))
        for x in np.linspace(0, 1, 201)
    ]
    assert abs(np.linspace(0, 1, 201)[np.argmax(worst)] - p) <= 0.005
    assert balanced_exponent(jnp.ones(3, DTYPE)) == 0.5
    assert balanced_exponent(jnp.zeros(3, DTYPE)) == 0.5
    assert np.isnan(balanced_exponent(cast(np.array([1.0, np.nan]))))


def test_rank_weights_are_inverse_variances(rng):
    """At equal norms, of the inner products of pairs of words."""
    sources = tuple(rounded(rng.normal(size=(WORDS, k)) * s) for k, s in ((5, 1), (2, 30), (1, 2)))
    ready = [x / np.linalg.norm(x) for x in (e - e.mean(axis=0) for e in sources)]
    variances = np.array([np.var(e @ e.T) for e in ready])
    expected = (1 / variances) / np.sum(1 / variances)
    assert_close(exactly(rank_weights(cast(tuple(ready)))) ** 2, expected, scale=8)
    # The scale of a source is no matter to its rank.
    scaled = cast(tuple(x * e for x, e in zip((1, 1e3, 1e-3), ready, strict=True)))
    assert_close(exactly(rank_weights(scaled)) ** 2, expected, scale=8)
    with_zero = rank_weights((cast(ready[0]), jnp.zeros((WORDS, 2), DTYPE)))
    assert_close(with_zero, [1, 0], scale=1)
    np.testing.assert_array_equal(rank_weights((jnp.zeros((WORDS, 2), DTYPE),)), [0])


def test_rank_weights_balance_cosine_variance(rng):
    """With weights r every source has the variance r^2 / r: none is drowned, none is favoured."""
    wide = rng.normal(size=(400, 40))
    narrow = rng.normal(size=(400, 4))
    ready = tuple(standardise(cast(x)) for x in (wide, narrow))
    plain = exactly(cosine_shares(ready))
    weighted = exactly(cosine_shares(ready, rank_weights(ready)))
    assert plain[1] > 0.8
    assert weighted[1] < 0.25


@given(parts=st.tuples(embeddings(2), embeddings(3), embeddings(1)))
def test_agreement_weights(parts):
    products = [(e @ e.T).ravel() for e in parts]
    sizes = np.array([np.linalg.norm(p) for p in products])
    if sizes.min() < 1e-3 * sizes.max():
        return
    blocks = [
        np.stack([p if i != j else 0 * p for i, p in enumerate(products)], axis=1)
        for j in range(len(products))
    ]
    system, target = np.concatenate(blocks), np.concatenate(products)
    best, _ = scipy.optimize.nnls(system, target)
    least = np.sum((system @ best - target) ** 2)
    found = exactly(agreement_weights(cast(parts))) ** 2
    # Where sources coincide weights are not unique: what they achieve is.
    assert np.sum((system @ found - target) ** 2) <= least + 1e3 * EPS * np.sum(target**2)


def test_agreement_of_two_sources_is_their_rank(rng):
    sources = tuple(standardise(cast(rng.normal(size=(WORDS, k)))) for k in (3, 2))
    by_agreement, by_rank = agreement_weights(sources), rank_weights(sources)
    ratio = exactly(by_agreement) / exactly(by_rank)
    assert_close(ratio[0] / ratio[1], 1, scale=32)


@pytest.mark.one_leg
def test_errors():
    e = jnp.ones((3, 2), DTYPE)
    with pytest.raises(ValueError, match=r"count: got 3, expected 1 to 2; the source has 2"):
        remove_leading(e, count=3)
    with pytest.raises(ValueError, match=r"sources: got 1, expected at least 2"):
        agreement_weights((e,))


@pytest.mark.one_leg
def test_new_sources_compile_nothing(rng, compilations):
    sources = cast(tuple(rng.normal(size=(WORDS, k)) for k in (3, 2)))

    def all_of_it(parts):
        ready = tuple(standardise(part) for part in parts)
        return jax.block_until_ready(concatenate(ready, rank_weights(ready)))

    all_of_it(sources)
    again = cast(tuple(rng.normal(size=(WORDS, k)) for k in (3, 2)))
    compilations.clear()
    all_of_it(again)
    assert not compilations
