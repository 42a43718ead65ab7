"""Each step of the locally linear meta-embedding against dense float64 NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from helpers import DTYPE, EPS, IN_64_BIT, assert_close, cast, exactly, rounded
from hypothesis import given
from strategies import seeds

from jaxmeta import eigen
from jaxmeta.methods import lle_vectors
from jaxmeta.methods.lle import (
    best_reconstructed,
    locally_linear,
    nearest_neighbours,
    reconstruction_matrix,
    reconstruction_weights,
)

KEY = jax.random.key(0)
WORDS = 40


def neighbours_of(source, number, present=None):
    """Indices by differences, one pair of words at a time; -1 for words that are not there."""
    n = len(source)
    present = np.ones(n, bool) if present is None else present
    found = np.full((n, number), -1)
    for v in np.flatnonzero(present):
        distances = ((source - source[v]) ** 2).sum(axis=1)
        others = [u for u in range(n) if u != v and present[u]]
        found[v] = sorted(others, key=lambda u, d=distances: (d[u], u))[:number]
    return found


def weights_of(sources, lists, v, ridge):
    """Words and weights of one word by the printed formula, and the sum they had before scaling."""
    lists = [[u for u in found[v] if u >= 0] for found in lists]
    words = sorted(set().union(*lists))
    blocks, target = [], []
    for source, found in zip(sources, lists, strict=True):
        if found:
            blocks.append(np.array([source[u] * (u in found) for u in words]).T)
            target.append(source[v])
    z, t = np.concatenate(blocks), np.concatenate(target)
    gram = z @ z.T
    r = ridge * np.trace(gram) / len(gram) if gram.any() else 1.0
    uniform = np.full(len(words), 1 / len(words))
    w = uniform + z.T @ np.linalg.solve(gram + r * np.eye(len(gram)), t - z @ uniform)
    return words, w / w.sum(), w.sum()


def matrix_of(sources, lists, ridge, *, normalised):
    """W' as a dense array."""
    n = len(sources[0])
    matrix = np.zeros((n, n))
    for v in range(n):
        words, weights, _ = weights_of(sources, lists, v, ridge)
        for u, w in zip(words, weights, strict=True):
            matrix[v, u] = w * sum(u in found[v] for found in lists)
    return matrix / matrix.sum(axis=1, keepdims=True) if normalised else matrix


def distortion(matrix):
    left = np.eye(len(matrix)) - matrix
    return left.T @ left


def smallest(q, k, *, constant):
    """The k last eigenvalues and vectors, the constant vector left out."""
    if constant:
        q = q + np.trace(q) / len(q)  # lifts that vector to the top
    values, vectors = np.linalg.eigh(q)
    return values[:k], vectors[:, :k]


def draw(rng, sizes, n=WORDS, shift=0.5):
    return [rounded(rng.normal(size=(n, k)) + shift) for k in sizes]


def find_lists(sources, number, present=None):
    has = np.ones((len(sources[0]), len(sources)), bool) if present is None else present
    return [neighbours_of(s, number, h) for s, h in zip(sources, has.T, strict=True)]


def weigh(sources, lists, **settings):
    """The library's weights."""
    return reconstruction_weights(cast(tuple(sources)), tuple(map(jnp.asarray, lists)), **settings)


def spoil(sources, present):
    """Sources with NaN for words that they lack."""
    return [np.where(h[:, None], s, np.nan) for s, h in zip(sources, present.T, strict=True)]


# --- neighbours


@pytest.mark.parametrize(("k", "number"), [(1, 1), (3, 7), (50, WORDS - 1)])
def test_neighbours_are_those_of_all_differences(rng, k, number):
    (source,) = draw(rng, [k])
    found = nearest_neighbours(cast(source), neighbours=number)
    np.testing.assert_array_equal(found, neighbours_of(source, number))


@pytest.mark.parametrize("scale", [1e-18, 1.0, 1e18])
def test_neighbours_far_off_the_origin_and_of_any_scale(rng, scale):
    # After centring, digits that the input still has are enough; squares would have lost them.
    source = rounded(scale * (rng.normal(size=(WORDS, 3)) + 0.001 / EPS**0.9))
    found = nearest_neighbours(cast(source), neighbours=5)
    np.testing.assert_array_equal(found, neighbours_of(source / scale, 5))


def test_equal_words_are_neighbours_in_order_and_never_of_themselves():
    found = nearest_neighbours(jnp.ones((6, 2), DTYPE), neighbours=3)
    expected = [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2], [0, 1, 2], [0, 1, 2]]
    np.testing.assert_array_equal(found, expected)


def test_missing_words_have_no_neighbours_and_are_nobodys(rng):
    (source,) = draw(rng, [3])
    present = rng.uniform(size=WORDS) < 0.6
    (spoilt,) = spoil([source], present[:, None])
    found = nearest_neighbours(cast(spoilt), neighbours=6, present=jnp.asarray(present))
    np.testing.assert_array_equal(found, neighbours_of(source, 6, present))


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


def test_nan_in_a_source_shows_in_the_weights(rng):
    sources = draw(rng, TWO)
    lists = find_lists(sources, MANY)
    sources[0][3, 0] = np.nan
    concerned = (lists[0] == 3).any(axis=1)
    concerned[3] = True
    for w in weigh(sources, lists):
        np.testing.assert_array_equal(jnp.isnan(w).any(axis=1), concerned)


# --- the matrix


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


# --- eigenvectors

LARGE = 403  # a multiple of nothing


