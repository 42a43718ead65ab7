r"""How far a weighted concatenation is from the ideal: Lemma 1 and Theorem 1, corrected.

Block $j$ of the ideal $U\,\mathrm{diag}(\lambda)^\alpha$, the columns $\theta_j + 1, \ldots,
\theta_{j+1}$ of $U$, is set against source $Q_j\,\mathrm{diag}(\mu_j)^{\alpha_j}$ of $k_j$
dimensions; what lies beyond $K = \sum_j k_j$ is bias. Theorem 1 does not hold as printed: see
`theory/theorem1.py`. All terms are sums of squares of the cosines $Q_j^\top P$ and of what
projection onto the block leaves, so that aligned sources give zero. Vectors are orthonormal.
"""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from jaxmeta import _checks
from jaxmeta._types import GivenWeights, Numbers, Scalar
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
    """Both sides of Lemma 1: distance of the projectors, and from sines of principal angles."""

    left: Float[Array, ""]
    right: Float[Array, ""]


class BoundTerms(NamedTuple):
    r"""The terms of the bound, one entry per source except for the bias; all are >= 0.

    $P$ is the source's block of the ideal's vectors, $Q$ its own, $a_i =
    \lambda_{\theta_j+i}^{2\alpha}$ with $a_{k_j+1} = 0$, and $b_i =
    c_{j,i}^2\mu_{j,i}^{2\alpha_j}$.
    """

    bias: Float[Array, ""]
    r"""$(\sum_{i>K}\lambda_i^{4\alpha})^{1/2}$."""
    magnitude: Float[Array, " N"]
    r"""$\|a - b\|_2$."""
    direction: Float[Array, " N"]
    r"""$\sum_i|a_i - a_{i+1}|\,\|P_{1:i}P_{1:i}^\top - Q_{1:i}Q_{1:i}^\top\|_F$."""
    direction_exact: Float[Array, " N"]
    r"""$\|P\,\mathrm{diag}(a)P^\top - Q\,\mathrm{diag}(a)Q^\top\|_F$."""
    block: Float[Array, " N"]
    r"""$\|P\,\mathrm{diag}(a)P^\top - Q\,\mathrm{diag}(b)Q^\top\|_F$."""

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
    """An order of the sources and the tight bound it gives."""

    order: Int[Array, " N"]
    """Indices of the sources, first block first."""
    tight: Float[Array, ""]


@_checks.checked()
def lemma1(x: Float[Array, "n k"], y: Float[Array, "n k"]) -> Lemma1:
    r"""Both sides of $\|XX^\top - YY^\top\|_F = \sqrt2\,\|X^\top Y_\perp\|_F$ (Lemma 1).

    `x` and `y` have orthonormal columns, as many of one as of the other. Cost: $O(nk^2)$.
    """
    _checks.matrices(x=x, y=y)
    if x.shape != y.shape:
        do = "see principal_sines for subspaces of different dimensions"
        _checks.fail("x and y", f"shapes {x.shape} and {y.shape}", "the same", do)
    return Lemma1(pip_loss(x, y), 2**0.5 * norm(principal_sines(x, y)))


@_checks.checked()
def bound_terms(
    ideal: Spectrum,
    sources: Sequence[Spectrum],
    weights: GivenWeights | None = None,
    *,
    alpha: Scalar,
    source_alphas: Numbers | None = None,
) -> BoundTerms:
    r"""The terms of the corrected Theorem 1 (Eq. 7) for any number of sources.

    `weights` are as in `concatenate`. `alpha` is the exponent of the ideal, and of every source
    unless `source_alphas` has one for each. A shorter ideal is padded with zeros, and should
    descend. Cost: $O(n \sum_j k_j^2)$. Reference: `bollegala22`.

    >>> import jax.numpy as jnp
    >>> ideal = Spectrum(jnp.eye(4), jnp.array([4.0, 3.0, 2.0, 1.0]))
    >>> terms = bound_terms(ideal, (Spectrum(jnp.eye(4)[:, :2], jnp.array([5.0, 3.0])),), alpha=0.5)
    >>> print(f"bias {terms.bias:.3f}, magnitude {terms.magnitude[0]:.3f}, bound {terms.tight:.3f}")
    bias 2.236, magnitude 1.000, bound 3.236
    """
    sizes, bias, a, b = _strengths(ideal, sources, weights, alpha, source_alphas)
    blocks = jnp.split(_leading(ideal, sum(sizes)), np.cumsum(sizes)[:-1], axis=1)

    def terms(a, b, block, source):
        overlap = _overlap(block, source.vectors)
        distances = _telescoped(a, *overlap), _distance(a, a, *overlap), _distance(a, b, *overlap)
        return norm(a - b), *distances

    return BoundTerms(bias, *map(jnp.stack, zip(*map(terms, a, b, blocks, sources), strict=True)))


