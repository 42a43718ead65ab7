r"""The PIP loss as a quadratic in squared weights, and its exact minimum.

With $q = c^2 \ge 0$ and $z_a$ the columns of $[E_1 \ldots E_N]$, the loss of a weighted
concatenation against an ideal $E$ is $\|EE^\top - \hat E\hat E^\top\|_F^2 = q^\top Gq - 2h^\top q +
\|E^\top E\|_F^2$ with $G_{ab} = (z_a^\top z_b)^2$ and $h_a = \|E^\top z_a\|^2$. $G$ is positive
semi-definite (Schur), so the best weights solve a non-negative least squares problem.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float, Int

from jaxmeta import _checks
from jaxmeta._brief import brief
from jaxmeta._types import Sources
from jaxmeta.linalg import (
    distance_to_boundary,
    matmul,
    norm,
    power_of_two,
    safe_ratio,
    safe_sqrt,
    unit,
)

__all__ = [
    "PipQuadratic",
    "Solution",
    "agreement_weights",
    "exact_weights",
    "per_source",
    "pip_quadratic",
    "quadratic_loss",
]


class PipQuadratic(NamedTuple):
    r"""The squared loss $q^\top Gq - 2h^\top q + \text{constant}$ of squared weights $q$."""

    gram: Float[Array, "K K"]
    """Squared inner products of the columns, G."""
    linear: Float[Array, " K"]
    """Squared norms of the columns seen from the ideal, h."""
    constant: Float[Array, ""]
    """The squared loss of nothing at all."""
    units: Float[Array, " K"] | float = 1.0
    """What columns are in, powers of two: 1 but for lengths whose fourth power may overflow."""
    ideal_unit: Float[Array, ""] | float = 1.0
    """The same of the ideal."""


class Solution(NamedTuple):
    """The best weights, how far they are from optimal, and the steps taken."""

    weights: Float[Array, " K"]
    """Not negative; one for each dimension, or for each source after `per_source`."""
    residual: Float[Array, ""]
    """How far the optimality (KKT) conditions are violated, with columns scaled to unit length."""
    steps: Int[Array, ""]

    def __repr__(self) -> str:
        return brief(self)


@_checks.checked()
def pip_quadratic(ideal_embedding: Float[Array, "n d"], sources: Sources) -> PipQuadratic:
    r"""The quadratic of all dimensions of all sources (DW): $G$, $h$ and $\|E^\top E\|_F^2$.

    Entries are fourth powers of lengths, in `units` where these are very long or very short.
    Cost: $O(n(K + d)^2)$, memory $O((K + d)^2)$ on top of the sources.

    >>> import jax.numpy as jnp
    >>> e = jnp.array([[2.0, 1.0]])
    >>> print(*pip_quadratic(e[:, :1], (e,)))
    [[16.  4.]
     [ 4.  1.]] [16.  4.] 16.0
    """
    _checks.array("ideal_embedding", ideal_embedding, 2)
    _checks.sources("sources", sources)
    for j, source in enumerate(sources):
        _checks.matrices(ideal_embedding=ideal_embedding, **{f"sources[{j}]": source})
    z = jnp.concatenate(sources, axis=1)
    units, ideal_unit = _unit(z, axis=0), _unit(ideal_embedding)
    z, ideal = z / units[None, :], ideal_embedding / ideal_unit
    return PipQuadratic(
        matmul(z.T, z) ** 2,
        jnp.sum(matmul(ideal.T, z) ** 2, axis=0),
        jnp.sum(matmul(ideal.T, ideal) ** 2),
        units,
        ideal_unit,
    )


def _unit(x: Float[Array, "n k"], axis: int | None = None) -> Float[Array, "..."]:
    """The power of two in the largest magnitude, or 1 where fourth powers are far from the ends."""
    unit = power_of_two(jnp.max(jnp.abs(x), axis=axis))
    end = 2.0 ** (jnp.finfo(x.dtype).maxexp // 8)
    return jnp.where((unit < end) & (unit > 1 / end), 1, unit)


@_checks.checked(static=("sizes",))
def per_source(quadratic: PipQuadratic, *, sizes: tuple[int, ...]) -> PipQuadratic:
    """The quadratic of one weight per source (SW), of widths `sizes`. Cost: $O(K^2N)$."""
    _check(quadratic)
    _checks.sizes("sizes", sizes)
    width = quadratic.linear.shape[0]
    if sum(sizes) != width:
        got, expected = f"{sizes}, {sum(sizes)} in all", f"{width}, the width of the quadratic"
        _checks.fail("sizes", got, expected, "pass the widths of its sources")
    # A source is in the largest unit that its columns have.
    owners, dtype = _owners(sizes), quadratic.linear.dtype
    units = jnp.broadcast_to(jnp.asarray(quadratic.units, dtype), width)
    largest = jax.ops.segment_max(units, owners, num_segments=len(sizes))
    squares = (units / largest[owners]) ** 2
    gram = squares[:, None] * quadratic.gram * squares[None, :]
    gram = _add_up(_add_up(gram, sizes).T, sizes).T
    linear = _add_up(squares * quadratic.linear, sizes)
    return quadratic._replace(gram=gram, linear=linear, units=largest)


@_checks.checked()
def quadratic_loss(quadratic: PipQuadratic, squares: Float[Array, " K"]) -> Float[Array, ""]:
    r"""The PIP loss $\sqrt{q^\top Gq - 2h^\top q + \text{constant}}$ of squared weights `squares`.

    Cost: $O(K^2)$. Where the loss is small it cancels, unlike `pip_loss`: the error is about
    $\sqrt{\epsilon}\,\|E^\top E\|_F$. The gradient at 0 is 0.
    """
    _check(quadratic)
    _checks.array("squares", squares, 1)
    if squares.shape != quadratic.linear.shape:
        expected = f"{quadratic.linear.shape}, as many as the quadratic has"
        do = "join dimension weights with jnp.concatenate, or see per_source"
        _checks.fail("squares", f"shape {squares.shape}", expected, do)
    ratio, unit = quadratic.units / quadratic.ideal_unit, quadratic.ideal_unit
    squares = squares * ratio * ratio
    linear = matmul(quadratic.gram, squares) - 2 * quadratic.linear
    return unit * (unit * safe_sqrt(matmul(squares, linear) + quadratic.constant))


@_checks.checked(static=("steps",))
def exact_weights(quadratic: PipQuadratic, *, steps: int = 50) -> Solution:
    r"""The weights with the smallest PIP loss of all: $\min_{q \ge 0} q^\top Gq - 2h^\top q$.

    An interior-point method of at most `steps` steps, on columns scaled to unit length. The
    residual is $\max_a|\min(x_a, g_a)| / \max_a |h_a/\sqrt{G_{aa}}|$ with $x_a = q_a\sqrt{G_{aa}}$
    and $g$ half the gradient by $x$. Columns of zeros get 0; where columns repeat, some best
    weights are returned. First derivatives are those of the solution with its zeros held; the
    residual has none. Cost: $O(K^3)$ for each of 10 to 30 steps. Reference: `mehrotra92`.

    >>> import jax.numpy as jnp
    >>> sources = (jnp.array([[1.0], [0.0]]), jnp.array([[1.0], [1.0]]))
    >>> solution = exact_weights(pip_quadratic(jnp.array([[2.0], [0.0]]), sources))
    >>> print(jnp.round(solution.weights, 3), bool(solution.residual < 1e-5))
    [2. 0.] True
    """
    _check(quadratic)
    _checks.integer("steps", steps, least=1)
    a, c, size = _scaled(quadratic)
    x, taken = _interior_point(*lax.stop_gradient((a, c)), steps)
    x = _polished(a, c, x)
    residual = _violation(*lax.stop_gradient((a, c, x)))
    x = jnp.where(jnp.isnan(residual), jnp.nan, x)
    weights = safe_sqrt(x * size) * quadratic.ideal_unit / quadratic.units
    return Solution(weights, residual, taken)


@_checks.checked()
def agreement_weights(sources: Sources) -> Float[Array, " N"]:
    r"""Weights by which each source's inner products are predicted best from those of the others.

    They minimise $\sum_j\|E_jE_j^\top - \sum_{l \ne j} c_l^2E_lE_l^\top\|_F^2$. For two sources of
    equal norm these are `rank_weights`, up to a factor; for more, it does worse on real files
    (`experiments/pretrained.py`). Cost: $O(nK^2)$.
    """
    _checks.embeddings("sources", sources)
    if len(sources) < 2:
        _checks.fail("sources", "1", "at least 2", "a single source needs no weight")
    lengths = jnp.stack([norm(e) for e in sources])
    lengths = jnp.where(lengths == 0, 1, lengths)
    # In terms of x = q |E|^2, so that no fourth power of a length is ever formed but in ratios.
    scale = safe_ratio(lengths, jnp.max(lengths)) ** 2
    number, sizes = len(sources), tuple(e.shape[1] for e in sources)
    z = jnp.concatenate([unit(e) for e in sources], axis=1)
    products = _add_up(_add_up(matmul(z.T, z) ** 2, sizes).T, sizes)
    same = jnp.eye(number, dtype=z.dtype)
    linear = matmul(scale, products * (1 - same))
    quadratic = PipQuadratic(products * (number - 2 + same), linear, jnp.zeros((), z.dtype))
    return exact_weights(quadratic).weights / safe_sqrt(scale)


def _add_up(x: Float[Array, "K ..."], sizes: tuple[int, ...]) -> Float[Array, "N ..."]:
    """Sums over the rows of each source."""
    return jax.ops.segment_sum(x, _owners(sizes), num_segments=len(sizes), indices_are_sorted=True)


def _owners(sizes: Sequence[int]) -> np.ndarray:
    """The source of each column."""
    return np.repeat(np.arange(len(sizes)), sizes)


def _check(quadratic: object) -> None:
    """Raise unless `quadratic` is a PipQuadratic with shapes that fit."""
    if not isinstance(quadratic, PipQuadratic):
        got = f"a {type(quadratic).__name__}"
        _checks.fail("quadratic", got, "a PipQuadratic", "see pip_quadratic", TypeError)
    for name, ndim in (("gram", 2), ("linear", 1), ("constant", 0)):
        _checks.array(f"quadratic.{name}", getattr(quadratic, name), ndim)
    size = quadratic.linear.shape[0]
    if quadratic.gram.shape != (size, size):
        expected = f"{(size, size)}, the length of quadratic.linear"
        got = f"shape {quadratic.gram.shape}"
        _checks.fail("quadratic.gram", got, expected, "see pip_quadratic")


def _scaled(quadratic: PipQuadratic) -> tuple[Array, Array, Array]:
    """The problem with unit diagonal and largest linear term 1, and the unit of its solution."""
    length = safe_sqrt(jnp.diagonal(quadratic.gram))
    a = safe_ratio(safe_ratio(quadratic.gram, length[:, None]), length[None, :])
    a = jnp.where(jnp.diag(length == 0), 1, a)
    c = safe_ratio(quadratic.linear, length)
    size = lax.stop_gradient(jnp.max(jnp.abs(c)))
    size = jnp.where(size == 0, 1, size)
    return a, c / size, safe_ratio(size, length)


def _violation(a: Float[Array, "K K"], c: Float[Array, " K"], x: Float[Array, " K"]) -> Array:
    """How far x is from the optimality conditions: x >= 0, gradient >= 0, one of both 0."""
    return jnp.max(jnp.abs(jnp.minimum(x, matmul(a, x) - c)))


def _interior_point(a: Float[Array, "K K"], c: Float[Array, " K"], steps: int):
    """Minimise x'ax/2 - c'x over x >= 0: the best x seen, and the steps taken."""
    eps, floor = jnp.finfo(a.dtype).eps, _floor(a)

    def reach(v, dv):
        return jnp.minimum(1, distance_to_boundary(v, dv))

    def step(carry):
        x, s, best, least, i = carry
        # Only the factor sees the floor, which a repeated column needs: the solution does not.
        factor = cho_factor(a + jnp.diag(jnp.maximum(s / x, floor)), lower=True)
        wrong = matmul(a, x) - c - s
        gap = jnp.mean(x * s)

        def direction(products):
            dx = cho_solve(factor, products / x - wrong)
            return dx, (products - s * dx) / x

        dx, ds = direction(-x * s)
        reached = jnp.mean((x + reach(x, dx) * dx) * (s + reach(s, ds) * ds))
        dx, ds = direction((reached / gap) ** 3 * gap - x * s - dx * ds)
        go = 0.995 * jnp.minimum(reach(x, dx), reach(s, ds))
        x, s = x + go * dx, s + go * ds
        violation = _violation(a, c, x)
        best = jnp.where(violation < least, x, best)
        return x, s, best, jnp.fmin(violation, least), i + 1

    def unfinished(carry):
        x, s, _, least, i = carry
        return (i < steps) & (least > 4 * eps) & (jnp.mean(x * s) > eps**2)

    x = jnp.maximum(c, 0) + 1 / c.shape[0]
    start = (x, jnp.ones_like(x), x, jnp.full((), jnp.inf, a.dtype), jnp.int32(0))
    _, _, best, _, taken = lax.while_loop(unfinished, step, start)
    return best, taken


def _polished(a: Float[Array, "K K"], c: Float[Array, " K"], x: Float[Array, " K"]) -> Array:
    """`x` with its zeros exact, and a Newton step on the rest, which gives it its derivatives."""
    a0, c0 = lax.stop_gradient((a, c))
    free = x > matmul(a0, x) - c0
    x = jnp.where(free, x, 0)
    among = jnp.where(jnp.outer(free, free), a0, 0)
    factor = cho_factor(among + jnp.diag(jnp.where(free, _floor(a0), 1)), lower=True)
    change = cho_solve(factor, jnp.where(free, c - matmul(a, x), 0))
    fixed = lax.stop_gradient(change)
    candidate = jnp.maximum(x + fixed, 0)
    better = _violation(a0, c0, candidate) < _violation(a0, c0, x)
    x = jnp.where(better, candidate, x)
    return jnp.where(jnp.isnan(fixed), x, x + (change - fixed))


def _floor(a: Float[Array, "K K"]) -> Float[Array, ""]:
    """The addition to the diagonal of `a` by which its Cholesky factor is real."""
    return 8 * jnp.finfo(a.dtype).eps * jnp.max(jnp.sum(jnp.abs(a), axis=1))
