"""Rows of missing words are those of dense least squares, whatever stood there before."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import DTYPE, EPS, assert_close, cast, exactly, rounded
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from jaxmeta.files.alignment import align, predict_missing
from jaxmeta.files.vectors import Vectors

WORDS = 12
SIZES = (3, 2, 4)


def predicted(sources, present, ridge):
    """Row by row and pair by pair: a least-squares problem with an intercept and rows for r."""
    out = [np.array(source) for source in sources]
    for j, target in enumerate(sources):
        for w in np.flatnonzero(~present[:, j]):
            guesses = []
            for i, source in enumerate(sources):
                both = present[:, i] & present[:, j]
                if i == j or not present[w, i] or not both.any():
                    continue
                x, y = source[both], target[both]
                a, b = x - x.mean(axis=0), y - y.mean(axis=0)
                k = x.shape[1]
                r = ridge * np.sum(a**2) / k
                rows = np.concatenate([a, np.sqrt(r) * np.eye(k)])
                ends = np.concatenate([b, np.zeros((k, y.shape[1]))])
                fitted = np.linalg.lstsq(rows, ends, rcond=None)[0]
                guesses.append(y.mean(axis=0) + (source[w] - x.mean(axis=0)) @ fitted)
            out[j][w] = np.mean(guesses, axis=0) if guesses else np.nan
    return out


def draw(rng, sizes=SIZES, n=WORDS, share=0.7):
    """Sources with something in common, and words missing here and there but not everywhere."""
    latent = rng.normal(size=(n, 2))
    sources = [
        rounded(latent @ rng.normal(size=(2, k)) + 0.3 * rng.normal(size=(n, k)) + 1) for k in sizes
    ]
    present = rng.random((n, len(sizes))) < share
    present[np.arange(n), rng.integers(len(sizes), size=n)] = True
    present[:2] = True  # every pair has common words
    return sources, present


def spoil(sources, present, with_=np.nan):
    """The same sources, with something in the rows that are missing."""
    return tuple(
        np.where(has[:, None], source, with_)
        for source, has in zip(sources, present.T, strict=True)
    )


@pytest.mark.parametrize("sizes", [(3,), (1, 1), (2, 5), SIZES], ids=str)
@given(seed=seeds, ridge=st.sampled_from([1e-3, 0.1, 10.0]))
def test_predictions_against_least_squares(sizes, seed, ridge):
    sources, present = draw(np.random.default_rng(seed), sizes)
    ours = predict_missing(cast(spoil(sources, present)), jnp.asarray(present), ridge=ridge)
    for j, expected in enumerate(predicted(sources, present, ridge)):
        has = present[:, j]
        np.testing.assert_array_equal(exactly(ours[j])[has], sources[j][has])
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.isnan(exactly(ours[j])), ~known)
        # Solving with the Gram matrix loses digits by its condition, at most 1 + k / ridge.
        size = max(np.abs(source).max() for source in sources) * (1 + max(sizes) / ridge)
        assert_close(exactly(ours[j])[known], expected[known], scale=size)


@given(seed=seeds, exponent=st.sampled_from([-60, -20, 20, 60]))
def test_scale_and_origin_of_a_source_do_not_matter(seed, exponent):
    """Powers of two, so that scaling rounds nothing: float32 squares would leave its range."""
    sources, present = draw(np.random.default_rng(seed), (3, 2))
    factor = 2.0**exponent
    first = predict_missing(cast(tuple(sources)), jnp.asarray(present), ridge=0.1)
    scaled = (sources[0] * factor, sources[1])
    second = predict_missing(cast(scaled), jnp.asarray(present), ridge=0.1)
    np.testing.assert_array_equal(exactly(second[0]), exactly(first[0]) * factor)
    np.testing.assert_array_equal(second[1], first[1])
    moved = (rounded(sources[0] + 1), sources[1])
    third = predict_missing(cast(moved), jnp.asarray(present), ridge=0.1)
    assert_close(third[1], first[1], scale=300 * np.abs(sources[1]).max())


def test_a_linear_relation_is_found(rng):
    x = rounded(rng.normal(size=(50, 3)))
    y = x @ rng.normal(size=(3, 2)) + 5
    present = np.ones((50, 2), bool)
    present[40:, 1] = False
    _, filled = predict_missing(cast((x, y)), jnp.asarray(present), ridge=1e-2 * EPS)
    assert_close(filled, y, scale=np.abs(y).max(), terms=256)


def test_identical_sources_predict_themselves(rng):
    x = rounded(rng.normal(size=(50, 3)))
    present = np.ones((50, 2), bool)
    present[40:, 0] = present[:10, 1] = False
    for filled in predict_missing(cast(spoil((x, x), present)), jnp.asarray(present), ridge=1e-9):
        assert_close(filled, x, scale=np.abs(x).max(), terms=256 + 1e-8 / EPS)


def test_one_common_word_predicts_its_vector(rng):
    sources, present = draw(rng, (3, 2))
    present[:] = [True, False]
    present[4] = True
    _, filled = predict_missing(cast(spoil(sources, present)), jnp.asarray(present), ridge=0.1)
    np.testing.assert_array_equal(filled, np.tile(rounded(sources[1][4]), (WORDS, 1)))


def test_an_endless_ridge_predicts_the_mean(rng):
    sources, present = draw(rng, (3, 2))
    filled = predict_missing(cast(spoil(sources, present)), jnp.asarray(present), ridge=1e12)
    both = present.all(axis=1)
    for j in range(2):
        missing = ~present[:, j]
        expected = np.tile(sources[j][both].mean(axis=0), (missing.sum(), 1))
        size = np.abs(sources[j]).max()
        assert_close(exactly(filled[j])[missing], expected, scale=size, terms=16 + 1e-10 / EPS)


def test_no_common_word_contributes_nothing(rng):
    """Sources 0 and 1 have no common word; both share some with source 2."""
    sources, _ = draw(rng)
    present = np.zeros((WORDS, 3), bool)
    present[:6, 0] = present[6:, 1] = present[3:9, 2] = True
    given_ = cast(spoil(sources, present))
    filled = predict_missing(given_, jnp.asarray(present), ridge=0.1)
    alone = predict_missing(given_[1:], jnp.asarray(present[:, 1:]), ridge=0.1)
    np.testing.assert_array_equal(filled[1], alone[0])
    np.testing.assert_array_equal(np.isnan(exactly(filled[1])).any(axis=1), np.arange(WORDS) < 3)


def test_a_word_that_no_source_has_is_nan(rng):
    sources, present = draw(rng, (3, 2))
    present[5] = False
    for filled in predict_missing(cast(tuple(sources)), jnp.asarray(present), ridge=0.1):
        np.testing.assert_array_equal(np.isnan(filled).any(axis=1), np.arange(WORDS) == 5)


def test_zero_and_constant_sources(rng):
    _, present = draw(rng, (3, 2))
    sources = (np.zeros((WORDS, 3)), np.full((WORDS, 2), 4.0))
    for filled, source in zip(
        predict_missing(cast(spoil(sources, present)), jnp.asarray(present), ridge=0.1),
        sources,
        strict=True,
    ):
        np.testing.assert_array_equal(filled, source)


def test_nan_of_a_present_row_shows(rng):
    sources, present = draw(rng, (3, 2))
    present[:, 0], present[7] = True, [True, False]
    sources[0][0, 1] = np.nan
    filled = predict_missing(cast(tuple(sources)), jnp.asarray(present), ridge=0.1)
    assert np.isnan(filled[1][7]).all()


def total(sources, present, ridge):
    return sum(jnp.sum(jnp.sin(x)) for x in predict_missing(sources, present, ridge=ridge))


@pytest.mark.parametrize("kind", ["generic", "zero", "identical", "one common word", "NaN beneath"])
def test_gradients_are_finite_and_zero_for_missing_rows(rng, kind):
    sources, present = draw(rng, (3, 3))
    if kind == "zero":
        sources = [np.zeros_like(source) for source in sources]
    if kind == "identical":
        sources[1] = sources[0]
    if kind == "one common word":
        present[:] = [True, False]
        present[4] = True
    if kind == "NaN beneath":
        sources = spoil(sources, present)
    by_sources, by_ridge = jax.grad(total, argnums=(0, 2))(
        cast(tuple(sources)), jnp.asarray(present), jnp.asarray(0.1)
    )
    assert jnp.isfinite(by_ridge)
    for j, gradient in enumerate(by_sources):
        assert jnp.isfinite(gradient).all()
        np.testing.assert_array_equal(gradient[~present[:, j]], 0)


def test_gradients_beside_a_word_that_nothing_predicts(rng):
    sources, present = draw(rng, (3, 3))
    present[5] = False

    def of_the_rest(e):
        return sum(jnp.nansum(x) for x in predict_missing(e, jnp.asarray(present), ridge=0.1))

    for gradient in jax.grad(of_the_rest)(cast(spoil(sources, present))):
        assert jnp.isfinite(gradient).all()


def vectors(words, k=2, seed=0, dtype=np.float32):
    """Vectors of the words of a sentence."""
    words = tuple(words.split())
    matrix = np.random.default_rng(seed).normal(size=(len(words), k)).astype(dtype)
    return Vectors(words, matrix)


def test_union_with_predictions(rng):
    """The rows of `predict_missing`, for files whose order differs from that of the result."""
    sources, present = draw(rng)
    names = np.array([f"w{i}" for i in range(WORDS)])
    files = []
    for source, has in zip(sources, present.T, strict=True):
        order = rng.permutation(np.flatnonzero(has))
        files.append(Vectors(tuple(map(str, names[order])), source[order].astype(DTYPE)))
    stages = []
    aligned = align(
        files,
        vocabulary="union",
        missing="predict",
        ridge=0.2,
        progress=lambda stage, fraction: stages.append((stage, fraction)),
    )
    order = [int(word[1:]) for word in aligned.words]
    np.testing.assert_array_equal(aligned.present, present[order])
    expected = predicted(sources, present, 0.2)
    for ours, full in zip(aligned.sources, expected, strict=True):
        size = max(np.abs(source).max() for source in sources) * (1 + max(SIZES) / 0.2)
        assert_close(ours, full[order], scale=size)
    assert stages[-1] == ("predict", 1.0)
    assert ("align", 1.0) in stages


def test_dtypes():
    half, single, double = (vectors("a b c", dtype=t) for t in (np.float16, np.float32, np.float64))
    assert align((half,)).sources[0].dtype == jnp.float32
    np.testing.assert_array_equal(align((half,)).sources[0], half.matrix)
    assert {x.dtype for x in align((half, single)).sources} == {jnp.dtype(jnp.float32)}
    assert {x.dtype for x in align((half, single, double)).sources} == {DTYPE}
    filled = align((half, vectors("b d")), vocabulary="union", missing="predict")
    assert {x.dtype for x in filled.sources} == {jnp.dtype(jnp.float32)}


def test_what_nothing_can_predict():
    message = (
        "missing: got 'predict' for 2 words such as 'x', 'y' that one lacks, expected a source "
        "that has them and shares words with one; pass missing='zero'"
    )
    sources = vectors("a b"), vectors("x y"), vectors("a b c")
    with pytest.raises(ValueError, match=message):
        align(sources, names=("one", "two", "three"), vocabulary="union", missing="predict")


our_words = pytest.mark.usefixtures("_our_words")


@our_words
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"sources": ()}, ValueError, "sources: got no source"),
        ({"sources": jnp.ones((4, 2))}, TypeError, r"sources: got an array of shape \(4, 2\)"),
        ({"sources": (jnp.ones((4, 2)), jnp.ones((3, 2)))}, ValueError, "the same words"),
        (
            {"present": jnp.ones((4, 2))},
            TypeError,
            "present: got dtype float.*, expected an array of bool",
        ),
        ({"present": [[True]]}, TypeError, "present: got a list, expected an array of bool; pass"),
        ({"present": jnp.ones((4, 1), bool)}, ValueError, r"got shape \(4, 1\), expected \(4, 2\)"),
        ({"ridge": 0.0}, ValueError, "ridge: got 0.0, expected a number above 0"),
        ({"ridge": jnp.ones(2)}, ValueError, r"ridge: got an array of shape \(2,\), expected one"),
    ],
)
def test_bad_calls_of_predict_missing(change, error, message):
    arguments = {
        "sources": (jnp.ones((4, 2)),) * 2,
        "present": jnp.ones((4, 2), bool),
        "ridge": 0.1,
    } | change
    with pytest.raises(error, match=message):
        predict_missing(arguments["sources"], arguments["present"], ridge=arguments["ridge"])
