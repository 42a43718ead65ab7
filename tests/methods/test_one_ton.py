"""1TON against NumPy's SVD, the released loop and least squares word by word."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import (
    DTYPE,
    EPS,
    IN_64_BIT,
    assert_close,
    assert_trees_close,
    cast,
    exactly,
    rotation,
    rounded,
)
from hypothesis import given
from hypothesis import strategies as st
from strategies import WORDS, embeddings, seeds

from jaxmeta.combine import OneToN, svd_reduce
from jaxmeta.methods.one_ton import one_to_n, one_to_n_plus
from jaxmeta.pip import pip_matrix
from jaxmeta.released import released_one_to_n

pytestmark = pytest.mark.slow

KEY = jax.random.key(7)


@pytest.fixture
def sources(rng):
    """Three noisy views of six directions."""
    common = rng.normal(size=(30, 6)) * [3, 2.5, 2, 1.5, 1, 0.5]
    return tuple(
        rounded(common @ rng.normal(size=(6, k)) / 3 + 0.2 * rng.normal(size=(30, k)))
        for k in (5, 4, 3)
    )


@pytest.fixture
def present(rng):
    """Every kind of word: in all sources, in some, in one, and word 3 in none."""
    present = rng.uniform(size=(30, 3)) < 0.7
    present[:4] = [[True, True, True], [False, True, False], [True, False, False], [False] * 3]
    return present


def objective(sources, found, weights=None):
    """The sum of squares that is minimised, from the matrices that were found."""
    weights = weights or [1] * len(sources)
    a = exactly(found.embedding)
    return sum(
        w * np.sum((e - a @ exactly(m)) ** 2)
        for w, e, m in zip(weights, sources, found.maps, strict=True)
    )


def product(found):
    return exactly(found.embedding) @ np.concatenate([exactly(m) for m in found.maps], axis=1)


def squared(sources):
    return sum(np.sum(e**2) for e in sources)


def cosines(e):
    unit = e / np.linalg.norm(e, axis=1, keepdims=True)
    return unit @ unit.T


# Exact


@given(parts=st.tuples(embeddings(2), embeddings(3)), seed=seeds)
def test_exact_minimum(parts, seed):
    """Values may repeat or vanish: then the minimiser is not unique, and the minimum is."""
    weights = tuple(float(rounded(w)) for w in np.random.default_rng(seed).uniform(0.5, 2, 2))
    stacked = np.concatenate([w**0.5 * e for w, e in zip(weights, parts, strict=True)], axis=1)
    values = np.linalg.svd(stacked, compute_uv=False)
    scale = 8 * np.sum(values**2)
    for k in (1, 3, 5):
        found = one_to_n(cast(parts), k=k, weights=weights, alpha=0.5)
        assert_close(found.error, np.sum(values[k:] ** 2), scale=scale)
        assert_close(objective(parts, found, weights), found.error, scale=scale)
        assert found.change == 0


@pytest.mark.one_leg
def test_alpha_moves_strength_between_embedding_and_maps(sources):
    whole = np.concatenate(sources, axis=1)
    u, s, vt = np.linalg.svd(whole, full_matrices=False)
    k, scale = 4, 16 * s[0]
    for alpha in (1.0, 0.5, 0.0, 1.5):
        found = one_to_n(cast(sources), k=k, alpha=alpha)
        pip = (u[:, :k] * s[:k] ** (2 * alpha)) @ u[:, :k].T
        assert_close(pip_matrix(found.embedding), pip, scale=scale ** max(1, 2 * alpha))
        assert_close(product(found), (u[:, :k] * s[:k]) @ vt[:k], scale=4 * scale)
        maps = np.concatenate([exactly(m) for m in found.maps], axis=1)
        expected = np.diag(s[:k] ** (2 - 2 * alpha))
        assert_close(maps @ maps.T, expected, scale=scale ** max(1, 2 - 2 * alpha))
    reduced = svd_reduce(cast(sources), k=k)
    assert_close(one_to_n(cast(sources), k=k).embedding, reduced, scale=scale)


@pytest.mark.one_leg
def test_one_source_and_all_dimensions(rng):
    e = rounded(rng.normal(size=(WORDS, 4)))
    found = one_to_n((cast(e),), k=4)
    assert_close(pip_matrix(found.embedding), e @ e.T, scale=8 * np.sum(e**2))
    assert_close(product(found), e, scale=8 * np.linalg.norm(e))
    assert found.error <= 64 * EPS**2 * np.sum(e**2)  # summed from residuals: nothing cancels


@pytest.mark.one_leg
def test_identical_sources(rng):
    e = rounded(rng.normal(size=(WORDS, 4)))
    found, alone = one_to_n(cast((e, e, e)), k=4), one_to_n((cast(e),), k=4)
    scale = 16 * np.linalg.norm(e)
    assert_close(found.embedding, np.sqrt(3) * exactly(alone.embedding), scale=scale)
    for m in found.maps:
        assert_close(m, exactly(alone.maps[0]) / np.sqrt(3), scale=scale)
    assert found.error <= 256 * EPS**2 * np.sum(e**2)


@pytest.mark.one_leg
def test_orthogonal_sources_compete(rng):
    """The k longest of all columns are kept, whosever they are."""
    q = np.linalg.qr(rng.normal(size=(WORDS, 5)))[0]
    parts = (rounded(q[:, :2] * [5, 2]), rounded(q[:, 2:] * [4, 3, 1]))
    found = one_to_n(cast(parts), k=3)
    assert_close(found.error, 2**2 + 1**2, scale=8 * squared(parts))
    expected = [[1, 0], [0, 0], [0, 0]], [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    for m, pattern in zip(found.maps, expected, strict=True):
        assert_close(np.abs(exactly(m)), np.array(pattern), scale=50)


@pytest.mark.one_leg
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_more_dimensions_than_rank(rng, alpha):
    e = rounded(rng.normal(size=(WORDS, 2)))
    parts = (e, rounded(2 * e))
    found = one_to_n(cast(parts), k=4, alpha=alpha)
    assert_close(found.embedding[:, 2:], np.zeros((WORDS, 2)), scale=np.linalg.norm(e))
    assert_close(product(found), np.concatenate(parts, axis=1), scale=16 * np.linalg.norm(e))
    assert found.error <= 1024 * EPS**2 * squared(parts)


def test_weights_scale_sources(sources):
    weights, scale = (4.0, 0.25, 1.0), 100 * np.sqrt(squared(sources))
    scaled = tuple(w**0.5 * e for w, e in zip(weights, sources, strict=True))
    found = one_to_n(cast(sources), k=4, weights=weights)
    expected = one_to_n(cast(scaled), k=4, weights=(1.0, 1.0, 1.0))
    assert_close(found.embedding, expected.embedding, scale=scale)
    assert_close(found.error, expected.error, scale=scale**2)
    for m, n, w in zip(found.maps, expected.maps, weights, strict=True):
        assert_close(m, exactly(n) / w**0.5, scale=scale)
    without = one_to_n(cast(sources), k=4, weights=(1.0, 0.0, 1.0))
    left_out = one_to_n(cast((sources[0], sources[2])), k=4)
    assert_close(without.embedding, left_out.embedding, scale=scale)
    np.testing.assert_array_equal(without.maps[1], 0)
    slope = jax.grad(lambda w: one_to_n(cast(sources), k=4, weights=w).error)((0.0, 0.0, 0.0))
    assert np.isfinite(slope).all()
    assert np.isnan(one_to_n(cast(sources), k=4, weights=(1.0, -1.0, 1.0)).error)


# Released


def released_loop(sources, maps, rate, steps):
    """The loop as released, with all words in every step."""
    c, history = np.concatenate(sources, axis=1), []
    for _ in range(steps + 1):
        a = np.linalg.solve(maps @ maps.T, maps @ c.T).T
        history.append(np.sum((c - a @ maps) ** 2))
        last = maps
        maps = maps + 2 * rate * a.T @ (c - a @ maps)
    return a, last, np.array(history)


def first_maps(k, width):
    return jax.random.normal(KEY, (k, width), DTYPE)


@pytest.mark.one_leg
@pytest.mark.parametrize("rate", [0.001, 0.1])
def test_released_loop(sources, rate):
    rate = float(rounded(rate))
    found = released_one_to_n(cast(sources), k=4, key=KEY, rate=rate, steps=5)
    a, maps, history = released_loop(sources, exactly(first_maps(4, 12)), rate, 5)
    scale = 64 * squared(sources)
    assert_close(found.history, history, scale=scale)
    assert_close(np.concatenate(found.maps, axis=1), maps, scale=scale)
    assert_close(found.embedding, a, scale=scale)
    assert_close(objective(sources, found), found.error, scale=scale)


@pytest.mark.one_leg
def test_released_loop_ends_at_the_minimum_in_a_random_metric(sources):
    exact = one_to_n(cast(sources), k=3)
    found = released_one_to_n(cast(sources), k=3, key=KEY, rate=2e-3, steps=3000)
    rounding = 64 * EPS * squared(sources)
    assert found.history.min() >= exact.error - rounding
    assert (np.diff(exactly(found.history)) <= rounding).all()
    assert_close(found.error, exact.error, scale=4 * squared(sources))
    # The metric is that of the start, up to some per cent.
    maps, start = exactly(np.concatenate(found.maps, axis=1)), exactly(first_maps(3, 12))
    drift = np.linalg.norm(maps @ maps.T - start @ start.T) / np.linalg.norm(start @ start.T)
    assert 1e-3 < drift < 0.08
    # It makes the cosines others than those of the exact solution; undone, they are the same.
    values, vectors = np.linalg.eigh(maps @ maps.T)
    undone = exactly(found.embedding) @ (vectors * np.sqrt(values)) @ vectors.T
    expected = cosines(exactly(exact.embedding))
    assert np.abs(cosines(exactly(found.embedding)) - expected).max() > 0.05
    assert np.abs(cosines(undone) - expected).max() < np.sqrt(EPS)


@pytest.mark.one_leg
def test_a_large_rate_stalls_above_the_minimum(sources):
    exact = one_to_n(cast(sources), k=3)
    found = released_one_to_n(cast(sources), k=3, key=KEY, rate=1e3, steps=100)
    assert 1.01 * exact.error < found.error < found.history[0]


@pytest.mark.one_leg
def test_released_loop_with_all_dimensions_fits_at_once(sources):
    found = released_one_to_n(cast(sources), k=12, key=KEY, steps=1)
    assert found.error <= 256 * EPS**2 * squared(sources)
    scale = np.sqrt(squared(sources)) * np.linalg.cond(exactly(first_maps(12, 12)))
    assert_close(product(found), np.concatenate(sources, axis=1), scale=scale)


# With words missing


def spoilt(sources, present):
    """Sources with NaN where a word is missing."""
    columns = [present[:, [j]] for j in range(len(sources))]
    return cast(tuple(np.where(c, e, np.nan) for c, e in zip(columns, sources, strict=True)))


def entries(sources, present, ridge):
    """The zero-filled concatenation, and what each of its entries counts."""
    repeated = np.repeat(present, [e.shape[1] for e in sources], axis=1)
    whole = np.concatenate(sources, axis=1)
    return np.where(repeated, whole, 0), np.where(repeated, 1, ridge)


def least_squares(x, c, counts):
    """For each column of c, the b that minimises the sum of counts (c - x b)^2."""
    columns = [
        np.linalg.lstsq(np.sqrt(w)[:, None] * x, np.sqrt(w) * y, rcond=None)[0]
        for y, w in zip(c.T, counts.T, strict=True)
    ]
    return np.stack(columns, axis=1)


@pytest.mark.one_leg
@pytest.mark.parametrize("ridge", [0.5, 1e-2])
def test_steps_are_least_squares_word_by_word(sources, present, ridge):
    ridge = float(rounded(ridge))
    c, counts = entries(sources, present, ridge)
    u, s, vt = np.linalg.svd(c, full_matrices=False)
    a, maps = u[:, :3] * s[:3], vt[:3]
    history = [np.sum(counts * (c - a @ maps) ** 2)]
    for _ in range(5):
        maps = least_squares(a, c, counts)
        a = least_squares(maps.T, c.T, counts.T).T
        history.append(np.sum(counts * (c - a @ maps) ** 2))
    found = one_to_n_plus(spoilt(sources, present), jnp.asarray(present), k=3, ridge=ridge, steps=5)
    scale = 16 * np.sum(c**2) / ridge
    assert_close(found.history, history, scale=scale)
    assert_close(product(found), a @ maps, scale=scale)
    # In the basis of the singular vectors of what was completed.
    u, s, _ = np.linalg.svd(a @ maps)
    assert_close(pip_matrix(found.embedding), (u[:, :3] * s[:3] ** 2) @ u[:, :3].T, scale=scale)
    a = exactly(found.embedding)
    assert_close(a.T @ a, np.diag(s[:3] ** 2), scale=scale)
    np.testing.assert_array_equal(a[3], 0)


@pytest.mark.one_leg
def test_no_step_increases_the_objective_and_it_converges(sources, present):
    found = one_to_n_plus(spoilt(sources, present), jnp.asarray(present), k=3, steps=60)
    history = exactly(found.history)
    assert (np.diff(history) <= 16 * EPS * squared(sources)).all()
    assert history[-1] < 0.7 * history[0]
    assert abs(found.change) < 1e-5
    before = history[-2] - history[-1]
    assert_close(exactly(found.change) * history[-2], before, scale=history[0])


@pytest.mark.one_leg
def test_without_missing_words_it_is_one_to_n(sources):
    exact = one_to_n(cast(sources), k=3)
    scale = 64 * squared(sources)
    for ridge in (1e-3, 0.5):
        found = one_to_n_plus(cast(sources), jnp.ones((30, 3), bool), k=3, ridge=ridge, steps=5)
        assert_close(found.error, exact.error, scale=scale)
        assert_close(found.embedding, exact.embedding, scale=scale)
        assert_trees_close(found.maps, exact.maps, scale=scale)


@pytest.mark.one_leg
def test_a_ridge_of_one_takes_missing_vectors_for_zeros(sources, present):
    at = jnp.asarray(present)
    found = one_to_n_plus(spoilt(sources, present), at, k=3, ridge=1.0, steps=5)
    reduced = svd_reduce(spoilt(sources, present), k=3, present=at)
    assert_close(found.embedding, reduced, scale=64 * squared(sources))


@pytest.mark.one_leg
def test_missing_vectors_of_low_rank_are_recovered(rng, present):
    """Up to the ridge: it pulls what is predicted towards zero by as much."""
    common = rng.normal(size=(30, 3))
    parts = tuple(rounded(common @ rotation(rng, k)[:3]) for k in (5, 4, 3))
    present[3] = present[0]
    ridge = 1e-6 if IN_64_BIT else 1e-3
    found = one_to_n_plus(spoilt(parts, present), jnp.asarray(present), k=3, ridge=ridge, steps=60)
    whole = np.concatenate(parts, axis=1)
    filled, _ = entries(parts, present, ridge)
    known = present.any(axis=1)
    off = np.linalg.norm((product(found) - whole)[known])
    assert np.linalg.norm((filled - whole)[known]) > 0.3 * np.linalg.norm(whole)
    assert off < 10 * ridge * np.linalg.norm(whole)


@pytest.mark.one_leg
def test_nothing_leaks_from_missing_words(sources, present):
    sources, present = sources[:2], present[:, :2]

    def total(parts):
        found = one_to_n_plus(parts, jnp.asarray(present), k=2, steps=1)
        return jnp.sum(found.embedding[:, 0] ** 2) + found.error

    gradients = jax.grad(total)(spoilt(sources, present))
    for j, gradient in enumerate(gradients):
        assert np.isfinite(gradient).all()
        assert not exactly(gradient)[~present[:, j]].any()
        assert exactly(gradient)[present[:, j]].any()


@pytest.mark.one_leg
@pytest.mark.parametrize("kind", ["empty source", "zero", "rank below k", "nothing present"])
def test_degenerate_sources(sources, present, kind):
    if kind == "empty source":
        present[:, 1] = False
    elif kind == "zero":
        sources = tuple(np.zeros_like(e) for e in sources)
    elif kind == "rank below k":
        present[:] = True
        sources = tuple(np.outer(sources[0][:, 0], e[0]) for e in sources)
    else:
        present[:] = False
    found = one_to_n_plus(spoilt(sources, present), jnp.asarray(present), k=3, steps=5)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(found))
    if kind == "empty source":
        assert_close(product(found)[:, 5:9], np.zeros((30, 4)), scale=64 * squared(sources))
    elif kind == "rank below k":
        whole = np.concatenate(sources, axis=1)
        assert_close(product(found), whole, scale=64 * squared(sources))
    else:
        assert found.error == 0
        assert found.change == 0
        np.testing.assert_array_equal(found.embedding, 0)


# What all have in common


@pytest.mark.one_leg
def test_error_and_change_of_a_batch():
    batch = OneToN(jnp.ones((2, 3, 1)), (), jnp.array([[4.0, 2.0, 1.0], [1.0, 0.0, 0.0]]))
    np.testing.assert_array_equal(batch.error, [1, 0])
    np.testing.assert_array_equal(batch.change, [0.5, 0])


ALL = jnp.ones((6, 1), bool)


@pytest.mark.one_leg
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda e: one_to_n((e,), k=1, weights=(1.0, 1.0)), ValueError, "weights: got 2 entries"),
        (lambda e: one_to_n((e,), k=1, alpha=jnp.ones(2)), ValueError, "alpha: got an array of"),
        (lambda e: one_to_n(e, k=1), TypeError, "sources: got an array of shape"),
        (lambda e: released_one_to_n((e,), k=1, key=KEY, steps=0), ValueError, "steps: got 0"),
        (lambda e: one_to_n_plus((e,), ALL, k=1, steps=0), ValueError, "steps: got 0"),
        (lambda e: one_to_n_plus((e,), None, k=1), TypeError, "present: got None, .*use one_to_n"),
        (
            lambda e: one_to_n_plus((e,) * 9, jnp.ones((6, 9), bool), k=1),
            ValueError,
            "the number of sources: got 9, expected 1 to 8",
        ),
        (
            lambda e: one_to_n_plus((e,), ALL, k=1, ridge=jnp.ones(2)),
            ValueError,
            "ridge: got an array of shape",
        ),
    ],
)
def test_errors(hooked, call, error, message):
    if hooked:
        pytest.skip("jaxtyping checks the annotations, and objects before the library can")
    with pytest.raises(error, match=message):
        call(jnp.ones((6, 3), DTYPE))
