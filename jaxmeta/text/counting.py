r"""Pairs of words are counted by offset, of which every window is a weighted sum.

$D_d[a, b]$ is the number of times $b$ stands $d$ places after $a$: see `symmetric_window`, and
`jaxmeta.released.released_window` for the released code. With a `split` the same pass counts pairs
within halves of the corpus, quarters, and so on, and those that cross from one to another; all add
up to the whole. Counts are exact. No window crosses the end of a file, so counts of several
files add up to those of all.
"""

import dataclasses
import operator
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from jaxmeta import _checks, _files
from jaxmeta._checks import fail
from jaxmeta.progress import Progress
from jaxmeta.text._pairs import codes_of, summed, total
from jaxmeta.text._parallel import Counting, count_in_processes
from jaxmeta.text._stored import FIELDS, as_text, csr_of, words_of
from jaxmeta.text.corpus import Corpus, Vocabulary, read_tokens
from jaxmeta.text.splits import (
    Split,
    contiguous_parts,
    halves_have_pairs,
    nodes_within,
    power_of_two,
    random_blocks,
)

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
        return tuple(map(total, zip(*nodes, strict=True)))

    def _within(self, number: int, index: int) -> list[tuple[csr_array, ...]]:
        """Nodes of a part and of all parts of it; at least one has a pair."""
        most = (len(self.nodes) + 1) // 2
        _checks.integer("number", number, least=1, most=most, of="the split")
        power_of_two("number", number)
        _checks.integer("index", index, least=0, most=number - 1, of="the last part")
        pairs = [sum(x.nnz for x in node) for node in self.nodes]
        return [self.nodes[node] for node in nodes_within(number, index, pairs)]

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


def count_windows(
    corpus: Corpus,
    vocabulary: Vocabulary,
    *,
    window: int = 5,
    unknown: str = "keep",
    split: Split | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Counts:
    r"""$D_d[a, b] = \#\{i : w_i = a, w_{i+d} = b\}$ for $d = 1, \ldots,$ `window`, in one pass.

    A word outside the vocabulary keeps its place, as in the released code, or with
    `unknown="skip"` is dropped before windows are laid, and before positions are counted for the
    `split`: see `random_blocks` and `contiguous_parts`. Both halves must have a pair, smaller
    parts only if they are asked for. `progress` is called with "counts" and the fraction that is
    done.

    With more than one of `workers` as many processes count, each a part of the text, and counts are
    the same; packed files are not cut. A script that asks for them does so below
    `if __name__ == "__main__":`. See `jaxmeta.text.cluster` for many machines.

    Cost: $O(Tw \log c)$ for T tokens, a window of w and chunks of c places; memory of 12 bytes per
    different pair, and as much again on the way. Workers take this each for their parts, and as
    much on the disk, in the folder for temporary files.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "text").write_text("a b a b b")
    ...     words = Vocabulary(("a", "b"), np.zeros(2), 5)
    ...     print(*count_windows(Corpus(folder), words).whole[0].toarray())
    [0 2] [1 1]
    """
    _checks.integer("window", window, least=1)
    _checks.one_of("unknown", unknown, ("keep", "skip"))
    _checks.integer("workers", workers, least=1)
    if workers > 1:
        counting = Counting(corpus, vocabulary.words, window, unknown, split)
        return from_arrays(count_in_processes(counting, workers, progress))
    size, parts = len(vocabulary.words), 1 if split is None else split.parts
    texts = read_tokens(corpus, window, "counts", progress)
    totals = summed(codes_of(texts, vocabulary.words, unknown, split), size, parts, window)
    nodes = range(2 * parts - 1)
    by_offset = [[x[node * size : (node + 1) * size] for node in nodes] for x in totals]
    counts = Counts(vocabulary.words, tuple(zip(*by_offset, strict=True)))
    halves_have_pairs([sum(x.nnz for x in node) for node in counts.nodes])
    return counts


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
    x = total(terms)
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


def to_arrays(counts: Counts) -> dict[str, np.ndarray]:
    """Give counts as arrays with names, to be stored."""
    arrays = {"words": as_text(counts.words), "window": np.asarray(len(counts.nodes[0]))}
    for node, offsets in enumerate(counts.nodes):
        for d, x in enumerate(offsets, start=1):
            arrays |= {f"{node}_{d}_{field}": getattr(x, field) for field in FIELDS}
    return arrays


def from_arrays(stored: Mapping[str, np.ndarray]) -> Counts:
    """Make counts of what `to_arrays` gave."""
    words, window = words_of(stored["words"]), int(stored["window"])
    nodes, rest = divmod(len(stored) - 2, max(window, 1) * len(FIELDS))
    # Of p parts, a power of two, there are 2p - 1 nodes.
    if rest or window < 1 or nodes < 1 or nodes & (nodes + 1):
        raise ValueError(f"{len(stored)} arrays")

    def pairs(node: int, d: int) -> csr_array:
        return csr_of(*(stored[f"{node}_{d}_{field}"] for field in FIELDS), size=len(words))

    by_node = (tuple(pairs(node, d) for d in range(1, window + 1)) for node in range(nodes))
    return Counts(words, tuple(by_node))
