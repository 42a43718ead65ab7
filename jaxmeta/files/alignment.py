r"""`align` brings sources with different words to the same rows, and says how many each has.

Words come in the order of the first source, then those that are new in the second, and so on.
"""

import itertools
import warnings
from collections.abc import Collection, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float

from jaxmeta import _checks
from jaxmeta._checks import fail
from jaxmeta._types import Present, Scalar, Sources
from jaxmeta.files.vectors import Vectors
from jaxmeta.linalg import matmul, power_of_two
from jaxmeta.progress import Progress, silent

__all__ = ["Aligned", "Coverage", "align", "common_rows", "coverage_of", "predict_missing"]

RIDGE = 0.1  # hardly felt with many common words, and needed with as few as dimensions
SHOWN = 3  # words of each source in a message
FEW = 0.1  # of the words of the smallest source: so few are shared by accident, perhaps


class Coverage(NamedTuple):
    """One source covers this much of the result."""

    name: str
    words: int
    """Words that the source came with."""
    found: int
    """Words of the result that it has."""
    share: float
    """`found`, as a share of the words of the result."""
    filled: int
    """Words of the result that it lacks."""
    how: str
    """What stands in the rows of those: "zero", "mean", "predict", or "" if it lacks none."""


class Aligned(NamedTuple):
    """Sources whose rows stand for the same words."""

    words: tuple[str, ...]
    sources: tuple[Float[Array, "n _"], ...]
    """One array per source, all of one dtype."""
    present: Present
    """Whether a source came with a word; if not, its row is filled in."""
    coverage: tuple[Coverage, ...]

    def report(self) -> str:
        """Make a table of what each source has of the words, and what is filled in."""
        width = max(len("source"), *(len(each.name) for each in self.coverage))
        lines = [f"{'source':<{width}}{'its words':>12}{'of these':>12}{'share':>8}   filled in"]
        for each in self.coverage:
            filled = f"{each.filled:,} by {each.how}" if each.filled else "none"
            counts = f"{each.words:>12,}{each.found:>12,}{each.share:>8.1%}"
            lines.append(f"{each.name:<{width}}{counts}   {filled}")
        return "\n".join([f"{len(self.words):,} words", *lines])

    def __repr__(self) -> str:
        return self.report()


