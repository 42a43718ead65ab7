r"""A plan is a combination that was fitted to some rows and can be applied to any.

Every linear way of combining sources is an affine map of their rows, $f(x) = [(x_1 - \bar x_1)A_1
\ldots (x_N - \bar x_N)A_N]$ or the sum of the parts, after rows are brought to length 1 or not. How
methods make plans stands in `jaxmeta.plans`; here is what all plans can do.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float

from jaxmeta import _checks
from jaxmeta._twofold import Twofold, axes, congruence, multiply, transposed, twofold
from jaxmeta._types import Present, Sources
from jaxmeta.combine import known
from jaxmeta.covariance import Moments, centred_gram, raw_gram
from jaxmeta.linalg import matmul, safe_ratio, safe_sqrt, unit

__all__ = ["Plan", "Seen", "apply_plan", "check_widths", "reduced"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Plan:
    """What is done to a row of each source, for `apply`."""

    centres: tuple[Float[Array, " _"], ...] | None
    """What is taken from the rows of each source."""
    maps: tuple[Float[Array, "..."], ...]
    """A number for each column of a source, or a matrix with a row for each."""
    rows: Float[Array, ""] | None = None
    """How many it was fitted to."""
    values: Float[Array, " _"] | None = None
    """Singular values of the whole result, if it was cut to its leading directions."""
    lost: Float[Array, ""] | None = None
    """By what fraction of its PIP norm the cut changed the PIP matrix of the rows fitted to."""
    method: str = dataclasses.field(default="UW", metadata={"static": True})
    """The name, for people."""
    unit: bool = dataclasses.field(default=False, metadata={"static": True})
    """Whether rows are brought to length 1 first."""
    join: str = dataclasses.field(default="concatenate", metadata={"static": True})
    """What becomes of the parts of a row: "concatenate", "sum", or "mean" over the sources it has.
    """

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns of each source."""
        return tuple(each.shape[0] for each in self.maps)

    @property
    def width(self) -> int:
        """Columns of the result."""
        widths = [each.shape[-1] for each in self.maps]
        return sum(widths) if self.join == "concatenate" else widths[0]

    @property
    def losses(self) -> Float[Array, " _"]:
        """What `lost` would be with 0, 1, ... directions, up to all of them."""
        if self.values is None:
            do = "fit it with settings.k, a number or a share"
            _checks.fail("plan", "one that was not cut", "one that knows its values", do)
        return _losses(self.values)

    def fewest(self, share: float) -> int:
        """The smallest number of directions that loses no more than a share of the PIP norm."""
        return _fewest(self.losses, share)

    def __repr__(self) -> str:
        """The method, and from which widths to which."""
        cut = "" if self.values is None else f" of {self.values.shape[0]}"
        return f"Plan({self.method!r}, {self.widths} to {self.width}{cut} columns)"


@_checks.checked()
def apply_plan(plan: Plan, sources: Sources, present: Present | None = None) -> Float[Array, "n m"]:
    """The rows of a plan: of the sources that it was fitted to, or of any others.

    A row that a source lacks, where `present` is False, has zeros there. Cost: $2nKm$ flops.
    """
    _checks.embeddings("sources", sources)
    check_widths(plan.widths, sources)
    parts = []
    for j, (source, move) in enumerate(zip(known(sources, present), plan.maps, strict=True)):
        if plan.unit:
            source = jax.vmap(unit)(source)
        if plan.centres is not None:
            source = source - plan.centres[j][None, :]
            if present is not None:
                source = jnp.where(jnp.broadcast_to(present[:, j, None], source.shape), source, 0)
        parts.append(source * move[None, :] if move.ndim == 1 else matmul(source, move))
    if plan.join == "concatenate":
        return jnp.concatenate(parts, axis=1)
    total = sum(parts[1:], parts[0])
    if plan.join == "sum":
        return total
    if present is None:
        return total / len(parts)
    return total / jnp.maximum(jnp.sum(present, axis=1, keepdims=True, dtype=total.dtype), 1)


def check_widths(widths: tuple[int, ...], sources: Sources) -> None:
    """Raise unless sources have the columns that a plan was fitted to."""
    got = tuple(source.shape[1] for source in sources)
    if got != widths:
        do = "pass the sources that the plan was fitted to, in that order"
        _checks.fail("sources", f"widths {got}", f"{widths}, those of the plan", do)


class Seen(NamedTuple):
    """What the columns of a concatenation stand for, where the noise of sources is known."""

    ideal: tuple[Float[Array, " _"], ...]
    r"""$\lambda^\alpha$ of the ideal direction behind each column of each source."""
    overlaps: tuple[Float[Array, " _"], ...]
    r"""$\langle\tilde u, u\rangle^2$ of each column's direction with it."""


