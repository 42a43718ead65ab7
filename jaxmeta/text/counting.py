r"""Pairs of words are counted by offset, of which every window is a weighted sum.

$D_d[a, b]$ is the number of times $b$ stands $d$ places after $a$: see `symmetric_window`, and
`jaxmeta.released.released_window` for the released code. With a `split` the same pass counts pairs
within halves of the corpus, quarters, and so on, and those that cross from one to another; all add
up to the whole. Counts are exact. No window crosses the end of a file, so counts of several
files add up to those of all.
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
    "Split",
    "contiguous_parts",
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

Labels = Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Split:
    """A split labels every token with the part of the corpus that it belongs to.

    Parts are halves, halves of these, and so on: a label without its last bit, `label >> 1`, is one
    of a split into half as many. So parts 0 and 1 of four are the first half, 2 and 3 the second.
    """

    parts: int
    """How many, a power of two; labels are 0 to `parts - 1`."""
    labels_of: Callable[[str], Labels]
    """From the name of a file, `archive.zip/member` in a zip, to a function from ascending
    positions of its tokens to their labels."""

    def __post_init__(self) -> None:
        _checks.integer("parts", self.parts, least=1)
        _power_of_two("parts", self.parts)


@dataclasses.dataclass(frozen=True, eq=False)
class Counts:
    """Pairs are counted by offset: in entry $d-1$, $b$ (column) stands $d$ after $a$ (row)."""

    words: tuple[str, ...]
    nodes: tuple[tuple[csr_array, ...], ...]
    """Pairs by the smallest part with both ends: the corpus, its two halves, their four, and so on.
    So the first are pairs with an end in each half, and the last those within a smallest part;
    without a split there is one node, of all pairs."""

    @property
    def whole(self) -> tuple[csr_array, ...]:
        """All pairs."""
        return self.part(1, 0)

    def part(self, number: int, index: int) -> tuple[csr_array, ...]:
        """Add up pairs within one of `number` parts, counted from 0: of two, 0 is the first half.

        `number` is a power of two and at most that of the split. A part without pairs is an error.
        """
        nodes = self._within(number, index)
        return tuple(map(_total, zip(*nodes, strict=True)))

    def _within(self, number: int, index: int) -> list[tuple[csr_array, ...]]:
        """Nodes of a part and of all parts of it; at least one has a pair."""
        most = (len(self.nodes) + 1) // 2
        _checks.integer("number", number, least=1, most=most, of="the split")
        _power_of_two("number", number)
        _checks.integer("index", index, least=0, most=number - 1, of="the last part")
        # Node i, counted from 1, has the halves 2i and 2i + 1.
        start, end = number + index, number + index + 1
        nodes: list[tuple[csr_array, ...]] = []
        while start <= len(self.nodes):
            nodes += self.nodes[start - 1 : end - 1]
            start, end = 2 * start, 2 * end
        if number > 1 and not any(x.nnz for node in nodes for x in node):
            do = "split into smaller blocks or fewer parts, or count without a split"
            fail("split", f"no pair of words in part({number}, {index})", "some in each", do)
        return nodes

    def __add__(self, other: "Counts") -> "Counts":
        if not isinstance(other, Counts):
            return NotImplemented
        if self.words != other.words:
            do = "count both corpora with one vocabulary"
            fail("counts", "two lists of words", "the same words in the same order", do)
        for what, one, two, do in (
            ("windows", self.nodes[0], other.nodes[0], "count both corpora with one window"),
            ("numbers of nodes", self.nodes, other.nodes, "split both into as many parts"),
        ):
            if len(one) != len(two):
                fail("counts", f"{what} {len(one)} and {len(two)}", "the same", do)
        both = zip(self.nodes, other.nodes, strict=True)
        return Counts(self.words, tuple(tuple(map(operator.add, *pair)) for pair in both))


def _power_of_two(name: str, value: int) -> None:
    if value & (value - 1):
        fail(name, str(value), "a power of two", "parts are halves, their halves, and so on")


def random_blocks(seed: int, size: int = 1000, parts: int = 2) -> Split:
    """Split every file into blocks of `size` tokens; of each two, one at random goes to each half.

    Of each four consecutive blocks one goes to each quarter, and so on to `parts`, a power of two:
    of the two that a part has among them a coin tells which half of it gets the earlier one. So
    drift along the corpus falls on all alike. Coins depend on the seed and on the file's name; the
    halves are the same whatever `parts` is, and so are the quarters from four on.
    """
    _checks.integer("seed", seed, least=0)
    _checks.integer("size", size, least=1)

    def labels_of(name: str) -> Labels:
        entropy = [seed, zlib.crc32(name.encode())]

        def labels(positions: np.ndarray) -> np.ndarray:
            blocks = positions // size
            block = np.arange(blocks[0], blocks[-1] + 1)
            label = np.zeros_like(block)
            for level in range(parts.bit_length() - 1):
                # Each part of this level has one block in either half of 2^(level + 1) blocks, and
                # a coin for them.
                coin = (block >> (level + 1) << level) + label
                later = block >> level & 1
                label = 2 * label + (later ^ _tossed(entropy, level, coin))
            return label[blocks - blocks[0]]

        return labels

    return Split(parts, labels_of)


def _tossed(entropy: Sequence[int], level: int, which: np.ndarray) -> np.ndarray:
    """Toss the coins of a level that are asked for by number, and those between them."""
    # The first level has the numbers of a generator that is seeded with the entropy alone.
    seeds = np.random.SeedSequence(entropy, spawn_key=(level,) if level else ())
    rng, start = np.random.default_rng(seeds), int(which.min())
    # A coin is one step of the generator: those before `start` need not be tossed.
    rng.bit_generator.advance(start)  # type: ignore[attr-defined]
    return (rng.random(int(which.max()) + 1 - start) < 0.5)[which - start]


def contiguous_parts(tokens: int, parts: int = 2) -> Split:
    """Split a corpus of one file with `tokens` tokens into runs of equal length.

    Two are the halves of the released code.
    """
    _checks.integer("tokens", tokens, least=2)
    names: set[str] = set()

    def labels_of(name: str) -> Labels:
        names.add(name)
        if len(names) > 1:
            got = " and ".join(sorted(names))
            fail("split", got, "a corpus of one file", "use random_blocks for several")
        return labels

    def labels(positions: np.ndarray) -> np.ndarray:
        if positions[-1] >= tokens:
            expected = "the number of tokens of the file, which has more"
            fail("tokens", str(tokens), expected, "pass Vocabulary.tokens")
        # Part p starts at the position tokens * p // parts.
        return ((positions + 1) * parts - 1) // tokens

    return Split(parts, labels_of)


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
    `unknown="skip"` is dropped before windows are laid, and before positions are counted for the
    `split`: see `random_blocks` and `contiguous_parts`. Both halves must have a pair, smaller
    parts only if they are asked for. `progress` is called with "counts" and the fraction that is
    read.

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
    size, parts = len(vocabulary.words), 1 if split is None else split.parts
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
    nodes = range(2 * parts - 1)
    by_offset = [[x[node * size : (node + 1) * size] for node in nodes] for x in totals]
    counts = Counts(vocabulary.words, tuple(zip(*by_offset, strict=True)))
    for half in range(2 if parts > 1 else 0):
        counts._within(2, half)  # fails now, and not only when a half is asked for
    return counts


def _codes(
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
    words = np.frombuffer(json.dumps(counts.words).encode(), np.uint8)
    arrays = {"words": words, "window": np.asarray(len(counts.nodes[0]))}
    for node, offsets in enumerate(counts.nodes):
        for d, x in enumerate(offsets, start=1):
            arrays |= {f"{node}_{d}_{field}": getattr(x, field) for field in _FIELDS}
    return arrays


def from_arrays(stored: Mapping[str, np.ndarray]) -> Counts:
    """Make counts of what `to_arrays` gave."""
    words, window = words_of(stored["words"]), int(stored["window"])
    nodes, rest = divmod(len(stored) - 2, max(window, 1) * len(_FIELDS))
    # Of p parts, a power of two, there are 2p - 1 nodes.
    if rest or window < 1 or nodes < 1 or nodes & (nodes + 1):
        raise ValueError(f"{len(stored)} arrays")

    def pairs(node: int, d: int) -> csr_array:
        return csr_of(*(stored[f"{node}_{d}_{field}"] for field in _FIELDS), size=len(words))

    by_node = (tuple(pairs(node, d) for d in range(1, window + 1)) for node in range(nodes))
    return Counts(words, tuple(by_node))
