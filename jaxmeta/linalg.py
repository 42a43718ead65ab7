"""Linear algebra that stays exact where the plain formula cancels.

All products run at the highest precision of the device; all functions work under `jit`, `vmap` and
`grad`, and along a row-sharded first axis.
"""

import math
from functools import partial, reduce

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from jaxmeta import _checks, _rows

__all__ = [
    "axis_lengths",
    "column_norms",
    "common_unit",
    "distance_to_boundary",
    "eigh",
    "fix_signs",
    "leading_bits",
    "left_axes",
    "matmul",
    "norm",
    "outside",
    "polar",
    "power_of_two",
    "principal_sines",
    "procrustes",
    "residual",
    "right_axes",
    "row_norms",
    "safe_ratio",
    "safe_sqrt",
    "singular_values",
    "svd",
    "unit",
]

matmul = partial(jnp.matmul, precision=lax.Precision.HIGHEST)


def safe_sqrt(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$\sqrt{\max(x, 0)}$ with gradient 0, not infinity, where it vanishes. NaN stays NaN.

    Rounding may leave a little less than 0, but not minus infinity, which gives NaN.
    """
    vanishes = (x <= 0) & (x != -jnp.inf)
    return jnp.where(vanishes, 0, jnp.sqrt(jnp.where(vanishes, 1, x)))


def safe_ratio(a: Float[Array, "..."], b: Float[Array, "..."]) -> Float[Array, "..."]:
    """The quotient a / b, with 0 where b is 0 (and NaN where a is NaN); finite derivatives."""
    # Its derivative has the square of b: in its own unit that is neither 0 nor infinite.
    unit = power_of_two(jnp.abs(b))
    return jnp.where(b == 0, 0 * a, (a / unit) / jnp.where(b == 0, 1, b / unit))


def norm(x: Float[Array, "..."]) -> Float[Array, ""]:
    r"""Euclidean (Frobenius) norm of all entries: no overflow, and gradient 0 at 0."""
    scale = common_unit(x)
    return scale * safe_sqrt(jnp.sum((x / scale) ** 2))


def row_norms(x: Float[Array, "n k"]) -> Float[Array, " n"]:
    """The length of each row, by `norm`."""
    return jax.vmap(norm)(x)


def column_norms(x: Float[Array, "n k"]) -> Float[Array, " k"]:
    """The length of each column, by `norm`."""
    return jax.vmap(norm, in_axes=1)(x)


def unit(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """An array over its norm; zeros stay zeros."""
    x = x / common_unit(x)
    size = norm(x)
    return x / jnp.where(size == 0, 1, size)


def outside(basis: Float[Array, "n k"], x: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """What `x` has outside of the span of `basis`, whose columns are orthonormal: $x - BB^T x$."""
    return x - matmul(basis, matmul(basis.T, x))


def power_of_two(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """The power of two in (x / 2, x], or 1 for x = 0: dividing by it rounds nothing. A constant."""
    limits = jnp.finfo(x.dtype)
    bits = lax.bitcast_convert_type(lax.stop_gradient(x), f"uint{limits.bits}")
    # The bits of the exponent alone, of a number that is not negative.
    power = lax.bitcast_convert_type(bits >> limits.nmant << limits.nmant, x.dtype)
    # 0, NaN and infinity have no such power: leave them alone, they show in what is scaled. The
    # largest power has no normal reciprocal: take the one before.
    power = jnp.minimum(power, 2.0 ** (limits.maxexp - 2))
    return jnp.where((x > 0) & (x < jnp.inf) & (power > 0), power, 1)


def common_unit(*arrays: Float[Array, "..."]) -> Float[Array, ""]:
    """The power of two in the largest magnitude of all entries; see `power_of_two`."""
    return power_of_two(reduce(jnp.maximum, (jnp.max(jnp.abs(x)) for x in arrays)))


def svd(x: Float[Array, "n m"], *, full_matrices: bool = True) -> tuple[Array, Array, Array]:
    """`jnp.linalg.svd`, or NaN at once if `x` is not finite: of infinity LAPACK's never ends."""
    x, unit = _in_unit(x)
    u, s, vt = jnp.linalg.svd(x, full_matrices=full_matrices)
    return u, unit * s, vt


def left_axes(x: Float[Array, "n m"]) -> tuple[Array, Array]:
    """Left singular vectors, and values, of rows that may be on several devices."""
    if _rows.mesh_of(x) is None or x.shape[0] < x.shape[1]:
        return svd(x, full_matrices=False)[:2]
    return _left_axes(x)[:2]


@jax.custom_jvp
def _left_axes(x: Float[Array, "n m"]) -> tuple[Array, Array, Array]:
    q, r = _rows.qr(x)
    u, s, vt = svd(r, full_matrices=False)
    return matmul(q, u), s, vt


@_left_axes.defjvp
def _left_axes_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    u, s, vt = _left_axes(x)
    move = matmul(dx, vt.T)
    inner = matmul(u.T, move)
    here, there = s[None, :], s[:, None]
    turn = safe_ratio(inner * here + there * inner.T, (here - there) * (here + there))
    beyond = safe_ratio(outside(u, move), jnp.broadcast_to(here, move.shape))
    return (u, s, vt), (matmul(u, turn) + beyond, jnp.diagonal(inner), jnp.zeros_like(vt))


def singular_values(x: Float[Array, "n m"]) -> Float[Array, " _"]:
    """The singular values alone, as `svd` has them."""
    x, unit = _in_unit(x)
    return unit * jnp.linalg.svd(x, compute_uv=False)


def eigh(x: Float[Array, "n n"]) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
    """`jnp.linalg.eigh`, or NaN at once, and nowhere anything else, if `x` is not finite."""
    x, unit = _in_unit(x)
    # Of NaN in some entries, unlike the SVD, it makes numbers.
    known = ~jnp.isnan(jnp.sum(x))
    values, vectors = jnp.linalg.eigh(jnp.where(known, x, jnp.nan))
    return unit * values, jnp.where(known, vectors, jnp.nan)


def _in_unit(x: Array) -> tuple[Array, Array]:
    """A matrix in a unit that is a power of two, NaN where it is not finite, and that unit.

    LAPACK's own unit for what is very small or large is no power of two, so that results would not
    be the same at any scale.
    """
    unit = common_unit(x)
    return jnp.where(jnp.isfinite(x), x / unit, jnp.nan), unit


@_checks.checked()
def residual(
    c: Float[Array, "n m"],
    a: Float[Array, "n k"],
    b: Float[Array, "k m"],
    b_low: Float[Array, "k m"] | None = None,
) -> Float[Array, "n m"]:
    """$C - A(B + B_{low})$, accurate even when it all but vanishes.

    The leading bits of $A$ and $B$ are cut off, so few of them that their product is exact; only
    products of the small remainders round. `b_low` holds digits of $B$ beyond its precision. Cost:
    $6nkm$ flops. Reference: `ozaki12`.
    """
    for name, x in (("c", c), ("a", a), ("b", b)):
        _checks.array(name, x, 2)
    # A product that goes into a sum may be rounded there and, cut off, elsewhere, or not: what is
    # chosen between two numbers is rounded before.
    a, b = (jnp.where(jnp.isfinite(x), x, jnp.nan) for x in (a, b))
    bits = (jnp.finfo(c.dtype).nmant + 1 - math.ceil(math.log2(a.shape[-1]))) // 2
    a_high = leading_bits(a, bits, axis=-1)
    b_high = leading_bits(b, bits, axis=-2)
    low = b - b_high if b_low is None else b - b_high + b_low
    return ((c - matmul(a_high, b_high)) - matmul(a - a_high, b_high)) - matmul(a, low)


def leading_bits(x: Array, bits: int, *, axis: int) -> Array:
    """x cut to the bits down to 2**-bits of the power of two above its largest entry."""
    x = lax.stop_gradient(x)
    top = 2 * power_of_two(jnp.max(jnp.abs(x), axis=axis, keepdims=True))
    # Adding and taking away a number this large leaves no room for the lower bits.
    shifter = 1.5 * 2.0 ** (jnp.finfo(x.dtype).nmant - bits) * top
    return (x + shifter) - shifter


@_checks.checked()
def procrustes(f: Float[Array, "n m"], e: Float[Array, "n k"]) -> Float[Array, "m k"]:
    r"""The rotation that brings `f` closest to `e`: $\arg\max_Q \langle E, FQ\rangle$.

    $Q$ is orthogonal; for $m < k$ its rows are orthonormal, for $m > k$ its columns. It is the
    polar factor of $F^\top E$; where that has a null space $Q$ is not unique, and any one is
    returned. Cost: $O(nkm)$ plus one SVD of an $m \times k$ matrix. Reference: `schonemann66`.
    """
    _checks.matrices(f=f, e=e)
    return polar(matmul((f / common_unit(f)).T, e / common_unit(e)))


@jax.custom_jvp
def polar(a: Float[Array, "m k"]) -> Float[Array, "m k"]:
    """The orthogonal factor U V' of a = U S V'."""
    u, _, vt = svd(a, full_matrices=False)
    return matmul(u, vt)


@polar.defjvp
def _polar_jvp(primals, tangents):
    # Unlike U and V, their product is smooth at repeated singular values: only sums divide here.
    (a,), (da,) = primals, tangents
    u, s, vt = svd(a, full_matrices=False)
    inner = matmul(matmul(u.T, da), vt.T)
    turn = safe_ratio(inner - inner.T, s[:, None] + s[None, :])
    inverse = safe_ratio(jnp.ones_like(s), s)
    left, right = da - matmul(u, matmul(u.T, da)), da - matmul(matmul(da, vt.T), vt)
    grown = matmul(matmul(left, vt.T * inverse[None, :]), vt)
    grown = grown + matmul(u * inverse[None, :], matmul(u.T, right))
    return matmul(u, vt), matmul(matmul(u, turn), vt) + grown


@_checks.checked()
def principal_sines(x: Float[Array, "n k"], y: Float[Array, "n m"]) -> Float[Array, " k"]:
    r"""Sines of the principal angles of span(`x`) to span(`y`), descending (Lemma 2).

    They are the singular values of $(I - YY^\top)X$; $k - m$ of them are 1 if $k > m$. Columns of
    `x` and of `y` are orthonormal. Errors are about $\epsilon$ times the largest sine, so tiny
    angles keep their digits. Cost: $O(nk(k + m))$. Reference: `knyazev02`.
    """
    _checks.matrices(x=x, y=y)
    left = residual(x, y, matmul(y.T, x))
    # y is orthonormal only up to rounding: what that leaves inside span(y) goes in a second pass.
    left = left - matmul(y, matmul(y.T, left))
    if _rows.mesh_of(left) is None:
        return singular_values(left)
    # How axes turn changes no value, to first order.
    axes = lax.stop_gradient(right_axes(left, left.shape[1]))
    return column_norms(matmul(left, axes))


def fix_signs(vectors: Float[Array, "n r"]) -> Float[Array, "n r"]:
    """Columns with their entry of largest magnitude positive."""
    rows = jnp.argmax(jnp.abs(vectors), axis=0, keepdims=True)
    leading = jnp.take_along_axis(vectors, rows, axis=0)
    return vectors * jnp.where(leading < 0, -1, 1).astype(vectors.dtype)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def right_axes(x: Float[Array, "n m"], k: int) -> Float[Array, "m k"]:
    """The k leading right singular vectors v of x, with the signs for which x v has its own."""
    x = x / common_unit(x)
    _, _, vt = svd(_rows.triangle(x))
    v = vt[:k].T
    image = matmul(x, v)
    flipped = jnp.any(fix_signs(image) != image, axis=0, keepdims=True)
    return jnp.where(flipped, -v, v)


@right_axes.defjvp
def _right_axes_jvp(k, primals, tangents):
    (x,), (dx,) = primals, tangents
    v = right_axes(x, x.shape[1])
    scale = common_unit(x)
    image, change = matmul(x, v) / scale, matmul(dx, v) / scale
    product = matmul(image.T, change)
    values = column_norms(image)
    here, there = values[None, :k], values[:, None]
    # Axes of one value may turn among themselves: nothing that is unique depends on how.
    apart = jnp.abs(here - there) > _rounding(x) * jnp.max(values)
    gap = jnp.where(apart, (here - there) * (here + there), 0)
    return v[:, :k], matmul(v, safe_ratio((product + product.T)[:, :k], gap))


def _rounding(x: Float[Array, "n m"]) -> float:
    """The error of singular values of x by rounding, relative to the largest."""
    return float(4 * x.shape[1] ** 0.5 * jnp.finfo(x.dtype).eps)


def axis_lengths(image: Float[Array, "n k"]) -> Float[Array, " k"]:
    """Singular values from columns on principal axes, with 0 for what is no more than rounding."""
    lengths = column_norms(image)
    return jnp.where(lengths <= _rounding(image) * jnp.max(lengths), 0, lengths)


def distance_to_boundary(x: Float[Array, "..."], move: Float[Array, "..."]) -> Float[Array, ""]:
    """The number of times x > 0 can go by `move` until an entry is 0: infinity, if none falls."""
    falls = move < 0
    return jnp.min(jnp.where(falls, x / jnp.where(falls, -move, 1), jnp.inf))
