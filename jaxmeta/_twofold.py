r"""Numbers in two pieces, a high one and a low one, have twice the digits of their dtype.

A Gram matrix squares the condition number of its factor, so in float32 its small eigenvalues would
be rounding: it is summed up, and decomposed, in two pieces. In float64 products are single ones.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from jaxmeta import _rows
from jaxmeta.linalg import eigh, leading_bits, matmul, power_of_two

__all__ = [
    "Twofold",
    "add",
    "axes",
    "congruence",
    "multiply",
    "product",
    "product_of_rows",
    "ratio",
    "transposed",
    "twofold",
]

STEPS = 4  # of refinement, for conditions up to 1e4 in float32
ROWS = 256  # of so many products of 8 bits the sum is exact in float32


class Twofold(NamedTuple):
    """An array of numbers, each of them the sum of two."""

    high: Float[Array, "..."]
    low: Float[Array, "..."]
    """At most half a unit in the last place of `high`."""

    @property
    def value(self) -> Float[Array, "..."]:
        """The nearest numbers of one piece."""
        return self.high + self.low


def twofold(x: Float[Array, "..."]) -> Twofold:
    """Numbers of one piece."""
    return Twofold(x, jnp.zeros_like(x))


def transposed(x: Twofold) -> Twofold:
    """The matrix with rows and columns exchanged."""
    return Twofold(x.high.T, x.low.T)


def _sum(a: Array, b: Array) -> Twofold:
    """The exact sum of two numbers."""
    high = a + b
    other = high - a
    return Twofold(high, (a - (high - other)) + (b - other))


def _product(a: Array, b: Array) -> Twofold:
    """The exact product of two numbers, if nothing underflows."""
    high = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    low = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low
    return Twofold(high, low)


def _halves(x: Array) -> tuple[Array, Array]:
    """A number as the sum of two with half of the bits each."""
    bits = (jnp.finfo(x.dtype).nmant + 2) // 2
    shifted = (2.0**bits + 1) * lax.stop_gradient(x)
    high = shifted - (shifted - lax.stop_gradient(x))
    return high, x - high


def add(a: Twofold, b: Twofold) -> Twofold:
    """The sum, entry by entry."""
    high, low = _sum(a.high, b.high)
    return _sum(high, low + (a.low + b.low))


def multiply(a: Twofold, b: Twofold) -> Twofold:
    """The product, entry by entry."""
    high, low = _product(a.high, b.high)
    return _sum(high, low + (a.high * b.low + a.low * b.high))


def ratio(a: Twofold, b: Twofold) -> Twofold:
    """The quotient, entry by entry, with 0 where `b` is 0."""
    zero = b.high == 0
    divisor = Twofold(jnp.where(zero, 1, b.high), b.low)
    high = jnp.where(zero, 0, a.value / divisor.value)
    back = multiply(twofold(high), divisor)
    left = add(a, Twofold(-back.high, -back.low)).value
    return _sum(high, jnp.where(zero, 0, left / divisor.value))


@jax.jit
def product_of_rows(a: Float[Array, "n k"], b: Float[Array, "n m"]) -> Twofold:
    r"""The `product` of what may be on several devices: each sums up its own rows."""
    parts = None if a.dtype == jnp.float64 else _rows.apart(product, a, b)
    if parts is None:
        return product(a, b)
    first = jax.tree.map(lambda x: x[0], parts)
    others = jax.tree.map(lambda x: x[1:], parts)
    return lax.scan(lambda total, part: (add(total, part), None), first, others)[0]


@jax.jit
def product(a: Float[Array, "n k"], b: Float[Array, "n m"]) -> Twofold:
    r"""$A^\top B$, summed up over blocks of rows. Cost: $12nkm$ flops in float32.

    Each factor is cut into pieces of 8 bits below the largest entry of its column, and a rest.
    Products of pieces are exact; what is rounded is smaller than the result by 16 bits.
    Reference: `ozaki12`.
    """
    if a.dtype == jnp.float64:
        return twofold(matmul(a.T, b))
    rows = min(ROWS, a.shape[0])
    bits = (jnp.finfo(a.dtype).nmant + 1 - math.ceil(math.log2(rows))) // 2

    def pieces(x):
        first = leading_bits(x, bits, axis=0)
        second = leading_bits(x - first, bits, axis=0)
        return first, second, x - first - second

    def step(total, block):
        a, b = block
        (a1, a2, a3), (b1, b2, b3) = pieces(a), pieces(b)
        high, low = _sum(matmul(a1.T, b1), matmul(a1.T, b2))
        high, lower = _sum(high, matmul(a2.T, b1))
        rest = matmul(a1.T, b3) + matmul(a2.T, b2 + b3) + matmul(a3.T, b)
        return add(total, Twofold(high, low + lower + rest)), None

    def blocks(x):
        x = jnp.pad(x, ((0, -x.shape[0] % rows), (0, 0)))
        return x.reshape(-1, rows, x.shape[1])

    start = twofold(jnp.zeros_like(a, shape=(a.shape[1], b.shape[1])))
    return lax.scan(step, start, (blocks(a), blocks(b)))[0]


@jax.jit
def congruence(a: Float[Array, "k r"], gram: Twofold, b: Float[Array, "m s"]) -> Twofold:
    r"""$A^\top GB$ for a $k \times m$ matrix $G$."""
    right = product(gram.high.T, b)
    right = add(right, twofold(matmul(gram.low, b)))
    left = product(a, right.high)
    return add(left, twofold(matmul(a.T, right.low)))


@jax.jit
def axes(gram: Twofold) -> tuple[Float[Array, " k"], Float[Array, "k k"]]:
    r"""Singular values and right axes of $X$, descending, from $G = X^\top X$.

    In float32 values down to $10^{-4}$ of the largest have their digits, though $G$ squares the
    condition. Axes of the high part diagonalise $G$ but for rounding, and beside its diagonal the
    logarithm of a matrix that is nearly diagonal has, to first order, the entries
    $g_{ij}(\log g_{ii} - \log g_{jj})/(g_{ii} - g_{jj})$. That has the same axes, and small values
    are as far apart there as large ones. Values that are 0 up to rounding are 0: those below some
    $10^{-5}$ of the largest in float32, and $10^{-7}$ in float64, where $G$ is in one piece. The
    largest entry of an axis is positive. Derivatives of axes are those of what is unique. Cost:
    $O(k^3)$.
    """
    return _axes(gram)


@jax.custom_jvp
def _axes(gram: Twofold) -> tuple[Array, Array]:
    size = power_of_two(jnp.max(jnp.abs(gram.high)))
    gram = Twofold(gram.high / size, gram.low / size)
    v = eigh(gram.high)[1]
    if v.dtype != jnp.float64:
        v = lax.fori_loop(0, STEPS, lambda _, v: _refined(v, gram), v)
    squares = jnp.diag(congruence(v, gram, v).value)
    values = jnp.sqrt(jnp.maximum(squares, 0))
    # NaN sorts last but must show.
    order = jnp.argsort(-values)
    values, v = values[order], v[:, order]
    largest = jnp.take_along_axis(v, jnp.argmax(jnp.abs(v), axis=0, keepdims=True), axis=0)
    values = jnp.where(values <= _rounding(values) * values[0], 0, values)
    return jnp.sqrt(size) * values, jnp.where(largest < 0, -v, v)


def _refined(v: Float[Array, "k k"], gram: Twofold) -> Float[Array, "k k"]:
    """Axes that are nearer to those of the matrix."""
    near = congruence(v, gram, v).value
    logarithm = near * _slopes(jnp.diag(near)) + jnp.diag(jnp.log(_floored(jnp.diag(near))) - 1)
    return matmul(v, eigh((logarithm + logarithm.T) / 2)[1])


def _floored(squares: Array) -> Array:
    """Squares of which none is smaller than rounding, or 0."""
    largest = jnp.max(squares)
    least = jnp.finfo(squares.dtype).eps ** 2 * jnp.where(largest == 0, 1, largest)
    return jnp.maximum(squares, least)


def _slopes(squares: Array) -> Array:
    """Slopes of the logarithm between any two of the squares."""
    x = _floored(squares)
    less = jnp.minimum(x[:, None], x[None, :])
    more = jnp.abs(x[:, None] - x[None, :]) / less
    return jnp.where(more == 0, 1, jnp.log1p(more) / jnp.where(more == 0, 1, more)) / less


def _rounding(values: Array) -> float:
    """Smaller values, relative to the largest, are rounding of the Gram matrix or of its pieces."""
    relative = 4 * values.shape[0] ** 0.5 * float(jnp.finfo(values.dtype).eps)
    return relative if values.dtype != jnp.float64 else (4 * relative) ** 0.5


@_axes.defjvp
def _axes_jvp(primals, tangents):
    (gram,), (move,) = primals, tangents
    values, v = _axes(gram)
    scale = jnp.where(values[0] == 0, 1, values[0])
    change = matmul(matmul(v.T, move.high + move.low), v) / scale
    change = (change + change.T) / 2
    here, there = values[None, :] / scale, values[:, None] / scale
    # Axes of one value may turn among themselves: nothing that is unique depends on how.
    apart = jnp.abs(here - there) > _rounding(values)
    gap = jnp.where(apart, (here - there) * (here + there), 1)
    turn = jnp.where(apart, change / gap, 0) / scale
    slopes = jnp.where(values == 0, 0, jnp.diag(change) / jnp.where(values == 0, 1, 2 * here[0]))
    return (values, v), (slopes, matmul(v, turn))
