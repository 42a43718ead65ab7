"""Each step of the locally linear meta-embedding against dense float64 NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import DTYPE, EPS, IN_64_BIT, assert_close, cast, exactly, rounded
from hypothesis import given
from reconstruction import (
    distortion,
    find_lists,
    matrix_of,
    neighbours_of,
    smallest,
    weights_of,
)
from strategies import seeds

from jaxmeta.methods.lle import (
    locally_linear,
    nearest_neighbours,
    reconstruction_matrix,
    reconstruction_weights,
)

KEY = jax.random.key(0)
WORDS = 40


def draw(rng, sizes, n=WORDS, shift=0.5):
    return [rounded(rng.normal(size=(n, k)) + shift) for k in sizes]


def weigh(sources, lists, **settings):
    """The library's weights."""
    return reconstruction_weights(cast(tuple(sources)), tuple(map(jnp.asarray, lists)), **settings)


def spoil(sources, present):
    """Sources with NaN for words that they lack."""
    return [np.where(h[:, None], s, np.nan) for s, h in zip(sources, present.T, strict=True)]


# --- neighbours


@pytest.mark.one_leg
@pytest.mark.parametrize(("k", "number"), [(1, 1), (3, 7), (50, WORDS - 1)])
def test_neighbours_are_those_of_all_differences(rng, k, number):
    (source,) = draw(rng, [k])
    found = nearest_neighbours(cast(source), neighbours=number)
    np.testing.assert_array_equal(found, neighbours_of(source, number))


@pytest.mark.one_leg
@pytest.mark.parametrize("scale", [1e-18, 1.0, 1e18])
def test_neighbours_far_off_the_origin_and_of_any_scale(rng, scale):
    # After centring, digits that the input still has are enough; squares would have lost them.
    source = rounded(scale * (rng.normal(size=(WORDS, 3)) + 0.001 / EPS**0.9))
    found = nearest_neighbours(cast(source), neighbours=5)
    np.testing.assert_array_equal(found, neighbours_of(source / scale, 5))


@pytest.mark.one_leg
def test_equal_words_are_neighbours_in_order_and_never_of_themselves():
    found = nearest_neighbours(jnp.ones((6, 2), DTYPE), neighbours=3)
    expected = [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2], [0, 1, 2], [0, 1, 2]]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.one_leg
def test_missing_words_have_no_neighbours_and_are_nobodys(rng):
    (source,) = draw(rng, [3])
    present = rng.uniform(size=WORDS) < 0.6
    (spoilt,) = spoil([source], present[:, None])
    found = nearest_neighbours(cast(spoilt), neighbours=6, present=jnp.asarray(present))
    np.testing.assert_array_equal(found, neighbours_of(source, 6, present))


@pytest.mark.one_leg
def test_too_few_words_leave_places_empty():
    source, present = jnp.arange(5.0, dtype=DTYPE)[:, None], jnp.arange(5) < 3
    found = nearest_neighbours(source, neighbours=4, present=present)
    expected = [[1, 2, -1, -1], [0, 2, -1, -1], [1, 0, -1, -1], [-1] * 4, [-1] * 4]
    np.testing.assert_array_equal(found, expected)


# --- weights

# Widths of the sources and number of neighbours: K above and below N m, and the same.
LAYOUTS = {
    "one source, primal": ((4,), 9),
    "one source, dual": ((9,), 4),
    "one number": ((1,), 1),
    "as many as dimensions": ((6, 6), 6),
    "three, primal": ((2, 1, 4), 12),
    "three, dual": ((20, 2, 15), 8),
}
# Two sources for all other tests, since others compile: 2 neighbours are dual, and 9 primal.
TWO, MANY = (4, 4), 9