def reduced(plan: Plan, moments: Moments, k: int | float, seen: Seen | None = None) -> Plan:
    r"""The plan cut to the leading directions of its result.

    Keeping $k$ directions changes the PIP matrix by exactly $\sqrt{\sum_{i>k}s_i^4}$. An int `k` is
    their number; a float the fraction of $\sqrt{\sum_i s_i^4}$ that may be lost, which only values
    outside of `jit` can tell. With `seen`, directions get the lengths that noise leaves them. A
    mean can be cut if all sources have all rows, which is checked outside of `jit` alone. Cost:
    $O(K^3)$.
    """
    if plan.join == "mean" and not _complete(moments):
        do = "align with vocabulary='intersection' or missing='mean', and leave present out"
        _checks.fail("settings.k", str(k), "None for a mean over the sources that a row has", do)
    gram, values, v, lost = _directions(plan, moments)
    if isinstance(k, float):
        k = _fewest(lost, k)
    k = min(k, v.shape[1])
    kept = v[:, :k]
    if seen is not None:
        kept = kept * _shrinkage(gram, values[:k], kept, seen)[None, :]
    cuts = np.cumsum([0, *(each.shape[-1] for each in plan.maps)])
    maps = []
    for j, move in enumerate(plan.maps):
        here = kept[cuts[j] : cuts[j + 1]] if plan.join == "concatenate" else kept
        maps.append(move[:, None] * here if move.ndim == 1 else matmul(move, here))
    join = "sum" if plan.join == "concatenate" else plan.join
    return dataclasses.replace(plan, maps=tuple(maps), values=values, lost=lost[k], join=join)


def _complete(moments: Moments) -> bool:
    """Whether every source has every row, as far as can be seen."""
    counts = [jax.tree.map(lambda x: x[0, 0], pair.sums) for pair in moments.raw.values()]
    if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves((moments.count, counts))):
        return True
    return all(count == moments.count for count in counts)


def _fewest(lost: Array, share: float) -> int:
    """The smallest k that loses no more than a share."""
    if isinstance(lost, jax.core.Tracer):
        do = "pass an int under jit: the size of a result is static there"
        _checks.fail("settings.k", f"the fraction {share} of traced values", "an int", do)
    known = np.asarray(lost)
    if np.isnan(known).any():
        do = "drop rows that are not finite, or pass an int"
        _checks.fail("settings.k", f"the fraction {share} of NaN", "values that are numbers", do)
    return max(int(np.argmax(known <= share)), 1)


@jax.jit
def _shrinkage(gram: Twofold, values: Array, v: Array, seen: Seen) -> Float[Array, " k"]:
    r"""What the noise leaves of the length of each direction of a concatenation $Z$.

    A direction $d = Zv/s$ holds $t = d^\top|M|^{2\alpha}d$ of the ideal's strength, and its best
    length is $\sqrt t$. Noise of two sources, and of two columns of one, is orthogonal, so with
    $D = \mathrm{diag}(\lambda^\alpha)$ and overlaps $o$

    $$s^2t = v^\top D\big(Z^\top Z - \mathrm{diag}((1 - o_a)\|z_a\|^2)\big)Dv.$$
    """
    moved = jnp.concatenate(seen.ideal)[:, None] * v
    noise = (1 - jnp.concatenate(seen.overlaps)) * jnp.diag(gram.high)
    strength = jnp.diag(congruence(moved, gram, moved).value)
    strength = strength - jnp.sum(noise[:, None] * moved**2, axis=0)
    return safe_ratio(safe_sqrt(strength), values**2)


@jax.jit
def _directions(plan: Plan, moments: Moments) -> tuple[Twofold, Array, Array, Array]:
    """Inner products of the columns of a result, its spectrum, its axes, and what cuts cost."""
    gram = _gram_of(plan, moments)
    values, v = axes(gram)
    return gram, values, v, _losses(values)


@jax.jit
def _losses(values: Float[Array, " K"]) -> Float[Array, " _"]:
    """What cuts to 0, 1, ..., K directions cost, as a share of the PIP norm."""
    fourth = (values / jnp.where(values[0] == 0, 1, values[0])) ** 4
    # Sums of what is left out, from the smallest on.
    rest = jnp.append(jnp.cumsum(fourth[::-1])[::-1], 0)
    return safe_sqrt(safe_ratio(rest, jnp.full_like(rest, 1) * rest[0]))


def _gram_of(plan: Plan, moments: Moments) -> Twofold:
    pairs = moments.unit if plan.unit else moments.raw

    def block(i, j):
        if i > j:
            return transposed(block(j, i))
        if plan.centres is None:
            return raw_gram(pairs[i, j])
        return centred_gram(pairs[i, j], (plan.centres[i], plan.centres[j]))

    count = range(len(plan.maps))
    rows = [_beside([block(i, j) for j in count]) for i in count]
    gram = transposed(_beside([transposed(row) for row in rows]))
    if plan.maps[0].ndim == 1:
        scale = twofold(jnp.concatenate(plan.maps)[:, None])
        return multiply(multiply(gram, scale), transposed(scale))
    if plan.join == "concatenate":
        moved = block_diag(*plan.maps)
    else:
        moved = jnp.concatenate(plan.maps) / (len(plan.maps) if plan.join == "mean" else 1)
    return congruence(moved, gram, moved)


def _beside(blocks: list[Twofold]) -> Twofold:
    return Twofold(*(jnp.concatenate(x, axis=1) for x in zip(*blocks, strict=True)))
