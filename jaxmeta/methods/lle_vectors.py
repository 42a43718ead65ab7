r"""Last eigenvectors of $Q = (I - W')^\top(I - W')$, for a large sparse $W'$ (see `lle`)."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array, Float, Key

from jaxmeta import _checks
from jaxmeta.eigen import Multiply, iterates, leading_eigenpairs, multiply_by
from jaxmeta.linalg import column_norms, eigh, fix_signs, matmul, outside
from jaxmeta.progress import Progress

__all__ = ["LocallyLinear", "best_reconstructed"]

OUTLIERS = 64  # how many of the largest eigenvalues may be left out of the search at most
AT_ONCE = 1  # sparse flops, in n^3, that take as long as a full eigendecomposition


class LocallyLinear(NamedTuple):
    """Vectors that those of neighbours make up best."""

    embedding: Float[Array, "n k"]
    """Orthonormal columns, unscaled, by eigenvalue; their largest entries are positive."""
    eigenvalues: Float[Array, " k"]
    r"""$\|p - W'p\|^2$ of each column, ascending."""
    residuals: Float[Array, " k"]
    r"""$\|Qp - \lambda p\|$ of each, measured."""
    largest: float
    """The largest eigenvalue of $Q$: residuals cannot be below its rounding."""


def best_reconstructed(
    matrix: scipy.sparse.csr_array,
    *,
    k: int,
    constant: bool = True,
    key: Key[Array, ""],
    tolerance: float = 1e-2,
    progress: Progress | None = None,
) -> LocallyLinear:
    r"""The $k$ orthonormal vectors that the rows of $W'$ make up best: last eigenvectors of $Q$.

    With `constant`, rows of $W'$ sum to one, and vectors are orthogonal to the constant one, for
    which $\lambda = 0$. What matters to cosines is their span: every residual is at most
    $\text{tolerance}\cdot\lambda_k$, or what rounding allows, about $10\epsilon\lambda_{max}$: far
    above $\lambda_k$, perhaps, in float32 where rows have huge weights.

    The wanted eigenvalues are thousands of times smaller than the largest, and as close together.
    A first Lanczos run tells a level $a$ that enough of them are below, and the end $b$ of the
    others, but for a few outliers that are left out. `leading_eigenpairs` gets the Chebyshev
    polynomial of $Q$ that keeps $[a, b]$ within $[-1, 1]$ and lifts what is below, of degree
    $\sqrt{b/a}/3$. If that falls short, another run follows, with $2a$ or for more digits.

    Cost: about $8k\sqrt{b/a}$ products with $Q$, of $4\,\mathrm{nnz}(W')$ flops each; a full
    eigendecomposition if these are more than $n^3$, or $k > n/8$, or $n$ is small.
    Reference: `zhou06`.
    """
    n = matrix.shape[0]
    _checks.integer("k", k, least=1, most=n - 1, of="the vocabulary, less one,")
    _checks.positive("tolerance", tolerance, "pass a relative residual, such as 1e-2")
    multiply, dtype = _distortion(matrix), jax.dtypes.canonicalize_dtype(matrix.dtype)
    settled = jnp.full((n, 1 if constant else 0), n**-0.5, dtype)
    if not iterates(n, k):
        return _all_at_once(multiply, settled, k)
    survey_key, key = jax.random.split(key)
    search = partial(leading_eigenpairs, n=n, dtype=dtype)
    top = search(multiply, rank=1, key=survey_key, tolerance=1e-2)
    points, counts = (np.asarray(x) for x in top.density)
    outliers = int(np.sum(points > 2 * top.density.level(OUTLIERS)))
    largest, far = float(top.values[0]), None
    end, left_out = 1.05 * largest, settled
    if outliers:
        far = search(multiply, rank=outliers, key=survey_key, tolerance=1e-5)
        end, left_out = float(far.values[-1]), jnp.append(settled, far.vectors, axis=1)
    level = float(np.interp(2 * k + 32, np.cumsum(counts), points))
    level = max(level, 1e-5 * end)  # below that a higher degree would tell no more apart
    if 32 * k * (end / level) ** 0.5 * matrix.nnz > AT_ONCE * n**3:
        return _all_at_once(multiply, settled, k)
    rounding = 10 * float(jnp.finfo(dtype).eps)
    accuracy = tolerance / 100  # of the polynomial, which is less steep than Q
    while level < end / 2:
        lifted = partial(_filtered, multiply, level, end, left_out)
        vectors = search(lifted, rank=k, key=key, tolerance=accuracy, progress=progress).vectors
        if far is not None:
            # What vectors still hold of those with huge eigenvalues shows best in their images.
            held = matmul(far.vectors.T, multiply(vectors)) / far.values[:, None]
            vectors = vectors - matmul(far.vectors, held)
        vectors, _ = jnp.linalg.qr(outside(settled, vectors))
        best = _measured(multiply, vectors, largest)
        if best.eigenvalues[-1] >= level:
            level *= 2
            continue
        goal = max(tolerance * float(best.eigenvalues[-1]), rounding * largest)
        worst = float(jnp.max(best.residuals))
        if worst <= goal or accuracy <= rounding:
            return best
        accuracy = max(accuracy * goal / (2 * worst), rounding)
    return _all_at_once(multiply, settled, k)


def _distortion(matrix: scipy.sparse.csr_array) -> Multiply:
    """Q, as a function that multiplies with it."""
    multiply, transposed = multiply_by(matrix), multiply_by(matrix.T)

    def apply(block: Array) -> Array:
        left = block - multiply(block)
        return left - transposed(left)

    return apply


def _filtered(multiply: Multiply, level: float, end: float, left_out: Array, block: Array) -> Array:
    """The Chebyshev polynomial of Q that is within [-1, 1] from `level` to `end`."""
    degree = max(1, round((end / level) ** 0.5 / 3))
    centre, half = (end + level) / 2, (end - level) / 2
    before, now = 0 * block, block
    for i in range(degree):
        scale = (2 if i else 1) / half
        before, now = now, _recurrence(left_out, centre, scale, multiply(now), now, before)
    return now


@jax.jit
def _recurrence(left_out, centre, scale, image, now, before):
    """The next polynomial, from the last two and the image of the last one."""
    return outside(left_out, scale * (centre * now - image) - before)


def _measured(multiply: Multiply, vectors: Array, largest: float) -> LocallyLinear:
    """The best pairs within the span of orthonormal columns, and their residuals."""
    images = multiply(vectors)
    values, rotation = eigh(matmul(vectors.T, images))
    vectors, images = matmul(vectors, rotation), matmul(images, rotation)
    residuals = column_norms(images - vectors * values[None, :])
    return LocallyLinear(fix_signs(vectors), values, residuals, largest)


def _all_at_once(multiply: Multiply, settled: Array, k: int) -> LocallyLinear:
    """A full decomposition of Q finds the best pairs outside of `settled`."""
    n, number = settled.shape
    axes = jnp.linalg.qr(settled, mode="complete")[0] if number else jnp.eye(n, dtype=settled.dtype)
    basis = axes[:, number:]
    values, vectors = eigh(matmul(basis.T, multiply(basis)))
    return _measured(multiply, matmul(basis, vectors[:, :k]), float(values[-1]))
