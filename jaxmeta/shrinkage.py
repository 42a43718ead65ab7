r"""Strengths of noisy directions from the whole spectrum, with no assumption about the rank.

Where few values stand out from the noise, see `jaxmeta.noise`. An error in $\sigma$ shows in full.
"""

import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float

from jaxmeta import _checks
from jaxmeta._checks import checked
from jaxmeta._types import Scalar
from jaxmeta.linalg import (
    common_unit,
    distance_to_boundary,
    matmul,
    power_of_two,
    safe_ratio,
)
from jaxmeta.spectral import power

__all__ = [
    "Strengths",
    "complete_spectrum",
    "ideal_strengths",
    "rie_strengths",
    "rotation_invariant",
    "rotation_invariant_rectangular",
]


class Strengths(NamedTuple):
    """Estimated strengths of noisy directions."""

    values: Float[Array, " n"]
    """One for each eigenvalue, in its order."""
    residual: Float[Array, ""]
    """How far the density of the ideal is from its optimality conditions."""


def _check(*_: Any, sigma: Any, **__: Any) -> None:
    _checks.positive("sigma", sigma)


def _check_all(eigenvalues: Any, *, sigma: Any, **_: Any) -> None:
    """Warn where the small ones are missing: of the noise alone there are some within its edge."""
    _checks.positive("sigma", sigma)
    _checks.array("eigenvalues", eigenvalues, 1)
    if isinstance(eigenvalues, jax.core.Tracer) or isinstance(sigma, jax.core.Tracer):
        return
    magnitudes, n = np.abs(np.asarray(eigenvalues, np.float64)), len(eigenvalues)
    if magnitudes.min() > float(sigma) * n**0.5:
        warnings.warn(
            f"eigenvalues: got {n}, none within sigma sqrt n = {float(sigma) * n**0.5:.3g} of 0,"
            " expected all of the noisy signal; make up what is missing with complete_spectrum, or"
            " leave it so if the ideal has no eigenvalue near 0.",
            stacklevel=3,
        )


@checked(_check_all)
def rotation_invariant(eigenvalues: Float[Array, " n"], *, sigma: Scalar) -> Float[Array, " n"]:
    r"""The best estimate of $\tilde u_i^\top M\tilde u_i$ without knowing any direction (RIE).

    $\xi_i = \mu_i - 2\tau^2 h(\mu_i)$, where $h$ is the real part of the observed spectrum's
    Stieltjes transform $\frac1n\sum_l 1/(\mu_i - i\eta - \mu_l)$ at $\eta = \sigma$. Takes *all*
    $n$ eigenvalues of a symmetric signal, with their signs, in any order (see `complete_spectrum`),
    and warns if there is none within $\tau$ of 0: then the others are probably missing. Assumes
    Wigner noise. Cost: $O(n^2)$ time, $O(n)$ memory. Reference: `bun16`.

    >>> import jax.numpy as jnp
    >>> print(f"{rotation_invariant(jnp.array([9.0, 1.0, 0.0, -1.0]), sigma=0.5)[0]:.3f}")
    8.832
    """
    _checks.array("eigenvalues", eigenvalues, 1)
    sigma = jnp.asarray(sigma, eigenvalues.dtype)
    real, _ = _stieltjes(eigenvalues, eigenvalues, sigma)
    return eigenvalues - 2 * eigenvalues.shape[0] * sigma * real


@checked(_check_all, static=("positive",))
def rie_strengths(
    eigenvalues: Float[Array, " n"], *, sigma: Scalar, positive: bool = False
) -> Float[Array, " n"]:
    r"""Strengths at $\alpha = ½$ by `rotation_invariant`: $\max(\mathrm{sign}(\mu_i)\,\xi_i, 0)$.

    The PIP loss depends on $|M|$: the sign turns $\xi_i$, an estimate of $M$, into one of that. It
    is left out if the ideal is `positive`, without negative eigenvalues.
    """
    estimate = rotation_invariant(eigenvalues, sigma=sigma)
    return jnp.maximum(estimate if positive else jnp.sign(eigenvalues) * estimate, 0)


