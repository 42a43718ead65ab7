"""Word similarity says whether cosines rank pairs of words as people do."""

from collections.abc import Collection
from typing import Any

import numpy as np

from jaxmeta import _checks
from jaxmeta.evaluate._spread import rows_of, words_and_matrix
from jaxmeta.evaluate.readers import WordPairs
from jaxmeta.evaluate.scores import Score, correlation_score, index_words, lookup
from jaxmeta.files import as_vectors
from jaxmeta.files.vectors import cosines

__all__ = ["common_words", "similarity"]


def similarity(
    vectors: Any, pairs: WordPairs, *, vocabulary: Collection[str] | None = None
) -> Score:
    r"""Correlate $\cos(u, v)$ with what people say, over pairs of words: Spearman's correlation.

    Words are looked up as they stand, else in lower case, among those in `vocabulary` if it is
    given. Pairs with a missing word are left out, and `covered` counts the rest. A vector of zeros
    has cosine 0. Duplicate pairs count twice; the released code of the paper keeps the last.

    Cost: $O(pk)$ for $p$ pairs, in float64. References: `spearman04`, `bollegala22`.

    >>> vectors = {"cat": [1.0, 0.2], "dog": [1.0, 0.0], "bus": [0.0, 1.0]}
    >>> words = ("Cat", "cat", "dog", "dog"), ("dog", "bus", "bus", "tram")
    >>> score = similarity(vectors, WordPairs("toy", *words, np.array([9.0, 2.0, 1.0, 1.5])))
    >>> print(f"{score.value:.2f} on {score.covered} of {score.total} pairs")
    1.00 on 3 of 4 pairs
    """
    words, matrix = words_and_matrix(vectors)
    index = index_words(words, vocabulary)
    sides = pairs.first, pairs.second
    rows = np.array([[lookup(index, word) for word in side] for side in sides], np.int64)
    covered = np.all(rows >= 0, axis=0)
    first, second = rows[:, covered]
    found = cosines(rows_of(matrix, first), rows_of(matrix, second))
    gold = np.asarray(pairs.scores, np.float64)
    places = np.flatnonzero(covered)
    return correlation_score(found, gold[covered], task=pairs.name, total=len(gold), places=places)


def common_words(*vectors: Any) -> frozenset[str]:
    """Return the words that all embeddings have, each of them something that `as_vectors` takes."""
    if not vectors:
        _checks.fail("vectors", "none", "one or more", "pass the embeddings to compare")
    return frozenset.intersection(*(frozenset(as_vectors(given).words) for given in vectors))
