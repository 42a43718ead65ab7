r"""Locally linear meta-embedding: words in a space where their neighbours still make them up.

A word is written as a weighted sum of its neighbours, with *one* set of weights for all sources.
Then words get new vectors, of which the same weights make each up as well as can be. Sources need
not agree on coordinates, nor on dimensions: only neighbours and weights go from them to the result.

1. `nearest_neighbours`: $N_j(v)$, the $m$ words nearest to $v$ in source $j$.
2. `reconstruction_weights`: the $w_v$ with $s_j(v) \approx \sum_{u \in N_j(v)} w_{vu}s_j(u)$ in all
   sources at once, scaled to sum to one.
3. `reconstruction_matrix`: $W'_{vu} = w_{vu}\,\#\{j : u \in N_j(v)\}$, sparse.
4. `best_reconstructed`: the orthonormal $P$ with the smallest $\|P - W'P\|_F$, that is the last
   eigenvectors of $Q = (I - W')^\top(I - W')$, which is never formed.

`locally_linear` does all four. The weights are those that gradient descent from uniform ones tends
to, with a ridge: with more neighbours than dimensions there are many perfect ones. They are scaled
to sum to one only afterwards; this is not the constrained form of the classic method, in which
neither a shift of a source nor a sum near zero matters. No array is $n \times n$ but for small $n$.

Neighbours and eigenvectors have no useful derivatives; weights have, given neighbours.
Reference: `bollegala18`.
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
from jaxmeta.eigen import Multiply, iterates, leading_eigenpairs, multiply_by
from jaxmeta.linalg import matmul, power_of_two
from jaxmeta.progress import Progress, silent
from jaxmeta.spectral import fix_signs

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
OUTLIERS = 64  # how many of the largest eigenvalues may be left out of the search at most
AT_ONCE = 1  # sparse flops, in n^3, that take as long as a full eigendecomposition


class LocallyLinear(NamedTuple):
    """Vectors that are made up best by those of neighbours."""

    embedding: Float[Array, "n k"]
    """Orthonormal columns, unscaled, by eigenvalue; their largest entries are positive."""
    eigenvalues: Float[Array, " k"]
    r"""$\|p - W'p\|^2$ of each column, ascending."""
    residuals: Float[Array, " k"]
    r"""$\|Qp - \lambda p\|$ of each, measured."""
    largest: float
    """The largest eigenvalue of $Q$: residuals cannot be below its rounding."""


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

    The published setting is 2,000 `neighbours` and $k = 200$. Nothing is normalised or centred
    here, and weights do depend on both. A word that is in no source has nothing to be made of, and
    is an error; one that some sources lack is made up by the others. For `normalised` see
    `reconstruction_matrix`, for `tolerance` and `key` see `best_reconstructed`.

    Cost: that of the steps; in memory $2nNm$ numbers and indices for $W'$ and its transpose. For
    20,000 words, $k = 200$ and two processor cores: 3.5 minutes with 200 neighbours in two sources
    of 400 dimensions in all. With 2,000 in three of 976, weights alone take 12. Loops are on the
    host. Reference: `bollegala18`.

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
        lists.append(nearest_neighbours(source, neighbours=neighbours, present=own))
        lists[-1].block_until_ready()
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
        raise ValueError(
            f"ridge: got {ridge}, expected one that rounding leaves alone; "
            f"pass {1e3 * jnp.finfo(sources[0].dtype).eps:.0e} or more."
        )
    return best_reconstructed(
        matrix, k=k, constant=normalised, key=key, tolerance=tolerance, progress=progress
    )


def _check_values(sources: Sequence[Array], has: np.ndarray, neighbours: int) -> None:
    _checks.integer("neighbours", neighbours, least=1)
    for j, source in enumerate(sources):
        words = int(has[:, j].sum())
        if words <= neighbours:
            raise ValueError(
                f"neighbours: got {neighbours}, expected fewer than the {words} words of "
                f"sources[{j}]; pass {max(words - 1, 1)} or less, or drop that source."
            )
        if not jnp.all(jnp.isfinite(source)):
            raise ValueError(
                f"sources[{j}]: got NaN or infinity, expected finite vectors; "
                "mark words that it lacks in present."
            )
    lost = np.flatnonzero(~has.any(axis=1))
    if lost.size:
        raise ValueError(
            f"present: got no source with word {lost[0]} ({lost.size} such words), expected each "
            "word in at least one; drop the others."
        )


