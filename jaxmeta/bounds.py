r"""How far a weighted concatenation is from the ideal: Lemma 1 and Theorem 1, corrected.

An ideal embedding $E = U\,\mathrm{diag}(\lambda)^\alpha$ is compared with the concatenation
$\hat E = [E_1 C_1 \ldots E_N C_N]$ of sources $E_j = Q_j\,\mathrm{diag}(\mu_j)^{\alpha_j}$ of $k_j$
dimensions. Block $j$ of the ideal, the columns $\theta_j + 1, \ldots, \theta_{j+1}$ of $U$, is set
against source $j$; what lies beyond $K = \sum_j k_j$ is bias. With $P$ that block, $Q = Q_j$,
$a_i = \lambda_{\theta_j+i}^{2\alpha}$, $b_i = c_{j,i}^2\mu_{j,i}^{2\alpha_j}$ and
$a_{k_j+1} = 0$, the terms are

$$\text{bias} = \Big(\sum_{i>K}\lambda_i^{4\alpha}\Big)^{1/2}, \qquad
  \text{magnitude}_j = \|a - b\|_2, \qquad
  \text{block}_j = \|P\,\mathrm{diag}(a)P^\top - Q\,\mathrm{diag}(b)Q^\top\|_F,$$

$$\text{direction}^*_j = \|P\,\mathrm{diag}(a)P^\top - Q\,\mathrm{diag}(a)Q^\top\|_F, \qquad
  \text{direction}_j = \sum_{i=1}^{k_j}|a_i - a_{i+1}|\,
  \|P_{1:i}P_{1:i}^\top - Q_{1:i}Q_{1:i}^\top\|_F,$$

and the PIP loss is at most the tight form, that at most the split one, that at most the telescoped
one, which is what Theorem 1 should have said (see `theory/theorem1.py` for the proof, and for the
counterexample to the printed form).

Each block is described by two $k_j \times k_j$ matrices, $C = Q^\top P$ and the Gram matrix of what
projection onto $P$ leaves of $Q$; all terms are sums of squares of these, so that aligned sources
give zero and not the square root of a rounding error. Vectors are taken to be orthonormal.
"""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from jaxmeta import _checks
from jaxmeta._types import Numbers, Scalar, Weights
from jaxmeta.linalg import (
    matmul,
    norm,
    power_of_two,
    principal_sines,
    residual,
    safe_ratio,
    safe_sqrt,
)
from jaxmeta.pip import pip_loss
from jaxmeta.spectral import Spectrum, check_spectrum, power, split_by_source

__all__ = [
    "BoundTerms",
    "Lemma1",
    "SourceOrder",
    "best_order",
    "bound_terms",
    "lemma1",
    "select_sources",
]


class Lemma1(NamedTuple):
    """Both sides of Lemma 1, computed apart."""

    left: Float[Array, ""]
    """Distance of the two projectors."""
    right: Float[Array, ""]
    """From the sines of the principal angles."""


class BoundTerms(NamedTuple):
    """The terms of the bound, one entry per source except for the bias; all are >= 0."""

    bias: Float[Array, ""]
    """What the ideal holds beyond the dimensions of all sources."""
    magnitude: Float[Array, " N"]
    """Distance of the spectra."""
    direction: Float[Array, " N"]
    """Distance of the directions, by the telescoping sum of nested subspaces."""
    direction_exact: Float[Array, " N"]
    """Distance of the directions, as one norm."""
    block: Float[Array, " N"]
    """Distance of source and block, magnitude and direction together."""

    @property
    def telescoped(self) -> Float[Array, "..."]:
        """The corrected Theorem 1: bias, directions telescoped, magnitudes."""
        return self.bias + jnp.sum(self.direction + self.magnitude, axis=-1)

    @property
    def split(self) -> Float[Array, "..."]:
        """Bias, exact directions, magnitudes: at most `telescoped`."""
        return self.bias + jnp.sum(self.direction_exact + self.magnitude, axis=-1)

    @property
    def tight(self) -> Float[Array, "..."]:
        """Bias and blocks: at most `split`, at least the PIP loss."""
        return self.bias + jnp.sum(self.block, axis=-1)


class SourceOrder(NamedTuple):
    """An order of the sources and the bound it gives."""

    order: Int[Array, " N"]
    """Indices of the sources, first block first."""
    tight: Float[Array, ""]
    """The tight bound in that order."""


@jax.jit
def lemma1(x: Float[Array, "n k"], y: Float[Array, "n k"]) -> Lemma1:
    r"""Both sides of $\|XX^\top - YY^\top\|_F = \sqrt2\,\|X^\top Y_\perp\|_F$ (Lemma 1).

    `x` and `y` have orthonormal columns, as many of one as of the other. The left side is a PIP
    loss, the right side comes from the principal angles (Lemma 2). Cost: $O(nk^2)$.

    >>> import jax.numpy as jnp
    >>> x, y = jnp.eye(3)[:, :1], jnp.array([[0.6], [0.8], [0.0]])
    >>> left, right = lemma1(x, y)
    >>> print(f"{left:.4f} {right:.4f}")
    1.1314 1.1314
    """
    _checks.matrices(x=x, y=y)
    if x.shape != y.shape:
        do = "see principal_sines for subspaces of different dimensions"
        _checks.fail("x and y", f"shapes {x.shape} and {y.shape}", "the same", do)
    return Lemma1(pip_loss(x, y), jnp.sqrt(2.0).astype(x.dtype) * norm(principal_sines(x, y)))