@_checks.checked()
def best_order(
    ideal: Spectrum,
    sources: Sequence[Spectrum],
    weights: GivenWeights | None = None,
    *,
    alpha: Scalar,
    source_alphas: Numbers | None = None,
) -> SourceOrder:
    r"""The order of the sources that makes the tight bound smallest; at most 8 sources.

    The loss does not depend on the order; the bound does, as it decides on the block of each
    source. Cost: $O(nK^2)$, then $O(k^3)$ for each source and each of its $\le 2^{N-1}$ offsets.
    """
    sizes, bias, a, b = _strengths(ideal, sources, weights, alpha, source_alphas)
    _checks.integer("the number of sources", len(sizes), least=1, most=8, of="an exhaustive search")
    whole, p = jnp.concatenate(a), _leading(ideal, sum(sizes))
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


@_checks.checked(static=("count",), discrete=True)
def select_sources(
    ideal: Spectrum, sources: Sequence[Spectrum], *, count: int, alpha: Scalar
) -> Int[Array, " count"]:
    r"""The `count` sources with the smallest directional variance, best first (section 3.4).

    Each is set alone against the ideal's leading block; the variance is $\|PAP^\top - QAQ^\top\|_F
    / \|A\|_F$, 0 to $\sqrt2$. Cost: $O(n\sum_j k_j^2)$.
    """
    _check(ideal, sources)
    _checks.integer("count", count, least=1, most=len(sources), of="sources")

    def variance(source):
        direction = bound_terms(ideal, (source,), alpha=alpha).direction_exact[0]
        (values,) = split_by_source(ideal.values, sizes=source.values.shape)
        return safe_ratio(direction, norm(power(values, 2 * alpha)))

    return jnp.argsort(jnp.stack([variance(source) for source in sources]))[:count]


def _check(ideal: Spectrum, sources: Sequence[Spectrum]) -> None:
    check_spectrum("ideal", ideal)
    _checks.sources("sources", sources, Spectrum)
    for j, source in enumerate(sources):
        name = f"sources[{j}]"
        check_spectrum(name, source)
        _checks.same_rows(**{"ideal.vectors": ideal.vectors, f"{name}.vectors": source.vectors})


def _strengths(ideal, sources, weights, alpha, source_alphas):
    """The sizes, the bias, and per source the strengths a of its block and b of its own."""
    _check(ideal, sources)
    sizes = tuple(source.values.shape[0] for source in sources)
    _checks.scalar("alpha", alpha)
    weights = [1.0] * len(sizes) if weights is None else weights
    source_alphas = [alpha] * len(sizes) if source_alphas is None else source_alphas
    weights = _checks.weights("weights", weights, sizes)
    _checks.numbers_per_source("source_alphas", source_alphas, [1] * len(sizes))
    strength = power(ideal.values, 2 * alpha)
    weights = [jnp.asarray(c, strength.dtype) for c in weights]
    # Not c**2 times the rest: a large weight of a weak source would overflow.
    b = [
        c * (c * power(source.values, 2 * source_alpha))
        for c, source, source_alpha in zip(weights, sources, source_alphas, strict=True)
    ]
    beyond = strength[sum(sizes) :]
    bias = norm(beyond) if beyond.size else jnp.zeros((), strength.dtype)
    return sizes, bias, split_by_source(strength, sizes=sizes), b


def _leading(ideal: Spectrum, width: int) -> Float[Array, "n K"]:
    p = ideal.vectors[:, :width]
    return jnp.pad(p, ((0, 0), (0, width - p.shape[1])))


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


def _distance(a: Array, b: Array, cosines: Float[Array, "k k"], rest: Float[Array, "k k"]):
    """Norm of P diag(a) P' - Q diag(b) Q': the part inside span(P), across, and outside."""
    scale = power_of_two(jnp.maximum(jnp.max(a), jnp.max(b)))
    a, b = a / scale, b / scale
    weighted = b[:, None] * cosines
    inside = jnp.diag(a) - matmul(cosines.T, weighted)
    across = matmul(weighted, weighted.T) * rest
    outside = jnp.outer(b, b) * rest**2
    return scale * safe_sqrt(jnp.sum(inside**2) + 2 * jnp.sum(across) + jnp.sum(outside))


def _block_at(overlap: tuple[Array, Array], whole: Array, b: Array, start: Array) -> Array:
    """The block term of a source that is set against the columns of the ideal from `start` on."""
    (cosines, rest), size = overlap, b.shape[0]
    a = lax.dynamic_slice_in_dim(whole, start, size)
    inside = lax.dynamic_slice_in_dim(cosines, start, size, axis=1)
    column = jnp.arange(cosines.shape[1])[None, :]
    # What the block leaves of the source: all that the ideal leaves, and the ideal's other blocks.
    outside = jnp.where((column < start) | (column >= start + size), cosines, 0)
    return _distance(a, b, inside, rest + matmul(outside, outside.T))