@jax.jit(static_argnames="neighbours")
def nearest_neighbours(
    source: Float[Array, "n k"], *, neighbours: int, present: Bool[Array, " n"] | None = None
) -> Int[Array, "n neighbours"]:
    r"""The words nearest to each word, by Euclidean distance, the nearest first.

    No word is its own neighbour, not even among equal ones. Of words at the same distance the first
    come first, up to rounding: squared distances are compared with an error of about $\epsilon$
    times the largest squared norm after centring. Words that are not `present` have the neighbours
    -1, and are nobody's.

    Cost: $2n^2k$ flops in products, and a selection out of each row, which takes about as long at
    $m = 2000$. Memory: some hundred rows of $n$ numbers at a time.

    >>> import jax.numpy as jnp
    >>> print(nearest_neighbours(jnp.array([[0.0], [1.0], [3.0]]), neighbours=2))
    [[1 2]
     [0 2]
     [1 0]]
    """
    _checks.array("source", source, 2)
    n = source.shape[0]
    _checks.integer("neighbours", neighbours, least=1, most=n - 1, of="the vocabulary, less one,")
    if present is None:
        present = jnp.ones(n, bool)
    _checks.present(present, n)
    source = jnp.where(jnp.broadcast_to(present[:, None], source.shape), source, 0)
    # Distances are differences of large numbers where the words lie far off the origin.
    mean = jnp.sum(source, axis=0) / jnp.maximum(jnp.sum(present), 1).astype(source.dtype)
    source = source - mean[None, :]
    source = source / power_of_two(jnp.max(jnp.abs(source)))
    squares = jnp.sum(source**2, axis=1)

    def of(word: Array) -> Array:
        nearness = 2 * matmul(source, source[word]) - squares
        others = present & (jnp.arange(n) != word)
        nearness, found = lax.top_k(jnp.where(others, nearness, -jnp.inf), neighbours)
        return jnp.where(present[word] & (nearness != -jnp.inf), found, -1)

    block = _block(3 * n * source.dtype.itemsize, most=256)
    return lax.map(of, jnp.arange(n), batch_size=block)


