"""Words become numbers, and pairs of numbers are counted chunk by chunk, offset by offset."""

import functools
import itertools
import operator
from collections.abc import Iterable, Iterator

import numpy as np
from scipy.sparse import csr_array

from jaxmeta._checks import fail
from jaxmeta.text.corpus import NO_WORD, Vocabulary
from jaxmeta.text.splits import Split

__all__ = ["codes_of", "summed", "total"]

CHUNK = 2 << 20  # places counted at a time

# Numbers of a place without a word of the vocabulary: another word, or none at all.
UNKNOWN, NOTHING = -1, -2


def codes_of(
    texts: Iterable, vocabulary: Vocabulary, unknown: str, split: Split | None
) -> Iterator[np.ndarray]:
    """Number the word of each place; in part p, p times the size of the vocabulary is added."""
    index = {word: i for i, word in enumerate(vocabulary.words)} | {NO_WORD: NOTHING}
    found, unknowns = False, itertools.repeat(UNKNOWN)
    for name, opening, tokens in texts:
        codes = np.fromiter(map(index.get, tokens, unknowns), np.int32, len(tokens))
        if unknown == "skip":
            codes = codes[codes != UNKNOWN]
        found = found or bool((codes >= 0).any())
        if split is not None:
            if opening:
                labels_at, position = split.labels_of(name), 0
            places = np.flatnonzero(codes != NOTHING)
            if places.size:
                positions = np.arange(position, position + places.size)
                labels = np.asarray(labels_at(positions))
                if labels.shape != positions.shape or not np.isin(labels, range(split.parts)).all():
                    expected = f"0 to {split.parts - 1} for each of {positions.size} positions"
                    fail("split", str(labels), expected, "see Split")
                known = codes[places] >= 0
                codes[places[known]] += len(vocabulary.words) * labels[known].astype(np.int32)
                position += places.size
        yield codes
    if not found:
        got = f"{len(vocabulary.words)} words of which none is in the corpus"
        fail("vocabulary", got, "some", "tokenise in the way the vocabulary was made")


def summed(codes: Iterable[np.ndarray], size: int, parts: int, window: int) -> Iterator[csr_array]:
    """Count pairs at each offset; `size` rows a node."""
    sums: list[list[csr_array]] = [[] for _ in range(window)]
    for chunk in _chunks(codes, window):
        for terms, pairs in zip(sums, _pairs(chunk, size, parts, window), strict=True):
            # Each term has at most half the entries of the one before it, so that a chunk is not
            # added to all that came before, and all terms are at most twice the first.
            while terms and terms[-1].nnz < 2 * pairs.nnz:
                pairs = terms.pop() + pairs
            terms.append(pairs)
    # Emptied on the way, as sums take twice the memory of counts.
    return (total(reversed(sums.pop(0))) for _ in range(window))


def _chunks(codes: Iterable[np.ndarray], window: int) -> Iterator[np.ndarray]:
    """Take many places at a time, after the last `window` of those before."""
    held, places = [np.full(window, NOTHING, np.int32)], 0
    for piece in codes:
        held.append(piece)
        places += piece.size
        if places >= CHUNK:
            chunk = np.concatenate(held)
            yield chunk
            held, places = [chunk[-window:]], 0
    yield np.concatenate(held)


def _pairs(codes: np.ndarray, size: int, parts: int, window: int) -> Iterator[csr_array]:
    """Count pairs at each offset that end after the first `window` places; `size` rows a node."""
    rows = (2 * parts - 1) * size
    key: type[np.unsignedinteger] = np.uint32 if rows * size < 2**32 else np.uint64
    known, (part, word) = codes >= 0, np.divmod(codes, size)
    # A pair is the number (node V + a) V + b, at first with the node of the part that a is in.
    left, right = codes.astype(key) * size + (parts - 1) * size**2, word.astype(key)
    starts_of_rows = np.arange(rows + 1, dtype=key) * size
    for offset in range(1, window + 1):
        before, after = slice(window - offset, codes.size - offset), slice(window, codes.size)
        keys, both = left[before] + right[after], known[before] & known[after]
        across = np.flatnonzero((part[before] != part[after]) & both)
        if across.size:
            # Part p is node `parts` + p, counted from 1, and without its last bit the node above:
            # two meet where as many bits are dropped as their difference has (`frexp` tells).
            leaf, other = part[before][across] + parts, part[after][across] + parts
            dropped = np.frexp(leaf ^ other)[1]
            keys[across] -= (leaf - (leaf >> dropped)).astype(key) * size**2
        keys = keys[both]
        keys.sort()
        # The complement of the first key differs from it, so that a run starts there too.
        starts = np.flatnonzero(np.diff(keys, prepend=~keys[:1]))
        distinct = keys[starts]
        columns = (distinct % size).astype(np.int32)
        ends = np.searchsorted(distinct, starts_of_rows).astype(np.int32)
        counts = np.diff(starts, append=keys.size)
        pairs = csr_array((counts, columns, ends), shape=(rows, size))
        pairs.has_canonical_format = True  # saves a look at every entry
        yield pairs


def total(terms: Iterable[csr_array]) -> csr_array:
    """Add up matrices of counts."""
    return functools.reduce(operator.add, terms)
