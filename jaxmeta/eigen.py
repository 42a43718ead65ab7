r"""Leading eigenpairs of a large symmetric matrix that is only ever multiplied with.

Both parts are block Lanczos with full reorthogonalisation. A *survey* of a few steps finds the
largest eigenvalues, and the density of all others. A *filter* takes the level $a$ that 1.5 times
as many eigenvalues exceed as are wanted. The Chebyshev polynomial $p(x) = 4(x/a)^3 - 3x/a$ keeps
what is below within $[-1, 1]$ and lifts what is above, so that Lanczos on $p(A)$ needs less than
half the basis that $A$ needs. The loop runs on the host, because it looks at residuals.
"""

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Float, Key

from jaxmeta import _checks, _rows
from jaxmeta.linalg import column_norms, eigh, matmul, outside
from jaxmeta.progress import Progress, silent

__all__ = [
    "Density",
    "Eigenpairs",
    "Multiply",
    "eigenvalue_density",
    "iterates",
    "leading_eigenpairs",
    "multiply_by",
]

BLOCK = 32  # wide enough for the full speed of a product, narrow enough to converge fast
SURVEY = 20  # steps of the survey
GROWTH = 512  # rows that the basis grows by: each size compiles once
DENSE = 4096  # up to this size all eigenpairs at once cost little more, and the density is exact

Multiply = Callable[[Array], Array]
"""A symmetric matrix, as what it makes of (n, b) arrays."""


class Density(NamedTuple):
    """A quadrature rule for the spectrum says where the eigenvalues are, and how many."""

    points: Float[Array, " s"]
    """Eigenvalues, ascending."""
    counts: Float[Array, " s"]
    """How many each of them stands for; they sum to n."""

    def level(self, number: float | int) -> float:
        """The magnitude that about `number` eigenvalues exceed."""
        order = np.argsort(-np.abs(self.points))
        above = np.cumsum(np.asarray(self.counts)[order])
        return float(np.interp(number, above, np.abs(self.points)[order]))

    def spectrum(self, found: Any = ()) -> Float[np.ndarray, " n"]:
        """All n eigenvalues, by magnitude: the `found` largest, and the others at quantiles."""
        points, counts = (np.asarray(x, np.float64) for x in self)
        found = np.asarray(found, self.points.dtype)
        order = np.argsort(-np.abs(points))
        # The found ones are the first to be taken out of the counts.
        above = np.cumsum(counts[order])
        left = np.empty_like(counts)
        left[order] = np.clip(above - found.size, 0, counts[order])
        places = np.arange(round(above[-1]) - found.size) + 0.5
        others = np.interp(places, np.cumsum(left) - left / 2, points).astype(found.dtype)
        if found.size:
            others = np.clip(others, -abs(found[-1]), abs(found[-1]))
        return np.append(found, others[np.argsort(-np.abs(others))])


class Eigenpairs(NamedTuple):
    """Leading eigenpairs, sorted by magnitude."""

    values: Float[Array, " r"]
    """Eigenvalues with their signs, their magnitudes descending."""
    vectors: Float[Array, "n r"]
    """Orthonormal columns."""
    residuals: Float[Array, " r"]
    r"""$\|Au - \lambda u\| / |\lambda|$ of each, measured."""
    density: Density
    """Of all eigenvalues."""
    products: int
    """How many columns the matrix was multiplied with."""

    @property
    def spectrum(self) -> Float[np.ndarray, " n"]:
        """All n eigenvalues, by magnitude: those found, and the others by their density."""
        return self.density.spectrum(self.values)


def multiply_by(matrix: Any) -> Multiply:
    """Multiplication by a dense array or a SciPy sparse matrix, on the device.

    Rows of a dense one may be on several devices: see `jaxmeta.mesh`.
    """
    if _checks.is_sparse(matrix):
        # Few need this import, and it takes half as long as that of JAX.
        from jax.experimental.sparse import BCSR

        return Partial(_sparse_product, BCSR.from_scipy_sparse(matrix))
    return Partial(_dense_product, jnp.asarray(matrix))


@jax.jit
def _dense_product(matrix: Array, x: Array) -> Array:
    # Rows may be filled up, to as many on every device.
    return matmul(matrix, x)[: x.shape[0]]


_sparse_product = jax.jit(operator.matmul)
_outside = jax.jit(outside)


