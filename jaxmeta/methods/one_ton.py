r"""1TON finds one embedding from which every source can be read off linearly.

$$\min_{A, M_1, \ldots, M_N} \sum_j w_j\|E_j - AM_j\|_F^2, \qquad
  A \in \mathbb{R}^{n \times k},\ M_j \in \mathbb{R}^{k \times k_j}$$

and $A$ is the meta-embedding. For every invertible $R$, $AR^{-1}$ fits equally well, and has other
cosines: `one_to_n` takes $A = U_kS_k^\alpha$. Descent from random maps, as in the released code
(`released_one_to_n`), stops at an $R$ that is mostly an accident of the start.
"""

import itertools
from collections.abc import Sequence

import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float

from jaxmeta import _checks
from jaxmeta._types import Numbers, Present, Scalar, Sources
from jaxmeta.combine import OneToN, concatenate, known, split_columns
from jaxmeta.linalg import axis_lengths, matmul, right_axes, safe_ratio, safe_sqrt
from jaxmeta.spectral import power

__all__ = ["one_to_n", "one_to_n_plus"]


@_checks.checked(static=("k",))
def one_to_n(
    sources: Sources, *, k: int, weights: Numbers | None = None, alpha: Scalar = 1.0
) -> OneToN:
    r"""The exact minimum: $A = U_kS_k^\alpha$ and $M_j = S_k^{1-\alpha}V_{k,j}^\top/\sqrt{w_j}$.

    $U_kS_kV_k^\top$ is the truncated SVD of $[\sqrt{w_1}E_1 \ldots \sqrt{w_N}E_N]$. With `alpha` 1
    inner products are as close to those of its rows as they can be; ½ balances embedding and maps,
    0 makes all directions equally strong.
    Directions of strength 0, up to rounding, get zeros. A source of weight 0 has no part, and its
    map is 0; negative weights give NaN. For sources that lack words see `one_to_n_plus`, or predict
    them first (`predict_missing`: 1TON+ as the paper describes it).

    Cost: $O(nK^2)$. Reference: `yin16`.

    >>> import jax.numpy as jnp
    >>> e = jnp.array([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> found = one_to_n((e, e[:, :1]), k=1)
    >>> print(jnp.sum(found.embedding**2).round(3), found.error.round(3))
    18.0 1.0
    """
    sources = known(sources)
    dtype = sources[0].dtype
    weights = [1.0] * len(sources) if weights is None else weights
    _checks.numbers_per_source("weights", weights, [1] * len(sources))
    _checks.scalar("alpha", alpha)
    squares = [jnp.asarray(w, dtype).reshape(()) for w in weights]
    roots = [jnp.where(w < 0, jnp.nan, safe_sqrt(w)) for w in squares]
    whole = concatenate(sources, roots)
    _checks.integer("k", k, least=1, most=whole.shape[1], of="the concatenation")
    v = right_axes(whole, k)
    image = matmul(whole, v)
    values = axis_lengths(image)
    alpha = jnp.asarray(alpha, dtype)
    embedding = image * power(values, alpha - 1)[None, :]
    maps = split_columns(power(values, 1 - alpha)[:, None] * v.T, sources)
    maps = tuple(map(safe_ratio, maps, roots))
    return OneToN(embedding, maps, jnp.sum((whole - matmul(image, v.T)) ** 2)[None])


