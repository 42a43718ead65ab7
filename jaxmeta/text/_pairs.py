"""Words become numbers, and pairs of numbers are counted chunk by chunk, offset by offset."""

import functools
import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from jaxmeta._checks import fail
from jaxmeta.text.corpus import NO_WORD
from jaxmeta.text.splits import Labels, Split

__all__ = [
    "NOTHING",
    "Numbered",
    "add_to",
    "codes_of",
    "index_of",
    "labelled",
    "numbers_of",
    "refuse_words",
    "summed",
    "total",
]

# A text's name, whether it opens here, and numbers of words.
Numbered: TypeAlias = tuple[str, bool, np.ndarray]

CHUNK = 2 << 20  # places counted at a time

# Numbers of a place without a word of the vocabulary: another word, or none at all.
UNKNOWN, NOTHING = -1, -2


def codes_of(
    texts: Iterable[tuple[str, bool, Sequence[str]]],
    words: Sequence[str],
    unknown: str,
    split: Split | None,
) -> Iterator[np.ndarray]:
    """Number the word of each place; in part p, p times the number of words is added."""
    index = index_of(words)

    def numbered() -> Iterator[Numbered]:
        found = False
        for name, opening, tokens in texts:
            numbers = numbers_of(tokens, index, unknown)
            found = found or bool((numbers >= 0).any())
            yield name, opening, numbers
        if not found:
            refuse_words(words)

    return labelled(numbered(), len(words), split)


def refuse_words(words: Sequence[str]) -> NoReturn:
    """Say that no word of a vocabulary is in the corpus."""
    got = f"{len(words)} words of which none is in the corpus"
    fail("vocabulary", got, "some", "tokenise in the way the vocabulary was made")


def index_of(words: Sequence[str]) -> dict[str, int]:
    """From a word, or what stands for none, to its number."""
    return {word: i for i, word in enumerate(words)} | {NO_WORD: NOTHING}


def numbers_of(tokens: Sequence[str], index: dict[str, int], unknown: str) -> np.ndarray:
    """Number the word of each place."""
    numbers = np.fromiter(map(index.get, tokens, itertools.repeat(UNKNOWN)), np.int32, len(tokens))
    return numbers[numbers != UNKNOWN] if unknown == "skip" else numbers


def labelled(
    pieces: Iterable[Numbered], size: int, split: Split | None, position: int = 0
) -> Iterator[np.ndarray]:
    """Add `size` times the part that each place is in; the first is at `position` of its text."""
    labels_at: Labels | None = None
    for name, opening, codes in pieces:
        if split is not None:
            if opening:
                labels_at, position = split.labels_of(name), 0
            elif labels_at is None:
                labels_at = split.labels_of(name)
            places = np.flatnonzero(codes != NOTHING)
            if places.size:
                positions = np.arange(position, position + places.size)
                labels = np.asarray(labels_at(positions))
                if labels.shape != positions.shape or not np.isin(labels, range(split.parts)).all():
                    expected = f"0 to {split.parts - 1} for each of {positions.size} positions"
                    fail("split", str(labels), expected, "see Split")
                known = codes[places] >= 0
                codes[places[known]] += size * labels[known].astype(np.int32)
                position += places.size
        yield codes


def summed(codes: Iterable[np.ndarray], size: int, parts: int, window: int) -> Iterator[csr_array]:
    """Count pairs at each offset; `size` rows a node."""
    sums: list[list[csr_array]] = [[] for _ in range(window)]
    for chunk in _chunks(codes, window):
        for terms, pairs in zip(sums, _pairs(chunk, size, parts, window), strict=True):
            add_to(terms, pairs)
    # Emptied on the way, as sums take twice the memory of counts.
    return (total(reversed(sums.pop(0))) for _ in range(window))


def add_to(terms: list[csr_array], pairs: csr_array) -> None:
    """Add counts to some of those that came before.

    Each term has at most half the entries of the one before it, so that a chunk is not added to all
    that came before, and all terms are at most twice the first.
    """
    while terms and terms[-1].nnz < 2 * pairs.nnz:
        pairs = terms.pop() + pairs
    terms.append(pairs)


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