def align(
    sources: Sequence[Vectors],
    *,
    vocabulary: Literal["intersection", "union"] | Collection[str] = "intersection",
    missing: Literal["zero", "mean", "predict"] = "zero",
    ridge: float = RIDGE,
    lower: bool = False,
    names: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Aligned:
    r"""Bring sources to the words of all or of any: one array per source, with a row for each.

    `vocabulary` may be words, too: the result has those of them that a source has, in that order.
    Where a source lacks words, `missing` says what their rows are: "zero", the "mean" of its rows,
    or what `predict_missing` predicts with `ridge`. With `lower`, words are put in lower case
    first; of those that become one, the first in its file counts. Sources that share few words, and
    would share many in lower case, are warned of. `names` are for the table of coverage and for
    errors. `progress` is called with "align" and the fraction of the sources that are done, and
    with "predict" if there is something to predict. float16 becomes float32; if any source is
    float64, all are, where JAX has it. A source names a word once, and its values are finite.

    Cost: $O(nK)$ and a dictionary of the words of each source; memory for the result and one source
    more. For "predict" see there.

    >>> first = Vectors(("a", "b"), np.array([[1.0], [2.0]]))
    >>> second = Vectors(("c", "b"), np.array([[3.0, 4.0], [5.0, 6.0]]))
    >>> print(*align((first, second), vocabulary="union").sources[1])
    [0. 0.] [5. 6.] [3. 4.]
    """
    names = _check_sources(sources, names)
    sources = tuple(map(_lowered, sources)) if lower else sources
    _checks.one_of("missing", missing, ("zero", "mean", "predict"))
    _checks.positive("ridge", ridge, f"pass a small share, such as {RIDGE}")
    progress = progress or silent
    words, rows = common_rows([source.words for source in sources], names, vocabulary)
    present = np.stack([row >= 0 for row in rows], axis=1)
    if missing == "predict":
        _check_reach(words, present, names)
    widest = np.result_type(np.float32, *(source.matrix.dtype for source in sources))
    dtype = jax.dtypes.canonicalize_dtype(widest)
    arrays: list[Array] = []
    for source, row in zip(sources, rows, strict=True):
        values = source.matrix[row].astype(dtype, copy=False)
        fill = source.matrix.mean(axis=0, dtype=np.float64) if missing == "mean" else 0
        values[row < 0] = fill
        arrays.append(jnp.asarray(values))
        progress("align", len(arrays) / len(sources))
    given, has = tuple(arrays), jnp.asarray(present)
    lacking = np.flatnonzero(~present.all(axis=0)).tolist() if missing == "predict" else []
    for done, j in enumerate(lacking, start=1):
        arrays[j] = _filled(given, has, ridge, j)
        progress("predict", done / len(lacking))
    sizes = [len(source.words) for source in sources]
    return Aligned(words, tuple(arrays), has, coverage_of(sizes, names, rows, missing))


def coverage_of(
    sizes: Sequence[int], names: Sequence[str], rows: Sequence[np.ndarray], how: str
) -> tuple[Coverage, ...]:
    """Say how much sources of so many words cover of those whose rows `common_rows` found."""
    n, found = len(rows[0]), [int(np.sum(row >= 0)) for row in rows]
    return tuple(
        Coverage(name, size, count, count / n, n - count, how if count < n else "")
        for name, size, count in zip(names, sizes, found, strict=True)
    )


def common_rows(
    sources: Sequence[tuple[str, ...]], names: Sequence[str], vocabulary: str | Collection[str]
) -> tuple[tuple[str, ...], list[np.ndarray]]:
    """Find the words of the result, and the row that each has in each source, -1 if none."""
    if isinstance(vocabulary, str):
        _checks.one_of("vocabulary", vocabulary, ("intersection", "union"))
    indices = []
    for j, own in enumerate(sources):
        index = dict(zip(own, range(len(own)), strict=True))
        if len(index) < len(own):
            row, word = next(pair for pair in enumerate(own) if index[pair[1]] != pair[0])
            got = f"{word!r} in rows {row} and {index[word]} of {names[j]}"
            fail(f"sources[{j}].words", got, "every word once", "drop or merge such rows")
        indices.append(index)
    if vocabulary == "union":
        words = tuple(dict.fromkeys(itertools.chain.from_iterable(indices)))
    elif not isinstance(vocabulary, str):
        some = (word for word in vocabulary if any(word in index for index in indices))
        words = tuple(dict.fromkeys(some))
        if not words:
            got = f"{len(vocabulary)} words of which no source has any"
            fail("vocabulary", got, "at least one", "check case and spelling")
    else:
        common = set(indices[0]).intersection(*indices[1:])
        words = tuple(filter(common.__contains__, indices[0]))
    if not words:
        pairs = zip(names, sources, strict=True)
        shown = (f"{name} has {', '.join(map(repr, own[:SHOWN]))}" for name, own in pairs)
        do = "pass lower=True to align if they differ in case, or vocabulary='union'"
        fail("sources", f"no word that all have ({'; '.join(shown)})", "at least one", do)
    _warn_of_case(indices)
    none = itertools.repeat(-1)
    return words, [np.fromiter(map(i.get, words, none), np.intp, len(words)) for i in indices]


def _lowered(source: Vectors) -> Vectors:
    """Put words in lower case, and keep the first of those that become one."""
    first: dict[str, int] = {}
    for row, word in enumerate(source.words):
        first.setdefault(word.lower(), row)
    return Vectors(tuple(first), source.matrix[list(first.values())])


def _warn_of_case(indices: Sequence[Collection[str]]) -> None:
    """Warn if sources share few words, and would share many in lower case."""
    least = min(indices, key=len)
    shared = sum(all(word in index for index in indices) for word in least)
    if shared >= FEW * len(least):
        return
    lowered = [{word.lower() for word in index} for index in indices]
    found = len(lowered[0].intersection(*lowered[1:]))
    if found > 2 * shared + 1:
        message = (
            f"sources share {shared:,} words, and {found:,} in lower case: pass lower=True to align"
        )
        warnings.warn(message, UserWarning, stacklevel=4)


def predict_missing(
    sources: Sources, present: Present, *, ridge: Scalar = RIDGE
) -> tuple[Float[Array, "n _"], ...]:
    r"""Predict the rows of missing words from the sources that have the word.

    $$W_{ij} = (X^\top X + rI)^{-1}X^\top Y, \qquad
      \hat e_j(w) = \frac1{|I_w|}\sum_{i \in I_w} \bar y_{ij} + W_{ij}^\top(e_i(w) - \bar x_{ij}),$$

    $X$ and $Y$ the rows of $E_i$ and $E_j$ for the words that both have, less their means; $I_w$
    the sources that have $w$ and share a word with $j$, without which the row is NaN; $r$ is
    `ridge` times the mean diagonal entry of $X^\top X$. Rows that are present come back to the bit;
    what stands in the others is never read. Predictions are shorter than learned vectors.

    Cost: $O(n(k_i^2 + k_ik_j) + k_i^3)$ for each pair; memory for a few copies of the sources.
    Reference: `yin16`.

    >>> x = jnp.array([[1.0], [2.0], [3.0], [4.0]])
    >>> y, present = (2 * x + 1).at[3].set(jnp.nan), jnp.ones((4, 2), bool).at[3, 1].set(False)
    >>> print(predict_missing((x, y), present, ridge=1e-6)[1][3].round(3))
    [9.]
    """
    _checks.embeddings("sources", sources)
    _checks.present(present, sources[0].shape[0], len(sources))
    _checks.positive("ridge", ridge, f"pass a small share, such as {RIDGE}")
    return tuple(_filled(tuple(sources), present, ridge, j) for j in range(len(sources)))


@_checks.checked(static=("target",))
def _filled(sources: tuple[Array, ...], present: Array, ridge: Scalar, target: int) -> Array:
    """Predict the missing rows of one source."""
    y, has = sources[target], present[:, target]
    total, votes = jnp.zeros_like(y), jnp.zeros_like(y, shape=(y.shape[0], 1))
    for i, x in enumerate(sources):
        if i == target:
            continue
        common = (present[:, i] & has)[:, None]
        helps = present[:, i, None] & jnp.any(common)
        # Rows to be ignored are replaced before anything is done with them, so that NaN in them
        # reaches neither sums nor derivatives.
        predicted = _regression(jnp.where(helps, x, 0), y, common, ridge)
        total = total + jnp.where(helps, predicted, 0)
        votes = votes + helps.astype(y.dtype)
    mean = jnp.where(votes > 0, total / jnp.maximum(votes, 1), jnp.nan)
    return jnp.where(has[:, None], y, mean)


def _regression(x: Array, y: Array, common: Array, ridge: Scalar) -> Array:
    """Evaluate at all rows of x the centred ridge regression on the `common` rows."""
    x = x / power_of_two(jnp.max(jnp.abs(x)))  # so that squares neither overflow nor vanish
    count = jnp.maximum(jnp.sum(common.astype(x.dtype)), 1)

    def mean(rows):
        return jnp.sum(jnp.where(common, rows, 0), axis=0, keepdims=True) / count

    centre, level = mean(x), mean(y)
    a, b = (jnp.where(common, rows - m, 0) for rows, m in ((x, centre), (y, level)))
    gram = matmul(a.T, a)
    unit = jnp.trace(gram) / gram.shape[0]
    # Without spread the map is 0, whatever it is divided by.
    shift = jnp.asarray(ridge, x.dtype) * jnp.where(unit == 0, 1, unit)
    factor = cho_factor(gram + shift * jnp.eye(gram.shape[0], dtype=x.dtype))
    return level + matmul(x - centre, cho_solve(factor, matmul(a.T, b)))


def _check_sources(sources: Any, names: Sequence[str] | None) -> tuple[str, ...]:
    """Raise unless `sources` are words with finite vectors; return their names."""
    if isinstance(sources, Vectors):
        do = "put a single source in a tuple: (source,)"
        fail("sources", "a Vectors", "a tuple with one Vectors per source", do, TypeError)
    _checks.sources("sources", sources)
    names = tuple(names) if names else tuple(f"source {j}" for j in range(len(sources)))
    _checks.count("names", names, len(sources))
    for j, source in enumerate(sources):
        place = f"sources[{j}]"
        if not isinstance(source, Vectors):
            got = f"a {type(source).__name__}"
            fail(place, got, "a Vectors", "read one with read_vectors", TypeError)
        matrix, count = source.matrix, len(source.words)
        if matrix.ndim != 2 or len(matrix) != count or matrix.size == 0:
            got = f"{count} words and a matrix of shape {matrix.shape} in {names[j]}"
            fail(place, got, "a row per word and at least one", "read it again")
        if not jnp.issubdtype(matrix.dtype, jnp.floating):
            got, do = f"dtype {matrix.dtype}", "cast it with .astype(np.float32)"
            fail(f"{place}.matrix", got, "floats", do, TypeError)
        with np.errstate(invalid="ignore"):  # infinities of both signs have no sum
            wrong = ~np.isfinite(matrix.sum(axis=1, dtype=np.float64))
        if wrong.any():
            row = int(np.argmax(wrong))
            got = f"a value that is not finite in row {row} ({source.words[row]!r} of {names[j]})"
            fail(f"{place}.matrix", got, "numbers", "drop the word")
    return names


def _check_reach(words: tuple[str, ...], present: np.ndarray, names: tuple[str, ...]) -> None:
    """Raise if a word is missing that no source can predict."""
    counts = present.astype(np.float64)
    linked = counts.T @ counts > 0
    lost = ~present & (counts @ linked == 0)
    for j in np.flatnonzero(lost.any(axis=0)):
        shown = ", ".join(repr(words[w]) for w in np.flatnonzero(lost[:, j])[:SHOWN])
        got = f"'predict' for {lost[:, j].sum():,} words such as {shown} that {names[j]} lacks"
        expected = f"a source that has them and shares words with {names[j]}"
        do = "pass missing='zero' or 'mean', or vocabulary='intersection'"
        fail("missing", got, expected, do)
