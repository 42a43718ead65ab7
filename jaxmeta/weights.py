r"""Concatenation weights in closed form (section 3.4 of the paper).

Weights match the spectrum of each source to that of the ideal, with one for each dimension (DW) or
for each source (SW). What the ideal is, the paper leaves open: pass *one* spectrum, of which source
$j$ is set against block $j$ as in Theorem 1, or a *tuple*, one for each source. Where directions
are off the best weights are smaller: `strength_weights`, `shrinkage_weights` and `aligned_weights`
know that, and need no ideal. What sources of one ideal are best used for is another question: see
`jaxmeta.several`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from jaxmeta import _checks
from jaxmeta._checks import checked
from jaxmeta._types import Numbers, Scalar, Sources, Spectra
from jaxmeta.linalg import common_unit, matmul, power_of_two, safe_ratio, safe_sqrt, unit
from jaxmeta.noise import debias, spiked_overlap, spiked_strengths
from jaxmeta.spectral import power, split_by_source

__all__ = [
    "aligned_weights",
    "dimension_weights",
    "rank_weights",
    "shrinkage_weights",
    "source_weights",
    "strength_weights",
    "sum_to_one",
]


@checked()
def source_weights(
    ideal_values: Float[Array, " d"] | Spectra,
    source_values: Spectra,
    *,
    alpha: Scalar,
    source_alphas: Numbers | None = None,
) -> Float[Array, " N"]:
    r"""One weight per source, SW (Eq. 9, which the paper's text takes for DW).

    $c_j^2 = \sum_i \lambda_i^{2\alpha}\mu_i^{2\alpha_j} / \sum_i \mu_i^{4\alpha_j}$ minimises
    $\sum_i(\lambda_i^{2\alpha} - c_j^2\mu_i^{2\alpha_j})^2$. A source of zeros gets 0. Cost:
    $O(K)$. Reference: `bollegala22`.

    >>> import jax.numpy as jnp
    >>> sources = (jnp.array([8.0, 4.0]), jnp.array([4.0]))
    >>> print(source_weights(jnp.array([4.0, 2.0, 1.0]), sources, alpha=1.0))
    [0.5  0.25]
    """
    pairs = _strengths(ideal_values, source_values, alpha, source_alphas, factor=2)
    return jnp.stack([_least_squares(a, b) for a, b in pairs])


@checked()
def dimension_weights(
    ideal_values: Float[Array, " d"] | Spectra,
    source_values: Spectra,
    *,
    alpha: Scalar,
    source_alphas: Numbers | None = None,
) -> tuple[Float[Array, " _"], ...]:
    r"""One weight per dimension, DW (Eq. 8, which the paper's text takes for SW).

    $c_{j,i} = \lambda_{\theta_j+i}^\alpha / \mu_{j,i}^{\alpha_j}$ brings the spectrum of each
    source to that of the ideal. A dimension of strength 0 gets 0. Cost: $O(K)$. Reference:
    `bollegala22`.

    >>> import jax.numpy as jnp
    >>> own_ideal, source = jnp.array([4.0, 1.0]), jnp.array([5.0, 4.0])
    >>> print(*dimension_weights((own_ideal,), (source,), alpha=1.0))
    [0.8  0.25]
    """
    pairs = _strengths(ideal_values, source_values, alpha, source_alphas, factor=1)
    return tuple(safe_ratio(a, b) for a, b in pairs)


@checked()
def sum_to_one(
    weights: Float[Array, " N"] | tuple[Float[Array, " _"], ...],
) -> Float[Array, " N"] | tuple[Float[Array, " _"], ...]:
    r"""Weights scaled to sum to one, as the paper requires (below Eqs. 3 and 5).

    An array of source weights as a whole, dimension weights source by source, which shifts the
    balance between sources (`theory/sum_to_one.py`). NaN if they sum to 0.

    >>> import jax.numpy as jnp
    >>> print(sum_to_one(jnp.array([1.0, 3.0])))
    [0.25 0.75]
    """
    for j, c in enumerate(jax.tree.leaves(weights)):
        _checks.array(f"weights[{j}]" if isinstance(weights, tuple) else "weights", c, 1)

    def divided(c):
        c = c / common_unit(c)
        return c / jnp.sum(c)

    return jax.tree.map(divided, weights)


@checked()
def strength_weights(
    values: Float[Array, " k"], strengths: Float[Array, " k"], *, alpha: Scalar
) -> Float[Array, " k"]:
    r"""The best weights of one source: $c_i^2 = \max(t_i, 0)/\mu_i^{2\alpha}$.

    They minimise the PIP loss, not a bound on it, if
    $t_i = \tilde u_i^\top|M|^{2\alpha}\tilde u_i$. A dimension of value 0 gets 0. Cost: $O(k)$.

    >>> import jax.numpy as jnp
    >>> print(strength_weights(jnp.array([4.0, 2.0]), jnp.array([1.0, -1.0]), alpha=0.5))
    [0.5 0. ]
    """
    _checks.strengths("strengths", strengths, values)
    _checks.scalar("alpha", alpha)
    return safe_sqrt(safe_ratio(strengths, power(values, 2 * jnp.asarray(alpha, values.dtype))))


@checked(_checks.noisy_descending, static=("n", "m"))
def shrinkage_weights(
    values: Float[Array, " k"], *, sigma: Scalar, n: int, alpha: Scalar, m: int | None = None
) -> Float[Array, " k"]:
    r"""Weights that know directions: $c^2 = (\lambda/\mu)^{2\alpha}(1 - \tau^2/\lambda^2)$.

    `strength_weights` of `spiked_strengths`; a dimension inside the noise gets 0. Cost: $O(k)$.
    Reference: `gavish17`.

    >>> import jax.numpy as jnp
    >>> print(shrinkage_weights(jnp.array([2.5, 1.5]), sigma=0.1, n=100, alpha=1.0).round(4))
    [0.6928 0.    ]
    """
    strengths = spiked_strengths(values, sigma=sigma, n=n, alpha=alpha, m=m)
    return strength_weights(values, strengths, alpha=alpha)


def _check_aligned(source_values: Any, *, sigmas: Any, n: int, alpha: Any) -> None:
    _checks.sources("source_values", source_values)
    _checks.count("sigmas", sigmas, len(source_values))
    _checks.scalar("alpha", alpha)
    for j, values in enumerate(source_values):
        _checks.descending(f"source_values[{j}]", values)
        _checks.positive(f"sigmas[{j}]", sigmas[j])
        _checks.integer("n", n, least=values.shape[0])


@checked(_check_aligned, static=("n",))
def aligned_weights(
    source_values: Spectra, *, sigmas: Numbers, n: int, alpha: Scalar
) -> tuple[Float[Array, " _"], ...]:
    r"""The weights of the best concatenation of sources that see one ideal (spiked model).

    Each sees it through noise of its own. Dimension $i$ of every source stands for direction $i$ of
    the ideal. With $\mu_j$ its values, $o_j = 1 - \tau_j^2/\lambda^2$ its overlaps and $\lambda$
    the mean of the debiased values, weighted by precision, the loss is $q^\top Gq - 2h^\top q$ up
    to a constant, where in units of $\mu_j^{2\alpha}$ $G$ is a diagonal plus $oo^\top$ and $h =
    \lambda^{2\alpha}o$. So for any number of sources, and never negative,

    $$q_j\mu_j^{2\alpha} = \lambda^{2\alpha}\,\frac{o_j/(1 - o_j^2)}{1 + T}, \qquad
      T = \sum_l \frac{o_l^2}{1 - o_l^2}.$$

    Sources may have different numbers of dimensions; one inside a source's noise gets 0. This is
    about directions: `jaxmeta.align` puts words in one order. Cost: $O(K)$.
    """
    sizes = [values.shape[0] for values in source_values]
    dtype = source_values[0].dtype
    padded = jnp.stack([jnp.pad(v, (0, max(sizes) - v.shape[0])) for v in source_values])
    noise = jnp.stack([jnp.asarray(sigma, dtype) for sigma in sigmas])
    n = max(n, max(sizes))

    def of_each(function, rows):
        return jnp.stack([function(v, sigma=s, n=n) for v, s in zip(rows, noise, strict=True)])

    # Variances over the smallest of them: only their ratios enter but for `rest`, and nothing
    # depends on which unit they are in.
    smallest = lax.stop_gradient(jnp.min(noise))
    variances = (noise / smallest)[:, None] ** 2
    debiased = of_each(debias, padded)
    precision = of_each(spiked_overlap, debiased) / variances
    ideal = safe_ratio(jnp.sum(precision * debiased, axis=0), jnp.sum(precision, axis=0))
    # A source has no part in directions that it does not have, or has inside its noise.
    overlaps = jnp.where(debiased == 0, 0, of_each(spiked_overlap, [ideal] * len(sizes)))
    # 1 - o is `variances` times `rest`, which does not cancel where there is hardly any noise.
    rest = safe_ratio(jnp.ones_like(ideal), ideal / (smallest * n**0.5)) ** 2
    terms = overlaps / (variances * (1 + overlaps))
    shares = safe_ratio(terms, rest[None, :] + jnp.sum(overlaps * terms, axis=0, keepdims=True))
    exponent = 2 * jnp.asarray(alpha, dtype)
    squares = safe_ratio(shares * power(ideal, exponent)[None, :], power(padded, exponent))
    return tuple(safe_sqrt(row[:size]) for row, size in zip(squares, sizes, strict=True))


@checked()
def rank_weights(sources: Sources) -> Float[Array, " N"]:
    r"""Weights $c_j = \sqrt{r_j/\sum_l r_l}$ for sources of equal norm, $r_j$ the effective rank.

    $r_j = \|E_j\|_F^4/\|E_j^\top E_j\|_F^2$ is the inverse of the variance of inner products, which
    is noise: most pairs of words are unrelated. Pass sources that are centred and of one norm, as
    `standardise` makes them. A source of zeros gets 0. Cost: $O(n\sum_jk_j^2)$.

    >>> import jax.numpy as jnp
    >>> wide, narrow = jnp.eye(4), jnp.array([[1.0], [-1.0], [1.0], [-1.0]])
    >>> print((rank_weights((wide / 2, narrow / 2)) ** 2).round(3))
    [0.8 0.2]
    """
    _checks.embeddings("sources", sources)
    units = [unit(source) for source in sources]
    squares = jnp.stack([jnp.sum(matmul(e.T, e) ** 2) for e in units])
    ranks = safe_ratio(jnp.ones_like(squares), squares)
    return safe_sqrt(safe_ratio(ranks, jnp.sum(ranks)))


def _strengths(
    ideal_values: Any,
    source_values: Sequence[Array],
    alpha: Any,
    source_alphas: Any,
    *,
    factor: int,
) -> Iterator[tuple[Array, Array]]:
    """The ideal's and each source's values to `factor` times their exponents."""
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
        ideal_values = split_by_source(ideal_values, sizes=sizes)
    _checks.count("ideal_values", ideal_values, len(sizes))
    for j, size in enumerate(sizes):
        _checks.array(f"ideal_values[{j}]", ideal_values[j], 1)
        (ideal,) = split_by_source(ideal_values[j], sizes=(size,))
        exponents = (jnp.asarray(x, ideal.dtype) for x in (alpha, source_alphas[j]))
        a, b = (factor * exponent for exponent in exponents)
        yield power(ideal, a), power(source_values[j], b)


def _least_squares(a: Float[Array, " k"], b: Float[Array, " k"]) -> Float[Array, ""]:
    """The c >= 0 with the smallest sum of (a - c^2 b)^2."""
    # In units that are squares of powers of two, so that c is formed where c^2 would overflow.
    unit_a, unit_b = (power_of_two(safe_sqrt(jnp.max(x))) for x in (a, b))
    a, b = a / unit_a / unit_a, b / unit_b / unit_b
    return unit_a * safe_sqrt(safe_ratio(jnp.sum(a * b), jnp.sum(b * b))) / unit_b
