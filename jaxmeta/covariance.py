r"""Moments say all about rows that a linear way of combining sources has to know.

They are counts, sums and products of two columns over rows, so those of blocks of rows add: a file,
a mesh or a cluster is read once, and what is kept does not grow with it. A word counts for a pair
of sources if both have it. Sums are of rows less a shift, near their mean, and in two pieces, so
that float32 keeps its digits though products square the condition.
"""

import dataclasses
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from jaxmeta import _checks
from jaxmeta._twofold import Twofold, add, multiply, product_of_rows, ratio, transposed, twofold
from jaxmeta._types import Present, Sources
from jaxmeta.linalg import unit

__all__ = ["Moments", "Pair", "centred_gram", "mean_of", "moments", "pairs_of", "raw_gram"]


SOME = 64  # rows, whose mean is near that of all


class Pair(NamedTuple):
    """Sums over the rows that two sources have, of their columns less a shift."""

    shifts: tuple[Float[Array, " k"], Float[Array, " m"]]
    """What is taken from the rows of each, near their mean."""
    sums: Twofold
    r"""$\sum_w [1\ x_w]^\top[1\ y_w]$, of shape $(1 + k, 1 + m)$: count, sums, products."""

    @property
    def rows(self) -> Float[Array, ""]:
        """The number of rows that both have."""
        return self.sums.high[0, 0]


Pairs = dict[tuple[int, int], Pair]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Moments:
    """Moments of sources; `a + b` are those of the rows of both."""

    raw: Pairs
    """By pairs of sources, i <= j, of rows as they are. Empty if nothing needs them."""
    unit: Pairs
    """The same of rows of length 1."""
    count: Twofold
    """The number of rows: exact beyond those that one number of float32 can count."""
    widths: tuple[int, ...] = dataclasses.field(metadata={"static": True})
    """Columns of each source."""

    def __add__(self, other: "Moments") -> "Moments":
        """Moments of the rows of both."""
        same = isinstance(other, Moments) and self.widths == other.widths
        if not same or (set(self.raw), set(self.unit)) != (set(other.raw), set(other.unit)):
            got = getattr(other, "widths", type(other).__name__)
            do = "compute both with the same sources and for the same method"
            _checks.fail("other", f"moments of {got}", f"the same of {self.widths}", do)
        return _added(self, other)


@jax.jit
def _added(first: Moments, second: Moments) -> Moments:
    def total(a, b):
        return _add(a, b) if isinstance(a, Pair) else add(a, b)

    return jax.tree.map(total, first, second, is_leaf=lambda x: isinstance(x, Pair | Twofold))


def _add(a: Pair, b: Pair) -> Pair:
    """Sums about the shifts of the side with more rows."""
    more = a.rows >= b.rows
    first, second = (
        lax.stop_gradient(jnp.where(more, x, y)) for x, y in zip(a.shifts, b.shifts, strict=True)
    )
    shifts = first, second
    return Pair(shifts, add(_about(a, shifts), _about(b, shifts)))


def _about(pair: Pair, shifts: tuple[Array, Array]) -> Twofold:
    """The sums about other shifts: every column is moved by a number times that of ones."""

    def moved(sums, old, new):
        move = add(twofold(jnp.pad(old, (1, 0))), twofold(jnp.pad(-new, (1, 0))))
        wide = ((x[:, None], y[:1]) for x, y in zip(move, sums, strict=True))
        terms = zip(*(jnp.broadcast_arrays(*pieces) for pieces in wide), strict=True)
        return add(sums, multiply(*(Twofold(*pieces) for pieces in terms)))

    left, right = zip(pair.shifts, shifts, strict=True)
    return transposed(moved(transposed(moved(pair.sums, *left)), *right))


def moments(
    sources: Sources | tuple[np.ndarray, ...],
    present: Present | None = None,
    *,
    parts: tuple[str, ...] = ("raw", "unit"),
    pairs: bool = True,
) -> Moments:
    r"""Counts, means and inner products of columns of sources over their rows.

    Moments of blocks of rows are added with `+`. A row that a source lacks, where `present` is
    False, is ignored there. `parts` are "raw" for rows as they are and "unit" for rows of length 1,
    and without `pairs` no two sources are compared: what a method needs less of says
    `jaxmeta.plans.needs`. NumPy arrays are summed up on the host, in float64.

    Relative errors of singular values are some $10^{-6}$ in float32 for conditions up to $10^3$,
    over any number of rows. Cost: $nK^2$ flops for each part on the host, on a device $2nK^2$ in
    float64 and $12nK^2$ in float32; memory $O(K^2)$ and a copy of the sources, so pass blocks if
    there are many rows.

    >>> import jax.numpy as jnp
    >>> first, second = jnp.ones((2, 1)), 3 * jnp.ones((2, 1))
    >>> total = moments((first,)) + moments((second,))
    >>> print(mean_of(total.raw[0, 0]), total.raw[0, 0].rows)
    [2.] 4.0
    """
    for part in parts:
        _checks.one_of("parts", part, ("raw", "unit"))
    _checks.sources("sources", sources)
    on_host = all(isinstance(source, np.ndarray) for source in sources)
    if on_host and not isinstance(present, jax.core.Tracer):
        return _on_host(tuple(sources), present, parts, pairs)
    return _moments(tuple(sources), present, parts, pairs)


