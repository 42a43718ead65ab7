r"""The pairwise inner-product (PIP) loss.

Word embeddings mean something only up to rotation, so they are compared by the inner products of
all pairs of words, $\mathrm{PIP}(E) = EE^\top$ (Eq. 1 of the paper), which a rotation does not
change. The PIP loss (Eq. 2) is the Frobenius norm of the difference of two such matrices; the two
embeddings may have different dimensionalities.

How many dimensions to keep of a noisy signal is the argmin of the loss over $k$. `pip_curve` has
the loss at every $k$ where the ideal is known. Where it is not, dimension $i$ of value $\mu_i$
changes the squared loss by $\mu_i^{2\alpha}(\mu_i^{2\alpha} - 2t_i)$, $t_i$ its strength (see
`noise`): `best_dimension` takes any estimate of the strengths, `select_dimension` the spiked one.
The paper's recipe is here by name, in closed form and as the Monte Carlo that it is in print.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key, Real

from jaxmeta import _checks, spectral
from jaxmeta.linalg import matmul, power_of_two, procrustes, residual, safe_sqrt
from jaxmeta.noise import overlap, spiked_strengths, usvt
from jaxmeta.spectral import Spectrum, power

__all__ = [
    "SimulatedCurve",
    "best_dimension",
    "paper_curve",
    "paper_dimension",
    "pip_curve",
    "pip_loss",
    "pip_matrix",
    "predicted_curve",
    "released_dimension",
    "select_dimension",
    "simulate_curve",
]


class SimulatedCurve(NamedTuple):
    """PIP loss against dimensionality, over draws of noise."""

    mean: Float[Array, " r"]
    """Root mean squared loss at k = 1, ..., r."""
    standard_error: Float[Array, " r"]
    """Of the mean, from the spread of the draws."""

    @property
    def dimension(self) -> Int[Array, "..."]:
        """The k at which the mean loss is smallest."""
        return 1 + jnp.argmin(self.mean, axis=-1)


@jax.jit
def pip_matrix(e: Float[Array, "n k"]) -> Float[Array, "n n"]:
    r"""All pairwise inner products, $\mathrm{PIP}(E) = EE^\top$ (Eq. 1).

    An $n \times n$ matrix: for small vocabularies and for looking at. Cost: $O(n^2 k)$.

    >>> import jax.numpy as jnp
    >>> print(pip_matrix(jnp.array([[1.0, 2.0], [0.0, 1.0]])))
    [[5. 2.]
     [2. 1.]]
    """
    _checks.array("e", e, 2)
    return matmul(e, e.T)


@jax.jit
def pip_loss(e: Float[Array, "n k"], f: Float[Array, "n m"]) -> Float[Array, ""]:
    r"""PIP loss $\|EE^\top - FF^\top\|_F$ (Eq. 2).

    The narrower embedding is rotated onto the wider one, which changes no inner product. Then, with
    $D = E - FQ$ and $S = E + FQ$,

    $$\|EE^\top - FF^\top\|_F^2
      = \tfrac12\big(\langle S^\top S, D^\top D\rangle + \langle S^\top D, D^\top S\rangle\big),$$

    where $S^\top D$ is symmetric, so both terms are $\ge 0$ and nothing cancels: the loss keeps its
    digits when the embeddings are nearly equal up to rotation, in float32 too
    (`benchmarks/pip_loss.py` prints the error). Differentiable to all orders, with gradient 0 where
    the loss is 0.

    Cost: $14nk^2$ flops for $k = m$, where the formula that cancels takes $6nk^2$; memory
    $O(n(k + m))$, never $n \times n$. Reference: `yin18`.

    >>> import jax.numpy as jnp
    >>> e = jnp.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    >>> rotated = e @ jnp.array([[0.6, -0.8], [0.8, 0.6]])
    >>> print(f"{pip_loss(e, 2 * e):.4f}, {pip_loss(e, rotated):.4f}")
    16.7033, 0.0000
    """
    _checks.array("e", e, 2)
    _checks.array("f", f, 2)
    _checks.same_rows(e=e, f=f)
    if f.shape[1] > e.shape[1]:
        e, f = f, e
    scale = power_of_two(jnp.maximum(jnp.max(jnp.abs(e)), jnp.max(jnp.abs(f))))
    e, f = e / scale, f / scale
    # A constant to differentiation: the identity holds for every rotation, not for the best alone.
    q = procrustes(lax.stop_gradient(f), lax.stop_gradient(e))
    # q is a rotation up to rounding; a Newton-Schulz step gives the digits that it lacks.
    q_low = 0.5 * matmul(residual(jnp.eye(q.shape[0], dtype=q.dtype), q, q.T), q)
    d = residual(e, f, q, q_low)
    s = 2 * e - d
    sd = matmul(s.T, d)
    squared = jnp.sum(matmul(s.T, s) * matmul(d.T, d)) + jnp.sum(sd * sd.T)
    return scale * (scale * safe_sqrt(squared / 2))


@jax.jit
def pip_curve(
    ideal: Spectrum, noisy: Spectrum, *, alpha: Real[Array, ""] | float
) -> Float[Array, " r"]:
    r"""PIP loss of the first $k$ dimensions of `noisy` against `ideal`, for all $k = 1, \ldots, r$.

    $$\text{loss}_k^2 = \sum_l\lambda_l^{4\alpha} + \sum_{i\le k}\mu_i^{2\alpha}
      \big(\mu_i^{2\alpha} - 2t_i\big), \qquad
      t_i = \sum_l \langle\tilde u_i, u_l\rangle^2\lambda_l^{2\alpha}.$$

    Cost: $2nrd$ flops, one product. Errors are relative to the largest loss: for the digits of a
    loss that all but vanishes use `pip_loss`. Reference: `yin18`.

    >>> import jax.numpy as jnp
    >>> ideal = Spectrum(jnp.eye(3), jnp.array([3.0, 2.0, 1.0]))
    >>> print(pip_curve(ideal, ideal, alpha=0.5).round(3))
    [2.236 1.    0.   ]
    """
    spectral.check("ideal", ideal)
    spectral.check("noisy", noisy)
    _checks.same_rows(**{"ideal.vectors": ideal.vectors, "noisy.vectors": noisy.vectors})
    _checks.scalar("alpha", alpha)
    exponent = 2 * jnp.asarray(alpha, ideal.values.dtype)
    strength = power(ideal.values, exponent)
    t = matmul(matmul(noisy.vectors.T, ideal.vectors) ** 2, strength)
    return safe_sqrt(jnp.sum(strength**2) + _changes(power(noisy.values, exponent), t))


def _changes(b: Float[Array, " r"], strengths: Float[Array, " r"]) -> Float[Array, " r"]:
    """What the first k dimensions change the squared loss by, for all k."""
    return jnp.cumsum(b * (b - 2 * strengths))


@jax.jit
def best_dimension(
    values: Float[Array, " r"], strengths: Float[Array, " r"], *, alpha: Real[Array, ""] | float
) -> Int[Array, ""]:
    r"""The $k \ge 1$ with the smallest predicted PIP loss, from estimated strengths.

    `strengths` may come from `spiked_strengths`, `ideal_strengths` or, for positive signals at
    $\alpha = ½$, `rotation_invariant`. Cost: $O(r)$.
    """
    _checks.strengths("strengths", strengths, values)
    _checks.scalar("alpha", alpha)
    b = power(values, 2 * jnp.asarray(alpha, values.dtype))
    return 1 + jnp.argmin(_changes(b, strengths))


def select_dimension(
    values: Float[Array, " r"],
    *,
    sigma: Real[Array, ""] | float,
    n: int,
    alpha: Real[Array, ""] | float,
) -> Int[Array, ""]:
    r"""The best dimensionality of a noisy signal, in closed form (spiked model).

    Dimension $i$ helps if $\mu_i^{2\alpha} < 2\lambda_i^{2\alpha}(1 - \tau^2/\lambda_i^2)$; at
    $\alpha = ½$ that is $\mu_i > (4/\sqrt3)\,\tau$, the threshold of `gavish14`. Cost: $O(r)$.

    >>> import jax.numpy as jnp
    >>> values = jnp.array([9.0, 4.0, 2.4, 2.3, 2.2])
    >>> print(select_dimension(values, sigma=0.1, n=100, alpha=0.5))
    3
    """
    _checks.descending("values", values)
    strengths = spiked_strengths(values, sigma=sigma, n=n, alpha=alpha)
    return best_dimension(values, strengths, alpha=alpha)


def paper_dimension(
    values: Float[Array, " r"],
    *,
    sigma: Real[Array, ""] | float,
    n: int,
    alpha: Real[Array, ""] | float,
) -> Int[Array, ""]:
    r"""The dimensionality that the paper's recipe tends to: USVT, noise added again, argmin.

    In closed form: the thresholded values $\lambda$ are taken for the ideal, noise lifts them to
    $\lambda + \tau^2/\lambda$, and the loss is smallest where $\lambda > \sqrt3\,\tau$ ends (at
    $\alpha = ½$): that is where $\mu > (2 + \sqrt3)\,\tau$ ends, far too early.
    """
    _, lifted, strengths = _recipe(values, sigma, n, alpha)
    return best_dimension(lifted, strengths, alpha=alpha)


def paper_curve(
    values: Float[Array, " r"],
    *,
    sigma: Real[Array, ""] | float,
    n: int,
    alpha: Real[Array, ""] | float,
) -> Float[Array, " r"]:
    r"""PIP loss against $k$ by the paper's recipe (its Figures 2 to 4), in closed form.

    `paper_dimension` is where it is smallest; `simulate_curve` of the thresholded values is the
    Monte Carlo that it stands for.
    """
    ideal, lifted, strengths = _recipe(values, sigma, n, alpha)
    total = jnp.sum(power(ideal, 4 * jnp.asarray(alpha, values.dtype)))
    return predicted_curve(lifted, strengths, alpha=alpha, total=total)


def _recipe(values, sigma, n, alpha):
    """The ideal by USVT, and what noise makes of it in the spiked model: values and strengths."""
    _checks.descending("values", values)
    _checks.scalar("alpha", alpha)
    ideal = usvt(values, sigma=sigma, n=n)
    scale = jnp.asarray(sigma, values.dtype) * n**0.5
    above = ideal > scale
    lifted = jnp.where(above, ideal + scale**2 / jnp.where(above, ideal, 1), 2 * scale)
    exponent = 2 * jnp.asarray(alpha, values.dtype)
    return ideal, lifted, power(ideal, exponent) * overlap(ideal, sigma=sigma, n=n)


@jax.jit
def predicted_curve(
    values: Float[Array, " r"],
    strengths: Float[Array, " r"],
    *,
    alpha: Real[Array, ""] | float,
    total: Real[Array, ""] | float,
) -> Float[Array, " r"]:
    r"""PIP loss against $k$ from estimated strengths, as in `pip_curve`.

    `total` is $\sum_l\lambda_l^{4\alpha}$ of the ideal. At $\alpha = ½$ that is
    $\|\tilde M\|_F^2 - n\tau^2$; for other exponents it is the sum of all `ideal_strengths` at
    $2\alpha$.

    >>> import jax.numpy as jnp
    >>> values = jnp.array([3.0, 2.0, 1.0])
    >>> print(predicted_curve(values, values, alpha=0.5, total=14.0).round(3))
    [2.236 1.    0.   ]
    """
    _checks.strengths("strengths", strengths, values)
    _checks.scalar("alpha", alpha)
    _checks.scalar("total", total)
    b = power(values, 2 * jnp.asarray(alpha, values.dtype))
    return safe_sqrt(jnp.asarray(total, values.dtype) + _changes(b, strengths))


def released_dimension(curve: Float[Array, " r"]) -> Int[Array, ""]:
    """The dimensionality that the paper's released code reads off a curve: one too few.

    It takes the argmin, counted from zero, of losses that start at k = 1.
    """
    _checks.array("curve", curve, 1)
    return jnp.argmin(curve)


def simulate_curve(
    ideal_values: Float[Array, " r"],
    *,
    sigma: Real[Array, ""] | float,
    n: int,
    alpha: Real[Array, ""] | float,
    key: Key[Array, ""],
    draws: int,
    depth: int = 10,
) -> SimulatedCurve:
    r"""PIP loss against $k$ by Monte Carlo, as the paper estimates it from thresholded values.

    Gaussian noise looks the same in every basis, so the ideal may be taken as diagonal: no random
    orthogonal matrices and no decomposition of the signal. Reflections that leave the first $r$
    coordinates alone bring $\mathrm{diag}(\lambda, 0) + \sigma Z$ to block tridiagonal form, of
    which the leading `depth` blocks of size $r$ matter: each further one by a factor of about
    $\tau^2/\lambda^2$. With $r \cdot \text{depth} \ge n$ the law is exact, with an $n \times n$
    matrix a draw; otherwise the matrix has $r \cdot \text{depth}$ rows.

    Cost: one SVD of $\min(n, r \cdot \text{depth})$ rows a draw.
    """
    _checks.descending("ideal_values", ideal_values)
    _checks.not_negative("sigma", sigma)
    _checks.integer("n", n, least=ideal_values.shape[0])
    _checks.scalar("alpha", alpha)
    _checks.integer("draws", draws, least=2)
    _checks.integer("depth", depth, least=1)
    sigma, alpha = (jnp.asarray(x, ideal_values.dtype) for x in (sigma, alpha))
    return _simulate_curve(ideal_values, sigma, alpha, jax.random.split(key, draws), n, depth)


@jax.jit(static_argnames=("n", "depth"))
def _simulate_curve(
    ideal: Array, sigma: Array, alpha: Array, keys: Array, n: int, depth: int
) -> SimulatedCurve:
    r = ideal.shape[0]
    noise = _dense_noise if r * depth >= n else _blocked_noise
    strength = power(ideal, 2 * alpha)

    def squared_loss(key):
        y = sigma * noise(key, r, n, depth, ideal.dtype)
        y = y.at[jnp.arange(r), jnp.arange(r)].add(ideal)
        u, values, _ = jnp.linalg.svd(y, full_matrices=False)
        t = matmul((u[:r, :r] ** 2).T, strength)
        return jnp.sum(strength**2) + _changes(power(values[:r], 2 * alpha), t)

    squares = lax.map(squared_loss, keys)
    mean = safe_sqrt(jnp.mean(squares, axis=0))
    spread = jnp.std(squares, axis=0, ddof=1) / keys.shape[0] ** 0.5
    # The error of a square root is that of the square over twice the root.
    return SimulatedCurve(mean, jnp.where(mean > 0, spread / jnp.where(mean > 0, 2 * mean, 1), 0))


def _dense_noise(key: Array, r: int, n: int, depth: int, dtype) -> Array:
    del r, depth
    return jax.random.normal(key, (n, n), dtype)


def _blocked_noise(key: Array, r: int, n: int, depth: int, dtype) -> Array:
    """The leading blocks of Gaussian noise, reduced by reflections beyond coordinate r."""
    blocks = [[jnp.zeros((r, r), dtype)] * depth for _ in range(depth)]
    for j, block_key in enumerate(jax.random.split(key, depth)):
        here, below, right = jax.random.split(block_key, 3)
        blocks[j][j] = jax.random.normal(here, (r, r), dtype)
        if j + 1 < depth:
            freedom = n - (j + 1) * r
            blocks[j + 1][j] = _triangular_noise(below, r, freedom, dtype)
            blocks[j][j + 1] = _triangular_noise(right, r, freedom, dtype).T
    return jnp.block(blocks)


def _triangular_noise(key: Array, r: int, freedom: int, dtype) -> Array:
    """The triangular factor of a Gaussian matrix with `freedom` rows and r columns."""
    diagonal, above = jax.random.split(key)
    chi_squared = 2 * jax.random.gamma(
        diagonal, (freedom - jnp.arange(r, dtype=dtype)) / 2, dtype=dtype
    )
    upper = jnp.triu(jax.random.normal(above, (r, r), dtype), 1)
    return upper + jnp.diag(jnp.sqrt(chi_squared))