def assert_weights(sources, lists, *, ridge=1e-2):
    """The library's weights are those of the formula in every slot of a word."""
    found = weigh(sources, lists, ridge=ridge)
    assert all(w.dtype == DTYPE and w.shape == x.shape for w, x in zip(found, lists, strict=True))
    for v in range(len(sources[0])):
        if all((x[v] < 0).all() for x in lists):
            assert all((w[v] == 0).all() for w in found)
            continue
        words, weights, total = weights_of(sources, lists, v, ridge)
        by_word = dict(zip(words, weights, strict=True))
        # The solution is off by the condition, up to K / ridge, and scaling divides by the sum.
        size = np.abs(weights).max()
        scale = sum(s.shape[1] for s in sources) / ridge * (size + size**2 * len(words))
        for w, x in zip(found, lists, strict=True):
            expected = [by_word[u] if u >= 0 else 0.0 for u in x[v]]
            assert_close(w[v], expected, scale=scale * max(1, 1 / abs(total)), terms=1)
    return found


@pytest.mark.parametrize(("sizes", "number"), LAYOUTS.values(), ids=LAYOUTS)
def test_weights_are_those_of_the_formula(rng, sizes, number):
    """With all words, and where words are missing."""
    sources = draw(rng, sizes)
    assert_weights(sources, find_lists(sources, number))
    present = rng.uniform(size=(WORDS, len(sizes))) < 0.7
    lists = find_lists(sources, number, present)
    found = assert_weights(sources, lists)
    again = weigh(spoil(sources, present), lists, ridge=1e-2)
    jax.tree.map(np.testing.assert_array_equal, again, found)


@pytest.mark.one_leg
def test_a_source_that_lacks_a_word_has_no_part_in_its_weights(rng):
    sources = draw(rng, TWO)
    present = np.ones((WORDS, 2), bool)
    present[5, 1] = False
    lists = find_lists(sources, MANY, present)
    both = assert_weights(sources, lists)
    (alone,) = weigh(sources[:1], lists[:1], ridge=1e-2)
    assert_close(both[0][5], alone[5], scale=1e2 * np.abs(alone[5]).max() ** 2, terms=64)


