r"""Locally linear meta-embedding keeps how the neighbours of a word make it up.

1. `nearest_neighbours`: $N_j(v)$, the $m$ words nearest to $v$ in source $j$.
2. `reconstruction_weights`: *one* set $w_v$ with $s_j(v) \approx \sum_{u \in N_j(v)} w_{vu}s_j(u)$.
3. `reconstruction_matrix`: $W'_{vu} = w_{vu}\,\#\{j : u \in N_j(v)\}$, sparse.
4. `best_reconstructed`: the orthonormal $P$ with the smallest $\|P - W'P\|_F$.

`locally_linear` does all four. Only weights have useful derivatives, given neighbours.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from jaxmeta import _checks
from jaxmeta._types import Present, Scalar, Sources
from jaxmeta.combine import known
from jaxmeta.linalg import common_unit, matmul
from jaxmeta.methods.lle_vectors import LocallyLinear, best_reconstructed
from jaxmeta.prepare import centre_rows
from jaxmeta.progress import Progress, silent

__all__ = [
    "LocallyLinear",
    "best_reconstructed",
    "locally_linear",
    "nearest_neighbours",
    "reconstruction_matrix",
    "reconstruction_weights",
]

WORKSPACE = 2**28  # bytes that a block of words may take up
CHUNK = 256  # words between two reports of progress


def locally_linear(
    sources: Sources,
    *,
    k: int,
    neighbours: int,
    present: Present | None = None,
    ridge: Scalar = 1e-3,
    normalised: bool = True,
    tolerance: float = 1e-2,
    key: Key[Array, ""],
    progress: Progress | None = None,
) -> LocallyLinear:
    r"""The $k$-dimensional locally linear meta-embedding of the sources.

    The published setting is 2,000 `neighbours` and $k = 200$. Lengths and means of the sources
    matter, and are taken as they are. A word that some sources lack is made up by the others, and
    one that all lack is an error. For `normalised` see `reconstruction_matrix`, for `tolerance`
    and `key` `best_reconstructed`.

    Cost: that of the steps; loops run on the host, and $2nNm$ numbers and indices are kept. 20,000
    words, $k = 200$ and 200 neighbours in two sources take 3.5 minutes on two processor cores.
    Reference: `bollegala18`.

    >>> import jax, jax.numpy as jnp
    >>> line = jnp.linspace(0.5, 1.5, 30)[:, None] ** jnp.array([[1.0, 0.0]])
    >>> found = locally_linear((line, -2 * line), k=1, neighbours=4, key=jax.random.key(0))
    >>> print(found.embedding.shape)
    (30, 1)
    """
    sources = known(sources, present)
    n = sources[0].shape[0]
    _checks.integer("k", k, least=1, most=n - 1, of="the vocabulary, less one,")
    _checks.positive("ridge", ridge, "pass a share of the mean square, such as 1e-3")
    has = np.ones((n, len(sources)), bool) if present is None else np.asarray(present)
    _check_values(sources, has, neighbours)
    say = progress or silent

    lists = []
    for j, source in enumerate(sources):
        say("neighbours", j / len(sources))
        own = None if present is None else present[:, j]
        found = nearest_neighbours(source, neighbours=neighbours, present=own)
        lists.append(found.block_until_ready())
    say("neighbours", 1.0)

    table, slots, layout = _stacked(sources, lists)
    rows = []
    for start in range(0, n, CHUNK):
        say("weights", start / n)
        # The last chunk repeats its last word: one shape compiles once.
        words = jnp.asarray(np.minimum(np.arange(start, start + CHUNK), n - 1))
        found = _weights_of(table, slots, words, jnp.asarray(ridge, table.dtype), layout)
        rows.append(np.asarray(found[: n - start]))
    say("weights", 1.0)
    matrix = reconstruction_matrix((slots,), (np.concatenate(rows),), normalised=normalised)
    del table, slots, lists, rows
    if not np.isfinite(matrix.data).all():
        do = f"pass {1e3 * jnp.finfo(sources[0].dtype).eps:.0e} or more"
        _checks.fail("ridge", str(ridge), "one that rounding leaves alone", do)
    return best_reconstructed(
        matrix, k=k, constant=normalised, key=key, tolerance=tolerance, progress=progress
    )


def _check_values(sources: Sequence[Array], has: np.ndarray, neighbours: int) -> None:
    _checks.integer("neighbours", neighbours, least=1)
    for j, (source, words) in enumerate(zip(sources, has.sum(axis=0), strict=True)):
        if words <= neighbours:
            do = f"pass {max(words - 1, 1)} or less, or drop that source"
            expected = f"fewer than the {words} words of sources[{j}]"
            _checks.fail("neighbours", str(neighbours), expected, do)
        if not jnp.all(jnp.isfinite(source)):
            do = "mark words that it lacks in present"
            _checks.fail(f"sources[{j}]", "NaN or infinity", "finite vectors", do)
    lost = np.flatnonzero(~has.any(axis=1))
    if lost.size:
        got = f"no source with word {lost[0]} ({lost.size} such words)"
        _checks.fail("present", got, "each word in at least one", "drop the others")


def _check_known(source: Any, *, present: Any = None, **_: Any) -> None:
    """No word that is there has NaN, of which neighbours would show nothing."""
    _checks.array("source", source, 2)
    if present is not None:
        _checks.present(present, source.shape[0])
    if not isinstance(source, jax.core.Tracer) and not isinstance(present, jax.core.Tracer):
        there = slice(None) if present is None else np.asarray(present)
        if np.isnan(np.asarray(source)[there]).any():
            do = "mark words that it lacks in present"
            _checks.fail("source", "NaN", "numbers, for a result that is integers", do)


@_checks.checked(_check_known, static=("neighbours",))
def nearest_neighbours(
    source: Float[Array, "n k"], *, neighbours: int, present: Bool[Array, " n"] | None = None
) -> Int[Array, "n neighbours"]:
    r"""The words nearest to each word, by Euclidean distance, the nearest first.

    No word is its own neighbour. Of words at the same distance the first come first, up to an error
    of about $\epsilon$ times the largest squared norm after centring. Words that are not `present`
    have the neighbours -1, and are nobody's. Cost: $2n^2k$ flops in products, and a selection out
    of each row; memory: some hundred rows of $n$ numbers.
    """
    n = source.shape[0]
    _checks.integer("neighbours", neighbours, least=1, most=n - 1, of="the vocabulary, less one,")
    present = jnp.ones(n, bool) if present is None else present
    # Distances are differences of large numbers where the words lie far off the origin.
    source = centre_rows(source, present=present)
    source = source / common_unit(source)
    squares = jnp.sum(source**2, axis=1)

    def of(word: Array) -> Array:
        nearness = 2 * matmul(source, source[word]) - squares
        others = present & (jnp.arange(n) != word)
        nearness, found = lax.top_k(jnp.where(others, nearness, -jnp.inf), neighbours)
        return jnp.where(present[word] & (nearness != -jnp.inf), found, -1)

    batch = max(1, min(256, WORKSPACE // (3 * n * source.dtype.itemsize)))
    return lax.map(of, jnp.arange(n), batch_size=batch)


@_checks.checked()
def reconstruction_weights(
    sources: Sources, neighbours: Sequence[Int[Array, "n _"]], *, ridge: Scalar = 1e-3
) -> tuple[Float[Array, "n _"], ...]:
    r"""Weights that make up each word from its neighbours in all sources at once.

    `neighbours[j]` are the words $N_j(v)$ of `nearest_neighbours`, and entry $j$ of the result the
    weight of each. With $Z$ the $K \times m_v$ matrix with $s_j(u)$ in block $j$ of column $u$ if
    $u \in N_j(v)$ and 0 if not, $t = (s_1(v), \ldots)$, and $w_0$ uniform on all $m_v$ neighbours,

    $$w_v \propto w_0 + Z^\top(ZZ^\top + rI)^{-1}(t - Zw_0), \qquad
      r = \text{ridge}\cdot\mathrm{tr}(ZZ^\top)/K,$$

    is scaled to sum to one, unless the sum vanishes: the limit of gradient descent from $w_0$, with
    a ridge. Unlike in classic LLE, shifts of a source matter, and sums near zero. Sources that lack
    $v$ have no part, in $K$ neither. A ridge of a few $\epsilon$ may be lost, and gives NaN.

    Cost, for each word: $m(K^2 + \sum_j k_j^2) + K^3/3$ flops, or $2(Nm)^2K + (Nm)^3/3$ if
    $Nm < K$.
    """
    sources = known(sources)
    _checks.count("neighbours", neighbours, len(sources))
    for j, found in enumerate(neighbours):
        _checks.same_rows(**{"sources[0]": sources[0], f"neighbours[{j}]": found})
    _checks.positive("ridge", ridge, "pass a share of the mean square, such as 1e-3")
    table, slots, layout = _stacked(sources, neighbours)
    words = jnp.arange(table.shape[0])
    weights = _weights_of(table, slots, words, jnp.asarray(ridge, table.dtype), layout)
    return tuple(jnp.split(weights, np.cumsum(layout.lists)[:-1], axis=1))


class _Layout(NamedTuple):
    """Each source has so many columns of the table, and so many slots of a word."""

    widths: tuple[int, ...]
    lists: tuple[int, ...]


def _stacked(sources: Sequence[Array], neighbours: Sequence[Array]) -> tuple[Array, Array, _Layout]:
    """Put all sources side by side, zero where a word has no neighbours, and all lists."""
    listed = jnp.stack([jnp.any(found >= 0, axis=1) for found in neighbours], axis=1)
    layout = _Layout(*(tuple(x.shape[1] for x in xs) for xs in (sources, neighbours)))
    slots = jnp.concatenate(neighbours, axis=1)
    table = jnp.concatenate(known(sources, listed), axis=1)
    return table / common_unit(table), slots, layout


@jax.jit(static_argnames="layout")
def _weights_of(
    table: Array, slots: Array, words: Array, ridge: Array, layout: _Layout
) -> Float[Array, "words slots"]:
    """Find the weights of some words, block by block."""
    (n, width), number = table.shape, slots.shape[1]
    entries = 2 * number * width + 4 * min(number, width) ** 2
    size = table.dtype.itemsize * entries + len(layout.widths) * n
    # A derivative goes through the blocks once more, and keeps none of them.
    one = jax.checkpoint(partial(_word_weights, table, ridge, layout))
    return lax.map(one, (words, slots[words]), batch_size=max(1, min(16, WORKSPACE // size)))


def _word_weights(
    table: Array, ridge: Array, layout: _Layout, word_and_slots: tuple[Array, Array]
) -> Float[Array, " slots"]:
    word, slots = word_and_slots
    n, dtype = table.shape[0], table.dtype
    columns, owner = (np.repeat(np.arange(len(x)), x) for x in layout)
    used = slots >= 0
    slots = jnp.where(used, slots, n)
    # listed[j, u] is whether u is a neighbour in source j; inside[j] the same for each slot.
    listed = jnp.zeros((len(layout.widths), n + 1), bool).at[owner, slots].set(True)
    inside = listed[:, slots] & used[None, :]
    times = jnp.sum(inside, axis=0).astype(dtype)
    share = jnp.where(used, 1 / jnp.maximum(times, 1), 0)  # of a slot in its word

    # Row i is the column of Z that belongs to the word in slot i, once for each of its slots.
    z = jnp.where(inside[columns].T, table.at[slots].get(mode="fill", fill_value=0), 0)
    uniform = 1 / jnp.maximum(jnp.sum(share), 1)
    error = table[word] - uniform * matmul(share, z)
    trace = matmul(share, jnp.sum(z**2, axis=1))
    known_columns = jnp.sum(jnp.any(listed[:, :n], axis=1)[columns]).astype(dtype)
    r = ridge * jnp.where(trace == 0, 1, trace) / jnp.maximum(known_columns, 1)
    if z.shape[0] < z.shape[1]:
        # Slots of one word share its column: each takes 1/sqrt(times) of it, and ZZ' is the same.
        z = z * jnp.sqrt(share)[:, None]
        step = _solve(matmul(z, z.T), r, matmul(z, error)) * jnp.sqrt(times)
    else:
        step = matmul(z, _solve(_gram(z, layout), r, error))
    weights = jnp.where(used, uniform + step, 0)
    total = jnp.sum(weights * share)
    return weights / jnp.where(total == 0, 1, total)


def _gram(z: Float[Array, "slots K"], layout: _Layout) -> Float[Array, "K K"]:
    """ZZ': its block (i, j) is over the slots of source i alone, as j's columns are 0 elsewhere."""
    ends, stops = (np.cumsum(x) for x in layout)
    blocks: list[list[Any]] = [[None] * len(ends) for _ in ends]
    for i, (end, stop) in enumerate(zip(ends, stops, strict=True)):
        rows = z[stop - layout.lists[i] : stop, :end]
        below = matmul(rows[:, end - layout.widths[i] :].T, rows)
        for j, block in enumerate(jnp.split(below, ends[:i], axis=1)):
            blocks[i][j], blocks[j][i] = block, block.T
    return jnp.block(blocks)


def _solve(gram: Array, r: Array, right: Array) -> Array:
    ridged = gram + r * jnp.eye(gram.shape[0], dtype=gram.dtype)
    return jax.scipy.linalg.solve(ridged, right, assume_a="pos")


def reconstruction_matrix(
    neighbours: Sequence[Any], weights: Sequence[Any], *, normalised: bool = True
) -> scipy.sparse.csr_array:
    r"""The sparse matrix $W'$: weights times the number of sources that name the neighbour.

    Arguments are those that `reconstruction_weights` takes and gives. Where sources share
    neighbours, rows of $W'$ do not sum to one. `normalised` divides them by their sum: then $W'$
    keeps the constant vector, which is left out of the embedding. Without, as published, rows whose
    weights had a sum near zero make some eigenvalues huge.

    Cost, on the host: $O(nNm\log(Nm))$, and up to $nNm$ numbers and indices of memory.
    """
    indices, data = (np.concatenate([*map(np.asarray, x)], axis=1) for x in (neighbours, weights))
    if indices.shape != data.shape:
        got, expected = f"{data.shape[1]} for each word", f"{indices.shape[1]}, one per neighbour"
        _checks.fail("weights", got, expected, "pass what reconstruction_weights returns")
    n, used = len(indices), indices >= 0
    starts = np.append(0, np.cumsum(used.sum(axis=1)))
    matrix = scipy.sparse.csr_array((data[used], indices[used], starts), shape=(n, n))
    matrix.sum_duplicates()
    if normalised:
        sums = matrix.sum(axis=1)
        matrix.data /= np.repeat(np.where(sums == 0, 1, sums), np.diff(matrix.indptr))
    return matrix
