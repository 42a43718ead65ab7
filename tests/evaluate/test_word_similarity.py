"""Word similarity against SciPy, gensim and plain loops."""

import dataclasses
import os
import pathlib

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.spatial.distance
import scipy.stats
from hypothesis import given

from jaxmeta.evaluate.readers import WordPairs
from jaxmeta.evaluate.scores import correlation_interval
from jaxmeta.evaluate.word_similarity import common_words, similarity
from jaxmeta.files.vectors import Vectors, read_vectors, to_gensim

pytestmark = pytest.mark.one_leg  # no arrays of JAX here


def pairs_of(rows, scores, words, name="toy"):
    first, second = (tuple(words[i] for i in side) for side in rows)
    return WordPairs(name, first, second, np.asarray(scores, float))


def some_vectors(rng, n=30, k=5, dtype=np.float32):
    return Vectors(tuple(f"w{i}" for i in range(n)), rng.normal(size=(n, k)).astype(dtype))


@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
    levels=st.sampled_from([2, 5, 1000]),
    kind=st.sampled_from(["normal", "few values", "one column"]),
)
def test_is_that_of_scipy(seed, dtype, levels, kind):
    """With many ties among scores, and among cosines."""
    rng = np.random.default_rng(seed)
    vectors = some_vectors(rng, k=1 if kind == "one column" else 5, dtype=dtype)
    if kind == "few values":
        few = rng.integers(1, 3, size=(30, 5)).astype(dtype)
        vectors = dataclasses.replace(vectors, matrix=few)
    vectors.matrix[0] = -vectors.matrix[1]
    rows, scores = rng.integers(30, size=(2, 40)), rng.integers(levels, size=40)
    rows[:, :2], scores[:2] = [[0, 2], [1, 2]], [0, 1]
    found = similarity(vectors, pairs_of(rows, scores, vectors.words))
    exact = vectors.matrix.astype(np.float64)
    cosines = [1 - scipy.spatial.distance.cosine(exact[i], exact[j]) for i, j in rows.T]
    np.testing.assert_allclose(found.items, cosines, atol=1e-14)
    np.testing.assert_array_equal(found.gold, scores)
    # Rounding breaks ties of the oracle: 12 digits tell all that differ apart.
    expected = scipy.stats.spearmanr(np.round(cosines, 12), scores).statistic
    rounded = scipy.stats.spearmanr(np.round(found.items, 12), scores).statistic
    assert rounded == pytest.approx(expected, abs=1e-12)
    assert found.value == scipy.stats.spearmanr(found.items, scores).statistic
    assert (found.low, found.high) == correlation_interval(found.value, 40)
    assert (found.task, found.metric) == ("toy", "spearman")
    assert found.covered == found.total == 40


def test_equal_pairs_tie_exactly(rng):
    vectors = some_vectors(rng, n=40, k=37)
    every = np.arange(40)
    equal = similarity(vectors, pairs_of(([*every, 0], [*every, 1]), [*every, 0], vectors.words))
    np.testing.assert_array_equal(equal.items[:40], 1)
    one = similarity(vectors, pairs_of((every[1:], every[:-1]), every[1:], vectors.words))
    other = similarity(vectors, pairs_of((every[:-1], every[1:]), every[1:], vectors.words))
    np.testing.assert_array_equal(one.items, other.items)


def test_a_pair_that_is_listed_twice_counts_twice(rng):
    vectors = some_vectors(rng)
    rows, scores = [[0, 2, 4, 0, 1], [1, 3, 5, 1, 0]], [5.0, 1.0, 2.0, 3.0, 4.0]
    found = similarity(vectors, pairs_of(rows, scores, vectors.words))
    assert found.covered == found.total == 5
    assert found.items[0] == found.items[3] == found.items[4]
    np.testing.assert_array_equal(found.gold, scores)


def test_missing_words_and_case():
    vectors = {"us": [1.0, 0.0], "US": [0.0, 1.0], "paris": [1.0, 1.0], "Rome": [2.0, 1.0]}
    first = ("US", "us", "Us", "Paris", "PARIS", "rome", "us", "")
    second = ("paris", "paris", "paris", "Rome", "Rome", "us", "london", "us")
    pairs = WordPairs("cased", first, second, np.arange(8.0))
    found = similarity(vectors, pairs)
    near, nearer = np.sqrt(0.5), 3 / np.sqrt(10)
    np.testing.assert_allclose(found.items, [near, near, near, nearer, nearer])
    np.testing.assert_array_equal(found.gold, np.arange(5.0))
    assert (found.covered, found.total) == (5, 8)
    # Without the capitals, "US" is "us".
    found = similarity(vectors, pairs, vocabulary={"us", "paris", "Rome", "london"})
    assert found.covered == 5
    assert found.items[0] == found.items[1]
    found = similarity(vectors, pairs, vocabulary=["paris", "US", "Rome"])
    np.testing.assert_array_equal(found.gold, [0, 3, 4])