@jax.jit
def bound_terms(
    ideal: Spectrum,
    sources: Sequence[Spectrum],
    weights: Weights | None = None,
    *,
    alpha: Scalar,
    source_alphas: Numbers | None = None,
) -> BoundTerms:
    r"""The terms of the corrected Theorem 1 for any number of sources.

    `weights[j]` is a number or one number per dimension of source $j$ (None: all 1).
    `alpha` is the exponent of the ideal, and of every source unless `source_alphas` has one for
    each. An ideal with fewer than $K$ values is padded with zeros. The bound holds for unsorted
    ideal values too, but is meant for descending ones.

    Cost: $O(n \sum_j k_j^2)$. Reference: `bollegala22`, Theorem 1 and its N-source extension.

    >>> import jax.numpy as jnp
    >>> ideal = Spectrum(jnp.eye(4), jnp.array([4.0, 3.0, 2.0, 1.0]))
    >>> sources = (Spectrum(jnp.eye(4)[:, :2], jnp.array([5.0, 3.0])),)
    >>> terms = bound_terms(ideal, sources, alpha=0.5)
    >>> print(f"bias {terms.bias:.3f}, magnitude {terms.magnitude[0]:.3f}, bound {terms.tight:.3f}")
    bias 2.236, magnitude 1.000, bound 3.236
    """
    sizes = _check(ideal, sources)
    bias, a, b = _strengths(ideal, sources, weights, alpha, source_alphas)
    ends = np.cumsum(sizes)
    terms = []
    for j, (size, end, source) in enumerate(zip(sizes, ends, sources, strict=True)):
        p = ideal.vectors[:, end - size : end]
        p = jnp.pad(p, ((0, 0), (0, size - p.shape[1])))
        cosines, rest = _overlap(p, source.vectors)
        terms.append(
            (
                norm(a[j] - b[j]),
                _telescoped(a[j], cosines, rest),
                _distance(a[j], a[j], cosines, rest),
                _distance(a[j], b[j], cosines, rest),
            )
        )
    return BoundTerms(bias, *(jnp.stack(column) for column in zip(*terms, strict=True)))


@jax.jit
def best_order(
    ideal: Spectrum,
    sources: Sequence[Spectrum],
    weights: Weights | None = None,
    *,
    alpha: Scalar,
    source_alphas: Numbers | None = None,
) -> SourceOrder:
    r"""The order of the sources that makes the tight bound smallest.

    The PIP loss does not depend on the order of the sources; the bound does, because the order
    decides which block of the ideal each source is set against. A source's term depends on its
    offset alone, so few terms are computed and all orders are compared by adding them up. At most 8
    sources.

    Cost: $O(nK^2)$, then $O(k^3)$ for each source and each of its $\le 2^{N-1}$ offsets.

    >>> import jax.numpy as jnp
    >>> ideal = Spectrum(jnp.eye(4), jnp.array([4.0, 3.0, 2.0, 1.0]))
    >>> tail = Spectrum(jnp.eye(4)[:, 2:], jnp.array([2.0, 1.0]))
    >>> head = Spectrum(jnp.eye(4)[:, :2], jnp.array([4.0, 3.0]))
    >>> found = best_order(ideal, (tail, head), alpha=0.5)
    >>> print(found.order, f"{found.tight:.3f}")
    [1 0] 0.000
    """
    sizes = _check(ideal, sources)
    _checks.integer("the number of sources", len(sizes), least=1, most=8, of="an exhaustive search")
    bias, a, b = _strengths(ideal, sources, weights, alpha, source_alphas)
    whole = jnp.concatenate(a)
    p = ideal.vectors[:, : whole.shape[0]]
    p = jnp.pad(p, ((0, 0), (0, whole.shape[0] - p.shape[1])))

    orders = np.array(list(itertools.permutations(range(len(sizes)))))
    ends = np.cumsum(np.array(sizes)[orders], axis=1)
    totals = jnp.zeros(len(orders), whole.dtype)
    for j, (size, source) in enumerate(zip(sizes, sources, strict=True)):
        term = partial(_block_at, _overlap(p, source.vectors), whole, b[j])
        starts = ends[orders == j] - size  # one per order, in the order of `orders`
        offsets, which = np.unique(starts, return_inverse=True)
        totals += lax.map(term, jnp.asarray(offsets))[which]
    best = jnp.argmin(totals)
    return SourceOrder(jnp.asarray(orders)[best], bias + totals[best])


