"""Concatenation with all kinds of weights, means, rotations and truncation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import DTYPE, EPS, assert_close, cast, exactly, rotation, rounded
from hypothesis import given
from hypothesis import strategies as st
from strategies import WORDS, embeddings, seeds

from jaxmeta import concatenate, pip_loss
from jaxmeta.combine import average, principal_axes, rotate_onto, rotated_average, svd_reduce
from jaxmeta.pip import pip_matrix


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


def hidden(sources, present):
    """The sources with NaN where a word is not present, and with zeros there."""
    columns = [present[:, [j]] for j in range(len(sources))]
    nan = tuple(np.where(c, e, np.nan) for c, e in zip(columns, sources, strict=True))
    zero = tuple(np.where(c, e, 0) for c, e in zip(columns, sources, strict=True))
    return cast(nan), zero


@pytest.fixture
def present():
    """Word 2 is in no source, word 3 in all, and others in some."""
    return np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 1, 1], [0, 1, 1], [0, 0, 1]], bool)


def singular_vectors(c, k):
    """Left singular vectors times values, by signs of NumPy's own, and the values."""
    u, s, _ = np.linalg.svd(c, full_matrices=False)
    return u[:, :k] * s[:k], s


# Means


def test_average_pads_on_the_right(sources):
    padded = [np.pad(e, ((0, 0), (0, 3 - e.shape[1]))) for e in sources]
    assert_close(average(cast(sources)), np.mean(padded, axis=0), scale=np.abs(padded).max())
    np.testing.assert_array_equal(average(cast(sources[:1])), sources[0])
    np.testing.assert_array_equal(average(cast((sources[0],) * 4)), sources[0])


def test_average_is_over_the_sources_that_have_the_word(sources, present):
    spoilt, _ = hidden(sources, present)
    found = exactly(average(spoilt, present=jnp.asarray(present)))
    for w in range(6):
        known = [np.pad(e[w], (0, 3 - e.shape[1])) for e, p in zip(sources, present[w]) if p]  # noqa: B905
        expected = np.mean(known, axis=0) if known else np.zeros(3)
        assert_close(found[w], expected, scale=np.abs(found).max())
    everything = jnp.ones((6, 3), bool)
    np.testing.assert_array_equal(
        average(cast(sources), present=everything), average(cast(sources))
    )


def test_average_depends_on_signs_and_principal_axes_fix_them(rng):
    e, f = (rounded(rng.normal(size=(WORDS, 3)) * [3, 2, 1]) for _ in range(2))
    signs, turn = np.array([1, -1, -1]), rotation(rng, 3)
    mean, flipped = average(cast((e, f))), average(cast((e, f * signs)))
    assert pip_loss(mean, flipped) > 1
    fixed = average((principal_axes(cast(e)), principal_axes(cast(f))))
    for other in (f * signs, f @ turn):
        again = average((principal_axes(cast(e)), principal_axes(cast(other))))
        assert_close(again, fixed, scale=10 * np.linalg.norm(f))


# Principal axes and truncation


@given(e=embeddings(4))
def test_principal_axes(e):
    found = exactly(principal_axes(cast(e)))
    values = np.linalg.svd(e, compute_uv=False)
    scale = values[0]
    assert_close(found @ found.T, e @ e.T, scale=scale**2)
    # E V is off orthogonal by the backward error of the SVD, in units of the longest column.
    assert_close(found.T @ found, np.diag(values**2), scale=scale**2, terms=128)
    assert_close(np.linalg.norm(found, axis=0), values, scale=scale)
    largest = found[np.argmax(np.abs(found), axis=0), np.arange(4)]
    assert (largest >= 0).all()


def test_principal_axes_of_more_columns_than_words(rng):
    e = rounded(rng.normal(size=(3, 5)))
    found = exactly(principal_axes(cast(e)))
    assert_close(found @ found.T, e @ e.T, scale=np.linalg.norm(e) ** 2)
    assert_close(found[:, 3:], np.zeros((3, 2)), scale=np.linalg.norm(e))