@_rows.with_mesh_of_first
def leading_eigenpairs(
    multiply: Multiply,
    *,
    n: int,
    rank: int,
    key: Key[Array, ""],
    tolerance: float = 1e-3,
    dtype: Any = None,
    dense: int | None = None,
    progress: Progress | None = None,
) -> Eigenpairs:
    r"""The `rank` eigenpairs of largest magnitude of the symmetric matrix behind `multiply`.

    Every pair has $\|Au - \lambda u\| \le \text{tolerance}\cdot|\lambda|$, or as little as rounding
    allows, about $10\epsilon|\lambda_1|$. `multiply` maps (n, b) arrays of `dtype` (JAX's default,
    if None) to such arrays, as `multiply_by` does; `key` draws the first block. Of an eigenvalue
    that repeats more than 32 times, some pairs may be missed. Up to `dense` words (4,096, if None)
    all pairs are found at once, which makes the density exact.

    Cost, deep in the bulk: about $8r$ columns of products, $20nr^2$ flops of orthogonalisation,
    $6nr$ numbers of memory; a full eigendecomposition for $r > n/8$ or small $n$.
    References: `golub77`, `zhou06`.

    >>> import jax, jax.numpy as jnp
    >>> diagonal = jnp.linspace(-2.0, 1.0, 5000) ** 3
    >>> scale = lambda x: diagonal[:, None] * x
    >>> print(leading_eigenpairs(scale, n=5000, rank=3, key=jax.random.key(0)).values.round(3))
    [-8.    -7.993 -7.986]
    """
    _checks.integer("n", n, least=1)
    _checks.integer("rank", rank, least=1, most=n, of="the matrix")
    _checks.positive("tolerance", tolerance, "pass a relative residual, such as 1e-3")
    say = progress or silent
    dtype = jnp.zeros((), dtype).dtype
    if not iterates(n, rank, dense):
        return _dense(multiply, n, rank, dtype)
    survey_key, key = jax.random.split(key)
    krylov, ritz, density = _survey(multiply, n, survey_key, dtype, say)
    products = krylov.filled
    floor = 10 * float(jnp.finfo(dtype).eps) * abs(ritz.values[0])

    def goal(values):
        return np.maximum(tolerance * np.abs(values), floor)

    def all_good(pairs):
        return np.all(pairs.residuals * np.abs(pairs.values) <= goal(pairs.values))

    settled = _leading(ritz.residuals <= goal(ritz.values))
    smallest = density.level(rank)
    # A found pair that is left out from here on must not show in the residuals of the others.
    precise = _leading(ritz.residuals <= max(0.1 * tolerance * smallest, floor))
    found = rank if settled >= rank else min(precise, rank - 1, len(ritz.values) - 1)
    locked = _columns(krylov, ritz, np.arange(found))
    if found == rank:
        say("eigenpairs", 1.0)
        return _measured(multiply, locked, density, products)

    level = density.level(1.5 * rank + 4)
    # A cubic of more than 20 times the level has no digits left for what is near the level.
    lifts = level < 0.999 * smallest and abs(ritz.values[found]) < 20 * level
    degree, apply = (3, partial(_cubic, multiply, level, locked)) if lifts else (1, multiply)
    krylov = _start(n, key, dtype, locked)
    wanted, look = rank - found, 1.8 * (rank - found)
    while krylov.filled + BLOCK <= n:
        krylov = _step(apply, krylov)
        products += degree * BLOCK
        size = krylov.filled - found
        say("eigenpairs", 0.1 + 0.9 * (1 - math.exp(-size / wanted)))
        if size < look:
            continue
        ritz = _ritz(krylov)
        # All are measured once those with the largest residuals are good.
        worst = np.argsort(ritz.residuals[:wanted])[-BLOCK:]
        sample = _measured(multiply, _columns(krylov, ritz, worst), density, products)
        products = sample.products
        # A look costs as much as some steps, and residuals fall fast in the end.
        look = size * (1.05 if np.max(sample.residuals) < 30 * tolerance else 1.1)
        if all_good(sample):
            rest = _columns(krylov, ritz, np.arange(wanted))
            pairs = _measured(multiply, jnp.append(locked, rest, axis=1), density, products)
            products = pairs.products
            if all_good(pairs):
                break
    else:
        pairs = _dense(multiply, n, rank, dtype, products)
    say("eigenpairs", 1.0)
    return pairs


def iterates(n: int, rank: int, dense: int | None = None) -> bool:
    """The loop is faster than a full eigendecomposition if this is true."""
    return n > (DENSE if dense is None else dense) and rank <= n // 8


