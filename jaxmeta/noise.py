r"""What noise does to a spectrum, and how to undo it where few values stand out from it.

A signal from a corpus is modelled as $\tilde M = M + Z$, where the entries of $Z$ have variance
$\sigma^2$ (section 3.5 of the paper); $Z$ is symmetric for symmetric signals, and $\tau =
\sigma\sqrt n$. The PIP loss depends on the *strength* of each noisy direction, $t_i = \tilde
u_i^\top |M|^{2\alpha}\,\tilde u_i$: the best weights are $c_i^2 = t_i/\mu_i^{2\alpha}$, and
dimension $i$ lowers the loss exactly if $\mu_i^{2\alpha} < 2t_i$.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxmeta import _checks
from jaxmeta._checks import checked
from jaxmeta._types import Scalar
from jaxmeta.linalg import common_unit, norm, power_of_two, safe_ratio
from jaxmeta.spectral import power

__all__ = [
    "bulk_noise_std",
    "debias",
    "difference",
    "effective_rank",
    "noise_std",
    "spiked_overlap",
    "spiked_strengths",
    "usvt",
    "usvt_rank",
]


def noise_std(first_half: Any, second_half: Any) -> Float[Array, ""]:
    r"""The noise of a signal, from the signals of two halves of its corpus (section 3.5).

    $\sigma = \|\tilde M_1 - \tilde M_2\|_F / (2\sqrt{nm})$, if each half has noise of variance
    $2\sigma^2$. Takes dense arrays or SciPy sparse matrices; sparse ones stay sparse.

    >>> import jax.numpy as jnp
    >>> halves = jnp.array([[1.0, 2.0], [2.0, 1.0]]), jnp.array([[1.0, 0.0], [0.0, 1.0]])
    >>> print(f"{noise_std(*halves):.4f}")
    0.7071
    """
    entries, count = difference(first_half, second_half)
    return norm(entries) / (2 * count**0.5)


@checked(static=("n", "m"))
def bulk_noise_std(values: Float[Array, " r"], *, n: int, m: int | None = None) -> Float[Array, ""]:
    r"""The noise of a signal without a split, from the median of *all* its values.

    $\sigma = \mathrm{median}(\mu)/(\sqrt n\,c)$, where $c$ is the median of the law of noise alone:
    that of the semicircle for a symmetric signal, that of Marchenko and Pastur for an $n \times m$
    one. Assumes noise of one variance in all entries, and an ideal of few values: for what has no
    corpus to split. Each per cent of values that are ideal makes $\sigma$ half a per cent too
    large. Reference: `gavish14`.

    >>> import jax, jax.numpy as jnp
    >>> noise = jax.random.normal(jax.random.key(0), (300, 200))
    >>> print(f"{bulk_noise_std(jnp.linalg.svd(noise, compute_uv=False), n=300, m=200):.2f}")
    1.00
    """
    _checks.array("values", values, 1)
    wide = n if m is None else m
    _checks.integer("n", n, least=1)
    _checks.integer("m", wide, least=1)
    if values.shape[0] != min(n, wide):
        expected = f"all {min(n, wide)} of a signal of shape {(n, wide)}"
        _checks.fail("values", f"{values.shape[0]} of them", expected, "split the corpus instead")
    return jnp.median(values) / _median_of_noise(n, wide)


def _median_of_noise(n: int, m: int) -> float:
    """The median singular value of n x m noise of variance 1."""
    # With x = 1 + b + 2 sqrt b cos t the density has no edge: it is sin^2 t / x, up to a factor.
    share = min(n, m) / max(n, m)
    t = np.linspace(np.pi, 0, 20_001)
    squares = 1 + share + 2 * share**0.5 * np.cos(t)
    middle = (squares[1:] + squares[:-1]) / 2
    mass = np.cumsum(np.sin((t[1:] + t[:-1]) / 2) ** 2 / middle)
    return float(np.sqrt(max(n, m) * np.interp(mass[-1] / 2, mass, middle)))


def difference(first: Any, second: Any) -> tuple[Float[Array, " _"], float]:
    """The stored entries of the difference of two halves, and the number of all entries."""
    both, sparse = "first_half and second_half", _checks.is_sparse(first)
    if sparse != _checks.is_sparse(second):
        got, do = "a sparse and a dense matrix", "convert one of them"
        _checks.fail(both, got, "two of a kind", do, TypeError)
    if not sparse:
        _checks.array("first_half", first, 2)
        _checks.array("second_half", second, 2)
    if first.shape != second.shape:
        got = f"shapes {first.shape} and {second.shape}"
        _checks.fail(both, got, "the same", "count both halves over one vocabulary")
    count = float(first.shape[0] * first.shape[1])  # more than an integer of JAX may hold
    if not sparse:
        return jnp.ravel(first - second), count
    stored = (first - second).data
    return jnp.asarray(stored if stored.size else np.zeros(1, stored.dtype)), count


def _scales(values: Array, sigma: Any, n: int, m: int | None) -> tuple[Array, Array]:
    sigma = jnp.asarray(sigma, values.dtype)
    sigma = jnp.where(sigma < 0, jnp.nan, sigma)
    return sigma * n**0.5, sigma * (n if m is None else m) ** 0.5


@checked(_checks.noisy, static=("n", "m"))
def usvt(
    values: Float[Array, " r"], *, sigma: Scalar, n: int, m: int | None = None
) -> Float[Array, " r"]:
    r"""Soft thresholding of values at the edge of the noise, $\max(\mu - 2\sigma\sqrt n, 0)$.

    The paper's estimate of the ideal spectrum (section 3.5), far too low above the edge; that of
    `chatterjee15` cuts hard. For an $n \times m$ signal the edge is $\sigma(\sqrt n + \sqrt m)$.

    >>> import jax.numpy as jnp
    >>> print(usvt(jnp.array([10.0, 5.0, 3.0]), sigma=0.5, n=16))
    [6. 1. 0.]
    """
    return jnp.maximum(values - sum(_scales(values, sigma, n, m)), 0)


@checked(_checks.noisy, static=("n", "m"), discrete=True)
def usvt_rank(
    values: Float[Array, " r"], *, sigma: Scalar, n: int, m: int | None = None
) -> Int[Array, ""]:
    """The number of values above the edge of the noise, the rank of what `usvt` leaves.

    NaN raises; under a trace, where it cannot, it is not above anything.
    """
    return jnp.sum(usvt(values, sigma=sigma, n=n, m=m) > 0)


@checked()
def effective_rank(values: Float[Array, " r"]) -> Float[Array, ""]:
    r"""The number of equal values that would be as spread out, $(\sum\mu^2)^2 / \sum\mu^4$."""
    _checks.array("values", values, 1)
    values = values / common_unit(values)
    return 1 / jnp.sum((values / norm(values)) ** 4)


@checked(_checks.noisy, static=("n", "m"))
def debias(
    values: Float[Array, " r"], *, sigma: Scalar, n: int, m: int | None = None
) -> Float[Array, " r"]:
    r"""The ideal values that noise lifted to `values`, in the spiked model; 0 inside the noise.

    Noise takes an ideal value $\lambda > \tau$ to $\mu = \lambda + \tau^2/\lambda$; for $n \times
    m$ signals, $\mu^2 = (\lambda^2 + \sigma^2n)(\lambda^2 + \sigma^2m)/\lambda^2$. Exact for a
    fixed number of ideal values as $n$ grows; at finite $n$ the relative standard error is
    $\sqrt{2/n}\,/\sqrt{\lambda^2/\tau^2 - 1}$ for symmetric noise. Reference: `benaych12`.

    >>> import jax.numpy as jnp
    >>> print(debias(jnp.array([4.25, 2.5, 1.9]), sigma=0.25, n=16).round(5))
    [4. 2. 0.]
    """
    a, b = _scales(values, sigma, n, m)
    edge = a + b
    above = values > edge
    # Each value is in a unit of its own, so that no square is too large or too small.
    unit = power_of_two(values)
    v, a, b = (jnp.where(above, x / unit, other) for x, other in ((values, 1), (a, 0), (b, 0)))
    top, bottom = a + b, a - b
    # The product form of (v^2 - a^2 - b^2)^2 - 4 a^2 b^2 does not cancel at the edge.
    root = jnp.sqrt((v - top) * (v + top) * (v - bottom) * (v + bottom))
    ideal = unit * jnp.sqrt((v**2 - a**2 - b**2 + root) / 2)
    return jnp.where(jnp.isnan(values + edge), jnp.nan, jnp.where(above, ideal, 0))


@checked(lambda ideal_values, **rest: _checks.noisy(ideal_values, **rest), static=("n", "m"))
def spiked_overlap(
    ideal_values: Float[Array, " r"], *, sigma: Scalar, n: int, m: int | None = None
) -> Float[Array, " r"]:
    r"""Squared cosine of each noisy direction with the ideal one, in the spiked model.

    $\langle\tilde u, u\rangle^2 = 1 - \tau^2/\lambda^2$ for $\lambda > \tau$, else 0; for
    $n \times m$ signals, of the left directions,
    $(\lambda^4 - \sigma^4nm)/(\lambda^2(\lambda^2 + \sigma^2n))$. Reference: `benaych12`.
    """
    a, b = _scales(ideal_values, sigma, n, m)
    size = jnp.abs(ideal_values)
    # In units of the value: nothing is squared that is not below 1.
    above = (size > 0) & ((a / size) * (b / size) < 1)
    left, right = (safe_ratio(x, jnp.where(above, size, 0)) for x in (a, b))
    cosine = (1 - left * right) * (1 + left * right) / (1 + left**2)
    return jnp.where(jnp.isnan(ideal_values + a), jnp.nan, jnp.where(above, cosine, 0))


@checked(_checks.noisy, static=("n", "m"))
def spiked_strengths(
    values: Float[Array, " r"], *, sigma: Scalar, n: int, alpha: Scalar, m: int | None = None
) -> Float[Array, " r"]:
    r"""Strengths $t = \lambda^{2\alpha}\langle\tilde u, u\rangle^2$ in the spiked model."""
    ideal = debias(values, sigma=sigma, n=n, m=m)
    return power(ideal, 2 * alpha) * spiked_overlap(ideal, sigma=sigma, n=n, m=m)