def test_small_values_are_not_lost(rng):
    """They would be, to the Gram matrix: it knows values only down to sqrt(eps) of the largest."""
    values = np.array([1, 1e-2, 1]) * [1, 1, EPS**0.5 / 10]
    q = np.linalg.qr(rng.normal(size=(WORDS, 3)))[0]
    e = rounded(q * values @ rotation(rng, 3))
    lengths = np.linalg.norm(exactly(principal_axes(cast(e))), axis=0)
    assert_close(lengths, np.linalg.svd(e, compute_uv=False), scale=1)
    assert abs(lengths[2] / values[2] - 1) < 1e-2


@pytest.mark.one_leg
@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_axes_at_extreme_scales(rng, size):
    e = rng.normal(size=(WORDS, 3)).astype(np.float32)
    found, tiny = principal_axes(jnp.asarray(e)), principal_axes(jnp.asarray(e * np.float32(size)))
    eps = float(jnp.finfo(jnp.float32).eps)
    assert_close(exactly(tiny) / size, found, scale=10 * np.linalg.norm(e), eps=eps)

    def entry(x):
        return jnp.sum(principal_axes(x) ** 3)

    slope = jax.grad(entry)(jnp.asarray(e))
    # The derivative of the axes alone: their image divided by the size again.
    scaled = jax.grad(lambda x: jnp.sum((principal_axes(x) / np.float32(size)) ** 3))
    again = exactly(scaled(jnp.asarray(e * np.float32(size)))) * size
    assert_close(again, slope, scale=100 * np.linalg.norm(slope), eps=eps)


@given(parts=st.tuples(embeddings(2), embeddings(3)), seed=seeds)
def test_svd_reduce_is_the_best_approximation(parts, seed):
    weights = rounded(np.random.default_rng(seed).uniform(0.5, 2, size=2))
    c = np.concatenate([w * e for w, e in zip(weights, parts, strict=True)], axis=1)
    for k in (1, 3, 5):
        found = exactly(svd_reduce(cast(parts), k=k, weights=cast(weights)))
        best, values = singular_vectors(c, k)
        assert found.shape == (WORDS, k)
        # Closest of rank k, also where values repeat and the best is not unique.
        squares = np.append(values, np.zeros(5)) ** 2
        off = np.linalg.norm(c @ c.T - found @ found.T)
        assert_close(off, np.linalg.norm(squares[k:]), scale=8 * squares[0])
        if values[k - 1] > 1.01 * np.append(values, 0)[k]:
            gap = 1 - np.append(values, 0)[k] / values[k - 1]
            assert_close(found @ found.T, best @ best.T, scale=8 * squares[0] / gap)


def test_svd_reduce_of_everything_changes_no_inner_product(sources):
    whole = np.concatenate(sources, axis=1)
    found = svd_reduce(cast(sources), k=6)
    assert_close(pip_matrix(found), whole @ whole.T, scale=np.linalg.norm(whole) ** 2)
    np.testing.assert_array_equal(found, principal_axes(cast(whole)))


def test_svd_reduce_with_dimension_weights_and_missing_words(sources, present):
    spoilt, zero = hidden(sources, present)
    weights = (2.0, np.array([1.0, 0.5, 4.0]), -1.0)
    c = np.concatenate([w * e for w, e in zip(weights, zero, strict=True)], axis=1)
    given_weights = tuple(cast(w) if isinstance(w, np.ndarray) else w for w in weights)
    found = svd_reduce(spoilt, k=3, weights=given_weights, present=jnp.asarray(present))
    best, _ = singular_vectors(c, 3)
    assert_close(pip_matrix(found), best @ best.T, scale=8 * np.linalg.norm(c) ** 2)
    np.testing.assert_array_equal(found[2], 0)