@jax.jit(static_argnames="count")
def select_sources(
    ideal: Spectrum, sources: Sequence[Spectrum], *, count: int, alpha: Scalar
) -> Int[Array, " count"]:
    r"""The `count` sources with the smallest directional variance, best first (section 3.4).

    Each source is set alone against the ideal's leading block; its directional term
    $\|PAP^\top - QAQ^\top\|_F$ is divided by $\|A\|_F$, so that sources of different sizes compare:
    0 for the ideal's own directions, $\sqrt2$ for orthogonal ones. Cost: $O(n\sum_j k_j^2)$.
    """
    sizes = _check(ideal, sources)
    _checks.integer("count", count, least=1, most=len(sizes), of="sources")
    variances = []
    for size, source in zip(sizes, sources, strict=True):
        direction = bound_terms(ideal, (source,), alpha=alpha).direction_exact[0]
        (values,) = split_by_source(ideal.values, sizes=(size,))
        strength = norm(power(values, 2 * alpha))
        variances.append(safe_ratio(direction, strength))
    return jnp.argsort(jnp.stack(variances))[:count]


def _check(ideal: Spectrum, sources: Sequence[Spectrum]) -> tuple[int, ...]:
    """Check both, and return the sizes of the sources."""
    check_spectrum("ideal", ideal)
    _checks.sources("sources", sources, Spectrum)
    for j, source in enumerate(sources):
        name = f"sources[{j}]"
        check_spectrum(name, source)
        _checks.same_rows(**{"ideal.vectors": ideal.vectors, f"{name}.vectors": source.vectors})
    return tuple(source.values.shape[0] for source in sources)


def _strengths(ideal, sources, weights, alpha, source_alphas):
    """The bias, and per source the strengths a of its block of the ideal and b of its own."""
    sizes = tuple(source.values.shape[0] for source in sources)
    _checks.scalar("alpha", alpha)
    weights = [1.0] * len(sizes) if weights is None else weights
    source_alphas = [alpha] * len(sizes) if source_alphas is None else source_alphas
    _checks.numbers_per_source("weights", weights, sizes)
    _checks.numbers_per_source("source_alphas", source_alphas, [1] * len(sizes))
    dtype = ideal.values.dtype
    strength = power(ideal.values, 2 * alpha)
    b = []
    for c, source, source_alpha in zip(weights, sources, source_alphas, strict=True):
        c = jnp.asarray(c, dtype)
        # Not c**2 times the rest: a large weight of a weak source would overflow.
        b.append(c * (c * power(source.values, 2 * source_alpha)))
    beyond = strength[sum(sizes) :]
    bias = norm(beyond) if beyond.size else jnp.zeros((), dtype)
    return bias, split_by_source(strength, sizes=sizes), b


def _overlap(p: Float[Array, "n m"], q: Float[Array, "n k"]):
    """Cosines of `q` with `p`, and the Gram matrix of what projection onto `p` leaves of `q`."""
    cosines = matmul(q.T, p)
    rest = residual(q, p, cosines.T)
    return cosines, matmul(rest.T, rest)


def _telescoped(a: Float[Array, " k"], cosines: Float[Array, "k k"], rest: Float[Array, "k k"]):
    """Sum of |a_i - a_{i+1}| times the distance of the spans of the first i columns."""
    squares = cosines**2
    # beyond[l, i]: the part of column l of the source in columns of the block after i.
    beyond = jnp.cumsum(squares[:, ::-1], axis=1)[:, ::-1]
    beyond = jnp.pad(beyond[:, 1:], ((0, 0), (0, 1)))
    outside = jnp.cumsum(jnp.diagonal(rest)) + jnp.diagonal(jnp.cumsum(beyond, axis=0))
    steps = jnp.abs(a - jnp.pad(a[1:], (0, 1)))
    return jnp.sum(steps * safe_sqrt(2 * outside))


def _distance(
    a: Float[Array, " k"],
    b: Float[Array, " k"],
    cosines: Float[Array, "k k"],
    rest: Float[Array, "k k"],
):
    """Norm of P diag(a) P' - Q diag(b) Q': the part inside span(P), across, and outside."""
    scale = power_of_two(jnp.maximum(jnp.max(a), jnp.max(b)))
    a, b = a / scale, b / scale
    weighted = b[:, None] * cosines
    inside = jnp.diag(a) - matmul(cosines.T, weighted)
    across = matmul(weighted, weighted.T) * rest
    outside = jnp.outer(b, b) * rest**2
    return scale * safe_sqrt(jnp.sum(inside**2) + 2 * jnp.sum(across) + jnp.sum(outside))


def _block_at(
    overlap: tuple[Float[Array, "k K"], Float[Array, "k k"]],
    whole: Float[Array, " K"],
    b: Float[Array, " k"],
    start: Int[Array, ""],
) -> Float[Array, ""]:
    """The block term of a source that is set against the columns of the ideal from `start` on."""
    cosines, rest = overlap
    size = b.shape[0]
    a = lax.dynamic_slice_in_dim(whole, start, size)
    inside = lax.dynamic_slice_in_dim(cosines, start, size, axis=1)
    column = jnp.arange(cosines.shape[1])[None, :]
    # What the block leaves of the source: all that the ideal leaves, and the ideal's other blocks.
    outside = jnp.where((column < start) | (column >= start + size), cosines, 0)
    return _distance(a, b, inside, rest + matmul(outside, outside.T))
