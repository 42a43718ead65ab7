"""Vocabularies are brought together as dictionaries would, and wrong sources are named."""

import jax
import numpy as np
import pytest
from helpers import assert_close, exactly
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from jaxmeta.files.alignment import align
from jaxmeta.files.vectors import Vectors

pytestmark = pytest.mark.one_leg
our_words = pytest.mark.usefixtures("_our_words")


def vectors(words, k=2, seed=0, dtype=np.float32):
    """Vectors of the words of a sentence."""
    words = tuple(words.split())
    matrix = np.random.default_rng(seed).normal(size=(len(words), k)).astype(dtype)
    return Vectors(words, matrix)


FIRST, SECOND, THIRD = (
    vectors("the cat sat", 2),
    vectors("a cat on the mat", 3, 1),
    vectors("cat", 1),
)


def rows_of(source, words):
    """One by one: the row of a word, None if there is none."""
    table = {word: row for word, row in zip(source.words, source.matrix, strict=True)}
    return [table.get(word) for word in words]


def test_intersection():
    aligned = align((FIRST, SECOND))
    assert aligned.words == ("the", "cat")  # the order of the first source
    assert align((SECOND, FIRST)).words == ("cat", "the")
    for j, source in enumerate((FIRST, SECOND)):
        np.testing.assert_array_equal(aligned.sources[j], np.stack(rows_of(source, aligned.words)))
        assert isinstance(aligned.sources[j], jax.Array)
    assert aligned.present.all()
    assert aligned.present.shape == (2, 2)


@pytest.mark.parametrize("missing", ["zero", "mean"])
def test_union(missing):
    sources = (FIRST, SECOND, THIRD)
    aligned = align(sources, vocabulary="union", missing=missing)
    assert aligned.words == ("the", "cat", "sat", "a", "on", "mat")
    for j, source in enumerate(sources):
        fill = source.matrix.astype(np.float64).mean(axis=0)
        for w, row in enumerate(rows_of(source, aligned.words)):
            assert aligned.present[w, j] == (row is not None)
            ours = exactly(aligned.sources[j][w])
            if row is not None:
                np.testing.assert_array_equal(ours, row)
            elif missing == "zero":
                np.testing.assert_array_equal(ours, 0)
            else:
                assert_close(ours, fill, scale=np.abs(fill).max(), terms=1, eps=2.0**-23)


@given(seed=seeds, vocabulary=st.sampled_from(["intersection", "union"]))
def test_any_vocabularies(seed, vocabulary):
    rng = np.random.default_rng(seed)
    sources = []
    for k in (1, 2, 3):
        words = ("w0", *(f"w{i}" for i in 1 + rng.permutation(8)[: rng.integers(8)]))
        sources.append(Vectors(words, rng.normal(size=(len(words), k)).astype(np.float32)))
    aligned = align(sources, vocabulary=vocabulary)
    sets = [set(source.words) for source in sources]
    expected = set.union(*sets) if vocabulary == "union" else set.intersection(*sets)
    assert set(aligned.words) == expected
    assert len(aligned.words) == len(expected)
    running = [word for source in sources for word in source.words]
    assert [running.index(word) for word in aligned.words] == sorted(
        running.index(word) for word in aligned.words
    )
    for j, source in enumerate(sources):
        for w, row in enumerate(rows_of(source, aligned.words)):
            assert bool(aligned.present[w, j]) == (row is not None)
            np.testing.assert_array_equal(aligned.sources[j][w], 0 if row is None else row)
        record = aligned.coverage[j]
        found = len(sets[j] & expected)
        assert record[1:5] == (len(sets[j]), found, found / len(expected), len(expected) - found)
        assert record.how == ("zero" if record.filled else "")


@pytest.mark.parametrize("vocabulary", ["intersection", "union"])
@pytest.mark.parametrize("missing", ["zero", "mean", "predict"])
def test_one_source_and_identical_sources_stay_as_they_are(vocabulary, missing):
    for sources in ((FIRST,), (FIRST, FIRST)):
        aligned = align(sources, vocabulary=vocabulary, missing=missing)
        assert aligned.words == FIRST.words
        assert aligned.present.all()
        for array in aligned.sources:
            np.testing.assert_array_equal(array, FIRST.matrix)


def test_the_files_are_left_alone():
    before = SECOND.matrix.copy()
    align((FIRST, SECOND), vocabulary="union", missing="mean")
    np.testing.assert_array_equal(SECOND.matrix, before)


