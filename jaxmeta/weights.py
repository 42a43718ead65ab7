r"""Concatenation weights in closed form (section 3.3 of the paper).

Weights match the spectrum of each source to that of the ideal: they make the magnitude terms of the
bound, $\|\lambda^{2\alpha} - c^2\mu^{2\alpha}\|_2$, as small as they can be. With a weight for each
dimension (DW) the terms vanish; with one for each source (SW) they are a least-squares fit.

What the ideal is, the paper leaves open. Both readings are a matter of what is passed as
`ideal_values`: *one* spectrum, of which source $j$ is set against block $j$ as in Theorem 1, or a
*tuple* of spectra, one for each source, such as its own denoised one.

The paper asks that weights sum to one, and its closed forms do not. `sum_to_one` is a step of its
own: on source weights it changes no cosine, on dimension weights it shifts the balance between
sources (see `theory/sum_to_one.py`).
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Real

from jaxmeta import _checks
from jaxmeta.linalg import power_of_two, safe_sqrt
from jaxmeta.spectral import blocks, power

__all__ = ["dimension_weights", "source_weights", "sum_to_one"]


@jax.jit
def source_weights(
    ideal_values: Float[Array, " d"] | Sequence[Float[Array, " _"]],
    source_values: Sequence[Float[Array, " _"]],
    *,
    alpha: Real[Array, ""] | float,
    source_alphas: Sequence[Real[Array, ""] | float] | Real[Array, " N"] | None = None,
) -> Float[Array, " N"]:
    r"""One weight per source, SW (Eq. 9, which the paper's text takes for DW).

    $$c_j^2 = \sum_i \lambda_i^{2\alpha}\mu_i^{2\alpha_j} \Big/ \sum_i \mu_i^{4\alpha_j}$$

    minimises $\sum_i(\lambda_i^{2\alpha} - c_j^2\mu_i^{2\alpha_j})^2$. A source of zeros gets 0.

    Cost: $O(K)$. Reference: `bollegala22`.

    >>> import jax.numpy as jnp
    >>> ideal = jnp.array([4.0, 2.0, 1.0])
    >>> sources = (jnp.array([8.0, 4.0]), jnp.array([4.0]))
    >>> print(source_weights(ideal, sources, alpha=1.0))
    [0.5  0.25]
    """
    pairs = _strengths(ideal_values, source_values, alpha, source_alphas, double=True)
    return jnp.stack([_least_squares(a, b) for a, b in pairs])


@jax.jit
def dimension_weights(
    ideal_values: Float[Array, " d"] | Sequence[Float[Array, " _"]],
    source_values: Sequence[Float[Array, " _"]],
    *,
    alpha: Real[Array, ""] | float,
    source_alphas: Sequence[Real[Array, ""] | float] | Real[Array, " N"] | None = None,
) -> tuple[Float[Array, " _"], ...]:
    r"""One weight per dimension, DW (Eq. 8, which the paper's text takes for SW).

    $$c_{j,i} = \lambda_{\theta_j+i}^\alpha / \mu_{j,i}^{\alpha_j}$$

    brings the spectrum of each source to that of the ideal. A dimension of strength 0 gets 0.

    Cost: $O(K)$. Reference: `bollegala22`.

    >>> import jax.numpy as jnp
    >>> source = jnp.array([5.0, 4.0])
    >>> own_ideal = jnp.array([4.0, 1.0])
    >>> print(*dimension_weights((own_ideal,), (source,), alpha=1.0))
    [0.8  0.25]
    """
    pairs = _strengths(ideal_values, source_values, alpha, source_alphas, double=False)
    return tuple(_ratio(a, b) for a, b in pairs)


@jax.jit
def sum_to_one(
    weights: Float[Array, " N"] | tuple[Float[Array, " _"], ...],
) -> Float[Array, " N"] | tuple[Float[Array, " _"], ...]:
    r"""Weights scaled to sum to one, as the paper requires (below Eqs. 3 and 5).

    An array of source weights as a whole, dimension weights source by source. NaN if they sum to 0.

    >>> import jax.numpy as jnp
    >>> print(sum_to_one(jnp.array([1.0, 3.0])))
    [0.25 0.75]
    """
    for j, c in enumerate(jax.tree.leaves(weights)):
        _checks.array(f"weights[{j}]" if isinstance(weights, tuple) else "weights", c, 1)
    return jax.tree.map(lambda c: c / jnp.sum(c), weights)


def _strengths(ideal_values, source_values, alpha, source_alphas, *, double: bool):
    """Pairs of the ideal's and the source's values at their exponents, or at twice these."""
    _checks.sources("source_values", source_values)
    for j, values in enumerate(source_values):
        _checks.array(f"source_values[{j}]", values, 1)
    sizes = tuple(values.shape[0] for values in source_values)
    _checks.scalar("alpha", alpha)
    if source_alphas is None:
        source_alphas = [alpha] * len(sizes)
    _checks.numbers_per_source("source_alphas", source_alphas, [1] * len(sizes))
    if hasattr(ideal_values, "shape"):
        _checks.array("ideal_values", ideal_values, 1)
        ideal_values = blocks(ideal_values, sizes=sizes)
    _checks.count("ideal_values", ideal_values, len(sizes))
    pairs = []
    for j, size in enumerate(sizes):
        _checks.array(f"ideal_values[{j}]", ideal_values[j], 1)
        (ideal,) = blocks(ideal_values[j], sizes=(size,))
        factor = 2 if double else 1
        a = power(ideal, factor * jnp.asarray(alpha, ideal.dtype))
        b = power(source_values[j], factor * jnp.asarray(source_alphas[j], ideal.dtype))
        pairs.append((a, b))
    return pairs


def _least_squares(a: Float[Array, " k"], b: Float[Array, " k"]) -> Float[Array, ""]:
    """The c >= 0 with the smallest sum of (a - c^2 b)^2."""
    scale = power_of_two(jnp.max(b))
    b = b / scale
    return safe_sqrt(_ratio(jnp.sum(a * b), jnp.sum(b * b) * scale))


def _ratio(a: Float[Array, "..."], b: Float[Array, "..."]) -> Float[Array, "..."]:
    """The quotient a / b, with 0 where b is 0 (and NaN where a is NaN); finite derivatives."""
    return jnp.where(b == 0, 0 * a, a / jnp.where(b == 0, 1, b))