@pytest.mark.parametrize("kind", ["repeated", "rank-deficient", "zero"])
def test_derivatives_of_inner_products_where_axes_are_not_unique(rng, kind):
    """Those of the axes are not defined there; the inner products do not know of them."""
    q = np.linalg.qr(rng.normal(size=(WORDS, 4)))[0]
    values = {"repeated": [1, 1, 1, 1], "rank-deficient": [2, 2, 1, 0], "zero": [0, 0, 0, 0]}[kind]
    e = cast(q * np.array(values) @ rotation(rng, 4))
    target = cast(rng.normal(size=(WORDS, WORDS)))

    def through(axes):
        return jax.grad(lambda x: jnp.sum(target * pip_matrix(axes(x))))(e)

    expected = through(lambda x: x)
    size = 16 * np.linalg.norm(target)
    assert_close(through(principal_axes), expected, scale=size)
    halves = lambda x: (x[:, :2], x[:, 2:])  # noqa: E731
    assert_close(through(lambda x: svd_reduce(halves(x), k=4)), expected, scale=size)
    if kind == "rank-deficient":  # what is cut off is zero, and stays so to first order
        assert_close(through(lambda x: svd_reduce(halves(x), k=3)), expected, scale=size)


# Rotations


def spread(images):
    """The sum over pairs of sources of squared distances."""
    return sum(np.sum((e - f) ** 2) for i, e in enumerate(images) for f in images[:i])


def test_rotated_average_of_one_source_after_rotation(rng):
    e = rounded(rng.normal(size=(WORDS, 4)) * [4, 3, 2, 1])
    copies = tuple(rounded(e @ rotation(rng, 4)) for _ in range(3))
    found = rotated_average(cast((e, *copies)))
    scale = 10 * np.linalg.norm(e)
    assert_close(found.embedding, e, scale=scale)
    assert_close(found.change, 0, scale=1)
    for copy, q in zip(copies, found.rotations[1:], strict=True):
        assert_close(copy @ exactly(q), e, scale=scale)
    (alone, identity, change) = rotated_average((cast(e),))
    np.testing.assert_array_equal(alone, e)
    np.testing.assert_array_equal(identity[0], np.eye(4))
    assert change == 0


def test_no_step_increases_the_spread(rng):
    sources = tuple(rounded(rng.normal(size=(WORDS, k))) for k in (3, 5, 5, 4))
    scale = 8 * sum(np.sum(e**2) for e in sources)
    before, last = spread([exactly(rotate_onto(e, cast(sources[1]))) for e in cast(sources)]), None
    for steps in (1, 3, 64):
        found = rotated_average(cast(sources), steps=steps)
        rotations = [exactly(q) for q in found.rotations]
        for q in rotations:
            assert_close(q @ q.T, np.eye(len(q)), scale=4)
        np.testing.assert_array_equal(rotations[1], np.eye(5))
        images = [e @ q for e, q in zip(sources, rotations, strict=True)]
        assert_close(found.embedding, np.mean(images, axis=0), scale=np.sqrt(scale))
        now = spread(images)
        assert now <= before + 16 * EPS * scale
        assert last is None or found.change <= last + 16 * EPS
        before, last = now, float(found.change)
    assert_close(found.change, 0, scale=1)
    # A stationary point: no source gains by a rotation alone.
    for j, image in enumerate(images):
        others = sum(images) - image
        u, _, vt = np.linalg.svd(sources[j].T @ others, full_matrices=False)
        best = np.sum((sources[j] @ u @ vt) * others)
        assert_close(np.sum(image * others), best, scale=scale)
    unrotated = [np.pad(e, ((0, 0), (0, 5 - e.shape[1]))) for e in sources]
    assert now < 0.9 * spread(unrotated)