def test_report():
    aligned = align(
        (FIRST, SECOND), vocabulary="union", missing="mean", names=("one", "the second")
    )
    assert str(aligned) == repr(aligned) == aligned.report()
    assert aligned.report().splitlines() == [
        "6 words",
        "source       its words    of these   share   filled in",
        "one                  3           3   50.0%   3 by mean",
        "the second           5           5   83.3%   1 by mean",
    ]
    assert align((FIRST,)).report().splitlines()[2].split() == [
        *("source", "0", "3", "3", "100.0%", "none")
    ]


def test_many_words_take_no_time(rng):
    """Half a million words in all; a loop over floats would take minutes."""
    words = [f"w{i}" for i in range(250_000)]
    matrix = rng.normal(size=(250_000, 4)).astype(np.float32)
    first, second = Vectors(tuple(words), matrix), Vectors(tuple(words[::-1]), matrix[::-1])
    aligned = align((first, second))
    np.testing.assert_array_equal(aligned.sources[1], matrix)


def bad(words, matrix):
    return Vectors(tuple(words), np.asarray(matrix))


ONES = np.ones((3, 2), np.float32)
WRONG = {
    "no source": (lambda: align(()), "sources: got no source, expected"),
    "a single one": (lambda: align(FIRST), r"got a Vectors, expected .* in a tuple: \(source,\)"),
    "an array": (lambda: align((ONES,)), r"sources\[0\]: got a ndarray, expected a Vectors; read"),
    "rows": (
        lambda: align((bad("ab", ONES),), names=("G",)),
        r"sources\[0\]: got 2 words and a matrix of shape \(3, 2\) in G, expected a row per word",
    ),
    "nothing": (lambda: align((bad("", ONES[:0]),)), "got 0 words and a matrix of shape"),
    "integers": (lambda: align((bad("abc", ONES.astype(int)),)), "got dtype int64, expected float"),
    "names": (lambda: align((FIRST,), names=("a", "b")), "names: got 2 entries, expected 1"),
    "vocabulary": (
        lambda: align((FIRST,), vocabulary="both"),
        "vocabulary: got 'both', expected one of 'intersection', 'union'; choose",
    ),
    "missing": (
        lambda: align((FIRST,), missing="nan"),
        "missing: got 'nan', expected one of 'zero', 'mean'",
    ),
    "ridge": (
        lambda: align((FIRST,), ridge=0.0),
        "ridge: got 0.0, expected a number above 0; pass",
    ),
}


@our_words
@pytest.mark.parametrize("case", WRONG)
def test_bad_calls_of_align(case):
    call, message = WRONG[case]
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_a_word_twice():
    with pytest.raises(
        ValueError, match=r"sources\[1\].words: got 'b' in rows 1 and 3 of two, exp"
    ):
        align((FIRST, vectors("a b c b")), names=("one", "two"))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(value):
    matrix = ONES.copy()
    matrix[1, 0], matrix[1, 1] = value, -value
    with pytest.raises(
        ValueError, match=r"not finite in row 1 \('b' of source 0\), expected number"
    ):
        align((bad("abc", matrix),))


def test_case(rng):
    """A word or two that are shared by accident are warned of; in lower case all of them are."""
    first = Vectors(("The", "THE", "Cat", "x"), np.arange(4, dtype=np.float32)[:, None])
    second = Vectors(("cat", "the", "sat", "x"), np.arange(4, dtype=np.float32)[:, None])
    found = align((first, second), lower=True)
    assert found.words == ("the", "cat", "x")
    assert [np.asarray(e).ravel().tolist() for e in found.sources] == [[0, 2, 3], [1, 0, 3]]
    assert align((first, second)).words == ("x",)  # of four words one is not few
    upper = Vectors((*(f"W{i}" for i in range(30)), "x"), rng.normal(size=(31, 2)))
    lower = Vectors((*(f"w{i}" for i in range(30)), "x"), rng.normal(size=(31, 2)))
    for vocabulary in ("intersection", "union"):
        with pytest.warns(UserWarning, match="share 1 words, and 31 in lower case: pass lower=Tr"):
            align((upper, lower), vocabulary=vocabulary)
    assert len(align((upper, lower), lower=True).words) == 31


def test_no_common_word():
    upper = vectors("THE CAT SAT ON THEM")
    message = (
        r"sources: got no word that all have \(news has 'the', 'cat', 'sat'; web has 'THE', 'CAT', "
        r"'SAT'\), expected at least one; pass lower=True .* vocabulary='union'"
    )
    with pytest.raises(ValueError, match=message):
        align((FIRST, upper), names=("news", "web"))
    with pytest.warns(UserWarning, match="share 0 words, and 3 in lower case"):
        assert len(align((FIRST, upper), vocabulary="union").words) == 8