def _block(size: int, most: int) -> int:
    """How many words at a time, if each takes `size` bytes."""
    return max(1, min(most, WORKSPACE // size))


@jax.jit
def reconstruction_weights(
    sources: Sources,
    neighbours: Sequence[Int[Array, "n _"]],
    *,
    ridge: Scalar = 1e-3,
) -> tuple[Float[Array, "n _"], ...]:
    r"""Weights that make up each word from its neighbours in all sources at once.

    `neighbours[j]` holds the words $N_j(v)$ as `nearest_neighbours` finds them, -1 for none, and
    entry $j$ of the result the weight of each. A word that is a neighbour in several sources is one
    unknown: it has the same weight in all. With $m_v$ such words, $Z$ the $K \times m_v$ matrix
    with $s_j(u)$ in block $j$ of column $u$ if $u \in N_j(v)$ and 0 if not, $t = (s_1(v), \ldots)$
    and $w_0$ uniform,

    $$w_v \propto w_0 + Z^\top(ZZ^\top + rI)^{-1}(t - Zw_0), \qquad
      r = \text{ridge}\cdot\mathrm{tr}(ZZ^\top)/K,$$

    is scaled to sum to one over these words; if the sum vanishes it is left as it is. Sources that
    lack $v$ have no part, in $K$ neither. If all neighbours are zero the weights are $w_0$. A ridge
    of a few $\epsilon$ may be lost in rounding, and gives NaN.

    Cost, for each word: $m(K^2 + \sum_j k_j^2) + K^3/3$ flops, $m$ neighbours in each source, for
    the blocks of $ZZ^\top$ on and below its diagonal; on two processor cores at a fifth (200
    neighbours, $K = 400$) to two fifths (2,000 and 976) of the rate of a large product. If
    $Nm < K$, $Z^\top Z$ takes the place of $ZZ^\top$: $2(Nm)^2K + (Nm)^3/3$.

    >>> import jax.numpy as jnp
    >>> source = jnp.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    >>> neighbours = jnp.array([[1, 2], [0, 2], [0, 1]])
    >>> (weights,) = reconstruction_weights((source,), (neighbours,), ridge=1e-5)
    >>> print(weights.round(3) + 0)
    [[-1.   2. ]
     [-1.   2. ]
     [ 0.5  0.5]]
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
    """How columns of the table and slots of a word belong to sources."""

    widths: tuple[int, ...]
    lists: tuple[int, ...]


def _stacked(sources: Sequence[Array], neighbours: Sequence[Array]) -> tuple[Array, Array, _Layout]:
    """All sources side by side, zero where a word has no neighbours, and all lists."""
    lone = [jnp.all(found < 0, axis=1, keepdims=True) for found in neighbours]
    kept = [
        jnp.where(jnp.broadcast_to(x, s.shape), 0, s) for x, s in zip(lone, sources, strict=True)
    ]
    layout = _Layout(*(tuple(x.shape[1] for x in xs) for xs in (sources, neighbours)))
    return jnp.concatenate(kept, axis=1), jnp.concatenate(neighbours, axis=1), layout


@jax.jit(static_argnames="layout")
def _weights_of(
    table: Array, slots: Array, words: Array, ridge: Array, layout: _Layout
) -> Float[Array, "words slots"]:
    """The weights of some words, block by block."""
    n, width = table.shape
    number, sources = slots.shape[1], len(layout.widths)
    unknowns = min(number, width)
    size = table.dtype.itemsize * (2 * number * width + 4 * unknowns**2) + sources * n
    # A derivative goes through the blocks once more, and keeps none of them.
    one = jax.checkpoint(partial(_word_weights, table, ridge, layout))
    return lax.map(one, (words, slots[words]), batch_size=_block(size, most=16))


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
        root = jnp.sqrt(share)
        z = z * root[:, None]
        step = _solve(matmul(z, z.T), r, matmul(z, error)) * jnp.sqrt(times)
    else:
        step = matmul(z, _solve(_gram(z, layout), r, error))
    weights = jnp.where(used, uniform + step, 0)
    total = jnp.sum(weights * share)
    return weights / jnp.where(total == 0, 1, total)


def _gram(z: Float[Array, "slots K"], layout: _Layout) -> Float[Array, "K K"]:
    """ZZ': its block (i, j) is over the slots of source i alone, j's columns being 0 elsewhere."""
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

    `neighbours[j]` and `weights[j]` are those of source $j$, as `reconstruction_weights` takes and
    gives them. Rows of weights sum to one, but those of $W'$ do not once sources share neighbours.
    `normalised` divides them by their sum: then $W'$ keeps the constant vector, and that one can
    be left out of the embedding, as in the classic method. Without, as published, no vector is
    special, and rows whose weights had a sum near zero make some eigenvalues of $Q$ huge.

    On the host. Cost: $O(nNm\log(Nm))$, and up to $nNm$ numbers and indices of memory.

    """
    indices = np.concatenate([np.asarray(x) for x in neighbours], axis=1)
    data = np.concatenate([np.asarray(x) for x in weights], axis=1)
    if indices.shape != data.shape:
        raise ValueError(
            f"weights: got {data.shape[1]} for each word, expected {indices.shape[1]}, one per "
            "neighbour; pass what reconstruction_weights returns."
        )
    n, used = len(indices), indices >= 0
    starts = np.append(0, np.cumsum(used.sum(axis=1)))
    matrix = scipy.sparse.csr_array((data[used], indices[used], starts), shape=(n, n))
    matrix.sum_duplicates()
    if normalised:
        sums = matrix.sum(axis=1)
        matrix.data /= np.repeat(np.where(sums == 0, 1, sums), np.diff(matrix.indptr))
    return matrix


def best_reconstructed(
    matrix: scipy.sparse.csr_array,
    *,
    k: int,
    constant: bool = True,
    key: Key[Array, ""],
    tolerance: float = 1e-2,
    progress: Progress | None = None,
) -> LocallyLinear:
    r"""The $k$ orthonormal vectors that the rows of $W'$ make up best: last eigenvectors of $Q$.

    With `constant`, rows of $W'$ sum to one, and vectors are sought that are orthogonal to the
    constant one, for which $\lambda = 0$. A rotation of all $k$ columns changes no cosine between
    words, so what matters is their span: every residual is at most
    $\text{tolerance}\cdot\lambda_k$, or what rounding allows, about $10\epsilon\lambda_{max}$.
    The second may be far above $\lambda_k$ in float32 where rows have huge weights: see
    `residuals`.

    The wanted eigenvalues are thousands of times smaller than the largest, and as close together.
    A first Lanczos run tells the level $a$ that enough eigenvalues are below and the end $b$ of
    the others; then `leading_eigenpairs` gets the Chebyshev polynomial of $Q$ that keeps $[a, b]$
    within $[-1, 1]$ and lifts what is below, of a degree of $\sqrt{b/a}/3$. Few far larger ones,
    from rows with huge weights, are found first and left out. If a value found is not below $a$, or
    a residual too large, another run follows, with twice that or for more digits.

    Cost: about $8k\sqrt{b/a}$ products with $Q$, of $4\,\mathrm{nnz}(W')$ flops each. If these are
    more than $n^3$, for $k$ of more than an eighth of $n$, or small $n$: a full eigendecomposition,
    whose flops are ten times as many but run ten times as fast. Reference: `zhou06`.
    """
    n = matrix.shape[0]
    _checks.integer("k", k, least=1, most=n - 1, of="the vocabulary, less one,")
    _checks.positive("tolerance", tolerance, "pass a relative residual, such as 1e-2")
    multiply, dtype = _distortion(matrix), jax.dtypes.canonicalize_dtype(matrix.dtype)
    settled = jnp.full((n, 1 if constant else 0), n**-0.5, dtype)
    if not iterates(n, k):
        return _all_at_once(multiply, settled, k)
    survey_key, key = jax.random.split(key)
    search = partial(leading_eigenpairs, n=n, dtype=dtype)
    top = search(multiply, rank=1, key=survey_key, tolerance=1e-2)
    points, counts = (np.asarray(x) for x in top.density)
    outliers = int(np.sum(points > 2 * top.density.level(OUTLIERS)))
    largest, far = float(top.values[0]), None
    end, left_out = 1.05 * largest, settled
    if outliers:
        far = search(multiply, rank=outliers, key=survey_key, tolerance=1e-5)
        end, left_out = float(far.values[-1]), jnp.append(settled, far.vectors, axis=1)
    level = float(np.interp(2 * k + 32, np.cumsum(counts), points))
    level = max(level, 1e-5 * end)  # below that a higher degree would tell no more apart
    if 32 * k * (end / level) ** 0.5 * matrix.nnz > AT_ONCE * n**3:
        return _all_at_once(multiply, settled, k)
    rounding = 10 * float(jnp.finfo(dtype).eps)
    accuracy = tolerance / 100  # of the polynomial, which is less steep than Q
    while level < end / 2:
        lifted = partial(_filtered, multiply, level, end, left_out)
        vectors = search(lifted, rank=k, key=key, tolerance=accuracy, progress=progress).vectors
        if far is not None:
            # What vectors still hold of those with huge eigenvalues shows best in their images.
            held = matmul(far.vectors.T, multiply(vectors)) / far.values[:, None]
            vectors = vectors - matmul(far.vectors, held)
        vectors, _ = jnp.linalg.qr(vectors - matmul(settled, matmul(settled.T, vectors)))
        best = _measured(multiply, vectors, largest)
        if best.eigenvalues[-1] >= level:
            level *= 2
            continue
        goal = max(tolerance * float(best.eigenvalues[-1]), rounding * largest)
        worst = float(jnp.max(best.residuals))
        if worst <= goal or accuracy <= rounding:
            return best
        accuracy = max(accuracy * goal / (2 * worst), rounding)
    return _all_at_once(multiply, settled, k)


def _distortion(matrix: scipy.sparse.csr_array) -> Multiply:
    """Multiplication by Q."""
    multiply, transposed = multiply_by(matrix), multiply_by(matrix.T)

    def apply(block: Array) -> Array:
        left = block - multiply(block)
        return left - transposed(left)

    return apply


def _filtered(multiply: Multiply, level: float, end: float, left_out: Array, block: Array) -> Array:
    """The Chebyshev polynomial of Q that is within [-1, 1] from `level` to `end`."""
    degree = max(1, round((end / level) ** 0.5 / 3))
    centre, half = (end + level) / 2, (end - level) / 2
    before, now = 0 * block, block
    for i in range(degree):
        scale = (2 if i else 1) / half
        before, now = now, _recurrence(left_out, centre, scale, multiply(now), now, before)
    return now


@jax.jit
def _recurrence(
    left_out: Array, centre: Any, scale: Any, image: Array, now: Array, before: Array
) -> Array:
    """The next polynomial, from the last two and the image of the last one."""
    following = scale * (centre * now - image) - before
    return following - matmul(left_out, matmul(left_out.T, following))


def _measured(multiply: Multiply, vectors: Array, largest: float) -> LocallyLinear:
    """The best pairs within the span of orthonormal columns, and their residuals."""
    images = multiply(vectors)
    values, rotation = jnp.linalg.eigh(matmul(vectors.T, images))
    vectors, images = matmul(vectors, rotation), matmul(images, rotation)
    residuals = jnp.linalg.norm(images - vectors * values[None, :], axis=0)
    return LocallyLinear(fix_signs(vectors), values, residuals, largest)


def _all_at_once(multiply: Multiply, settled: Array, k: int) -> LocallyLinear:
    """By a full decomposition of Q outside of `settled`."""
    n, number = settled.shape
    axes = jnp.linalg.qr(settled, mode="complete")[0] if number else jnp.eye(n, dtype=settled.dtype)
    basis = axes[:, number:]
    values, vectors = jnp.linalg.eigh(matmul(basis.T, multiply(basis)))
    return _measured(multiply, matmul(basis, vectors[:, :k]), float(values[-1]))
