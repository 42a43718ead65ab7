r"""How many dimensions to keep of a noisy signal: the argmin of the PIP loss over $k$.

Where the ideal is unknown, dimension $i$ of value $\mu_i$ changes the squared loss by
$\mu_i^{2\alpha}(\mu_i^{2\alpha} - 2t_i)$, so any estimate of its strength $t_i$ (see
`jaxmeta.noise`) gives a rule: `RULES` has all of them by name.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from jaxmeta import _checks
from jaxmeta._checks import checked
from jaxmeta._types import Scalar
from jaxmeta.linalg import common_unit, matmul, safe_ratio, safe_sqrt, svd
from jaxmeta.noise import spiked_overlap, spiked_strengths, usvt
from jaxmeta.pip import loss_changes
from jaxmeta.shrinkage import ideal_strengths, rie_strengths
from jaxmeta.spectral import power

__all__ = [
    "RULES",
    "SimulatedCurve",
    "best_dimension",
    "paper_curve",
    "paper_dimension",
    "predicted_curve",
    "select_dimension",
    "simulate_curve",
]


class SimulatedCurve(NamedTuple):
    """PIP loss against dimensionality, over draws of noise."""

    mean: Float[Array, " r"]
    """Root mean squared loss at k = 1, ..., r."""
    standard_error: Float[Array, " r"]

    @property
    def dimension(self) -> Int[Array, "..."]:
        """The k at which the mean loss is smallest; the first that is NaN, if there is one."""
        return 1 + jnp.argmin(self.mean, axis=-1)


@checked(discrete=True)
def best_dimension(
    values: Float[Array, " r"], strengths: Float[Array, " r"], *, alpha: Scalar
) -> Int[Array, ""]:
    r"""The $k \ge 1$ with the smallest PIP loss predicted from strengths (see `jaxmeta.noise`).

    NaN raises; under a trace, where it cannot, the result means nothing if the curve has NaN.
    """
    _checks.strengths("strengths", strengths, values)
    _checks.scalar("alpha", alpha)
    b = power(values, 2 * alpha)
    unit = common_unit(b, strengths)
    return 1 + jnp.argmin(loss_changes(b / unit, strengths / unit))


@checked(_checks.noisy_descending, static=("n",), discrete=True)
def select_dimension(
    values: Float[Array, " r"], *, sigma: Scalar, n: int, alpha: Scalar
) -> Int[Array, ""]:
    r"""The best dimensionality of a noisy signal, in closed form (spiked model).

    Dimension $i$ helps if $\mu_i^{2\alpha} < 2\lambda_i^{2\alpha}(1 - \tau^2/\lambda_i^2)$; at
    $\alpha = ½$ that is $\mu_i > (4/\sqrt3)\,\tau$, the threshold of `gavish14`. Cost: $O(r)$.

    >>> import jax.numpy as jnp
    >>> print(select_dimension(jnp.array([9.0, 4.0, 2.4, 2.3, 2.2]), sigma=0.1, n=100, alpha=0.5))
    3
    """
    strengths = spiked_strengths(values, sigma=sigma, n=n, alpha=alpha)
    return best_dimension(values, strengths, alpha=alpha)


@checked(_checks.noisy_descending, static=("n",), discrete=True)
def paper_dimension(
    values: Float[Array, " r"], *, sigma: Scalar, n: int, alpha: Scalar
) -> Int[Array, ""]:
    r"""The dimensionality that the paper's recipe tends to: USVT, noise added again, argmin.

    Noise lifts the thresholded values $\lambda$ to $\lambda + \tau^2/\lambda$, so at $\alpha = ½$
    the loss is smallest where $\mu > (2 + \sqrt3)\,\tau$ ends, far too early.
    """
    _, lifted, strengths = _recipe(values, sigma, n, alpha)
    return best_dimension(lifted, strengths, alpha=alpha)


@checked(_checks.noisy_descending, static=("n",))
def paper_curve(
    values: Float[Array, " r"], *, sigma: Scalar, n: int, alpha: Scalar
) -> Float[Array, " r"]:
    """PIP loss against $k$ by the paper's recipe (its Figures 2 to 4), in closed form."""
    ideal, lifted, strengths = _recipe(values, sigma, n, alpha)
    a, b = power(ideal, 2 * alpha), power(lifted, 2 * alpha)
    unit = common_unit(a, b)
    changes = loss_changes(b / unit, strengths / unit)
    return unit * safe_sqrt(jnp.sum((a / unit) ** 2) + changes)


def _recipe(values: Array, sigma: Any, n: int, alpha: Any) -> tuple[Array, Array, Array]:
    """The ideal by USVT, and what noise makes of it in the spiked model: values and strengths."""
    ideal = usvt(values, sigma=sigma, n=n)
    scale = jnp.asarray(sigma, values.dtype) * n**0.5
    above = ideal > scale
    lifted = jnp.where(above, ideal + scale * safe_ratio(scale, ideal), 2 * scale)
    return ideal, lifted, power(ideal, 2 * alpha) * spiked_overlap(ideal, sigma=sigma, n=n)


@checked()
def predicted_curve(
    values: Float[Array, " r"], strengths: Float[Array, " r"], *, alpha: Scalar, total: Scalar
) -> Float[Array, " r"]:
    r"""PIP loss against $k$ from estimated strengths, as in `pip_curve`.

    `total` is $\sum_l\lambda_l^{4\alpha}$ of the ideal: at $\alpha = ½$ that is $\|\tilde M\|_F^2 -
    n\tau^2$, else the sum of all `ideal_strengths` at $2\alpha$.
    """
    _checks.strengths("strengths", strengths, values)
    _checks.scalar("alpha", alpha)
    _checks.scalar("total", total)
    total, b = jnp.asarray(total, values.dtype), power(values, 2 * alpha)
    unit = common_unit(safe_sqrt(total), b, strengths)
    return unit * safe_sqrt(total / unit / unit + loss_changes(b / unit, strengths / unit))