@pytest.fixture
def _small(monkeypatch):
    """Matrices of this size go through the loop of large ones."""
    monkeypatch.setattr(eigen, "DENSE", 64)
    monkeypatch.setattr(eigen, "SURVEY", 4)
    monkeypatch.setattr(lle_vectors, "AT_ONCE", np.inf)


def smooth(rng):
    """Rows that average over words that are near in a cube, with some noise."""
    near = neighbours_of(rng.uniform(size=(LARGE, 3)), 8)
    matrix = np.zeros((LARGE, LARGE))
    np.put_along_axis(matrix, near, rng.uniform(0.5, 1.5, near.shape), axis=1)
    return matrix / matrix.sum(axis=1, keepdims=True)


def with_outliers(rng):
    """The same with three rows of huge weights, which still sum to one."""
    matrix = smooth(rng)
    for v in (7, 100, 300):
        matrix[v, v + 10] += 40
        matrix[v, v + 20] -= 40
    return matrix


def two_parts(rng):
    """Two sets of words without a neighbour in common: 0 is an eigenvalue twice."""
    matrix = smooth(rng) + 0.01 * np.eye(LARGE)  # for words that lose all their neighbours
    apart = np.arange(LARGE) < 150
    matrix *= apart[:, None] == apart[None, :]
    return matrix / matrix.sum(axis=1, keepdims=True)


def assert_smallest(found, matrix, k, *, constant, tolerance=1e-2):
    """Values, residuals and span are those of the dense Q."""
    q = distortion(matrix)
    values, vectors = smallest(q, k + 1, constant=constant)
    largest = np.linalg.eigvalsh(q)[-1]
    p, rounding = exactly(found.embedding), 64 * EPS * largest
    assert_close(p.T @ p, np.eye(k), scale=1, terms=256)
    rows = np.argmax(np.abs(p), axis=0)
    assert (p[rows, np.arange(k)] > 0).all()
    residuals = np.linalg.norm(q @ p - p * exactly(found.eigenvalues), axis=0)
    assert_close(found.residuals, residuals, scale=largest, terms=32)
    allowed = tolerance * values[k - 1] + rounding
    assert residuals.max() <= allowed
    assert np.abs(exactly(found.eigenvalues) - values[:k]).max() <= allowed
    # The span holds all eigenvectors that are clear of the first one outside.
    clear = values[:k] < values[k] - 20 * allowed
    left = vectors[:, :k][:, clear]
    left = left - p @ (p.T @ left)
    assert np.linalg.norm(left) <= 0.1
    assert abs(found.largest / largest - 1) < 0.02
    if constant:
        assert_close(p.sum(axis=0), np.zeros(k), scale=LARGE**0.5, terms=512)


@pytest.mark.parametrize(
    ("make", "constant", "k"),
    [
        (smooth, True, 1),
        (smooth, True, 20),
        (smooth, False, 1),
        (smooth, False, 20),
        (with_outliers, True, 20),
        (with_outliers, False, 1),
        (two_parts, True, 1),
        (two_parts, False, 20),
    ],
)
@pytest.mark.usefixtures("_small")
def test_last_eigenvectors_by_the_loop(rng, make, constant, k):
    matrix = rounded(make(rng))
    found = best_reconstructed(
        scipy.sparse.csr_array(matrix.astype(DTYPE)), k=k, constant=constant, key=KEY
    )
    assert_smallest(found, matrix, k, constant=constant)


@pytest.mark.usefixtures("_small")
def test_dense_matrices_are_decomposed_at_once(rng, monkeypatch):
    """Both ways have the same span, and each is taken where it is the cheaper one."""
    at_once, found = lle_vectors._all_at_once, []
    monkeypatch.setattr(lle_vectors, "_all_at_once", lambda *a: found.append(True) or at_once(*a))
    matrix, spans = scipy.sparse.csr_array(smooth(rng)).astype(DTYPE), []
    for limit in (0, np.inf):
        monkeypatch.setattr(lle_vectors, "AT_ONCE", limit)
        result = best_reconstructed(matrix, k=5, constant=True, key=KEY, tolerance=1e-4)
        spans.append(exactly(result.embedding))
    assert found == [True]
    assert_close(spans[0] @ spans[0].T, spans[1] @ spans[1].T, scale=1, terms=256)


@pytest.mark.parametrize("constant", [True, False])
def test_last_eigenvectors_all_at_once(rng, constant):
    matrix = rounded(smooth(rng))
    found = best_reconstructed(
        scipy.sparse.csr_array(matrix.astype(DTYPE)), k=5, constant=constant, key=KEY
    )
    assert_smallest(found, matrix, 5, constant=constant, tolerance=0)


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


def test_words_that_a_source_lacks(rng):
    sources = draw(rng, TWO, shift=2.0)
    present = rng.uniform(size=(WORDS, 2)) < 0.8
    present[~present.any(axis=1)] = True
    spoilt, at = cast(tuple(spoil(sources, present))), jnp.asarray(present)
    found = locally_linear(spoilt, k=4, neighbours=MANY, present=at, ridge=0.1, key=KEY)
    q = distortion(matrix_of(sources, find_lists(sources, MANY, present), 0.1, normalised=True))
    values, _ = smallest(q, 4, constant=True)
    assert np.abs(exactly(found.eigenvalues) - values).max() <= 1e3 * EPS * np.linalg.norm(q, 2)


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

E = jnp.ones((6, 3), DTYPE)
NAN = E.at[0, 0].set(jnp.nan)
FEW = jnp.ones((6, 2), bool).at[:3, 1].set(False)
NOWHERE = jnp.ones((6, 2), bool).at[4].set(False)


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
