"""The pairwise inner-product (PIP) loss: embeddings compared up to rotation."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from jaxmeta import _checks
from jaxmeta._checks import checked
from jaxmeta._types import Scalar
from jaxmeta.linalg import common_unit, matmul, polar, residual, safe_sqrt
from jaxmeta.spectral import Spectrum, check_spectrum, power

__all__ = ["loss_changes", "pip_curve", "pip_loss", "pip_matrix", "strengths_against"]


@checked()
def pip_matrix(e: Float[Array, "n k"]) -> Float[Array, "n n"]:
    r"""All pairwise inner products, $\mathrm{PIP}(E) = EE^\top$ (Eq. 1). Cost: $O(n^2 k)$."""
    _checks.array("e", e, 2)
    return matmul(e, e.T)


@checked()
def pip_loss(e: Float[Array, "n k"], f: Float[Array, "n m"]) -> Float[Array, ""]:
    r"""PIP loss $\|EE^\top - FF^\top\|_F$ (Eq. 2).

    The narrower embedding is rotated onto the wider one, and with $D = E - FQ$, $S = E + FQ$

    $$\|EE^\top - FF^\top\|_F^2
      = \tfrac12\big(\langle S^\top S, D^\top D\rangle + \langle S^\top D, D^\top S\rangle\big),$$

    where both terms are $\ge 0$, so that losses near 0 keep their digits, in float32 too. The
    gradient is 0 where the loss is. A program is compiled for each pair of widths: for the loss of
    many $k$ see `pip_curve`. Cost: $14nk^2$ flops for $k = m$, memory $O(n(k + m))$.
    Reference: `yin18`.

    >>> import jax.numpy as jnp
    >>> e = jnp.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    >>> print(f"{pip_loss(e, 2 * e):.4f}, {pip_loss(e, e[:, ::-1]):.4f}")
    16.7033, 0.0000
    """
    _checks.matrices(e=e, f=f)
    if f.shape[1] > e.shape[1]:
        e, f = f, e
    scale = common_unit(e, f)
    e, f = e / scale, f / scale
    # A constant to differentiation: the identity holds for every rotation, not for the best alone.
    q = polar(lax.stop_gradient(matmul(f.T, e)))
    # q is a rotation up to rounding; a Newton-Schulz step gives the digits that it lacks.
    q_low = 0.5 * matmul(residual(jnp.eye(q.shape[0], dtype=q.dtype), q, q.T), q)
    d = residual(e, f, q, q_low)
    s = 2 * e - d
    sd = matmul(s.T, d)
    squared = jnp.sum(matmul(s.T, s) * matmul(d.T, d)) + jnp.sum(sd * sd.T)
    return scale * (scale * safe_sqrt(squared / 2))


@checked()
def pip_curve(ideal: Spectrum, noisy: Spectrum, *, alpha: Scalar) -> Float[Array, " r"]:
    r"""PIP loss of the first $k$ dimensions of `noisy` against `ideal`, for all $k = 1, \ldots, r$.

    $\text{loss}_k^2 = \sum_l\lambda_l^{4\alpha} + \sum_{i\le k}\mu_i^{2\alpha}(\mu_i^{2\alpha} -
    2t_i)$ with $t_i = \sum_l \langle\tilde u_i, u_l\rangle^2\lambda_l^{2\alpha}$. Errors are
    relative to the largest loss. Cost: $2nrd$ flops. Reference: `yin18`.

    >>> import jax.numpy as jnp
    >>> ideal = Spectrum(jnp.eye(3), jnp.array([3.0, 2.0, 1.0]))
    >>> print(pip_curve(ideal, ideal, alpha=0.5).round(3))
    [2.236 1.    0.   ]
    """
    check_spectrum("ideal", ideal)
    check_spectrum("noisy", noisy)
    _checks.same_rows(**{"ideal.vectors": ideal.vectors, "noisy.vectors": noisy.vectors})
    _checks.scalar("alpha", alpha)
    strength, b = power(ideal.values, 2 * alpha), power(noisy.values, 2 * alpha)
    unit = common_unit(strength, b)
    t = strengths_against(ideal, noisy.vectors, alpha=alpha) / unit
    return unit * safe_sqrt(jnp.sum((strength / unit) ** 2) + loss_changes(b / unit, t))


@checked()
def strengths_against(
    ideal: Spectrum, vectors: Float[Array, "n r"], *, alpha: Scalar
) -> Float[Array, " r"]:
    r"""Strengths $\tilde u_i^\top|M|^{2\alpha}\tilde u_i$ of directions, the columns of `vectors`.

    $t_i = \sum_l \langle\tilde u_i, u_l\rangle^2\lambda_l^{2\alpha}$, where `ideal` is the true one
    or an estimate, as of `jaxmeta.equalise`. Cost: $2nrd$ flops.
    """
    check_spectrum("ideal", ideal)
    _checks.matrices(**{"ideal.vectors": ideal.vectors, "vectors": vectors})
    _checks.scalar("alpha", alpha)
    overlaps = matmul(vectors.T, ideal.vectors) ** 2
    return matmul(overlaps, power(ideal.values, 2 * alpha))


def loss_changes(b: Float[Array, " r"], strengths: Float[Array, " r"]) -> Float[Array, " r"]:
    r"""The first k dimensions change the squared loss by this much, for all k.

    `b` is $\mu^{2\alpha}$; pass it and strengths in a unit whose square is no overflow.
    """
    return jnp.cumsum(b * (b - 2 * strengths))
