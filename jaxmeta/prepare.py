r"""Functions that make sources of unknown origin fit to be put side by side.

`standardise` is a recipe that needs no labels and no corpus. Direction $i$ measures how related
words are with variance $s_i^4$; if a share $\rho_i$ of that is not noise, squared singular values
should be $\rho_i$. A source claims $\rho_i \propto s_i^2$, equal reliability would make them all
one, and one file cannot say which is nearer: `balanced_exponent` loses least in the worse case.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from jaxmeta import _checks
from jaxmeta._types import Scalar
from jaxmeta.linalg import axis_lengths, common_unit, matmul, norm, right_axes, safe_ratio, unit
from jaxmeta.spectral import power

__all__ = [
    "balanced_exponent",
    "centre_rows",
    "remove_leading",
    "spectrum_power",
    "standardise",
    "unit_frobenius",
    "unit_rows",
    "unit_spectral",
]


@_checks.checked()
def centre_rows(
    source: Float[Array, "n k"], *, present: Bool[Array, " n"] | None = None
) -> Float[Array, "n k"]:
    r"""$E - 1\bar e^\top$, rows less their mean; words that are not `present` get zeros."""
    _checks.array("source", source, 2)
    if present is None:
        return source - jnp.mean(source, axis=0, keepdims=True)
    _checks.present(present, source.shape[0])
    known = jnp.broadcast_to(present[:, None], source.shape)
    count = jnp.maximum(jnp.sum(present, dtype=source.dtype), 1)
    mean = jnp.sum(jnp.where(known, source, 0), axis=0, keepdims=True) / count
    return jnp.where(known, source - mean, 0)


@_checks.checked()
def unit_rows(source: Float[Array, "n k"]) -> Float[Array, "n k"]:
    r"""$e(w)/\|e(w)\|$ for each row, so that inner products are cosines. Rows of zeros stay so."""
    _checks.array("source", source, 2)
    return jax.vmap(unit)(source)


@_checks.checked()
def unit_frobenius(source: Float[Array, "n k"]) -> Float[Array, "n k"]:
    r"""$E/\|E\|_F$ has a squared norm of 1."""
    _checks.array("source", source, 2)
    return unit(source)


@_checks.checked()
def unit_spectral(source: Float[Array, "n k"]) -> Float[Array, "n k"]:
    r"""$E/\|E\|_2$ has a largest singular value of 1. Cost: $O(nk^2)$."""
    _checks.array("source", source, 2)
    return safe_ratio(source, norm(matmul(source, right_axes(source, 1))))


@_checks.checked()
def spectrum_power(source: Float[Array, "n k"], *, exponent: Scalar) -> Float[Array, "n k"]:
    r"""$US^p$ for $E = USV^\top$, on principal axes. $O(nk^2)$. References: `caron01`, `levy15`."""
    _checks.array("source", source, 2)
    _checks.scalar("exponent", exponent)
    exponent, unit = jnp.asarray(exponent, source.dtype), common_unit(source)
    image = matmul(source / unit, right_axes(source, source.shape[1]))
    return power(unit, exponent) * image * power(axis_lengths(image), exponent - 1)[None, :]


@_checks.checked(static=("count",))
def remove_leading(source: Float[Array, "n k"], *, count: int) -> Float[Array, "n k"]:
    """Rows less their part along the `count` strongest directions. $O(nk^2)$. Reference: `mu18`."""
    _checks.array("source", source, 2)
    _checks.integer("count", count, least=1, most=source.shape[1], of="the source")
    axes = right_axes(source, count)
    return source - matmul(matmul(source, axes), axes.T)


@_checks.checked()
def standardise(
    source: Float[Array, "n k"], *, present: Bool[Array, " n"] | None = None
) -> Float[Array, "n k"]:
    """The default for files: unit rows, centred, spectrum to the power of ½, unit Frobenius norm.

    Words that are not `present` get zeros. Cost: $O(nk^2)$.

    >>> import jax
    >>> source = standardise(5 + jax.random.normal(jax.random.key(0), (50, 3)))
    >>> print(source.shape, f"{jax.numpy.sum(source**2):.2f}")
    (50, 3) 1.00
    """
    _checks.array("source", source, 2)
    if present is not None:
        _checks.present(present, source.shape[0])
        source = jnp.where(jnp.broadcast_to(present[:, None], source.shape), source, 0)
    centred = centre_rows(unit_rows(source), present=present)
    return unit_frobenius(spectrum_power(centred, exponent=0.5))


@_checks.checked()
def balanced_exponent(values: Float[Array, " k"]) -> Float[Array, ""]:
    """The $p$ for which $s^{2p}$ is at equal angles to $s^2$ and to a flat spectrum.

    `values` $s$ are singular values; those of 0 count for nothing, and equal ones give 0.5.
    """
    _checks.array("values", values, 1)
    scaled = safe_ratio(values, jnp.max(values))
    flat = jnp.where(scaled == 0, 0, jnp.ones_like(scaled))

    def excess(exponent, scaled):
        """A number above 0 says that the exponent is too small: nearer to flat."""
        between = power(scaled, 2 * exponent)
        to_flat = jnp.sum(between * flat) * norm(scaled**2)
        return to_flat - jnp.sum(between * scaled**2) * norm(flat)

    def half(interval, _):
        low, high = interval
        middle = (low + high) / 2
        move = excess(middle, lax.stop_gradient(scaled)) > 0
        return (jnp.where(move, middle, low), jnp.where(move, high, middle)), None

    ends = (jnp.zeros_like(scaled[0]), jnp.ones_like(scaled[0]))
    (low, high), _ = lax.scan(half, ends, length=60)
    found = lax.stop_gradient((low + high) / 2)
    wanted = jnp.min(jnp.where(scaled == 0, 1, scaled)) < 1
    # A step of Newton's method, which changes nothing, has the derivative of the solution.
    slope = lax.stop_gradient(jax.grad(excess)(found, scaled))
    found = found - safe_ratio(excess(found, scaled), slope)
    return jnp.where(wanted, found, 0.5) + 0 * jnp.sum(values)