@_checks.checked(static=("k", "steps"))
def one_to_n_plus(
    sources: Sources, present: Present, *, k: int, ridge: Scalar = 1e-3, steps: int = 50
) -> OneToN:
    r"""1TON where sources lack words, 1TON+: each word is fitted to the sources that have it.

    $$\min_{A, M} \sum_j\Big(\sum_{w \in V_j}\|e_j(w) - a_wM_j\|^2
      + \rho\sum_{w \notin V_j}\|a_wM_j\|^2\Big)$$

    The original, which learns missing vectors along with $A$ and $M$, is $\rho = 0$. Then a word of
    one narrow source alone has no unique $a_w$; a small `ridge` $\rho > 0$ takes the one that
    predicts least, and 1 takes missing vectors for zeros (`svd_reduce`). A word that no source has
    gets zeros. With no word missing it is `one_to_n`.

    $A$ and $M$ are solved for in turns, `steps` times, from the SVD of the concatenation with zeros
    for what is missing, and no step increases the objective; the optimum may be a local one. The
    result is $U_kS_k$ and $V_k^\top$ of the completed concatenation $AM$. At most 8 sources.

    Cost: $O(nK^2)$ once, and $O(nKk + 2^Nnk^2)$ for each step. Reference: `yin16`.

    >>> import jax.numpy as jnp
    >>> e = jnp.array([[3.0], [2.0], [1.0]])
    >>> present = jnp.array([[True, True], [True, True], [True, False]])
    >>> found = one_to_n_plus((e, 2 * e.at[2].set(jnp.nan)), present, k=1, ridge=1e-6)
    >>> print(f"{(found.embedding @ found.maps[1])[2, 0]:.3f}")
    2.000
    """
    if present is None:
        _checks.fail(
            "present", "None", "an array of bool", "use one_to_n if no word is missing", TypeError
        )
    sources = known(sources, present)
    _checks.integer("the number of sources", len(sources), least=1, most=8, of="the loop over sets")
    whole = concatenate(sources)
    _checks.integer("k", k, least=1, most=whole.shape[1], of="the concatenation")
    _checks.positive("ridge", ridge, "pass a small one, such as 1e-3")
    _checks.integer("steps", steps, least=1)
    ridge = jnp.asarray(ridge, whole.dtype)
    counts = jnp.where(present, 1, ridge)

    def objective(a, maps):
        parts = zip(counts.T, sources, split_columns(maps, sources), strict=True)
        return sum(jnp.sum(c * jnp.sum((e - matmul(a, m)) ** 2, axis=1)) for c, e, m in parts)

    def step(carry, _):
        a, _ = carry
        # Only the spans matter to the next half of a step: in such a basis no system has a
        # condition above 1 / ridge.
        maps = _best_maps(_orthonormal(a), sources, counts)
        maps = _orthonormal(maps.T).T
        a = _best_rows(whole, split_columns(maps, sources), present, ridge)
        return (a, maps), objective(a, maps)

    v = right_axes(whole, k)
    start = (matmul(whole, v), v.T)
    (a, maps), errors = lax.scan(step, start, length=steps)
    completed = matmul(a, maps)
    v = right_axes(completed, k)
    history = jnp.append(objective(*start), errors)
    return OneToN(matmul(completed, v), split_columns(v.T, sources), history)


def _orthonormal(x: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """Columns times a matrix that makes them orthonormal, or 0 beyond their rank."""
    # The matrix is one of many: nothing that is unique depends on it, so it needs no derivative.
    axes = right_axes(lax.stop_gradient(x), x.shape[1])
    lengths = axis_lengths(matmul(lax.stop_gradient(x), axes))
    return matmul(x, axes * safe_ratio(jnp.ones_like(lengths), lengths)[None, :])


def _best_maps(a: Array, sources: Sequence[Array], counts: Float[Array, "n N"]) -> Array:
    """Maps for given rows, side by side: a least-squares problem for each source."""
    # Missing rows of a source are zero, so that their weight is of no matter on the right.
    inverses = (_inverse(matmul((c[:, None] * a).T, a)) for c in counts.T)
    maps = [matmul(inverse, matmul(a.T, e)) for inverse, e in zip(inverses, sources, strict=True)]
    return jnp.concatenate(maps, axis=1)


def _best_rows(whole: Array, maps: Sequence[Array], present: Array, ridge: Array) -> Array:
    """Rows for given maps: the same least-squares problem for all words of the same sources."""
    grams = jnp.stack([matmul(m, m.T) for m in maps])
    right = matmul(whole, jnp.concatenate(maps, axis=1).T)

    def solve(rows, members):
        gram = jnp.sum(jnp.where(members, 1, ridge)[:, None, None] * grams, axis=0)
        theirs = jnp.all(present == members[None, :], axis=1, keepdims=True)
        return jnp.where(theirs, matmul(right, _inverse(gram)), rows), None

    sets = jnp.asarray(list(itertools.product([False, True], repeat=len(maps)))[1:])
    return lax.scan(solve, jnp.zeros_like(right), sets)[0]


def _inverse(gram: Float[Array, "k k"]) -> Float[Array, "k k"]:
    """The inverse of a matrix that is positive definite but for rows and columns of zeros."""
    empty = jnp.diag(jnp.where(jnp.diag(gram) == 0, 1, 0).astype(gram.dtype))
    return cho_solve(cho_factor(gram + empty, lower=True), jnp.eye(gram.shape[0], dtype=gram.dtype))
