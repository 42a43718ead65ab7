"""Source weights are tuned on a benchmark, as no method of `jaxmeta.methods` may: with labels."""

import itertools
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from jaxmeta import _checks
from jaxmeta.evaluate.readers import WordPairs
from jaxmeta.evaluate.scores import Score, correlation_score, index_words, lookup
from jaxmeta.files.vectors import cosines

__all__ = ["TunedWeights", "tuned_weights"]

GRID = tuple(2.0**i for i in range(-4, 5))


class TunedWeights(NamedTuple):
    """Weights stand beside the score that they were chosen by, which is no test of them."""

    weights: Float[np.ndarray, " N"]
    """One of each source; the first is 1."""
    score: Score
    """On the pairs that they were tuned on."""


def tuned_weights(
    sources: Sequence[Any],
    words: Sequence[str],
    pairs: WordPairs,
    *,
    grid: Sequence[float] = GRID,
    vocabulary: Collection[str] | None = None,
) -> TunedWeights:
    r"""Weights of sources by which their concatenation scores best on a benchmark (supervised).

    `sources` are matrices with a row for each of the `words`; their rows get length 1. The first
    weight is 1, as a common factor changes no cosine, and all others go through the `grid`; of
    equal scores the first counts. Words are looked up as in `similarity`. Cost: one correlation of
    $p$ pairs for each of $g^{N-1}$ choices. Reference: `yin16`, who so weigh GloVe.

    >>> same, other = np.eye(3), np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> pairs = WordPairs("toy", ("a", "a", "b"), ("b", "c", "c"), np.array([9.0, 1.0, 2.0]))
    >>> print(tuned_weights((same, other), ("a", "b", "c"), pairs, grid=(0.0, 1.0)).weights)
    [1. 1.]
    """
    matrices = [np.asarray(source, np.float64) for source in sources]
    if not matrices or any(x.ndim != 2 or len(x) != len(words) for x in matrices):
        got = f"shapes {[x.shape for x in matrices]} for {len(words)} words"
        _checks.fail("sources", got, "matrices with a row for each word", "align them first")
    if not len(grid):
        _checks.fail("grid", "no weight", "some", "leave it out")
    for weight in grid:
        _checks.not_negative("grid", weight, "pass weights, such as powers of two")
    index = index_words(tuple(words), vocabulary)
    sides = pairs.first, pairs.second
    rows = np.array([[lookup(index, word) for word in side] for side in sides], np.int64)
    covered = np.all(rows >= 0, axis=0)
    first, second = rows[:, covered]
    gold = np.asarray(pairs.scores, np.float64)
    # All that a choice of weights needs: a cosine of a concatenation is a ratio of weighted sums.
    sides_of = [(x[first], x[second]) for x in matrices]
    products = np.array([cosines(*pair) for pair in sides_of])
    there = np.array([[np.any(side != 0, axis=1) for side in pair] for pair in sides_of], float)
    choices = [(1.0, *rest) for rest in itertools.product(grid, repeat=len(matrices) - 1)]

    def predicted(weights: Sequence[float]) -> np.ndarray:
        squares = np.square(weights)
        size = np.sqrt(np.prod(np.tensordot(squares, there, 1), axis=0))
        return squares @ products / np.where(size > 0, size, 1)

    def score(found: np.ndarray) -> Score:
        places = np.flatnonzero(covered)
        return correlation_score(
            found, gold[covered], task=pairs.name, total=len(gold), places=places
        )

    # A choice that tells no pairs apart has no correlation.
    found = {weights: predicted(weights) for weights in choices}
    some = {weights: x for weights, x in found.items() if x.size and np.ptp(x) > 0} or found
    scores = {weights: score(x) for weights, x in some.items()}
    best = max(scores, key=lambda weights: scores[weights].value)
    return TunedWeights(np.asarray(best), scores[best])