def test_common_words_give_the_same_pairs(rng):
    one, other = some_vectors(rng, n=30), some_vectors(rng, n=40, k=8)
    other = Vectors(other.words[10:], other.matrix[10:])
    shared = common_words(one, other)
    assert shared == {f"w{i}" for i in range(10, 30)}
    assert common_words(one) == set(one.words)
    assert common_words(one, other, {"x": [1.0]}) == frozenset()
    pairs = pairs_of(rng.integers(40, size=(2, 60)), np.arange(60), [f"w{i}" for i in range(40)])
    first, second = (similarity(v, pairs, vocabulary=shared) for v in (one, other))
    assert 0 < first.covered < 60
    np.testing.assert_array_equal(first.gold, second.gold)
    with pytest.raises(ValueError, match="vectors: got none"):
        common_words()


def test_zero_vectors_have_cosine_zero(rng):
    vectors = some_vectors(rng)
    vectors.matrix[:2] = 0
    found = similarity(vectors, pairs_of([[0, 0, 2, 3], [1, 2, 1, 4]], range(4), vectors.words))
    np.testing.assert_array_equal(found.items[:3], 0)
    assert found.items[3] != 0


@pytest.mark.parametrize(
    ("dtype", "size"),
    [(np.float32, 1e37), (np.float32, 1e-37), (np.float64, 1e300), (np.float64, 1e-300)],
)
def test_scale_does_not_matter(rng, dtype, size):
    vectors = some_vectors(rng, dtype=dtype)
    pairs = pairs_of(rng.integers(30, size=(2, 50)), range(50), vectors.words)
    scaled = dataclasses.replace(vectors, matrix=vectors.matrix * dtype(size))
    found, expected = similarity(scaled, pairs), similarity(vectors, pairs)
    np.testing.assert_allclose(found.items, expected.items, atol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda v, p: (v, p._replace(first=("?",) * 4)), "0 covered items, expected 3 or more of"),
        (
            lambda v, p: (v, p._replace(first=("w0", "w1", "?", "?"))),
            "2 covered items, .* 4; use vectors with more of its words",
        ),
        (lambda v, p: (v, p._replace(scores=np.ones(4))), "gold scores that are all 1.0"),
        (lambda v, p: ((v.words, 0 * v.matrix), p), "predictions that are all 0.0"),
        (lambda v, p: ((v.words, np.nan * v.matrix), p), "predictions with NaN or infinity"),
        (lambda v, p: ((("w0",), v.matrix[:1]), p), "0 covered items"),
    ],
)
def test_refusals_name_the_data_set(rng, edit, message):
    vectors = some_vectors(rng)
    pairs = pairs_of([[0, 1, 2, 3], [4, 5, 6, 7]], range(4), vectors.words)
    with pytest.raises(ValueError, match=f"^toy: got {message}"):
        similarity(*edit(vectors, pairs))


# Second opinions


def by_gensim(vectors, path):
    pytest.importorskip("gensim")
    _, spearman, missing = to_gensim(vectors).evaluate_word_pairs(str(path))
    return spearman.statistic, missing


def test_agrees_with_gensim(rng, tmp_path):
    vectors = some_vectors(rng, n=200, k=20)
    rows, scores = rng.integers(220, size=(2, 300)), np.round(rng.uniform(0, 10, size=300), 1)
    pairs = pairs_of(rows, scores, [f"w{i}" for i in range(220)])
    lines = (f"{a}\t{b}\t{x}\n" for a, b, x in zip(*pairs[1:], strict=True))
    (tmp_path / "pairs.tsv").write_text("".join(lines))
    found = similarity(vectors, pairs)
    value, missing = by_gensim(vectors, tmp_path / "pairs.tsv")
    assert found.value == pytest.approx(value, abs=1e-6)
    assert 1 - found.covered / found.total == pytest.approx(missing / 100)
    assert missing > 0


@pytest.mark.skipif("JAXMETA_DATA" not in os.environ, reason="JAXMETA_DATA is not set")
def test_agrees_with_gensim_on_men():
    folder = pathlib.Path(os.environ["JAXMETA_DATA"])
    path = folder / "similarity" / "EN-MEN-TR-3k.txt"
    first, second, scores = zip(*map(str.split, path.read_text().splitlines()), strict=True)
    vectors = read_vectors(folder / "vectors" / "googlenews-26k-300d.bin")
    found = similarity(vectors, WordPairs("MEN", first, second, np.array(scores, float)))
    value, missing = by_gensim(vectors, path)
    assert found.value == pytest.approx(value, abs=1e-6)
    assert found.covered == round(3000 * (1 - missing / 100))
    assert found.value > 0.7
