r"""What noise does to a spectrum, and how to undo it.

A signal matrix from a corpus is modelled as an ideal one plus noise, $\tilde M = M + Z$, where the
entries of $Z$ have variance $\sigma^2$ (section 3.4 of the paper); $Z$ is symmetric for symmetric
signals. Noise lifts the values, $\tau = \sigma\sqrt n$ being the scale, and turns the directions.
Both effects are known in closed form for large $n$, and three estimators follow from them:

* `usvt`, soft thresholding, is what the paper uses: it subtracts $2\tau$ from every value, which is
  right at the edge of the noise and far too much above it.
* `debias` and `overlap` hold where few values stand out from the noise (the *spiked* model).
* `rotation_invariant` and `ideal_strengths` need the whole spectrum and assume no rank.

What the PIP loss asks for is the *strength* of each noisy direction,
$t_i = \tilde u_i^\top |M|^{2\alpha}\,\tilde u_i$: the best weights are
$c_i^2 = t_i/\mu_i^{2\alpha}$, and dimension $i$ lowers the loss exactly if
$\mu_i^{2\alpha} < 2t_i$. `spiked_strengths` and `ideal_strengths` estimate it; for a signal
without negative eigenvalues and $\alpha = ½$ it is also what `rotation_invariant` estimates. All of
them need $\sigma$, and an error in it shows in full.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax import lax
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float, Real

from jaxmeta import _checks
from jaxmeta.linalg import matmul, norm, safe_sqrt
from jaxmeta.spectral import power

__all__ = [
    "Strengths",
    "complete_spectrum",
    "debias",
    "effective_rank",
    "ideal_strengths",
    "noise_std",
    "overlap",
    "released_noise_std",
    "rotation_invariant",
    "rotation_invariant_rectangular",
    "spiked_strengths",
    "usvt",
    "usvt_rank",
]


class Strengths(NamedTuple):
    """Estimated strengths of noisy directions."""

    values: Float[Array, " n"]
    """One for each eigenvalue, in its order."""
    residual: Float[Array, ""]
    """How far the density of the ideal is from its optimality conditions."""


def noise_std(first_half: Any, second_half: Any) -> Float[Array, ""]:
    r"""The noise of a signal, from the signals of two halves of its corpus (section 3.4).

    $\sigma = \|\tilde M_1 - \tilde M_2\|_F / (2\sqrt{nm})$, if each half has noise of variance
    $2\sigma^2$. Takes dense arrays or SciPy sparse matrices; sparse ones stay sparse.

    >>> import jax.numpy as jnp
    >>> halves = jnp.array([[1.0, 2.0], [2.0, 1.0]]), jnp.array([[1.0, 0.0], [0.0, 1.0]])
    >>> print(f"{noise_std(*halves):.4f}")
    0.7071
    """
    entries, count = _difference(first_half, second_half)
    return norm(entries) / (2 * count**0.5)


def released_noise_std(first_half: Any, second_half: Any) -> Float[Array, ""]:
    r"""Half the standard deviation of $\tilde M_1 - \tilde M_2$, as in the paper's released code.

    Smaller than `noise_std` where the two halves differ in the mean.
    """
    entries, count = _difference(first_half, second_half)
    mean = jnp.sum(entries) / count
    unstored = count - entries.size
    return safe_sqrt((jnp.sum((entries - mean) ** 2) + unstored * mean**2) / count) / 2


def _difference(first: Any, second: Any) -> tuple[Float[Array, " _"], int]:
    """The stored entries of the difference of two matrices, and how many entries there are."""
    if scipy.sparse.issparse(first) != scipy.sparse.issparse(second):
        raise TypeError(
            "first_half and second_half: got a sparse and a dense matrix, expected two of a kind; "
            "convert one of them."
        )
    if not scipy.sparse.issparse(first):
        _checks.array("first_half", first, 2)
        _checks.array("second_half", second, 2)
    if first.shape != second.shape:
        raise ValueError(
            f"first_half and second_half: got shapes {first.shape} and {second.shape}, expected "
            "the same; count both halves over one vocabulary."
        )
    count = first.shape[0] * first.shape[1]
    if scipy.sparse.issparse(first):
        stored = (first - second).data
        return jnp.asarray(stored if stored.size else np.zeros(1, stored.dtype)), count
    return jnp.ravel(first - second), count


def usvt(
    values: Float[Array, " r"], *, sigma: Real[Array, ""] | float, n: int, m: int | None = None
) -> Float[Array, " r"]:
    r"""Universal singular value thresholding, $\max(\mu - 2\sigma\sqrt n, 0)$ (section 3.4).

    For an $n \times m$ signal the edge of the noise is $\sigma(\sqrt n + \sqrt m)$. Reference:
    `chatterjee15`.

    >>> import jax.numpy as jnp
    >>> print(usvt(jnp.array([10.0, 5.0, 3.0]), sigma=0.5, n=16))
    [6. 1. 0.]
    """
    edge = sum(_scales(values, sigma, n, m))
    return jnp.maximum(values - edge, 0)


def usvt_rank(
    values: Float[Array, " r"], *, sigma: Real[Array, ""] | float, n: int, m: int | None = None
) -> Array:
    """The number of values above the edge of the noise: the rank of what `usvt` leaves."""
    return jnp.sum(usvt(values, sigma=sigma, n=n, m=m) > 0)


def effective_rank(values: Float[Array, " r"]) -> Float[Array, ""]:
    r"""The number of equal values that would be as spread out, $(\sum\mu^2)^2 / \sum\mu^4$."""
    _checks.array("values", values, 1)
    shares = values / norm(values)
    return 1 / jnp.sum(shares**4)


def debias(
    values: Float[Array, " r"], *, sigma: Real[Array, ""] | float, n: int, m: int | None = None
) -> Float[Array, " r"]:
    r"""The ideal values that noise lifted to `values`, in the spiked model; 0 inside the noise.

    Noise takes an ideal value $\lambda > \tau$ to $\mu = \lambda + \tau^2/\lambda$, so
    $\lambda = (\mu + \sqrt{\mu^2 - 4\tau^2})/2$ for $\mu > 2\tau$; for $n \times m$ signals,
    $\mu^2 = (\lambda^2 + \sigma^2n)(\lambda^2 + \sigma^2m)/\lambda^2$. Exact for a fixed number
    of ideal values as $n$ grows; at finite $n$ the relative standard error is
    $\sqrt{2/n}\,/\sqrt{\lambda^2/\tau^2 - 1}$ for symmetric noise. Reference: `benaych12`.

    >>> import jax.numpy as jnp
    >>> print(debias(jnp.array([4.25, 2.5, 1.9]), sigma=0.25, n=16).round(5))
    [4. 2. 0.]
    """
    a, b = _scales(values, sigma, n, m)
    top, bottom = a + b, a - b
    above = values > top
    v = jnp.where(above, values, 2 * top + 1)
    # The product form of (v^2 - a^2 - b^2)^2 - 4 a^2 b^2 does not cancel at the edge.
    root = jnp.sqrt((v - top) * (v + top) * (v - bottom) * (v + bottom))
    ideal = jnp.sqrt((v**2 - a**2 - b**2 + root) / 2)
    return jnp.where(jnp.isnan(values + top), jnp.nan, jnp.where(above, ideal, 0))


def overlap(
    ideal_values: Float[Array, " r"],
    *,
    sigma: Real[Array, ""] | float,
    n: int,
    m: int | None = None,
) -> Float[Array, " r"]:
    r"""Squared cosine of each noisy direction with the ideal one, in the spiked model.

    $\langle\tilde u, u\rangle^2 = 1 - \tau^2/\lambda^2$ for $\lambda > \tau$, else 0; for
    $n \times m$ signals, of the left directions,
    $(\lambda^4 - \sigma^4nm)/(\lambda^2(\lambda^2 + \sigma^2n))$. Reference: `benaych12`.
    """
    a, b = _scales(ideal_values, sigma, n, m)
    least = a * b
    square = ideal_values**2
    above = square > least
    safe = jnp.where(above, square, 2 * least + 1)
    cosine = (safe - least) * (safe + least) / (safe * (safe + a**2))
    return jnp.where(jnp.isnan(ideal_values + least), jnp.nan, jnp.where(above, cosine, 0))


def spiked_strengths(
    values: Float[Array, " r"],
    *,
    sigma: Real[Array, ""] | float,
    n: int,
    alpha: Real[Array, ""] | float,
    m: int | None = None,
) -> Float[Array, " r"]:
    r"""Strengths $t = \lambda^{2\alpha}\langle\tilde u, u\rangle^2$ in the spiked model.

    For signals of which only the leading values are known, and few stand out from the noise.
    """
    _checks.scalar("alpha", alpha)
    ideal = debias(values, sigma=sigma, n=n, m=m)
    exponent = 2 * jnp.asarray(alpha, values.dtype)
    return power(ideal, exponent) * overlap(ideal, sigma=sigma, n=n, m=m)


def _scales(values: Any, sigma: Any, n: int, m: int | None) -> tuple[Array, Array]:
    """sigma sqrt n and sigma sqrt m, after checks."""
    _checks.array("values", values, 1)
    _checks.not_negative("sigma", sigma)
    for name, size in (("n", n), ("m", n if m is None else m)):
        _checks.integer(name, size, least=values.shape[0])
    sigma = jnp.asarray(sigma, values.dtype)
    sigma = jnp.where(sigma < 0, jnp.nan, sigma)
    return sigma * n**0.5, sigma * (n if m is None else m) ** 0.5


def rotation_invariant(
    eigenvalues: Float[Array, " n"], *, sigma: Real[Array, ""] | float
) -> Float[Array, " n"]:
    r"""The best estimate of $\tilde u_i^\top M\tilde u_i$ without knowing any direction (RIE).

    $\xi_i = \mu_i - 2\tau^2 h(\mu_i)$, where $h$ is the real part of the observed spectrum's
    Stieltjes transform $\frac1n\sum_l 1/(\mu_i - i\eta - \mu_l)$ at $\eta = \sigma$, one level
    spacing. Takes *all* $n$ eigenvalues of a symmetric signal, with their signs, in any order; use
    `complete_spectrum` where only the leading ones are known. Assumes Wigner noise, and nothing
    about the rank. For a signal with negative eigenvalues it estimates $M$, not $|M|$: there
    `ideal_strengths` is the one for the PIP loss.

    Cost: $O(n^2)$ time, $O(n)$ memory. Reference: `bun16`.

    >>> import jax.numpy as jnp
    >>> print(f"{rotation_invariant(jnp.array([9.0, 1.0, 0.0, -1.0]), sigma=0.5)[0]:.3f}")
    8.832
    """
    _checks.array("eigenvalues", eigenvalues, 1)
    _checks.positive("sigma", sigma)
    return _rotation_invariant(eigenvalues, jnp.asarray(sigma, eigenvalues.dtype))


@jax.jit
def _rotation_invariant(eigenvalues: Array, sigma: Array) -> Array:
    real, _ = _stieltjes(eigenvalues, eigenvalues, sigma)
    return eigenvalues - 2 * sigma**2 * eigenvalues.shape[0] * real


def rotation_invariant_rectangular(
    values: Float[Array, " r"], *, sigma: Real[Array, ""] | float, n: int, m: int
) -> Float[Array, " r"]:
    r"""The same for an $n \times m$ signal with independent noise, of $\tilde u_i'M\tilde v_i$.

    $\xi_i = s_i - 2\sigma^2\,\mathrm{Re}\sum_l \frac{z}{z^2 - s_l^2} - \sigma^2|m - n|/s_i$ at
    $z = s_i - i\sigma$; all $\min(n, m)$ singular values are needed. It is the best weight of
    $\tilde u_i\tilde v_i'$ in an estimate of $M$; the PIP loss has $\tilde u_i$ on both sides and
    asks for another number. Cost: $O(r^2)$. Reference: `benaych23`.
    """
    _checks.array("values", values, 1)
    _checks.positive("sigma", sigma)
    if values.shape[0] != min(n, m):
        raise ValueError(
            f"values: got {values.shape[0]} of them, expected all {min(n, m)} singular values of "
            f"a signal of shape {(n, m)}; use usvt or debias where only the leading ones are known."
        )
    excess = jnp.asarray(abs(m - n), values.dtype)
    return _rotation_invariant_rectangular(values, jnp.asarray(sigma, values.dtype), excess)


@jax.jit
def _rotation_invariant_rectangular(values: Array, sigma: Array, excess: Array) -> Array:
    both = jnp.concatenate([values, -values])
    real, _ = _stieltjes(values, both, sigma)
    inverse = jnp.where(values > 0, 1 / jnp.where(values > 0, values, 1), 0)
    return values - 2 * sigma**2 * values.shape[0] * real - sigma**2 * excess * inverse


def _stieltjes(points: Array, poles: Array, eta: Array) -> tuple[Array, Array]:
    """Real and imaginary part of the mean of 1 / (point - i eta - pole), a few points at a time."""

    @jax.checkpoint  # so that derivatives need no n x n matrix either
    def at(point):
        distance = point - poles
        weight = 1 / (distance**2 + eta**2)
        return jnp.mean(distance * weight), eta * jnp.mean(weight)

    return lax.map(at, points, batch_size=128)


def ideal_strengths(
    eigenvalues: Float[Array, " n"],
    *,
    sigma: Real[Array, ""] | float,
    alpha: Real[Array, ""] | float,
    positive: bool = False,
    size: int = 512,
) -> Strengths:
    r"""Strengths $\tilde u_i^\top|M|^{2\alpha}\tilde u_i$ for any exponent and any sign.

    The overlap of a noisy direction with an ideal one depends on their eigenvalues alone,
    $n\,\mathbb E\langle\tilde u_i, u_l\rangle^2 = K(\mu_i, \lambda_l) =
    \frac{b_i/(\pi\rho_i)}{(a_i - \lambda_l)^2 + b_i^2}$ with $a_i = \mu_i - \tau^2h_i$,
    $b_i = \tau^2\pi\rho_i + \eta$ and $h_i + i\pi\rho_i$ the Stieltjes transform of
    `rotation_invariant`. So $t_i$ is a mean of $|\lambda|^{2\alpha}$ once the density $p$ of the
    ideal spectrum is known, and that is found as the maximum of $\sum_i\log\sum_l K_{il}p_l$: the
    overlaps of each ideal direction sum to one, which makes the true density a maximiser. A convex
    problem, solved by Newton steps on `size` candidates for $\lambda$.

    An isolated eigenvalue is alone in its window of width $\eta$; there the part of $b_i$ that the
    window adds is faded out (smoothly, by the eigenvalue's share of the window; a choice, not a
    theorem). Estimates for $\alpha < ½$ rest on the smallest ideal values, which noise hides best,
    and are the least reliable. `positive` says that the ideal has no negative eigenvalues.
    Derivatives go through the Newton steps; they are finite and approximate, good to some per cent.

    Cost: $O(n^2 + 40\,n\,\mathrm{size}^2)$. References: `bun16`, `ledoit11`.
    """
    _checks.array("eigenvalues", eigenvalues, 1)
    _checks.positive("sigma", sigma)
    _checks.scalar("alpha", alpha)
    _checks.integer("size", size, least=2)
    dtype = eigenvalues.dtype
    cast = jnp.asarray(sigma, dtype), jnp.asarray(alpha, dtype)
    return _ideal_strengths(eigenvalues, *cast, positive, size)


@jax.jit(static_argnames=("positive", "size"))
def _ideal_strengths(
    eigenvalues: Array, sigma: Array, alpha: Array, positive: bool, size: int
) -> Strengths:
    n = eigenvalues.shape[0]
    variance = sigma**2 * n
    real, imaginary = _stieltjes(eigenvalues, eigenvalues, sigma)
    share = 1 / (n * sigma * imaginary)
    centre = eigenvalues - variance * real
    width = variance * imaginary + sigma * (1 - share) ** 3
    own = jnp.maximum(centre, 0) if positive else centre
    candidates = _candidates(own, sigma, size)
    distance = centre[:, None] - candidates[None, :]
    kernel = (width / imaginary)[:, None] / (distance**2 + (width**2)[:, None])
    density, residual = _mixture(kernel, 1e-4 / size)

    def strength(x):
        return power(jnp.abs(x), 2 * alpha)

    seen = matmul(kernel, density)
    mean = matmul(kernel, density * strength(candidates)) / jnp.maximum(seen, 1)
    # What overlaps lack of one, an isolated direction has with its own ideal one.
    return Strengths(mean + jnp.maximum(1 - seen, 0) * strength(own), residual)


def _candidates(own: Array, sigma: Array, size: int) -> Array:
    """Ideal eigenvalues to choose from: all that are isolated, one per sigma elsewhere, and 0."""
    ordered = jnp.sort(own)
    gaps = lax.stop_gradient(jnp.minimum(jnp.diff(ordered), sigma))
    arc = jnp.concatenate([jnp.zeros(1, own.dtype), jnp.cumsum(gaps)])
    at = jnp.linspace(0, 1, size - 1, dtype=own.dtype) * arc[-1]
    right = jnp.clip(jnp.searchsorted(arc, at), 1, own.shape[0] - 1)
    nearest = jnp.where(at - arc[right - 1] < arc[right] - at, right - 1, right)
    return jnp.concatenate([ordered[nearest], jnp.zeros(1, own.dtype)])


def _mixture(kernel: Array, floor: float, steps: int = 40) -> tuple[Array, Array]:
    """Weights p > 0 that maximise mean log(K p) - sum p + floor sum log p, by an interior point."""
    n, size = kernel.shape

    def slopes(p):
        return 1 - matmul(kernel.T, 1 / matmul(kernel, p)) / n

    def step(_, state):
        p, dual, target = state
        ratios = kernel / matmul(kernel, p)[:, None]
        curvature = matmul(ratios.T, ratios) / n + jnp.diag(dual / p)
        move = cho_solve(cho_factor(curvature), target / p - slopes(p))
        dual_move = (target - dual * move) / p - dual
        length = jnp.minimum(_feasible(p, move), _feasible(dual, dual_move))
        p, dual = p + length * move, dual + length * dual_move
        return p, dual, jnp.maximum(0.2 * jnp.dot(p, dual) / size, floor)

    start = jnp.full(size, 1 / size, kernel.dtype)
    first = jnp.asarray(1 / size, kernel.dtype)
    p, _, _ = lax.fori_loop(0, steps, step, (start, jnp.ones_like(start), first))
    return p, jnp.max(jnp.abs(p * slopes(p) - floor))


def _feasible(x: Array, move: Array) -> Array:
    """The longest step, up to 1, that keeps x + step * move well above zero."""
    falling = move < 0
    limits = jnp.where(falling, -x / jnp.where(falling, move, -1), jnp.inf)
    return jnp.minimum(1, 0.95 * jnp.min(limits))


def complete_spectrum(
    eigenvalues: Float[Array, " r"],
    *,
    n: int,
    trace: Real[Array, ""] | float,
    square_norm: Real[Array, ""] | float,
) -> Float[Array, " n"]:
    r"""All $n$ eigenvalues: the leading ones as given, the others made up to fit two moments.

    `eigenvalues` are those of largest magnitude, by magnitude, with their signs; `trace` is
    $\mathrm{tr}\,\tilde M$ and `square_norm` is $\|\tilde M\|_F^2$, both cheap to know. The others
    are placed at the quantiles of a semicircle that has their mean and variance and is cut at the
    smallest magnitude known. Good where the leading eigenvalues reach into the edge of the noise;
    the farther into it they reach the less is left to make up. To differentiation the made-up ones
    are constants.

    Cost: $O(n)$.
    """
    _checks.array("eigenvalues", eigenvalues, 1)
    _checks.integer("n", n, least=eigenvalues.shape[0] + 1)
    _checks.scalar("trace", trace)
    _checks.scalar("square_norm", square_norm)
    moments = (jnp.asarray(x, eigenvalues.dtype) for x in (trace, square_norm))
    return _complete_spectrum(eigenvalues, *moments, n)


@jax.jit(static_argnames="n")
def _complete_spectrum(top: Array, trace: Array, square_norm: Array, n: int) -> Array:
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
    mass = jnp.concatenate([jnp.zeros(1, top.dtype), jnp.cumsum((weight[1:] + weight[:-1]) / 2)])
    quantiles = (jnp.arange(rest, dtype=top.dtype) + 0.5) / rest
    made_up = mean + jnp.interp(quantiles * mass[-1], mass, x)
    return jnp.concatenate([top, lax.stop_gradient(made_up)])
