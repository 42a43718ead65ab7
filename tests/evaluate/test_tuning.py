"""Weights tuned on a benchmark: against the score of every concatenation of the grid."""

import itertools

import numpy as np
import pytest

from jaxmeta.evaluate import WordPairs, similarity, tuned_weights

pytestmark = pytest.mark.one_leg

WORDS = tuple(f"w{i}" for i in range(30))
GRID = (0.0, 0.5, 1.0, 3.0)


def draw(rng, pairs=80):
    """One source that people agree with, two of noise; a word that is missing, a row of zeros."""
    truth = rng.normal(size=(30, 5))
    sources = [truth + 0.3 * rng.normal(size=truth.shape), *rng.normal(size=(2, 30, 4))]
    sources[1][3] = 0
    unit = truth / np.linalg.norm(truth, axis=1, keepdims=True)
    first, second = rng.integers(30, size=(2, pairs))
    gold = np.sum(unit[first] * unit[second], axis=1)
    sides = [[WORDS[i] for i in side] for side in (first, second)]
    sides[0][0] = "unknown"
    return sources, WordPairs("drawn", tuple(sides[0]), tuple(sides[1]), gold)


def concatenation(sources, weights):
    units = []
    for x in sources:
        norms = np.linalg.norm(x, axis=1, keepdims=True)
        units.append(x / np.where(norms > 0, norms, 1))
    return np.hstack([c * x for c, x in zip(weights, units, strict=True)])


def test_the_best_of_the_grid(rng):
    sources, pairs = draw(rng)
    found = tuned_weights(sources[::-1], WORDS, pairs, grid=GRID)
    scores = {
        (1.0, *rest): similarity((WORDS, concatenation(sources[::-1], (1.0, *rest))), pairs)
        for rest in itertools.product(GRID, repeat=2)
    }
    assert found.score.covered == 79
    assert found.score.value == pytest.approx(max(s.value for s in scores.values()))
    assert scores[tuple(found.weights)].value == pytest.approx(found.score.value)
    assert found.weights[2] == 3  # that of the good source, which comes last


def test_a_source_by_itself(rng):
    sources, pairs = draw(rng)
    found = tuned_weights(sources[:1], WORDS, pairs)
    np.testing.assert_array_equal(found.weights, [1])
    assert found.score.value == pytest.approx(similarity((WORDS, sources[0]), pairs).value)


def test_only_words_of_the_vocabulary_count(rng):
    sources, pairs = draw(rng)
    some = WORDS[:20]
    found = tuned_weights(sources, WORDS, pairs, grid=GRID, vocabulary=some)
    expected = similarity((WORDS, sources[0]), pairs, vocabulary=some)
    assert found.score.covered == expected.covered < 79


@pytest.mark.parametrize(
    ("sources", "grid", "message"),
    [
        ([], (1.0,), r"shapes \[\] for 30 words"),
        ([np.ones((29, 2))], (1.0,), r"shapes \[\(29, 2\)\] for 30 words"),
        ([np.ones((30, 2))], (), "grid: got no weight"),
        ([np.ones((30, 2))], (-1.0,), "grid: got -1.0"),
    ],
)
def test_wrong_arguments(rng, sources, grid, message):
    _, pairs = draw(rng)
    with pytest.raises(ValueError, match=message):
        tuned_weights(sources, WORDS, pairs, grid=grid)
