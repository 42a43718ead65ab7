r"""Logistic regressions with an L2 penalty are solved here, many at once: those of a nested CV.

The method is nonlinear conjugate gradients (Polak and Ribière) in the metric of
$cX^\top X/n + \lambda_l$, with $c$ the curvature of the loss at 0: close to the Hessian for all
masks, so that a step for all problems is two large matrix products, whose length needs no search.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxmeta import _checks
from jaxmeta.linalg import matmul, safe_ratio

__all__ = ["LogisticFits", "logistic_regression", "probabilities"]

LEAF = 384  # rows of a matrix from which halves are inverted first


class LogisticFits(NamedTuple):
    """The solutions for L strengths and M masks stand side by side."""

    weights: Float[Array, "L M k c"]
    intercepts: Float[Array, "L M c"]
    gradient_norms: Float[Array, "L M"]
    """In the metric of the solver: the objective is above its minimum by about half the square,
    times the ratio of the curvature at 0 to that at the minimum."""
    steps: Int[Array, ""]
    """How many were taken."""


@_checks.checked()
def logistic_regression(
    features: Float[Array, "n k"],
    targets: Float[Array, "n c"],
    masks: Bool[Array, "M n"],
    strengths: Float[Array, " L"],
    *,
    tolerance: float | Float[Array, ""] = 1e-3,
    steps: int | Int[Array, ""] = 500,
) -> LogisticFits:
    r"""Fit a logistic regression for every pair of a strength $\lambda_l$ and a mask.

    $$\min_{W, b}\ \frac{1}{n_j}\sum_{i \in j} \ell(t_i, x_iW + b) + \frac{\lambda_l}{2}\|W\|_F^2$$

    is over the rows $i$ in mask $j$, with the cross entropy $\ell$ of the targets and the softmax,
    or for two classes the sigmoid, of the scores. Rows of `targets` are probabilities of $c$
    classes, or one column with that of the second class of two. Strengths are above 0, and depend
    on the scale of the features. A mask without rows gives weights 0; a class without rows
    has an intercept that falls until the end, which comes when all `gradient_norms` are below
    `tolerance`, or after `steps`.

    Cost: $O(nk^2 + Lk^3)$, and $O(LMc\,k(n + k))$ for each of some 10 to 50 steps. References:
    `polak69`, `bach10`.
    """
    _checks.array("features", features, 2)
    _checks.array("targets", targets, 2)
    _checks.array("strengths", strengths, 1)
    _checks.same_rows(features=features, targets=targets, masks=masks.T)
    (n, k), c, dtype = features.shape, targets.shape[1], features.dtype
    problems = len(strengths), len(masks)

    # Centring moves the intercept, which is free, and nothing else. It is the last feature.
    centre = jnp.mean(features, axis=0, keepdims=True)
    x = jnp.concatenate([features - centre, jnp.ones((n, 1), dtype)], axis=1)
    penalised = jnp.append(jnp.ones(k, dtype), jnp.zeros(1, dtype))
    penalty = strengths.astype(dtype)[:, None, None] * penalised[None, None, :]
    penalty = jnp.repeat(penalty, len(masks), axis=0)
    rows = masks.astype(dtype)
    rows = rows / jnp.maximum(jnp.sum(rows, axis=1, keepdims=True), 1)
    share = jnp.tile(rows, (problems[0], 1))[:, None, :]
    wanted = targets.astype(dtype).T[None]

    curvature = 1 / 4 if c == 1 else 1 / c
    gram = matmul(x.T, x) * (curvature / n)
    # Below this strength, the inverse would be noise. The intercept is not of the features' size.
    least = 8 * jnp.finfo(dtype).eps * jnp.trace(gram[:k, :k])

    def inverse_at(strength):
        root = _inverse_root(gram + jnp.diag(jnp.maximum(strength, least) * penalised))
        return matmul(root.T, root)

    inverses = lax.map(inverse_at, strengths.astype(dtype))

    def at(w, scores):
        chances = jax.nn.sigmoid(scores) if c == 1 else jax.nn.softmax(scores, axis=1)
        off = share * (chances - wanted)
        gradient = matmul(off.reshape(-1, n), x).reshape(w.shape) + penalty * w
        metric = matmul(gradient.reshape(problems[0], -1, k + 1), inverses).reshape(w.shape)
        return chances, gradient, metric

    def step(state):
        w, scores, chances, gradient, metric, direction, taken = state
        size = _dot(gradient, metric)
        # Conjugate directions descend on quadratics; where they do not, start again.
        steepest = _dot(gradient, direction) > -size / 100
        direction = jnp.where(steepest[:, None, None], -metric, direction)
        slope = _dot(gradient, direction)
        along = matmul(direction.reshape(-1, k + 1), x.T).reshape(scores.shape)
        second, spread = _curvature(chances, along, share)
        second = second + _dot(penalty * direction, direction)
        # The third derivative is at most the spread times the second (self-concordance), and so
        # this is the longest step that surely descends all the way. It becomes Newton's.
        newton = jnp.where(second > 0, safe_ratio(-slope, second), 0)
        length = jnp.where(spread > 0, safe_ratio(jnp.log1p(spread * newton), spread), newton)
        length = jnp.where(_norms(gradient, metric) > tolerance, length, 0)[:, None, None]
        w, scores = w + length * direction, scores + length * along
        chances, new, metric = at(w, scores)
        turn = jnp.maximum(_dot(metric, new - gradient), 0) / jnp.where(size > 0, size, 1)
        direction = turn[:, None, None] * direction - metric
        return w, scores, chances, new, metric, direction, taken + 1

    def unfinished(state):
        _, _, _, gradient, metric, _, taken = state
        return (taken < steps) & jnp.any(_norms(gradient, metric) > tolerance)

    w, scores = (jnp.zeros((len(penalty), c, size), dtype) for size in (k + 1, n))
    chances, gradient, metric = at(w, scores)
    start = (w, scores, chances, gradient, metric, -metric, jnp.asarray(0))
    w, _, _, gradient, metric, _, taken = lax.while_loop(unfinished, step, start)
    weights = jnp.swapaxes(w[:, :, :k], 1, 2).reshape(*problems, k, c)
    intercepts = w[:, :, k].reshape(*problems, c) - matmul(centre, weights)[:, :, 0]
    return LogisticFits(weights, intercepts, _norms(gradient, metric).reshape(problems), taken)


@_checks.checked()
def probabilities(
    fits: LogisticFits, features: Float[Array, "n k"]
) -> Float[Array, "L M n classes"]:
    """Return what all fits say of the classes of rows: two for one column of targets, else c."""
    scores = matmul(features, fits.weights) + fits.intercepts[:, :, None, :]
    if scores.shape[-1] == 1:
        return jax.nn.sigmoid(jnp.concatenate([-scores, scores], axis=-1))
    return jax.nn.softmax(scores, axis=-1)


def _curvature(
    chances: Float[Array, "p c n"], along: Float[Array, "p c n"], share: Float[Array, "p 1 n"]
) -> tuple[Float[Array, " p"], Float[Array, " p"]]:
    """Return the second derivative of the loss along a direction of scores, and its spread."""
    if chances.shape[1] == 1:
        variance, spread = chances * (1 - chances) * along**2, jnp.abs(along)
    else:
        mean = jnp.sum(chances * along, axis=1, keepdims=True)
        variance = jnp.sum(chances * (along - mean) ** 2, axis=1, keepdims=True)
        spread = jnp.max(along, axis=1, keepdims=True) - jnp.min(along, axis=1, keepdims=True)
    spread = jnp.where(share > 0, spread, 0)
    return jnp.sum(share * variance, axis=(1, 2)), jnp.max(spread, axis=(1, 2))


def _inverse_root(a: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """$T^T T = A^{-1}$ for the inverse $T$ of the Cholesky factor of a positive definite matrix."""
    # By halves, almost all of it is products, much faster than triangular solves. An inverse by
    # halves would be faster still, but loses twice the digits.
    m, half = a.shape[0], a.shape[0] // 2
    if m <= LEAF:
        eye = jnp.eye(m, dtype=a.dtype)
        factor = jnp.linalg.cholesky(a)
        return lax.linalg.triangular_solve(factor, eye, left_side=True, lower=True)
    first = _inverse_root(a[:half, :half])
    across = matmul(a[half:, :half], first.T)
    second = _inverse_root(a[half:, half:] - matmul(across, across.T))
    corner = -matmul(second, matmul(across, first))
    return jnp.block([[first, jnp.zeros_like(corner.T)], [corner, second]])


def _dot(x: Float[Array, "p c m"], y: Float[Array, "p c m"]) -> Float[Array, " p"]:
    return jnp.sum(x * y, axis=(1, 2))


def _norms(gradient: Float[Array, "p c m"], metric: Float[Array, "p c m"]) -> Float[Array, " p"]:
    return jnp.sqrt(jnp.maximum(_dot(gradient, metric), 0))