def pairs_of(count: int, pairs: bool) -> list[tuple[int, int]]:
    """The pairs of so many sources, or each with itself alone."""
    return [(i, j) for i in range(count) for j in range(i, count if pairs else i + 1)]


@_checks.checked(static=("parts", "pairs"))
def _moments(sources, present, parts, pairs) -> Moments:
    _checks.embeddings("sources", sources)
    n = sources[0].shape[0]
    if present is None:
        present = jnp.ones((n, len(sources)), bool)
    _checks.present(present, n, len(sources))

    def of(rows):
        shifts, ones, shifted = [], [], []
        for source, has in zip(rows, present.T, strict=True):
            has = has[:, None]
            here = jnp.broadcast_to(has, source.shape)
            source = jnp.where(here, source, 0)
            count = jnp.maximum(jnp.sum(has, dtype=source.dtype), 1)
            shift = lax.stop_gradient(jnp.sum(source, axis=0) / count)
            shifts.append(shift)
            shifted.append(jnp.where(here, source - shift[None, :], 0))
            ones.append(has.astype(source.dtype))
        extended = [jnp.concatenate(x, axis=1) for x in zip(ones, shifted, strict=True)]
        if pairs:  # one product of all: there is a program to compile for each
            whole, cuts = jnp.concatenate(extended, axis=1), [0, *(x.shape[1] for x in extended)]
            spans = [slice(*ends) for ends in itertools.pairwise(np.cumsum(cuts).tolist())]
            sums = product_of_rows(whole, whole)
            found = {
                (i, j): jax.tree.map(lambda x, a=spans[i], b=spans[j]: x[a, b], sums)
                for i, j in pairs_of(len(spans), True)
            }
        else:
            found = {(j, j): product_of_rows(x, x) for j, x in enumerate(extended)}
        return {(i, j): Pair((shifts[i], shifts[j]), sums) for (i, j), sums in found.items()}

    raw = of(sources) if "raw" in parts else {}
    units = [jax.vmap(unit)(source) for source in sources] if "unit" in parts else []
    widths = tuple(source.shape[1] for source in sources)
    count = twofold(jnp.asarray(float(n), sources[0].dtype))
    return Moments(raw, of(units) if units else {}, count, widths)


def _on_host(sources, present, parts, pairs) -> Moments:
    """The same by NumPy: sums in float64, and then in two pieces."""
    dtype = jax.dtypes.canonicalize_dtype(np.result_type(np.float32, *sources))
    _checks.embeddings("sources", [jax.ShapeDtypeStruct(x.shape, dtype) for x in sources])
    n = len(sources[0])
    if present is None:
        present = np.ones((n, len(sources)), bool)
    _checks.present(present, n, len(sources))

    def of(unit_rows):
        shifts, extended = [], []
        for source, has in zip(sources, np.asarray(present).T, strict=True):
            whole = np.empty((n, 1 + source.shape[1]))
            whole[:, 0], whole[:, 1:] = has, source
            rows = whole[:, 1:]
            if not has.all():
                rows[~has] = 0
            if unit_rows:
                _shorten(rows, scale=source.dtype.itemsize > 4)
            # Any numbers near the mean will do.
            some = rows[np.flatnonzero(has)[:SOME]]
            shift = (some.sum(axis=0) / max(len(some), 1)).astype(dtype)
            rows -= shift
            if not has.all():
                rows[~has] = 0
            shifts.append(jnp.asarray(shift))
            extended.append(whole)
        found = {}
        for i, j in pairs_of(len(sources), pairs):
            sums = extended[i].T @ extended[j]
            high = sums.astype(dtype)
            pieces = Twofold(jnp.asarray(high), jnp.asarray((sums - high).astype(dtype)))
            found[i, j] = Pair((shifts[i], shifts[j]), pieces)
        return found

    widths = tuple(source.shape[1] for source in sources)
    raw = of(False) if "raw" in parts else {}
    count = twofold(jnp.asarray(float(n), dtype))
    return Moments(raw, of(True) if "unit" in parts else {}, count, widths)


def _shorten(rows: np.ndarray, *, scale: bool) -> None:
    """Bring rows to length 1, but for zeros; `scale` where squares may overflow."""
    if scale:
        largest = np.abs(rows).max(axis=1, keepdims=True)
        rows /= np.where(largest == 0, 1, largest)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    rows /= np.where(lengths == 0, 1, lengths)


@_checks.checked()
def mean_of(pair: Pair) -> Float[Array, " k"]:
    """The mean of the first source's rows, those that both have."""
    count, sums = (jax.tree.map(lambda x, at=at: x[at, 0], pair.sums) for at in np.s_[:1, 1:])
    return pair.shifts[0] + ratio(sums, count).value


@_checks.checked()
def centred_gram(pair: Pair, centres: tuple[Array, Array]) -> Twofold:
    r"""$\sum_w (x_w - a)^\top(y_w - b)$ over the rows that both have, about any `centres`."""
    return jax.tree.map(lambda x: x[1:, 1:], _about(pair, centres))


@_checks.checked()
def raw_gram(pair: Pair) -> Twofold:
    r"""$\sum_w x_w^\top y_w$ over the rows that both have."""
    first, second = jax.tree.map(jnp.zeros_like, pair.shifts)
    return centred_gram(pair, (first, second))
