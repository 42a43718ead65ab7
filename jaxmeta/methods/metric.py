r"""Sources are rotated into one space, which has a metric that is learnt (`jawanpuria20`).

With rows of length 1, orthogonal $U_j$ and one positive definite $B$,

$$\sum_{i<j}\|E_iU_iBU_j^\top E_j^\top - I\|_F^2 + \rho\|B\|_F^2$$

is minimised: a word should be like itself, and like no other word, across sources. The
meta-embedding is the mean of $E_jU_jB^{1/2}$.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from jaxmeta import _checks
from jaxmeta._types import Scalar, Sources
from jaxmeta.combine import rotations_between
from jaxmeta.linalg import matmul, safe_ratio, safe_sqrt, unit
from jaxmeta.optimise import gradient_weights

__all__ = ["LearntMetric", "learnt_metric"]


class LearntMetric(NamedTuple):
    """Maps of rows of length 1 into the common space, and how they were found."""

    maps: tuple[Float[Array, "_ d"], ...]
    r"""$U_jB^{1/2}$ of each source, up to a scale of all."""
    loss_history: Float[Array, " _"]
    """The objective without its constant, at the start and after each step; see `learnt_metric`."""
    gradient_norm: Float[Array, ""]
    """Of the objective at the end: 0 at a minimum."""


@jax.jit(static_argnames="steps")
def learnt_metric(sources: Sources, *, ridge: Scalar = 0.01, steps: int = 100) -> LearntMetric:
    r"""Learn rotations and a metric under which each word is like itself in all sources.

    $d$ is the width of the widest source. Of the rows only inner products of columns count, which
    are divided by their mean eigenvalue in each source: then `ridge` is $\rho$ for all sizes, a
    choice. The start are the rotations of `rotated_average` and the $B$ that is best if these
    make sources equal; the descent is that of L-BFGS on $B = LL^\top$ and QR factors, and there may
    be other minima. Cost: $O(nK^2)$ once, then
    $O(N^2d^3)$ a step. Reference: `jawanpuria20`.

    >>> same = jnp.array([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0]])
    >>> found = learnt_metric((same, same), ridge=0.0)
    >>> whitened = same @ found.maps[0]
    >>> print((whitened.T @ whitened / (whitened.T @ whitened)[0, 0]).round(3) + 0.0)
    [[1. 0.]
     [0. 1.]]
    """
    _checks.embeddings("sources", sources)
    _checks.not_negative("ridge", ridge, "try 0.01")
    units = [jax.vmap(unit)(source) for source in sources]
    scales = [e.shape[1] / jnp.maximum(jnp.sum(e**2), 1) for e in units]
    grams = [
        [matmul(a.T, b) * jnp.sqrt(s * t) for b, t in zip(units, scales, strict=True)]
        for a, s in zip(units, scales, strict=True)
    ]
    rotations, _ = rotations_between(grams)
    turned = [matmul(matmul(q.T, grams[j][j]), q) for j, q in enumerate(rotations)]
    values, axes = jnp.linalg.eigh(jnp.mean(jnp.stack(turned), axis=0))
    values = jnp.maximum(values, 0)
    strength = safe_ratio(values, values**2 + jnp.asarray(ridge, values.dtype))
    start = (tuple(q.T for q in rotations), axes * safe_sqrt(strength)[None, :])
    found = gradient_weights(_objective, start, grams, ridge, optimiser=optax.lbfgs(), steps=steps)
    turns, factor = found.parameters
    maps = tuple(
        matmul(_orthonormal(a).T, factor) * jnp.sqrt(s) for a, s in zip(turns, scales, strict=True)
    )
    return LearntMetric(maps, found.history, found.gradient_norm)


def _orthonormal(x: Array) -> Array:
    """The columns of a QR decomposition, with signs by which those that are so stay as they are."""
    q, r = jnp.linalg.qr(x)
    return q * jnp.where(jnp.diag(r) < 0, -1, 1)[None, :]


def _objective(parameters, grams: Sequence[Sequence[Array]], ridge: Scalar) -> Array:
    """The sum over pairs, less its constant, by inner products of columns."""
    turns, factor = parameters
    ways = [matmul(_orthonormal(a).T, factor) for a in turns]
    metric = matmul(factor, factor.T)
    total = jnp.asarray(ridge, metric.dtype) * jnp.sum(metric**2)
    for i, a in enumerate(ways):
        for j in range(i + 1, len(ways)):
            inner = matmul(a, ways[j].T)
            spread = matmul(matmul(inner.T, grams[i][i]), matmul(inner, grams[j][j]))
            total += jnp.trace(spread) - 2 * jnp.sum(inner * grams[i][j])
    return total
