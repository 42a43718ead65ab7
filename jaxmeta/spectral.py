r"""Signals, spectra and embeddings (section 3.1 of the paper).

A signal $M = U \mathrm{diag}(\lambda) V^\top$ is kept as the pair $(U, \lambda)$. Conventions, for
the whole library: values are singular values, descending and $\ge 0$ (of a symmetric signal the
absolute eigenvalues, and the vectors are eigenvectors); the entry of largest magnitude in each
vector is positive (the first, if several tie); and $0^\alpha = 0$ for every $\alpha \ge 0$, also
for $\alpha = 0$, so padding a spectrum with zeros never changes a result.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxmeta import _checks
from jaxmeta._types import Scalar
from jaxmeta.eigen import iterates, leading_eigenpairs, multiply_by
from jaxmeta.linalg import eigh, fix_signs, left_axes, norm, svd

__all__ = [
    "Spectrum",
    "check_spectrum",
    "decompose",
    "embed",
    "power",
    "spectrum_of",
    "split_by_source",
    "validate",
]


DENSE = 1536  # up to this size a full decomposition is as fast as the leading eigenpairs


class Spectrum(NamedTuple):
    """Directions and strengths of a signal or of an embedding."""

    vectors: Float[Array, "n r"]
    """Orthonormal columns."""
    values: Float[Array, " r"]
    """Singular values, descending, not negative."""


def decompose(
    signal: Any, *, rank: int | None = None, symmetric: bool = True, tolerance: float = 1e-3
) -> Spectrum:
    r"""Leading directions and singular values of a signal matrix, dense or SciPy sparse.

    A symmetric signal is decomposed into eigenvectors, ordered by $|\lambda|$; with
    `symmetric=False` any matrix is, into left singular vectors: a sparse one by the eigenvectors of
    $MM^\top$, in which values below $\sqrt\epsilon$ of the largest are lost. The `rank` leading
    pairs are returned (all, if None). Up to 1,536 words, for ranks above an eighth of them, and
    inside `jit`, this is a full decomposition, $O(n^3)$: derivatives of vectors are NaN at repeated
    values, and a matrix that is not symmetric but was said to be gives NaN. Otherwise it is
    `leading_eigenpairs`, with $\|Mu - \lambda u\|$ at most `tolerance` times $|\lambda|$; there a
    matrix that is not symmetric raises.

    >>> import jax.numpy as jnp
    >>> print(decompose(jnp.array([[0.0, 2.0], [2.0, 3.0]])).values)
    [4. 1.]
    """
    _checks.array("signal", signal, 2)
    n, m = signal.shape
    rank = min(n, m) if rank is None else rank
    _checks.integer("rank", rank, least=1, most=min(n, m), of="signal")
    if symmetric and n != m:
        do = "pass symmetric=False for singular vectors of any matrix"
        _checks.fail("signal", f"shape {signal.shape}", "a square symmetric matrix", do)
    sparse, traced = _checks.is_sparse(signal), isinstance(signal, jax.core.Tracer)
    if sparse and not symmetric:
        return _left(signal, rank, tolerance)
    if sparse or (symmetric and not traced and iterates(n, rank, DENSE)):
        return _leading(signal, rank, tolerance)
    return _decompose(signal, rank, symmetric)


@jax.jit(static_argnames=("rank", "symmetric"))
def _decompose(signal: Array, rank: int, symmetric: bool) -> Spectrum:
    if not symmetric:
        vectors, values, _ = svd(signal, full_matrices=False)
        return Spectrum(fix_signs(vectors[:, :rank]), values[:rank])
    eigenvalues, vectors = eigh(signal)
    order = jnp.argsort(-jnp.abs(eigenvalues))[:rank]
    found = Spectrum(fix_signs(vectors[:, order]), jnp.abs(eigenvalues)[order])
    tolerance = signal.shape[0] * jnp.finfo(signal.dtype).eps * norm(signal)
    lopsided = norm(signal - signal.T) > tolerance
    return jax.tree.map(lambda x: jnp.where(lopsided, jnp.nan, x), found)


def _left(signal: Any, rank: int, tolerance: float) -> Spectrum:
    """Leading left singular vectors and singular values of a sparse matrix of any shape."""
    left, right = multiply_by(signal.tocsr()), multiply_by(signal.T.tocsr())
    pairs = leading_eigenpairs(
        lambda block: left(right(block)),
        n=signal.shape[0],
        rank=rank,
        key=jax.random.key(0),
        tolerance=tolerance,
        dtype=jax.dtypes.canonicalize_dtype(signal.dtype),
        dense=DENSE,
    )
    return Spectrum(fix_signs(pairs.vectors), jnp.sqrt(jnp.maximum(pairs.values, 0)))


def _leading(signal: Any, rank: int, tolerance: float) -> Spectrum:
    n, multiply = signal.shape[0], multiply_by(signal)
    dtype = jax.dtypes.canonicalize_dtype(signal.dtype)  # NumPy has float64 where JAX may not
    start, probe = jax.random.split(jax.random.key(0))
    x = jax.random.normal(probe, (n, 2), dtype)
    image = multiply(x)
    if _lopsided(x, image):
        do = "symmetrise it, or pass symmetric=False with a dense array"
        _checks.fail("signal", "a matrix that is not its own transpose", "a symmetric one", do)
    pairs = leading_eigenpairs(
        multiply, n=n, rank=rank, key=start, tolerance=tolerance, dtype=dtype, dense=DENSE
    )
    return _with_signs(pairs.vectors, pairs.values)


# Compiled whole: by itself each operation on the host would be a program of its own.
@jax.jit
def _lopsided(x: Float[Array, "n 2"], image: Float[Array, "n 2"]) -> Array:
    """Whether x'My and y'Mx differ: of a symmetric matrix they do not, of hardly any other."""
    gap = jnp.abs(jnp.dot(x[:, 0], image[:, 1]) - jnp.dot(x[:, 1], image[:, 0]))
    return gap > 10 * x.shape[0] ** 0.5 * jnp.finfo(x.dtype).eps * norm(image)


@jax.jit
def _with_signs(vectors: Array, eigenvalues: Array) -> Spectrum:
    return Spectrum(fix_signs(vectors), jnp.abs(eigenvalues))


@_checks.checked()
def spectrum_of(embedding: Float[Array, "n k"], *, alpha: Scalar) -> Spectrum:
    r"""The spectrum $(U, s^{1/\alpha})$ whose embedding has the inner products of `embedding`.

    Here $E = U \mathrm{diag}(s) V^\top$. An `alpha` of 0 gives NaN. Cost: $O(nk^2)$.

    >>> import jax.numpy as jnp
    >>> print(spectrum_of(jnp.array([[0.0, 2.0], [3.0, 0.0], [0.0, 0.0]]), alpha=0.5).values)
    [9. 4.]
    """
    _checks.array("embedding", embedding, 2)
    _checks.scalar("alpha", alpha)
    vectors, strengths = left_axes(embedding)
    alpha = jnp.asarray(alpha, strengths.dtype)
    values = power(strengths, jnp.where(alpha == 0, jnp.nan, 1 / alpha))
    return Spectrum(fix_signs(vectors), values)


@_checks.checked(static=("k",))
def embed(spectrum: Spectrum, *, k: int, alpha: Scalar) -> Float[Array, "n k"]:
    r"""The $k$-dimensional embedding is $U_{\cdot,1:k}\,\mathrm{diag}(\lambda_{1:k})^\alpha$.

    >>> import jax.numpy as jnp
    >>> print(embed(Spectrum(jnp.eye(2), jnp.array([9.0, 4.0])), k=1, alpha=0.5))
    [[3.]
     [0.]]
    """
    check_spectrum("spectrum", spectrum)
    _checks.integer("k", k, least=1, most=spectrum.values.shape[0], of="the spectrum")
    _checks.scalar("alpha", alpha)
    return spectrum.vectors[:, :k] * power(spectrum.values[:k], alpha)[None, :]


def power(values: Float[Array, "..."], exponent: Scalar) -> Float[Array, "..."]:
    r"""$\lambda^p$ for $\lambda \ge 0$, with $0^p = 0$ for every $p$. Negative values give NaN.

    Derivatives are finite everywhere: at $\lambda = 0$ that by $\lambda$ is 0 for $p < 1$.
    """
    return _power(values, jnp.asarray(exponent, values.dtype))


@jax.custom_jvp
def _power(x: Array, p: Array) -> Array:
    regular = jnp.where(x > 0, x, 1) ** p
    # IEEE has 1 ** NaN = 1; here NaN stays NaN.
    wrong = (x < 0) | jnp.isnan(x) | jnp.isnan(p)
    return jnp.where(wrong, jnp.nan, jnp.where(x == 0, 0, regular))


@_power.defjvp
def _power_jvp(primals, tangents):
    (x, p), (dx, dp) = primals, tangents
    slope = p * jnp.where((x == 0) & (p == 1), 1, _power(x, p - 1))
    by_exponent = _power(x, p) * jnp.log(jnp.where(x > 0, x, 1))
    return _power(x, p), slope * dx + by_exponent * dp


@_checks.checked(static=("sizes",))
def split_by_source(
    values: Float[Array, " d"], *, sizes: tuple[int, ...]
) -> tuple[Float[Array, " k"], ...]:
    r"""Cut a spectrum into consecutive blocks, one per source, padded with zeros where it ends.

    Block $j$ is $\lambda_{\theta_j+1}, \ldots, \lambda_{\theta_{j+1}}$ with $\theta_j = k_1 +
    \cdots + k_{j-1}$: the part of the ideal set against source $j$ in Theorem 1.

    >>> import jax.numpy as jnp
    >>> print(*split_by_source(jnp.array([5.0, 4.0, 3.0]), sizes=(2, 2)))
    [5. 4.] [3. 0.]
    """
    _checks.array("values", values, 1)
    _checks.sizes("sizes", sizes)
    total = sum(sizes)
    padded = jnp.pad(values, (0, max(total - values.shape[0], 0)))[:total]
    return tuple(jnp.split(padded, np.cumsum(sizes)[:-1]))


def check_spectrum(name: str, spectrum: object) -> None:
    """Raise unless `spectrum` is a Spectrum with one value per vector."""
    if not isinstance(spectrum, Spectrum):
        got, do = f"a {type(spectrum).__name__}", "see spectrum_of and decompose"
        if isinstance(spectrum, tuple | list) and Spectrum in map(type, spectrum):
            do = "pass one here; it may be that two arguments are swapped"
        _checks.fail(name, got, "a Spectrum", do, TypeError)
    _checks.array(f"{name}.vectors", spectrum.vectors, 2)
    _checks.array(f"{name}.values", spectrum.values, 1)
    (n, vectors), values = spectrum.vectors.shape, spectrum.values.shape[0]
    if vectors != values:
        got, expected = f"{vectors} vectors and {values} values", "as many of one as of the other"
        _checks.fail(name, got, expected, "cut both to the same rank")
    if vectors > n:
        do = "pass vectors as an (n, r) array with one column per direction"
        _checks.fail(name, f"{vectors} vectors of {n} words", f"at most {n}", do)


def validate(spectrum: Spectrum) -> Spectrum:
    """Return `spectrum` unchanged, or say which value is wrong in a ValueError: for the host."""
    check_spectrum("spectrum", spectrum)
    values, vectors = np.asarray(spectrum.values), np.asarray(spectrum.vectors)
    rises = np.append(False, values[1:] > values[:-1])
    for wrong, expected, do in (
        (~np.isfinite(values), "finite", "drop or repair it"),
        (values < 0, "not negative", "take absolute eigenvalues, as decompose does"),
        (rises, "at most the one before", "sort values and vectors"),
    ):
        if wrong.any():
            i = int(np.argmax(wrong))
            _checks.fail(f"spectrum.values[{i}]", str(values[i]), f"it {expected}", do)
    error = np.abs(vectors.T @ vectors - np.eye(values.size)).max()
    tolerance = float(np.sqrt(np.finfo(vectors.dtype).eps))
    if not error <= tolerance:
        got, do = f"columns off orthonormal by {error:.1e}", "use decompose or spectrum_of"
        _checks.fail("spectrum.vectors", got, f"at most {tolerance:.1e}", do)
    return spectrum