HARD = {
    "the same twice": lambda rng: [draw(rng, [4])[0]] * 2,
    "scaled": lambda rng: [s * c for s, c in zip(draw(rng, TWO), (1, 256.0), strict=True)],
    "equal words": lambda rng: [np.repeat(s[: WORDS // 2], 2, axis=0) for s in draw(rng, TWO)],
    "low rank": lambda rng: [np.repeat(s, 4 // s.shape[1], axis=1) for s in draw(rng, (2, 1))],
    "a zero source": lambda rng: [draw(rng, TWO)[0], np.zeros((WORDS, 4))],
    "all zero": lambda _: [np.zeros((WORDS, 4))] * 2,
}


@pytest.mark.parametrize("number", [2, MANY])
@pytest.mark.parametrize("make", HARD.values(), ids=HARD)
def test_weights_of_hard_sources(rng, make, number):
    sources = make(rng)
    assert_weights(sources, find_lists(sources, number))


@pytest.mark.parametrize("scale", [1e-15, 1e15])
def test_weights_do_not_depend_on_a_common_scale(rng, scale):
    scale = 2.0 ** round(np.log2(scale))  # rounds nothing
    sources = draw(rng, TWO)
    lists = find_lists(sources, MANY)
    one, other = weigh(sources, lists), weigh([scale * s for s in sources], lists)
    jax.tree.map(np.testing.assert_array_equal, one, other)


@given(seeds)
def test_weights_sum_to_one_over_distinct_words(seed):
    sources = draw(np.random.default_rng(seed), TWO)
    lists = tuple(nearest_neighbours(s, neighbours=MANY) for s in cast(tuple(sources)))
    slots = np.concatenate(lists, axis=1)
    weights = exactly(np.concatenate(weigh(sources, lists), axis=1))
    for v in range(WORDS):
        by_word = dict(zip(slots[v], weights[v], strict=True))
        size = sum(map(abs, by_word.values()))
        assert_close(sum(by_word.values()), 1.0, scale=size)


@pytest.mark.one_leg
def test_nan_in_a_source_shows_in_the_weights(rng):
    sources = draw(rng, TWO)
    lists = find_lists(sources, MANY)
    sources[0][3, 0] = np.nan
    concerned = (lists[0] == 3).any(axis=1)
    concerned[3] = True
    for w in weigh(sources, lists):
        np.testing.assert_array_equal(jnp.isnan(w).any(axis=1), concerned)


# --- the matrix


@pytest.mark.one_leg
@pytest.mark.parametrize("normalised", [True, False])
def test_matrix_counts_the_sources_of_a_neighbour(rng, normalised):
    sources = draw(rng, (3, 4))
    present = rng.uniform(size=(WORDS, 2)) < 0.8
    present[~present.any(axis=1)] = True
    lists = find_lists(sources, 7, present)
    weights = []
    for found in lists:
        rows = [
            dict(zip(*weights_of(sources, lists, v, 0.1)[:2], strict=True)) for v in range(WORDS)
        ]
        weights.append(
            np.array([[row.get(u, 0.0) for u in x] for row, x in zip(rows, found, strict=True)])
        )
    matrix = reconstruction_matrix(lists, weights, normalised=normalised)
    expected = matrix_of(sources, lists, 0.1, normalised=normalised)
    assert matrix.has_canonical_format
    assert_close(matrix.toarray(), expected, scale=np.abs(expected).max(), eps=2.0**-52)


# --- all of it


@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize(
    ("sizes", "number"), [((9,), 5), (TWO, MANY)], ids=["dual", "two sources, primal"]
)
def test_embedding_is_that_of_the_dense_method(rng, sizes, number, normalised):
    sources = draw(rng, sizes, shift=2.0)
    found = locally_linear(
        cast(tuple(sources)), k=4, neighbours=number, ridge=0.1, normalised=normalised, key=KEY
    )
    matrix = matrix_of(sources, find_lists(sources, number), 0.1, normalised=normalised)
    q = distortion(matrix)
    values, vectors = smallest(q, 5, constant=normalised)
    accuracy = 1e3 * EPS * np.linalg.norm(q, 2)
    assert np.abs(exactly(found.eigenvalues) - values[:4]).max() <= accuracy
    span = exactly(found.embedding)
    left = vectors[:, :4] - span @ (span.T @ vectors[:, :4])
    assert np.linalg.norm(left, 2) <= accuracy / (values[4] - values[3])


@pytest.mark.one_leg
def test_words_that_a_source_lacks(rng):
    sources = draw(rng, TWO, shift=2.0)
    present = rng.uniform(size=(WORDS, 2)) < 0.8
    present[~present.any(axis=1)] = True
    spoilt, at = cast(tuple(spoil(sources, present))), jnp.asarray(present)
    found = locally_linear(spoilt, k=4, neighbours=MANY, present=at, ridge=0.1, key=KEY)
    q = distortion(matrix_of(sources, find_lists(sources, MANY, present), 0.1, normalised=True))
    values, _ = smallest(q, 4, constant=True)
    assert np.abs(exactly(found.eigenvalues) - values).max() <= 1e3 * EPS * np.linalg.norm(q, 2)


@pytest.mark.one_leg
def test_a_plane_in_two_sources_comes_back_up_to_an_affine_map(rng):
    plane = rng.uniform(-1, 1, size=(300, 2))
    whole = np.column_stack([plane, np.ones(300)])  # off the origin, so that sums are kept
    sources = cast(tuple(whole @ rng.normal(size=(3, k)) for k in (5, 4)))
    # The ridge bends the plane; a smaller one is lost in the rounding of float32.
    ridge, allowed = (1e-6, 0.002) if IN_64_BIT else (1e-5, 0.02)
    found = locally_linear(sources, k=2, neighbours=12, ridge=ridge, key=KEY)
    known = np.column_stack([exactly(found.embedding), np.ones(300)])
    left = plane - known @ np.linalg.lstsq(known, plane, rcond=None)[0]
    assert np.linalg.norm(left) < allowed * np.linalg.norm(plane)
    # Neither source alone has these coordinates, nor do they have unit scale.
    assert_close(
        exactly(found.embedding).T @ exactly(found.embedding), np.eye(2), scale=1, terms=64
    )


@pytest.mark.one_leg
def test_progress_is_told(rng):
    sources, heard = cast(tuple(draw(rng, TWO))), []
    locally_linear(
        sources, k=4, neighbours=MANY, key=KEY, progress=lambda *told: heard.append(told)
    )
    for stage in ("neighbours", "weights"):
        fractions = [done for name, done in heard if name == stage]
        assert fractions[-1] == 1
        assert fractions == sorted(fractions)


@pytest.mark.one_leg
def test_the_second_call_compiles_nothing(rng, compilations):
    """With one source, whose matrix always has as many entries."""
    (first,), (second,) = draw(rng, [9]), draw(rng, [9])
    locally_linear((cast(first),), k=4, neighbours=5, key=KEY)
    compilations.clear()
    locally_linear((cast(second),), k=4, neighbours=5, key=KEY)
    assert not compilations


# --- errors

E = cast(np.ones((6, 3)))
NAN = cast(np.where(np.eye(6, 3) * [1, 0, 0], np.nan, 1))
FEW = jnp.asarray(np.arange(6)[:, None] >= [0, 3])
NOWHERE = jnp.asarray(np.arange(6)[:, None] != [4, 4])


def embed(sources=(E, E), k=2, neighbours=2, **settings):
    return locally_linear(sources, k=k, neighbours=neighbours, key=KEY, **settings)


ERRORS = {
    "k of n": (lambda: embed(k=6), "k: got 6, expected 1 to 5; the vocabulary"),
    "neighbours of n": (
        lambda: embed(neighbours=6),
        r"neighbours: got 6, expected fewer than the 6 words of sources\[0\]; pass 5 or less",
    ),
    "no neighbours": (lambda: embed(neighbours=0), "neighbours: got 0, expected at least 1"),
    "few words": (
        lambda: embed(neighbours=3, present=FEW),
        r"neighbours: got 3, expected fewer than the 3 words of sources\[1\]; pass 2 or less",
    ),
    "a word nowhere": (
        lambda: embed(present=NOWHERE),
        r"present: got no source with word 4 \(1 such words\), expected each",
    ),
    "NaN": (lambda: embed((E, NAN)), r"sources\[1\]: got NaN or infinity, expected finite"),
    "ridge": (lambda: embed(ridge=0.0), "ridge: got 0.0, expected a number above 0; pass a share"),
    "tolerance": (lambda: embed(tolerance=0.0), "tolerance: got 0.0, expected a number above 0"),
    "more neighbours than words": (
        lambda: nearest_neighbours(E, neighbours=6),
        "neighbours: got 6, expected 1 to 5; the vocabulary",
    ),
    "lists": (
        lambda: reconstruction_weights((E, E), (jnp.zeros((6, 2), int),)),
        "neighbours: got 1 entries, expected 2, one per source",
    ),
    "rows of lists": (
        lambda: reconstruction_weights((E,), (jnp.zeros((5, 2), int),)),
        r"sources\[0\] and neighbours\[0\]: got 6 rows",
    ),
    "weights": (
        lambda: reconstruction_matrix((np.zeros((6, 2), int),), (np.ones((6, 3)),)),
        "weights: got 3 for each word, expected 2, one per neighbour; pass what",
    ),
}


@pytest.mark.one_leg
@pytest.mark.parametrize(("call", "message"), ERRORS.values(), ids=ERRORS)
def test_bad_calls_say_what_to_do(hooked, call, message):
    if hooked:
        pytest.skip("jaxtyping checks the annotations, and objects before the library can")
    with pytest.raises(ValueError, match=f"^{message}"):
        call()