def test_two_sources_are_done_after_the_first_rotation(rng):
    e, f = (rounded(rng.normal(size=(WORDS, k))) for k in (4, 3))
    found = rotated_average(cast((f, e)), steps=1)
    assert_close(found.change, 0, scale=1)
    expected = (e + exactly(rotate_onto(cast(f), cast(e)))) / 2
    assert_close(found.embedding, expected, scale=10 * np.linalg.norm(e))


def test_rotations_come_from_words_that_pairs_share(rng):
    e = rounded(rng.normal(size=(WORDS, 3)))
    turn = rotation(rng, 3)
    present = rng.uniform(size=(WORDS, 3)) < 0.7
    present[:4], present[5], present[6] = True, [True, False, False], False
    sources, _ = hidden((e, rounded(e @ turn), rounded(e @ turn.T)), present)
    found = rotated_average(sources, present=jnp.asarray(present))
    expected = np.where(present.any(axis=1)[:, None], e, 0)
    assert_close(found.embedding, expected, scale=10 * np.linalg.norm(e))
    np.testing.assert_array_equal(found.embedding[6], 0)


def test_a_source_of_zeros_has_no_say_in_rotations(rng):
    e = rounded(rng.normal(size=(WORDS, 3)))
    found = rotated_average(cast((e, np.zeros((WORDS, 2)), e)))
    assert_close(found.embedding, 2 * e / 3, scale=10 * np.linalg.norm(e))
    found = rotated_average((jnp.zeros((WORDS, 2)),) * 2)
    np.testing.assert_array_equal(found.embedding, 0)
    assert found.change == 0


# What all have in common


CALLS = {
    "average": lambda sources, present: average(sources, present=present),
    "svd_reduce": lambda sources, present: svd_reduce(sources, k=2, present=present),
    "rotated_average": lambda sources, present: (
        rotated_average(sources, present=present, steps=2).embedding
    ),
}
calls = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@calls
def test_missing_words_do_not_leak(sources, present, call):
    spoilt, zero = hidden(sources, present)
    at = jnp.asarray(present)

    def total(parts):
        return jnp.sum(call(parts, at) ** 2)

    np.testing.assert_array_equal(call(spoilt, at), call(cast(zero), at))
    for j, gradient in enumerate(jax.jit(jax.grad(total))(spoilt)):
        assert np.isfinite(gradient).all()
        assert not exactly(gradient)[~present[:, j]].any()
        assert exactly(gradient)[present[:, j]].any()


@calls
def test_new_words_are_missing_without_compilation(sources, present, call, compilations):
    jax.block_until_ready(call(cast(sources), jnp.asarray(present)))
    again = cast(tuple(2 * e for e in sources)), jnp.asarray(~present)
    compilations.clear()
    jax.block_until_ready(call(*again))
    assert not compilations


@pytest.mark.one_leg
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda e: svd_reduce((e, e), k=7),
            ValueError,
            r"k: got 7, expected 1 to 6; the concatenation has 6\.",
        ),
        (lambda e: svd_reduce((e,), k=0), ValueError, "k: got 0, expected 1 to 3"),
        (lambda e: svd_reduce((e,), k=2.0), TypeError, "k: got a float, expected an int"),
        (
            lambda e: average((e,), present=jnp.ones((6, 2), bool)),
            ValueError,
            r"present: got shape \(6, 2\), expected \(6, 1\); pass present\[w, j\]",
        ),
        (
            lambda e: average((e,), present=jnp.ones((6, 1))),
            TypeError,
            "present: got dtype float.*, expected an array of bool; pass",
        ),
        (lambda e: average((e,), present=[[True]]), TypeError, "present: got a list, expected"),
        (lambda e: rotated_average((e,), steps=0), ValueError, "steps: got 0, expected at least 1"),
    ],
)
def test_errors(hooked, call, error, message):
    if hooked:
        pytest.skip("jaxtyping checks the annotations, and objects before the library can")
    with pytest.raises(error, match=message):
        call(jnp.ones((6, 3), DTYPE))
