r"""How alike two embeddings of the same words are, whatever their means, scales and rotations.

`cka` compares all inner products, and is above 0 by chance; `unbiased_cka` is not. The distance
that a rotation leaves is `procrustes_distance`. Where means and scales matter, use `pip_loss`, from
`jaxmeta.pip`. `permutation_test` tells an alignment from chance, and `cka_of_moments` compares
sources that are too many rows to hold.

Rows stand for the same words in both. An embedding whose rows are all the same has nothing to
compare: its alignment with any other is 0, and so are gradients. NaN or infinity in either gives
NaN. No $n \times n$ matrix is formed.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Key

from jaxmeta import _checks
from jaxmeta._twofold import Twofold, add, multiply, ratio
from jaxmeta.covariance import Moments, Pair, pairs_of
from jaxmeta.linalg import (
    column_norms,
    matmul,
    norm,
    power_of_two,
    residual,
    safe_ratio,
    safe_sqrt,
    svd,
    unit,
)

__all__ = [
    "PermutationTest",
    "cka",
    "cka_of_moments",
    "permutation_test",
    "procrustes_distance",
    "unbiased_cka",
    "unbiased_hsic",
]


@_checks.checked()
def cka(e: Float[Array, "n k"], f: Float[Array, "n m"]) -> Float[Array, ""]:
    r"""Linear centred kernel alignment: 1 for the same embedding, 0 for orthogonal ones.

    $$\frac{\|E_c^\top F_c\|_F^2}{\|E_c^\top E_c\|_F\,\|F_c^\top F_c\|_F}$$

    is the cosine of the centred PIP matrices, for rows $E_c$ less their mean. Words that are dealt
    to the rows of $F$ at random leave $\sqrt{r_e r_f}/(n - 1)$ on average, with the effective ranks
    $r = \mathrm{tr}(C)^2/\|C\|_F^2$ of the covariances $C$: much, for few words in many dimensions.
    Cost: $2n(k^2 + km + m^2)$ flops. Reference: `kornblith19`.

    >>> import jax.numpy as jnp
    >>> e = jnp.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [3.0, 0.0]])
    >>> print(f"{cka(e, 5 - 2 * e[:, ::-1]):.4f}, {cka(e, e[:, :1]):.4f}")
    1.0000, 0.9428
    """
    _checks.matrices(e=e, f=f)
    (e, _), (f, _) = _centred(e), _centred(f)
    return _cosine(*(matmul(x.T, y) for x, y in ((e, e), (e, f), (f, f))))


def _cosine(ee: Array, ef: Array, ff: Array) -> Float[Array, ""]:
    """Alignment by inner products of centred columns, with 1 for equal ones, to the last digit."""
    shared = norm(ef)
    return safe_ratio(shared, norm(ee)) * safe_ratio(shared, norm(ff))


@_checks.checked()
def unbiased_hsic(e: Float[Array, "n k"], f: Float[Array, "n m"]) -> Float[Array, ""]:
    r"""How much two embeddings depend on each other, with mean 0 for those that do not.

    The estimate HSIC$_1$ of the Hilbert-Schmidt independence criterion for linear kernels, of 4
    rows at least. With the squared lengths $p$ and $q$ of centred rows, $n(n - 3)$ times it is

    $$\|E_c^\top F_c\|_F^2 - \tfrac1{n-1}\sum_i p_i \sum_i q_i
      - \tfrac{n}{n-2}\sum_i (p_i - \bar p)(q_i - \bar q).$$

    The mean over random batches of rows has the expectation of one batch, which is the value for
    all rows: so means of this over batches, and not of `unbiased_cka`, are to be put
    in its formula. Errors are the rounding of the first term. Cost: $2nkm$ flops. References:
    `song12`, `nguyen21`.
    """
    _check_four_rows(e, f)
    n = e.shape[0]
    (e, a), (f, b) = _centred(e), _centred(f)
    return a * (b * (a * (b * (_dependence(e, f)[0] / n / (n - 3)))))


@_checks.checked()
def unbiased_cka(e: Float[Array, "n k"], f: Float[Array, "n m"]) -> Float[Array, ""]:
    r"""Centred kernel alignment that is near 0, and may be negative, for unrelated embeddings.

    $$\mathrm{HSIC}_1(E, F) \Big/ \sqrt{\mathrm{HSIC}_1(E, E)\,\mathrm{HSIC}_1(F, F)}$$

    with `unbiased_hsic`. HSIC$_1$ is an inner product, so this is from -1 to 1, and 1 for the same
    embedding, up to rounding; that is about $\epsilon/(1 - r/n)$ for effective rank $r$. It is 0
    where HSIC$_1(E, E)$ is nothing but rounding: for rows that are orthogonal to each other, seen
    from some point, as if all but one are the same. At least 4 rows. Cost: as `cka`. References:
    `song12`, `szekely14`, `kornblith19`.

    >>> import jax.numpy as jnp
    >>> e = jnp.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [3.0, 0.0]])
    >>> print(f"{unbiased_cka(e, 5 - 2 * e[:, ::-1]):.4f}, {unbiased_cka(e, e[:, :1]):.4f}")
    1.0000, 0.8660
    """
    _check_four_rows(e, f)
    (e, _), (f, _) = _centred(e), _centred(f)
    return safe_ratio(_dependence(e, f)[0], _spread(e) * _spread(f))


def _check_four_rows(e: Array, f: Array) -> None:
    _checks.matrices(e=e, f=f)
    if e.shape[0] < 4:
        got, do = f"{e.shape[0]} rows", "use cka, or pass more words"
        _checks.fail("e and f", got, "at least 4, which the unbiased estimate takes", do)


def _dependence(e: Float[Array, "n k"], f: Float[Array, "n m"]) -> tuple[Array, Array]:
    """The estimate HSIC_1 of centred embeddings times n (n - 3), and the first term of it."""
    n = e.shape[0]
    p, q = (jnp.sum(x**2, axis=1) for x in (e, f))
    shared = jnp.sum(matmul(e.T, f) ** 2)
    chance = jnp.sum(p) * jnp.sum(q) / (n - 1)
    lengths = jnp.sum((p - jnp.mean(p)) * (q - jnp.mean(q))) * (n / (n - 2))
    return shared - chance - lengths, shared


def _spread(e: Float[Array, "n k"]) -> Float[Array, ""]:
    """The norm that belongs to this inner product, with 0 for what is no more than rounding."""
    square, shared = _dependence(e, e)
    return safe_sqrt(jnp.where(square <= 64 * jnp.finfo(e.dtype).eps * shared, 0, square))


@_checks.checked()
def procrustes_distance(e: Float[Array, "n k"], f: Float[Array, "n m"]) -> Float[Array, ""]:
    r"""The distance that the best rotation leaves: 0 for the same embedding, at most $\sqrt2$.

    $$\min_{Q^\top Q = I} \Big\|\frac{E_c}{\|E_c\|_F} - \frac{F_c}{\|F_c\|_F}\,Q\Big\|_F$$

    for rows less their mean, the narrower embedding padded with zeros. This is a metric on
    embeddings up to rotation, scale and mean. Its square $d^2 = 2 - 2\|E_c^\top F_c\|_* /
    (\|E_c\|_F\|F_c\|_F)$ is the distance of `ding21`, $2\arcsin(d/2)$ the angle of `williams21`. An
    embedding whose rows are all the same is at distance 1 from others.

    Nothing cancels, so small distances keep their digits: errors are about $\epsilon$. Directions
    with singular values below some $8\epsilon^{3/4}$ of the largest (5e-5 in float32) may be turned
    wrongly, and add up to twice their length where they differ. The gradient is that for the best
    rotation; second derivatives leave out how it turns. Cost: $28n\max(k, m)^2$ flops, and two SVDs
    of $\max(k, m)^2$ entries. Reference: `schonemann66`.

    >>> import jax.numpy as jnp
    >>> e = jnp.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [3.0, 0.0]])
    >>> for f in (5 - 2 * e[:, ::-1], e[:, :1]):
    ...     print(f"{procrustes_distance(e, f):.4f}")
    0.0000
    0.4011
    """
    _checks.matrices(e=e, f=f)
    if f.shape[1] > e.shape[1]:
        e, f = f, e
    e, f = (unit(_centred(x)[0]) for x in (e, f))
    f = jnp.pad(f, ((0, 0), (0, e.shape[1] - f.shape[1])))
    # A constant to differentiation: at the best rotation, turning it changes nothing.
    q, q_low = _best_rotation(*lax.stop_gradient((f, e)))
    # No turn at all is a rotation too: so the distance of an embedding from itself is exactly 0.
    return jnp.minimum(norm(residual(e, f, q, q_low)), norm(e - f))


def _best_rotation(f: Float[Array, "n k"], e: Float[Array, "n k"]) -> tuple[Array, Array]:
    """The rotation that brings `f` closest to `e`, and digits of it beyond its precision."""
    eps = jnp.finfo(e.dtype).eps
    u, s, vt = svd(matmul(f.T, e))
    # Small singular values of a product, and their axes, are rounding. The same is done again for
    # what f and e have along these axes alone; the others stay as they are.
    weak = (s <= eps**0.5 * s[0]).astype(s.dtype)
    tail = matmul(matmul(f, u * weak[None, :]).T, matmul(e, vt.T * weak[None, :]))
    tail_u, _, tail_vt = svd(unit(tail) + jnp.diag(2 - 2 * weak))
    u, vt = matmul(u, tail_u), matmul(tail_vt, vt)
    q = matmul(u, vt)
    # A Newton-Schulz step: q is a rotation up to rounding.
    q_low = 0.5 * matmul(residual(jnp.eye(len(s), dtype=s.dtype), q, q.T), q)
    # A Newton step: at the best rotation the product of f, as it is turned, with what is left is
    # symmetric.
    left, rest = matmul(f, u), matmul(residual(e, f, q, q_low), vt.T)
    product, lengths = matmul(left.T, rest), column_norms(rest)
    s = jnp.sum(left * matmul(e, vt.T), axis=0)
    sums = s[:, None] + s[None, :]
    known = sums > 64 * eps * (lengths[:, None] + lengths[None, :] + norm(tail))
    turn = jnp.where(known, safe_ratio(product - product.T, sums), 0)
    return q, q_low + matmul(matmul(u, turn + 0.5 * matmul(turn, turn)), vt)


def _comparable(stats: Moments) -> None:
    """All pairs of sources are there and, where that can be seen, have the same rows."""
    expected, do = 'moments of "raw" rows of all pairs', "call moments without parts and pairs"
    if not isinstance(stats, Moments):
        _checks.fail("stats", f"a {type(stats).__name__}", expected, do, TypeError)
    n = len(stats.widths)
    if set(stats.raw) != set(pairs_of(n, True)):
        _checks.fail("stats", f"{len(stats.raw)} pairs", f"{expected}: {n * (n + 1) // 2}", do)
    counts = {ij: pair.rows for ij, pair in stats.raw.items()}
    if any(isinstance(count, jax.core.Tracer) for count in counts.values()):
        return
    for (i, j), count in counts.items():
        for k in (i, j):
            if counts[k, k] != count:
                got = f"{counts[k, k]:.0f} rows of source {k}, {count:.0f} of both {i} and {j}"
                do = "pass moments of the rows that all have"
                _checks.fail("stats", got, "the same rows of all sources", do)


@_checks.checked(_comparable)
def cka_of_moments(stats: Moments) -> Float[Array, "N N"]:
    r"""Linear centred kernel alignment of all pairs of sources is in their moments.

    Entry i, j is `cka` of sources i and j, which may be of any number of rows, in blocks. Sums of
    all rows of a source are of no use for the rows that it shares with another: so all
    sources must have the same rows. Others raise and, inside `jit`, get NaN.

    A column whose variance is less than $2^{-30}$ of its mean square about the shift is taken for
    constant. `unbiased_cka` needs more than moments, the squared lengths of rows, and a distance is
    a difference of numbers nearly equal, in which small ones would be rounding. Cost: $K^2$ flops
    for $K$ columns. Reference: `kornblith19`.

    >>> import jax.numpy as jnp
    >>> from jaxmeta.covariance import moments
    >>> e = jnp.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [3.0, 0.0]])
    >>> print(cka_of_moments(moments((e, 5 - 2 * e[:, ::-1], e[:, :1]))).round(4))
    [[1.     1.     0.9428]
     [1.     1.     0.9428]
     [0.9428 0.9428 1.    ]]
    """
    n = len(stats.widths)
    grams = {ij: _covariances(pair) for ij, pair in stats.raw.items()}
    squares = [jnp.diag(stats.raw[i, i].sums.value)[1:] for i in range(n)]
    # Columns that vary by no more than rounding.
    fixed = [jnp.diag(grams[i, i]) <= 2.0**-30 * squares[i] for i in range(n)]

    def alignment(i, j):
        ee, ef, ff = (
            jnp.where(fixed[a][:, None] | fixed[b][None, :], 0, grams[a, b])
            for a, b in ((i, i), (i, j), (j, j))
        )
        both, each = stats.raw[i, j].rows, (stats.raw[i, i].rows, stats.raw[j, j].rows)
        return jnp.where((both == each[0]) & (both == each[1]), _cosine(ee, ef, ff), jnp.nan)

    found = {(i, j): alignment(i, j) for i, j in stats.raw}
    rows = [[found[min(i, j), max(i, j)] for j in range(n)] for i in range(n)]
    return jnp.stack([jnp.stack(row) for row in rows])


def _covariances(pair: Pair) -> Float[Array, "k m"]:
    """Sums of products of columns less their means, over the rows that both have."""
    count, left, right, products = (
        jax.tree.map(lambda x, at=at: x[at], pair.sums)
        for at in (np.s_[:1, :1], np.s_[1:, :1], np.s_[:1, 1:], np.s_[1:, 1:])
    )
    chance = multiply(ratio(left, count), right)
    return add(products, Twofold(-chance.high, -chance.low)).value


class PermutationTest(NamedTuple):
    """How alike two embeddings are, beside how alike they are by chance."""

    observed: Float[Array, ""]
    mean: Float[Array, ""]
    """Of the similarity by chance: with the rows of one embedding in random order."""
    std: Float[Array, ""]
    p_value: Float[Array, ""]
    """How often chance is at least as alike: (1 + number of draws where it is) / (1 + draws)."""


@_checks.checked(static=("similarity", "draws"))
def permutation_test(
    similarity: Callable[..., Float[Array, ""]],
    e: Float[Array, "n k"],
    f: Float[Array, "n m"],
    *,
    key: Key[Array, ""],
    draws: int,
) -> PermutationTest:
    r"""A permutation test says whether an alignment is chance, by dealing words to rows anew.

    `similarity(e, f)` is a number that is larger for what is more alike, as `cka` is; for a
    distance, pass a function that returns minus it. It is compiled for, so define it once. Under
    the hypothesis that words of `e` and `f` have nothing to do with each other $P(p \le x) \le x$,
    for any number of draws. Similarities that differ by rounding count as equal. Cost: `draws` + 1
    times that of `similarity`; memory of one, and of all for derivatives. Reference: `phipson10`.

    >>> import jax
    >>> e = jax.random.normal(jax.random.key(0), (20, 3))
    >>> print(f"{permutation_test(cka, e, e**3, key=jax.random.key(1), draws=99).p_value:.2f}")
    0.01
    """
    _checks.matrices(e=e, f=f)
    _checks.integer("draws", draws, least=2)
    observed = similarity(e, f)
    _checks.scalar("similarity(e, f)", observed)

    def by_chance(key):
        return similarity(e, jax.random.permutation(key, f))

    null = lax.map(by_chance, jax.random.split(key, draws))
    largest = jnp.maximum(jnp.abs(observed), jnp.max(jnp.abs(null)))
    slack = 64 * jnp.finfo(observed.dtype).eps * largest
    above = jnp.sum(null >= observed - slack, dtype=observed.dtype)
    # Nothing is at least as alike as NaN.
    p_value = jnp.where(jnp.isnan(observed + jnp.sum(null)), jnp.nan, (1 + above) / (1 + draws))
    return PermutationTest(observed, jnp.mean(null), safe_sqrt(jnp.var(null, ddof=1)), p_value)


def _centred(x: Float[Array, "n k"]) -> tuple[Float[Array, "n k"], Float[Array, ""]]:
    """Rows less their mean over a power of two, for no product to overflow, and that power."""
    before = power_of_two(jnp.max(jnp.abs(x)))
    x = x / before
    # A mean of equal numbers may round. Between the least and the largest it cannot, and columns
    # that do not vary become 0. What remains of the mean of others goes in a second pass.
    c = lax.stop_gradient(x)
    x = x - jnp.clip(jnp.mean(c, axis=0), jnp.min(c, axis=0), jnp.max(c, axis=0))[None, :]
    x = x - jnp.mean(x, axis=0, keepdims=True)
    after = power_of_two(jnp.max(jnp.abs(x)))
    return x / after, before * after