@_rows.with_mesh_of_first
def eigenvalue_density(
    multiply: Multiply, *, n: int, key: Key[Array, ""], dtype: Any = None
) -> Density:
    r"""The density of all eigenvalues of the symmetric matrix behind `multiply`, from 640 products.

    By Gauss quadrature the point $\theta_i$ stands for $\frac nb\|e_1^\top s_i\|^2$ eigenvalues,
    $s_i$ its vector in the Krylov basis and $e_1$ the first block of that. A number $c$ of them
    above some level has a standard error of about $\sqrt{2c/32}$. Reference: `golub77`.
    """
    _checks.integer("n", n, least=1)
    dtype = jnp.zeros((), dtype).dtype
    if n <= DENSE:
        return _dense(multiply, n, n, dtype).density
    return _survey(multiply, n, key, dtype, silent)[-1]


class _Krylov(NamedTuple):
    """A basis that grows by a block at a time; its rows beyond `filled` are zero."""

    basis: Array  # (capacity, n): rows are faster to multiply with, and to append
    projected: Array  # (capacity, capacity): the matrix in that basis, its upper block triangle
    block: Array  # (n, b): the next block
    coupling: Array  # (b, b): what the last block's image has in the next block
    filled: int
    locked: int
    key: Array


class _Ritz(NamedTuple):
    """Eigenpairs of the projected matrix, sorted by magnitude."""

    values: Any
    residuals: Any
    shares: Any  # of the first block, in each vector
    rotation: Any  # the vectors, in the basis


def _survey(
    multiply: Multiply, n: int, key: Array, dtype: Any, say: Progress
) -> tuple[_Krylov, _Ritz, Density]:
    krylov = _start(n, key, dtype, jnp.zeros((n, 0), dtype))
    for i in range(SURVEY):
        krylov = _step(multiply, krylov)
        say("eigenpairs", 0.1 * (i + 1) / SURVEY)
    ritz = _ritz(krylov)
    order = np.argsort(ritz.values)
    points, counts = ritz.values[order], n * ritz.shares[order]
    return krylov, ritz, Density(jnp.asarray(points), jnp.asarray(counts))