def _check_simulation(ideal_values: Any, *, sigma: Any, n: int, alpha: Any, **_: Any) -> None:
    _checks.noisy_descending(ideal_values, sigma=sigma, n=n, alpha=alpha)


@checked(_check_simulation, static=("n", "draws", "depth"))
def simulate_curve(
    ideal_values: Float[Array, " r"],
    *,
    sigma: Scalar,
    n: int,
    alpha: Scalar,
    key: Key[Array, ""],
    draws: int,
    depth: int = 10,
) -> SimulatedCurve:
    r"""PIP loss against $k$ by Monte Carlo, as the paper estimates it from thresholded values.

    Reflections bring $\mathrm{diag}(\lambda, 0) + \sigma Z$ to block tridiagonal form, of which
    `depth` blocks of size $r$ are kept: each further one matters less, by a factor of about
    $\tau^2/\lambda^2$. With $r \cdot \text{depth} \ge n$ the law is exact. Cost: one SVD of
    $\min(n, r \cdot \text{depth})$ rows a draw.
    """
    _checks.integer("draws", draws, least=2)
    _checks.integer("depth", depth, least=1)
    ideal, r, dtype = ideal_values, ideal_values.shape[0], ideal_values.dtype
    strength = power(ideal, 2 * alpha)
    # No value is above the sum of the largest ideal one and the edge of the noise, by much.
    unit = common_unit(strength, power(jnp.asarray(sigma, dtype) * n**0.5, 2 * alpha))
    strength = strength / unit

    def squared_loss(key):
        dense = r * depth >= n
        z = jax.random.normal(key, (n, n), dtype) if dense else _blocks(key, r, n, depth, dtype)
        y = (jnp.asarray(sigma, dtype) * z).at[jnp.arange(r), jnp.arange(r)].add(ideal)
        u, values, _ = svd(y, full_matrices=False)
        t = matmul((u[:r, :r] ** 2).T, strength)
        return jnp.sum(strength**2) + loss_changes(power(values[:r], 2 * alpha) / unit, t)

    squares = lax.map(squared_loss, jax.random.split(key, draws))
    mean = safe_sqrt(jnp.mean(squares, axis=0))
    spread = jnp.std(squares, axis=0, ddof=1) / draws**0.5
    # The error of a square root is that of the square over twice the root.
    return SimulatedCurve(unit * mean, unit * safe_ratio(spread, 2 * mean))


def _blocks(key: Array, r: int, n: int, depth: int, dtype) -> Array:
    """The leading blocks of Gaussian noise, reduced by reflections beyond coordinate r."""

    def draw(key, freedom):
        keys = jax.random.split(key, 3)
        sides = jax.vmap(lambda side: _triangular_noise(side, r, freedom, dtype))(keys[1:])
        return jax.random.normal(keys[0], (r, r), dtype), *sides

    at = jnp.arange(depth)
    # What goes beyond the last block is cut off below: it need not have that many rows.
    freedom = jnp.maximum(n - r * (at + 1), r).astype(dtype)
    here, below, right = jax.vmap(draw)(jax.random.split(key, depth), freedom)
    z = jnp.zeros((depth, r, depth, r), dtype).at[at, :, at].set(here)
    z = z.at[at[1:], :, at[:-1]].set(below[:-1])
    z = z.at[at[:-1], :, at[1:]].set(jnp.swapaxes(right[:-1], 1, 2))
    return z.reshape(depth * r, depth * r)


def _triangular_noise(key: Array, r: int, freedom: Array, dtype) -> Array:
    """The triangular factor of a Gaussian matrix with `freedom` rows and r columns."""
    diagonal, above = jax.random.split(key)
    halves = (freedom - jnp.arange(r, dtype=dtype)) / 2
    chi_squared = 2 * jax.random.gamma(diagonal, halves, dtype=dtype)
    upper = jnp.triu(jax.random.normal(above, (r, r), dtype), 1)
    return upper + jnp.diag(jnp.sqrt(chi_squared))


Rule: TypeAlias = Callable[[Float[Array, " n"], Scalar, Scalar], Int[Array, ""]]
"""From all eigenvalues by magnitude, with their signs, sigma and alpha to k."""


def _of_values(choose: Callable[..., Array], eigenvalues: Array, sigma: Any, alpha: Any) -> Array:
    return choose(jnp.abs(eigenvalues), sigma=sigma, n=len(eigenvalues), alpha=alpha)


def _rie(eigenvalues: Array, sigma: Any, alpha: Any) -> Array:
    strengths = rie_strengths(eigenvalues, sigma=sigma)
    return best_dimension(jnp.abs(eigenvalues), strengths, alpha=alpha)


def _ideal(eigenvalues: Array, sigma: Any, alpha: Any) -> Array:
    strengths = ideal_strengths(eigenvalues, sigma=sigma, alpha=alpha).values
    return best_dimension(jnp.abs(eigenvalues), strengths, alpha=alpha)


RULES: dict[str, Rule] = {
    "paper": partial(_of_values, paper_dimension),
    "released": lambda values, sigma, alpha: RULES["paper"](values, sigma, alpha) - 1,
    "spiked": partial(_of_values, select_dimension),
    "rie": _rie,
    "ideal": _ideal,
}
"""How many dimensions to keep, by the name of the rule; `rie` is for alpha = ½ alone.

`released` is one less than `paper`, as in the released code. The last three keep too much if sigma
is too small, as from halves of a corpus with many rare pairs (`experiments/known_ideal.py`).
"""
