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
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, Key

from jaxmeta import _checks
from jaxmeta._checks import checked
from jaxmeta._types import Scalar
from jaxmeta.linalg import common_unit, matmul, power_of_two, safe_ratio, safe_sqrt, svd
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
    "spiked_paper_dimension",
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

    The argmin of `paper_curve` up to the rank that USVT leaves. The recipe takes weak signals for
    far weaker ones, and so keeps too few dimensions. Cost: as of `paper_curve`.
    """
    ideal = usvt(values, sigma=sigma, n=n)
    lifted, strengths = _with_noise(ideal, sigma, n, alpha)
    b = power(lifted, 2 * alpha)
    unit = common_unit(b, strengths)
    changes = loss_changes(b / unit, strengths / unit)
    return 1 + jnp.argmin(jnp.where(ideal > 0, changes, jnp.inf))


@checked(_checks.noisy_descending, static=("n",), discrete=True)
def spiked_paper_dimension(
    values: Float[Array, " r"], *, sigma: Scalar, n: int, alpha: Scalar
) -> Int[Array, ""]:
    r"""The same where few values stand out from the noise, each on its own (spiked model).

    Noise lifts a thresholded value $\lambda$ to $\lambda + \tau^2/\lambda$, so at $\alpha = ½$
    the loss is smallest where $\mu > (2 + \sqrt3)\,\tau$ ends. On dense spectra the recipe keeps
    more. Cost: $O(r)$.
    """
    ideal = usvt(values, sigma=sigma, n=n)
    scale = jnp.asarray(sigma, values.dtype) * n**0.5
    above = ideal > scale
    lifted = jnp.where(above, ideal + scale * safe_ratio(scale, ideal), 2 * scale)
    strengths = power(ideal, 2 * alpha) * spiked_overlap(ideal, sigma=sigma, n=n)
    return best_dimension(lifted, strengths, alpha=alpha)


@checked(_checks.noisy_descending, static=("n",))
def paper_curve(
    values: Float[Array, " r"], *, sigma: Scalar, n: int, alpha: Scalar
) -> Float[Array, " r"]:
    r"""PIP loss against $k$ by the paper's recipe (its Figures 2 to 4), in closed form.

    What `simulate_curve` tends to for thresholded values $s_l$, dense or not. The values of
    $\mathrm{diag}(s) + \sigma Z$ follow the free convolution of $\pm s$ with a semicircle
    (`biane97`): with $c = \sigma^2/2$, $S_p = \sum_{\pm s}1/((x \mp s)^2 + v^2)^p$ and $v$ such
    that $cS_1 = 1$, there are $N(x) = \frac1\pi\sum_{\pm s}[\arg(x \mp s + iv) -
    v\,(x \mp s)/((x \mp s)^2 + v^2)]$ of them above $y = x + c\sum_{\pm s}(x \mp
    s)/((x \mp s)^2 + v^2)$, where strengths are the means of $s^{2\alpha}$ with the weights of
    $cS_1$. Value $k$ is at $N = k - ½$. Beyond the first 256, values are taken together in groups
    of 2 % of their rank. Cost: $O(r + 320\,p^2)$ for $p$ groups: 478 for $r$ = 20,000.
    """
    ideal = usvt(values, sigma=sigma, n=n)
    lifted, strengths = _with_noise(ideal, sigma, n, alpha)
    a, b = power(ideal, 2 * alpha), power(lifted, 2 * alpha)
    unit = common_unit(a, b)
    changes = loss_changes(b / unit, strengths / unit)
    return unit * safe_sqrt(jnp.sum((a / unit) ** 2) + changes)


def _with_noise(ideal: Array, sigma: Any, n: int, alpha: Any) -> tuple[Array, Array]:
    """Values and strengths of ideal values in noise, each at its rank."""
    r, dtype = ideal.shape[0], ideal.dtype
    edges = _edges(r)
    sizes = np.diff(edges)
    members = np.repeat(np.arange(len(sizes)), sizes)

    def means(x):
        return jax.ops.segment_sum(x, members, len(sizes)) / jnp.asarray(sizes, dtype)

    tau = jnp.asarray(sigma, dtype) * n**0.5
    some = tau > 0
    unit = jnp.where(some, tau, 1)
    strength = power(ideal, 2 * alpha)
    # First by a power of two, so that no square of tau is formed, in derivatives either.
    step = power_of_two(unit)
    levels, own = means(ideal) / step / (unit / step), means(strength)
    places = jnp.concatenate([levels, -levels, jnp.zeros(1, dtype)])
    shares = jnp.asarray(np.concatenate([sizes, sizes, [2 * (n - r)]]) / (2 * n), dtype)
    middles = (edges[1:] + edges[:-1]) / 2
    x, y, square = jax.vmap(lambda rank: _at_rank(places, shares, rank / (2 * n)))(
        jnp.asarray(middles, dtype)
    )
    weights = shares[None, :] / ((x[:, None] - places[None, :]) ** 2 + square[:, None])
    seen = matmul(weights, jnp.concatenate([own, own, jnp.zeros(1, dtype)]))
    ranks, at = jnp.arange(r, dtype=dtype) + 0.5, jnp.asarray(middles, dtype)
    lifted, strengths = (
        jnp.interp(ranks, at, found) for found in (y * unit, seen / jnp.sum(weights, axis=1))
    )
    return jnp.where(some, lifted, ideal), jnp.where(some, strengths, strength)


def _edges(r: int, alone: int = 256, growth: float = 1.02) -> np.ndarray:
    """Where groups of ranks end: `alone` of one each, then each by a share of its rank."""
    edges = list(range(min(r, alone) + 1))
    while edges[-1] < r:
        edges.append(min(r, int(edges[-1] * growth) + 1))
    return np.asarray(edges)


def _at_rank(places: Array, shares: Array, mass: Array) -> tuple[Array, Array, Array]:
    """Subordinate point, value and squared width where that `mass` of values is above; tau = 1."""
    tiny = jnp.finfo(places.dtype).tiny

    def offsets(x, square):
        away = x - places
        return away, away**2 + square

    def width(x):
        # 1 / sum is concave in the square, so Newton's steps come from below and do not pass.
        start = jnp.maximum(jnp.max(shares - (x - places) ** 2), tiny)

        def step(_, square):
            _, distance = offsets(x, square)
            total = jnp.sum(shares / distance)
            change = total * (1 - total) / jnp.sum(shares / distance**2)
            return jnp.maximum(square - change, tiny)

        return lax.fori_loop(0, 8, step, start)

    def above(x, square):
        away, distance = offsets(x, square)
        v = jnp.sqrt(square)
        return jnp.sum(shares * (jnp.arctan2(v, away) - v * away / distance)) / jnp.pi

    def halve(_, bracket):
        low, high = bracket
        middle = (low + high) / 2
        more = above(middle, width(middle)) > mass
        return jnp.where(more, middle, low), jnp.where(more, high, middle)

    def equations(point):
        x, square = point
        return jnp.stack([above(x, square) - mass, jnp.sum(shares / offsets(x, square)[1]) - 1])

    bracket = jnp.zeros_like(mass), places[0] + 1
    low, high = lax.stop_gradient(lax.fori_loop(0, 40, halve, bracket))
    point = lax.stop_gradient(jnp.stack([(low + high) / 2, width((low + high) / 2)]))
    # One step of Newton's, for its derivatives: the loops above have none.
    (a, b), (c, d) = lax.stop_gradient(jax.jacfwd(equations)(point))
    f, g = equations(point)
    determinant = a * d - b * c
    x = point[0] - safe_ratio(d * f - b * g, determinant)
    square = point[1] - safe_ratio(a * g - c * f, determinant)
    away, distance = offsets(x, square)
    return x, x + jnp.sum(shares * away / distance), square


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
    "paper-spiked": partial(_of_values, spiked_paper_dimension),
    "released": lambda values, sigma, alpha: RULES["paper"](values, sigma, alpha) - 1,
    "spiked": partial(_of_values, select_dimension),
    "rie": _rie,
    "ideal": _ideal,
}
"""How many dimensions to keep, by the name of the rule; `rie` is for alpha = ½ alone.

`paper-spiked` is the paper's recipe where few values stand out from the noise, and `released` one
less than `paper`, as in the released code. The last three keep too much if sigma
is too small, as from halves of a corpus with many rare pairs (`experiments/known_ideal.py`).
"""
