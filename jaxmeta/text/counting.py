r"""Pairs of words are counted by offset, of which every window is a weighted sum.

$D_d[a, b]$ is the number of times $b$ stands $d$ places after $a$: see `symmetric_window`, and
`jaxmeta.released.released_window` for the released code. With a `split` the same pass counts pairs
in the first half, in the second, and with an end in each; the three add up to the whole. Counts are
exact. No window crosses the end of a file, so counts of several files add up to those of all.
"""

import dataclasses
import functools
import itertools
import json
import operator
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from jaxmeta import _checks, _files
from jaxmeta._checks import fail
from jaxmeta.progress import Progress
from jaxmeta.text._stored import csr_of, words_of
from jaxmeta.text.corpus import NO_WORD, Corpus, Vocabulary, read_tokens

__all__ = [
    "Counts",
    "contiguous_halves",
    "count_windows",
    "from_arrays",
    "inverse_distance",
    "load_counts",
    "random_blocks",
    "save_counts",
    "symmetric_window",
    "to_arrays",
]

CHUNK = 2 << 20  # places counted at a time

# Numbers of a place without a word of the vocabulary: another word, or none at all.
UNKNOWN, NOTHING = -1, -2

Halves = Callable[[np.ndarray], np.ndarray]
Split = Callable[[str], Halves]


@dataclasses.dataclass(frozen=True, eq=False)
class Counts:
    """Pairs are counted by offset: in entry $d-1$, $b$ (column) stands $d$ after $a$ (row)."""

    words: tuple[str, ...]
    first: tuple[csr_array, ...]
    """Pairs with both ends in the first half."""
    second: tuple[csr_array, ...]
    across: tuple[csr_array, ...]
    """Pairs with an end in each half; all pairs, if the corpus was not split."""

    @property
    def whole(self) -> tuple[csr_array, ...]:
        """All pairs."""
        return tuple(map(_total, zip(self.first, self.second, self.across, strict=True)))

    def __add__(self, other: "Counts") -> "Counts":
        if not isinstance(other, Counts):
            return NotImplemented
        if self.words != other.words:
            do = "count both corpora with one vocabulary"
            fail("counts", "two lists of words", "the same words in the same order", do)
        if len(self.across) != len(other.across):
            got = f"windows {len(self.across)} and {len(other.across)}"
            fail("counts", got, "the same", "count both corpora with one window")
        both = ((getattr(self, part), getattr(other, part)) for part in _PARTS)
        return Counts(self.words, *(tuple(map(operator.add, *pair)) for pair in both))


_PARTS = ("first", "second", "across")


def random_blocks(seed: int, size: int = 1000) -> Split:
    """Split every file into blocks of `size` tokens; of each two, one at random goes to each half.

    So drift along the corpus falls on both. Coins depend on the seed and on the file's name.
    """
    _checks.integer("seed", seed, least=0)
    _checks.integer("size", size, least=1)

    def halves_of(name: str) -> Halves:
        def halves(positions: np.ndarray) -> np.ndarray:
            block = positions // size
            pair = block // 2
            start = pair[0]
            rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
            # A coin is one step of the generator: those before `start` need not be tossed.
            rng.bit_generator.advance(int(start))  # type: ignore[attr-defined]
            coins = rng.random(pair[-1] + 1 - start) < 0.5
            return block % 2 ^ coins[pair - start]

        return halves

    return halves_of


