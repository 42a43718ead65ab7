"""A corpus is split into halves, halves of these, and so on, to tell signal from noise."""

import dataclasses
import functools
import zlib
from collections.abc import Callable, Sequence

import numpy as np

from jaxmeta import _checks
from jaxmeta._checks import fail

__all__ = [
    "Labels",
    "Split",
    "contiguous_parts",
    "halves_have_pairs",
    "nodes_within",
    "power_of_two",
    "random_blocks",
]

Labels = Callable[[np.ndarray], np.ndarray]
"""From positions of tokens to the labels of their parts."""


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
        power_of_two("parts", self.parts)


def nodes_within(number: int, index: int, pairs: Sequence[int]) -> list[int]:
    """List the nodes of a part, and of all parts of it, or fail if they have none of the pairs.

    The first node is the corpus, then come its halves, their halves, and so on.
    """
    # Node i, counted from 1, has the halves 2i and 2i + 1.
    start, end, nodes = number + index, number + index + 1, list[int]()
    while start <= len(pairs):
        nodes += range(start - 1, end - 1)
        start, end = 2 * start, 2 * end
    if number > 1 and not any(pairs[node] for node in nodes):
        do = "split into smaller blocks or fewer parts, or count without a split"
        fail("split", f"no pair of words in part({number}, {index})", "some in each", do)
    return nodes


def halves_have_pairs(pairs: Sequence[int]) -> None:
    """Fail now, and not only when a half is asked for, if a half has none of the pairs."""
    for half in range(2 if len(pairs) > 1 else 0):
        nodes_within(2, half, pairs)


def random_blocks(seed: int, size: int = 1000, parts: int = 2) -> Split:
    """Split every file into blocks of `size` tokens; of each two, one at random goes to each half.

    Of each four consecutive blocks one goes to each quarter, and so on to `parts`, a power of two:
    of the two that a part has among them a coin tells which half of it gets the earlier one. So
    drift along the corpus falls on all alike. Coins depend on the seed and on the file's name; the
    halves are the same whatever `parts` is, and so are the quarters from four on.
    """
    _checks.integer("seed", seed, least=0)
    _checks.integer("size", size, least=1)
    return Split(parts, functools.partial(_dealt, seed, size, parts))


# Functions in functions could not be sent to other processes.
def _dealt(seed: int, size: int, parts: int, name: str) -> Labels:
    return functools.partial(_labels, [seed, zlib.crc32(name.encode())], size, parts)


def _labels(entropy: Sequence[int], size: int, parts: int, positions: np.ndarray) -> np.ndarray:
    blocks = positions // size
    block = np.arange(blocks[0], blocks[-1] + 1)
    label = np.zeros_like(block)
    for level in range(parts.bit_length() - 1):
        # Each part of this level has one block in either half of 2^(level + 1) blocks, and a coin
        # for them.
        coin = (block >> (level + 1) << level) + label
        later = block >> level & 1
        label = 2 * label + (later ^ _tossed(entropy, level, coin))
    return label[blocks - blocks[0]]


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
    return Split(parts, functools.partial(_only, set(), tokens, parts))


def _only(names: set[str], tokens: int, parts: int, name: str) -> Labels:
    names.add(name)
    if len(names) > 1:
        got = " and ".join(sorted(names))
        fail("split", got, "a corpus of one file", "use random_blocks for several")
    return functools.partial(_runs, tokens, parts)


def _runs(tokens: int, parts: int, positions: np.ndarray) -> np.ndarray:
    if positions[-1] >= tokens:
        expected = "the number of tokens of the file, which has more"
        fail("tokens", str(tokens), expected, "pass Vocabulary.tokens")
    # Part p starts at the position tokens * p // parts.
    return ((positions + 1) * parts - 1) // tokens


def power_of_two(name: str, value: int) -> None:
    """Refuse a number of parts that halves of halves cannot be."""
    if value & (value - 1):
        fail(name, str(value), "a power of two", "parts are halves, their halves, and so on")