@checked(_check, static=("n", "m"))
def rotation_invariant_rectangular(
    values: Float[Array, " r"], *, sigma: Scalar, n: int, m: int
) -> Float[Array, " r"]:
    r"""The best estimate of $\tilde u_i'M\tilde v_i$ for an $n \times m$ signal with iid noise.

    $\xi_i = s_i - 2\sigma^2\,\mathrm{Re}\sum_l \frac{z}{z^2 - s_l^2} - \sigma^2|m - n|/s_i$ at $z =
    s_i - i\sigma$; all $\min(n, m)$ singular values are needed. The PIP loss has $\tilde u_i$ on
    both sides, and depends on another number. Cost: $O(r^2)$. Reference: `benaych23`.
    """
    _checks.array("values", values, 1)
    if values.shape[0] != min(n, m):
        expected = f"all {min(n, m)} singular values of a signal of shape {(n, m)}"
        do = "use usvt or debias where only the leading ones are known"
        _checks.fail("values", f"{values.shape[0]} of them", expected, do)
    sigma = jnp.asarray(sigma, values.dtype)
    real, _ = _stieltjes(values, jnp.concatenate([values, -values]), sigma)
    excess = float(abs(m - n)) * sigma * safe_ratio(sigma, values)
    return values - 2 * values.shape[0] * sigma * real - excess


def _stieltjes(points: Array, poles: Array, eta: Array) -> tuple[Array, Array]:
    """Real and imaginary part of the mean of eta / (point - i eta - pole), some points at a time.

    Distances are in units of eta: results do not depend on how large all of these are.
    """
    unit = power_of_two(eta)
    points, poles, eta = points / unit, poles / unit, eta / unit

    @jax.checkpoint  # so that derivatives need no n x n matrix either
    def at(point):
        distance = (point - poles) / eta
        weight = 1 / (distance**2 + 1)
        return jnp.mean(distance * weight), jnp.mean(weight)

    return lax.map(at, points, batch_size=128)


@checked(_check_all, static=("positive", "size"))
def ideal_strengths(
    eigenvalues: Float[Array, " n"],
    *,
    sigma: Scalar,
    alpha: Scalar,
    positive: bool = False,
    size: int = 512,
) -> Strengths:
    r"""Strengths $\tilde u_i^\top|M|^{2\alpha}\tilde u_i$ for any exponent and any sign.

    Overlaps depend on eigenvalues alone, $n\,\mathbb E\langle\tilde u_i, u_l\rangle^2 = K(\mu_i,
    \lambda_l) = \frac{b_i/(\pi\rho_i)}{(a_i - \lambda_l)^2 + b_i^2}$ with $a_i = \mu_i -
    \tau^2h_i$, $b_i = \tau^2\pi\rho_i + \eta$ and $h_i + i\pi\rho_i$ the Stieltjes transform of
    `rotation_invariant`. The density $p$ of the ideal spectrum is the maximum of $\sum_i\log\sum_l
    K_{il}p_l$ over `size` candidates for $\lambda$, a convex problem.

    Where an eigenvalue is alone in its window of width $\eta$, what the window adds to $b_i$ is
    faded out, by the factor $(1 - 1/(n\eta\pi\rho_i))^3$ (a choice, not a theorem). `positive` says
    that the ideal has no negative eigenvalues. As with `rotation_invariant`, all $n$ are needed.
    Estimates are least reliable for $\alpha < ½$. Derivatives are good to some per cent; the
    residual has none. Cost: $O(n^2 + 40\,n\,\mathrm{size}^2)$. References: `bun16`, `ledoit11`.
    """
    _checks.array("eigenvalues", eigenvalues, 1)
    _checks.scalar("alpha", alpha)
    _checks.integer("size", size, least=2)
    sigma = jnp.asarray(sigma, eigenvalues.dtype)
    n = eigenvalues.shape[0]
    # All is in units of sigma up to the strengths.
    values = safe_ratio(eigenvalues, sigma)
    real, imaginary = _stieltjes(values, values, jnp.ones_like(sigma))
    share = 1 / (n * imaginary)
    centre = values - n * real
    width = n * imaginary + (1 - share) ** 3
    own = jnp.maximum(centre, 0) if positive else centre
    candidates = _candidates(own, size)
    distance = centre[:, None] - candidates[None, :]
    kernel = (width / imaginary)[:, None] / (distance**2 + (width**2)[:, None])
    density, residual = _mixture(kernel, 1e-4 / size)

    def strength(x):
        return power(jnp.abs(x), 2 * alpha)

    seen = matmul(kernel, density)
    mean = matmul(kernel, density * strength(candidates)) / jnp.maximum(seen, 1)
    # What overlaps lack of one, an isolated direction has with its own ideal one.
    found = mean + jnp.maximum(1 - seen, 0) * strength(own)
    return Strengths(strength(sigma) * found, residual)