def contiguous_halves(tokens: int) -> Split:
    """Split a corpus of one file with `tokens` tokens in the middle, as the released code does."""
    _checks.integer("tokens", tokens, least=2)
    names: set[str] = set()

    def halves_of(name: str) -> Halves:
        names.add(name)
        if len(names) > 1:
            got = " and ".join(sorted(names))
            fail("split", got, "a corpus of one file", "use random_blocks for several")
        return halves

    def halves(positions: np.ndarray) -> np.ndarray:
        if positions[-1] >= tokens:
            expected = "the number of tokens of the file, which has more"
            fail("tokens", str(tokens), expected, "pass Vocabulary.tokens")
        return (positions >= tokens // 2).astype(np.int64)

    return halves_of


def count_windows(
    corpus: Corpus,
    vocabulary: Vocabulary,
    *,
    window: int = 5,
    unknown: str = "keep",
    split: Split | None = None,
    progress: Progress | None = None,
) -> Counts:
    r"""$D_d[a, b] = \#\{i : w_i = a, w_{i+d} = b\}$ for $d = 1, \ldots,$ `window`, in one pass.

    A word outside the vocabulary keeps its place, as in the released code, or with
    `unknown="skip"` is dropped before windows are laid. `split` is given the name of a file
    (`archive.zip/member` in a zip) and returns a function from ascending positions of its tokens,
    after skipping, to 0 or 1: see `random_blocks` and `contiguous_halves`. `progress` is called
    with "counts" and the fraction that is read.

    Cost: $O(Tw \log c)$ for T tokens, a window of w and chunks of c places; memory of 12 bytes per
    different pair, and as much again on the way.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "text").write_text("a b a b b")
    ...     words = Vocabulary(("a", "b"), np.zeros(2), 5)
    ...     print(*count_windows(Corpus(folder), words).whole[0].toarray())
    [0 2] [1 1]
    """
    _checks.integer("window", window, least=1)
    _checks.one_of("unknown", unknown, ("keep", "skip"))
    size, parts = len(vocabulary.words), 1 if split is None else 3
    sums: list[list[csr_array]] = [[] for _ in range(window)]
    texts = read_tokens(corpus, window, "counts", progress)
    for chunk in _chunks(_codes(texts, vocabulary, unknown, split), window):
        for terms, pairs in zip(sums, _pairs(chunk, size, parts, window), strict=True):
            # Each term has at most half the entries of the one before it, so that a chunk is not
            # added to all that came before, and all terms are at most twice the first.
            while terms and terms[-1].nnz < 2 * pairs.nnz:
                pairs = terms.pop() + pairs
            terms.append(pairs)
    # Emptied on the way, as sums take twice the memory of counts.
    totals = (_total(reversed(sums.pop(0))) for _ in range(window))
    by_offset = [[x[p * size : (p + 1) * size] for p in range(parts)] for x in totals]
    by_part = tuple(zip(*by_offset, strict=True))
    if split is None:
        none = tuple(csr_array((size, size), dtype=np.int64) for _ in range(window))
        return Counts(vocabulary.words, none, none, *by_part)
    first, across, second = by_part
    for half, found in {"first": first, "second": second}.items():
        if not any(x.nnz for x in found):
            do = "split into smaller blocks, or count without a split"
            fail("split", f"no pair of words in the {half} half", "some in each", do)
    return Counts(vocabulary.words, first, second, across)


def _codes(
    texts: Iterable, vocabulary: Vocabulary, unknown: str, split: Split | None
) -> Iterator[np.ndarray]:
    """Number the word of each place; in the second half the size of the vocabulary is added."""
    index = {word: i for i, word in enumerate(vocabulary.words)} | {NO_WORD: NOTHING}
    found, unknowns = False, itertools.repeat(UNKNOWN)
    for name, opening, tokens in texts:
        codes = np.fromiter(map(index.get, tokens, unknowns), np.int32, len(tokens))
        if unknown == "skip":
            codes = codes[codes != UNKNOWN]
        found = found or bool((codes >= 0).any())
        if split is not None:
            if opening:
                halves, position = split(name), 0
            words = np.flatnonzero(codes != NOTHING)
            if words.size:
                positions = np.arange(position, position + words.size)
                labels = np.asarray(halves(positions))
                if labels.shape != positions.shape or not np.isin(labels, (0, 1)).all():
                    expected = f"0 or 1 for each of {positions.size} positions"
                    fail("split", str(labels), expected, "see random_blocks")
                second = words[labels == 1]
                codes[second[codes[second] >= 0]] += len(vocabulary.words)
                position += words.size
        yield codes
    if not found:
        got = f"{len(vocabulary.words)} words of which none is in the corpus"
        fail("vocabulary", got, "some", "tokenise in the way the vocabulary was made")


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
    """Count pairs at each offset that end after the first `window` places; `size` rows a part."""
    # Parts are ordered by how many ends are in the second half: first, across, second. So a pair is
    # a number to which each end, in half h, gives a term:
    # (h_a + h_b) V^2 + aV + b = (h_a V + a) V + (h_b V^2 + b).
    key: type[np.unsignedinteger] = np.uint32 if parts * size**2 < 2**32 else np.uint64
    known = codes >= 0
    left, right = codes.astype(key) * size, codes.astype(key)
    right[codes >= size] += size * (size - 1)
    starts_of_rows = np.arange(parts * size + 1, dtype=key) * size
    for offset in range(1, window + 1):
        before, after = slice(window - offset, codes.size - offset), slice(window, codes.size)
        keys = (left[before] + right[after])[known[before] & known[after]]
        keys.sort()
        # The complement of the first key differs from it, so that a run starts there too.
        starts = np.flatnonzero(np.diff(keys, prepend=~keys[:1]))
        distinct = keys[starts]
        columns = (distinct % size).astype(np.int32)
        ends = np.searchsorted(distinct, starts_of_rows).astype(np.int32)
        counts = np.diff(starts, append=keys.size)
        pairs = csr_array((counts, columns, ends), shape=(parts * size, size))
        pairs.has_canonical_format = True  # saves a look at every entry
        yield pairs


def _total(terms: Iterable[csr_array]) -> csr_array:
    return functools.reduce(operator.add, terms)


def symmetric_window(
    offsets: Sequence[csr_array], *, weights: Sequence[float] | np.ndarray | None = None
) -> csr_array:
    r"""$X = \sum_d w_d (D_d + D_d^\top)$, int64 without weights and float64 with them."""
    _checks.offsets(offsets)
    terms: Iterable[csr_array] = offsets
    if weights is not None:
        if len(weights) != len(offsets):
            do = "pass inverse_distance(len(offsets)), or None to weigh all alike"
            fail("weights", str(len(weights)), f"{len(offsets)}, one per offset", do)
        terms = (float(w) * d for w, d in zip(weights, offsets, strict=True))
    x = _total(terms)
    return x + x.T


def inverse_distance(window: int) -> np.ndarray:
    """GloVe weighs offset $d = 1, ...,$ `window` by $1/d$."""
    _checks.integer("window", window, least=1)
    return 1 / np.arange(1, window + 1)


def save_counts(path: str | Path, counts: Counts) -> None:
    """Write counts to an .npz file, whole or not at all."""
    with _files.write_whole(path) as part, part.open("wb") as file:
        np.savez(file, **to_arrays(counts))  # type: ignore[arg-type]


def load_counts(path: str | Path) -> Counts:
    """Read counts that `save_counts` has written."""
    got, expected = "a file that is damaged or no counts", "one that save_counts wrote"
    with (
        Path(path).open("rb") as file,
        _files.intact(Path(path), got, expected, "count again"),
        np.load(file) as stored,
    ):
        return from_arrays(stored)


_FIELDS = ("data", "indices", "indptr")


def to_arrays(counts: Counts) -> dict[str, np.ndarray]:
    """Give counts as arrays with names, to be stored."""
    arrays = {"words": np.frombuffer(json.dumps(counts.words).encode(), np.uint8)}
    for part in _PARTS:
        for d, x in enumerate(getattr(counts, part), start=1):
            arrays |= {f"{part}_{d}_{field}": getattr(x, field) for field in _FIELDS}
    return arrays


def from_arrays(stored: Mapping[str, np.ndarray]) -> Counts:
    """Make counts of what `to_arrays` gave."""
    words = words_of(stored["words"])
    window, rest = divmod(len(stored) - 1, len(_PARTS) * len(_FIELDS))
    if rest or not window:
        raise ValueError(f"{len(stored)} arrays")

    def pairs(part: str, d: int) -> csr_array:
        return csr_of(*(stored[f"{part}_{d}_{field}"] for field in _FIELDS), size=len(words))

    return Counts(words, *(tuple(pairs(p, d) for d in range(1, window + 1)) for p in _PARTS))