def _start(n: int, key: Array, dtype: Any, locked: Array) -> _Krylov:
    """A basis of the `locked` columns alone, and a random block orthogonal to them."""
    key, draw = jax.random.split(key)
    number = locked.shape[1]
    capacity = -(-(number + BLOCK) // GROWTH) * GROWTH
    basis = _rows.along(jnp.zeros((capacity, n), dtype).at[:number].set(locked.T), 1)
    block = _refresh(basis, jnp.zeros((n, BLOCK), dtype), jnp.ones(BLOCK, bool), draw)
    projected = jnp.zeros((capacity, capacity), dtype)
    return _Krylov(basis, projected, block, block[:BLOCK], number, number, key)


def _step(multiply: Multiply, krylov: _Krylov) -> _Krylov:
    """Take the next block into the basis, and make a new one of its image."""
    basis, projected, block, _, filled, locked, key = krylov
    if filled + BLOCK > len(basis):
        basis, projected = jnp.pad(basis, ((0, GROWTH), (0, 0))), jnp.pad(projected, (0, GROWTH))
    key, draw = jax.random.split(key)
    image = multiply(block)
    basis, projected, following, coupling, spent = _absorb(basis, projected, block, image, filled)
    if jnp.any(spent):  # the space is invariant: go on from random vectors
        following = _refresh(basis, following, spent, draw)
    return _Krylov(basis, projected, following, coupling, filled + BLOCK, locked, key)


@jax.jit(donate_argnums=(0, 1))
def _absorb(basis, projected, block, image, filled):
    """The basis with `block` in it, and the next block: what that block's image has outside."""
    basis = _rows.along(lax.dynamic_update_slice(basis, block.T, (filled, 0)), 1)
    inside = matmul(basis, image)
    following, coupling = _rows.qr(image - matmul(basis.T, inside))
    # A second pass makes it orthogonal to the last digit, but only now that all columns are of
    # unit length: beside a dominating eigenvalue some were as small as rounding of the others.
    again = matmul(basis, following)
    following, rest = _rows.qr(following - matmul(basis.T, again))
    inside, coupling = inside + matmul(again, coupling), matmul(rest, coupling)
    projected = lax.dynamic_update_slice(projected, inside, (0, filled))
    rounding = 10 * jnp.finfo(image.dtype).eps * column_norms(image)
    return basis, projected, following, coupling, jnp.abs(jnp.diag(coupling)) <= rounding


@jax.jit
def _refresh(basis: Array, block: Array, spent: Array, key: Array) -> Array:
    """Draw spent columns anew, and make all orthonormal and orthogonal to the basis."""
    fresh = jax.random.normal(key, block.shape, block.dtype)
    block = jnp.where(spent[None, :], fresh, block)
    for _ in range(2):
        block, _ = _rows.qr(outside(basis.T, block))
    return block


def _columns(krylov: _Krylov, ritz: _Ritz, which: np.ndarray) -> Array:
    """The Ritz vectors of these indices, as columns."""
    rotation = np.zeros((len(krylov.basis), len(which)), ritz.rotation.dtype)
    rotation[krylov.locked : krylov.filled] = ritz.rotation[:, which]
    return _combined(krylov.basis, rotation)


@jax.jit
def _combined(basis: Array, rotation: Array) -> Array:
    return matmul(basis.T, rotation)


def _ritz(krylov: _Krylov) -> _Ritz:
    """On the host: each look is at another size, and a program for it would have to be compiled."""
    own = slice(krylov.locked, krylov.filled)
    upper, coupling = np.triu(np.asarray(krylov.projected)[own, own]), np.asarray(krylov.coupling)
    _finite(upper)
    # In a unit that is a power of two, so that no unit matters.
    unit = np.ldexp(upper.dtype.type(1), int(np.frexp(np.abs(upper).max())[1]) - 1)
    upper = upper / unit
    values, rotation = np.linalg.eigh(upper + np.triu(upper, 1).T)
    order = np.argsort(-np.abs(values), kind="stable")
    values, rotation = unit * values[order], rotation[:, order]
    image = coupling / unit @ rotation[-BLOCK:]
    residuals = unit * np.sqrt(np.sum(image**2, axis=0))
    return _Ritz(values, residuals, np.sum(rotation[:BLOCK] ** 2, axis=0) / BLOCK, rotation)


def _finite(values: Array | np.ndarray) -> None:
    if not np.all(np.isfinite(values)):
        do = "look for entries of the matrix that are not finite"
        _checks.fail("multiply", "products with NaN or infinity in them", "finite ones", do)


def _leading(holds: np.ndarray) -> int:
    """Count the entries from the first on that are true."""
    return int(np.argmin(np.append(holds, False)))


def _cubic(multiply: Multiply, level: float, locked: Array, block: Array) -> Array:
    """The Chebyshev polynomial of degree 3 of the matrix over `level`, but for `locked`."""
    # Locked vectors are taken out each time: the cube of a large eigenvalue makes much even of
    # rounding along its vector.
    once = _outside(locked, multiply(block)) / level
    twice = 2 / level * _outside(locked, multiply(once)) - block
    return 2 / level * _outside(locked, multiply(twice)) - once


def _dense(multiply: Multiply, n: int, rank: int, dtype: Any, products: int = 0) -> Eigenpairs:
    values, vectors = _all(multiply(jnp.eye(n, dtype=dtype)), rank)
    _finite(values)
    density = Density(values, jnp.ones_like(values))
    return _measured(multiply, vectors, density, products + n)


@jax.jit(static_argnums=1)
def _all(matrix: Array, rank: int) -> tuple[Array, Array]:
    """All eigenvalues, ascending, and vectors of the leading ones."""
    values, vectors = eigh(matrix)
    return values, vectors[:, jnp.argsort(-jnp.abs(values))[:rank]]


def _measured(multiply: Multiply, vectors: Array, density: Density, products: int) -> Eigenpairs:
    """Values and residuals of given vectors, from their images."""
    number = vectors.shape[1]
    images = [multiply(some) for some in jnp.split(vectors, [*range(256, number, 256)], axis=1)]
    values, vectors, residuals = _rayleigh(vectors, images)
    return Eigenpairs(values, vectors, residuals, density, products + number)


@jax.jit
def _rayleigh(vectors: Array, images: list[Array]) -> tuple[Array, Array, Array]:
    image = jnp.concatenate(images, axis=1)
    values = jnp.sum(vectors * image, axis=0)
    residuals = column_norms(image - vectors * values[None, :])
    residuals = residuals / jnp.where(values == 0, 1, jnp.abs(values))
    order = jnp.argsort(-jnp.abs(values))
    return values[order], vectors[:, order], residuals[order]