def _candidates(own: Array, size: int) -> Array:
    """Ideal eigenvalues to choose from: all that are isolated, one per sigma elsewhere, and 0."""
    ordered = jnp.sort(own)
    gaps = lax.stop_gradient(jnp.minimum(jnp.diff(ordered), 1))
    arc = jnp.pad(jnp.cumsum(gaps), (1, 0))
    at = jnp.linspace(0, 1, size - 1, dtype=own.dtype) * arc[-1]
    right = jnp.clip(jnp.searchsorted(arc, at), 1, own.shape[0] - 1)
    nearest = jnp.where(at - arc[right - 1] < arc[right] - at, right - 1, right)
    return jnp.pad(ordered[nearest], (0, 1))


def _mixture(kernel: Array, floor: float, steps: int = 40) -> tuple[Array, Array]:
    """Weights p > 0 that maximise mean log(K p) - sum p + floor sum log p, by an interior point."""
    n, size = kernel.shape

    def slopes(p):
        return 1 - matmul(kernel.T, 1 / matmul(kernel, p)) / n

    def step(_, state):
        (p, dual), target = state
        ratios = kernel / matmul(kernel, p)[:, None]
        curvature = matmul(ratios.T, ratios) / n + jnp.diag(dual / p)
        move = cho_solve(cho_factor(curvature), target / p - slopes(p))
        moves = jnp.stack([move, (target - dual * move) / p - dual])
        length = jnp.minimum(1, 0.95 * distance_to_boundary(state[0], moves))
        p, dual = both = state[0] + length * moves
        return both, jnp.maximum(0.2 * jnp.dot(p, dual) / size, floor)

    even = jnp.full(size, 1 / size, kernel.dtype)
    start = jnp.stack([even, jnp.ones_like(even)]), even[0]
    (p, _), _ = lax.fori_loop(0, steps, step, start)
    return p, lax.stop_gradient(jnp.max(jnp.abs(p * slopes(p) - floor)))


@checked(static=("n",))
def complete_spectrum(
    eigenvalues: Float[Array, " r"], *, n: int, trace: Scalar, square_norm: Scalar
) -> Float[Array, " n"]:
    r"""All $n$ eigenvalues: the leading ones as given, the others made up to fit two moments.

    `eigenvalues` are those of largest magnitude, by magnitude, with their signs; `trace` is
    $\mathrm{tr}\,\tilde M$ and `square_norm` is $\|\tilde M\|_F^2$. The others are quantiles of a
    semicircle with their mean and variance, cut at the smallest magnitude known; to differentiation
    they are constants. This is good where the leading ones reach the edge of the noise. Cost:
    $O(n)$.
    """
    _checks.array("eigenvalues", eigenvalues, 1)
    _checks.integer("n", n, least=eigenvalues.shape[0] + 1)
    _checks.scalar("trace", trace)
    _checks.scalar("square_norm", square_norm)
    unit = common_unit(eigenvalues)
    top = eigenvalues / unit
    trace, square_norm = (jnp.asarray(x, top.dtype) / unit for x in (trace, square_norm))
    square_norm = square_norm / unit
    rest = n - top.shape[0]
    mean = (trace - jnp.sum(top)) / rest
    tiny = jnp.finfo(top.dtype).tiny
    variance = jnp.maximum((square_norm - jnp.sum(top**2)) / rest - mean**2, tiny)
    cut = jnp.maximum(jnp.abs(top[-1]) - jnp.abs(mean), jnp.sqrt(tiny))
    grid = jnp.linspace(-1, 1, 2001, dtype=top.dtype)

    def density(radius):
        x = grid * jnp.minimum(radius, cut)
        return x, jnp.sqrt(jnp.maximum(radius**2 - x**2, 0))

    def halve(_, bracket):
        low, high = bracket
        middle = jnp.sqrt(low * high)
        x, weight = density(middle)
        narrow = jnp.sum(x**2 * weight) < variance * jnp.sum(weight)
        return jnp.where(narrow, middle, low), jnp.where(narrow, high, middle)

    deviation = jnp.sqrt(variance)
    low, high = lax.fori_loop(0, 60, halve, (deviation, 100 * (cut + deviation)))
    x, weight = density(jnp.sqrt(low * high))
    mass = jnp.pad(jnp.cumsum((weight[1:] + weight[:-1]) / 2), (1, 0))
    quantiles = (jnp.arange(rest, dtype=top.dtype) + 0.5) / rest
    made_up = mean + jnp.interp(quantiles * mass[-1], mass, x)
    return jnp.concatenate([eigenvalues, unit * lax.stop_gradient(made_up)])
