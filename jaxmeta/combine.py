"""Meta-embeddings from sources, without training.

Sources travel as a tuple of $(n, k_j)$ arrays whose rows stand for the same words. `present` is an
$(n, N)$ array of booleans: whether source $j$ has word $w$; the row of a word that it lacks is
ignored, NaN too, and counts as zeros. Axes of singular values that are equal or 0 are not unique,
and some are returned; inner products and losses have the right derivatives even there.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from jaxmeta import _checks
from jaxmeta._types import GivenWeights, Present, Sources
from jaxmeta.linalg import common_unit, matmul, procrustes, right_axes, safe_ratio

__all__ = [
    "OneToN",
    "RotatedAverage",
    "average",
    "concatenate",
    "known",
    "principal_axes",
    "rotate_onto",
    "rotated_average",
    "rotations_between",
    "split_columns",
    "svd_reduce",
]


@_checks.checked()
def concatenate(sources: Sources, weights: GivenWeights | None = None) -> Float[Array, "n K"]:
    r"""Weighted concatenation $\hat E = [E_1 C_1 \ldots E_N C_N]$ (Eqs. 4 and 6).

    `weights[j]` is a number, or one number per dimension of source $j$; None means all 1. What
    `exact_weights` returns may be passed as it is. Cost: $O(nK)$. Reference: `bollegala22`.

    >>> import jax.numpy as jnp
    >>> print(concatenate((jnp.ones((2, 1)), jnp.ones((2, 2))), (2.0, jnp.array([3.0, 4.0]))))
    [[2. 3. 4.]
     [2. 3. 4.]]
    """
    sources = known(sources)
    if weights is None:
        return jnp.concatenate(sources, axis=1)
    weights = _checks.weights("weights", weights, [source.shape[1] for source in sources])
    weighted = [
        source * jnp.broadcast_to(jnp.asarray(c, source.dtype), source.shape)
        for source, c in zip(sources, weights, strict=True)
    ]
    return jnp.concatenate(weighted, axis=1)


@_checks.checked()
def average(sources: Sources, *, present: Present | None = None) -> Float[Array, "n _"]:
    """Mean of the sources, AVG, each padded with zeros to the width of the widest.

    The mean for a word is over the sources that have it. It depends on the basis of each: see
    `principal_axes` and `rotated_average`. Cost: $O(nK)$. Reference: `coates18`.
    """
    sources = known(sources, present)
    width = max(source.shape[1] for source in sources)
    padded = [jnp.pad(source, ((0, 0), (0, width - source.shape[1]))) for source in sources]
    total = jnp.sum(jnp.stack(padded), axis=0)
    if present is None:
        return total / len(sources)
    return total / jnp.maximum(jnp.sum(present, axis=1, keepdims=True, dtype=total.dtype), 1)


@_checks.checked()
def principal_axes(source: Float[Array, "n k"]) -> Float[Array, "n k"]:
    r"""`source` turned to its principal axes: $US$, for $E = USV^\top$.

    The longest column is first, and the largest entry of each is positive. Nothing is centred, and
    no inner product changes. Cost: $O(nk^2)$.
    """
    _checks.array("source", source, 2)
    return matmul(source, right_axes(source, source.shape[1]))


@_checks.checked(static=("k",))
def svd_reduce(
    sources: Sources, *, k: int, weights: GivenWeights | None = None, present: Present | None = None
) -> Float[Array, "n k"]:
    r"""The concatenation in `k` dimensions: $U_kS_k = CV_k$, for $C = [E_1C_1 \ldots E_NC_N]$.

    Its inner products are the closest that $k$ dimensions allow to those of $C$. Nothing is
    centred. Derivatives mean nothing where singular values $k$ and $k + 1$ coincide. Cost:
    $O(nK^2)$. Reference: `eckart36`.

    >>> import jax.numpy as jnp
    >>> reduced = svd_reduce((jnp.array([[3.0], [0.0]]), jnp.array([[4.0], [1.0]])), k=1)
    >>> print(reduced.shape, f"{jnp.sum(reduced**2):.2f} of {3**2 + 4**2 + 1**2}")
    (2, 1) 25.65 of 26
    """
    whole = concatenate(known(sources, present), weights)
    _checks.integer("k", k, least=1, most=whole.shape[1], of="the concatenation")
    return matmul(whole, right_axes(whole, k))


@_checks.checked()
def rotate_onto(source: Float[Array, "n k"], reference: Float[Array, "n m"]) -> Float[Array, "n m"]:
    r"""`source` rotated onto `reference`: $E\,\arg\max_Q\langle E_{ref}, EQ\rangle$.

    No inner product changes if $k \le m$, so neither does the PIP loss of a concatenation, or a
    term of the bound (`theory/rotation.py`). Cost: $O(nkm)$. Reference: `schonemann66`.
    """
    _checks.matrices(source=source, reference=reference)
    return matmul(source, procrustes(source, reference))


class RotatedAverage(NamedTuple):
    """A mean of sources after rotation, in the basis of the widest."""

    embedding: Float[Array, "n m"]
    rotations: tuple[Float[Array, "_ m"], ...]
    """One for each source, with orthonormal rows; that of the (first) widest is the identity."""
    change: Float[Array, ""]
    """The relative increase of the agreement in the last step: 0 at convergence."""


@_checks.checked(static=("steps",))
def rotated_average(
    sources: Sources, *, present: Present | None = None, steps: int = 20
) -> RotatedAverage:
    r"""Mean of the sources after rotations that bring them as close together as they can be.

    $$\min_{Q_1, \ldots, Q_N} \sum_{i<j} \|E_iQ_i - E_jQ_j\|_F^2, \qquad Q_jQ_j^\top = I$$

    over the words that both sources of a pair have (generalised orthogonal Procrustes). From
    rotations onto the widest, each is turned onto the sum of the others, `steps` times; for more
    than two there may be local optima. Cost: $O(nK^2)$, and $O(K^2m)$ and $N$ SVDs of $k_j \times
    m$ matrices a step, $m$ the largest width. References: `gower75`, `jawanpuria20`, `he20`.
    """
    _checks.integer("steps", steps, least=1)
    sources = known(sources, present)
    unit = common_unit(*sources)
    units = [source / unit for source in sources]
    rotations, change = rotations_between([[matmul(e.T, f) for f in units] for e in units], steps)
    images = tuple(map(matmul, sources, rotations))
    return RotatedAverage(average(images, present=present), rotations, change)


def rotations_between(
    grams: Sequence[Sequence[Float[Array, "_ _"]]], steps: int = 20
) -> tuple[tuple[Float[Array, "_ m"], ...], Float[Array, ""]]:
    r"""The rotations and the change of `rotated_average`, from the products $E_i^\top E_j$."""
    widths = [row[0].shape[0] for row in grams]
    width, widest = max(widths), widths.index(max(widths))
    eye = jnp.eye(width, dtype=grams[0][0].dtype)

    def pull(rotations, j):
        """The inner products of source j with the sum of the others, as they are rotated."""
        others = (matmul(grams[j][i], q) for i, q in enumerate(rotations) if i != j)
        return sum(others, start=jnp.zeros_like(eye, shape=(widths[j], width)))

    def turned(x):
        return procrustes(jnp.eye(x.shape[0], dtype=x.dtype), x)

    def agreement(rotations):
        return sum(jnp.sum(q * pull(rotations, j)) for j, q in enumerate(rotations)) / 2

    def step(rotations, _):
        for j in range(len(widths)):
            rotations = (*rotations[:j], turned(pull(rotations, j)), *rotations[j + 1 :])
        return rotations, agreement(rotations)

    start = tuple(eye if j == widest else turned(grams[j][widest]) for j, _ in enumerate(widths))
    rotations, agreements = lax.scan(step, start, length=steps)
    before, last = jnp.append(agreement(start), agreements)[-2:]
    # All rotations may be followed by one more: the one that leaves the widest source alone.
    back = rotations[widest].T
    rotations = tuple(eye if j == widest else matmul(q, back) for j, q in enumerate(rotations))
    return rotations, safe_ratio(last - before, last)


def known(sources: Sources, present: Present | None = None) -> tuple[Float[Array, "n _"], ...]:
    """The sources after checks, with zeros for words that are not present."""
    _checks.embeddings("sources", sources)
    if present is None:
        return tuple(sources)
    _checks.present(present, sources[0].shape[0], len(sources))
    return tuple(
        jnp.where(jnp.broadcast_to(present[:, j : j + 1], source.shape), source, 0)
        for j, source in enumerate(sources)
    )


def split_columns(stacked: Float[Array, "m K"], sources: Sources) -> tuple[Array, ...]:
    """Columns of a concatenation, those of each source by themselves."""
    return tuple(jnp.split(stacked, np.cumsum([e.shape[1] for e in sources])[:-1], axis=1))


class OneToN(NamedTuple):
    """An embedding, maps from it to each source, and how well they fit."""

    embedding: Float[Array, "n k"]
    maps: tuple[Float[Array, "k _"], ...]
    """Source j is about `embedding @ maps[j]`."""
    history: Float[Array, " _"]
    """The objective at the start and after each step; the closed form has one entry."""

    @property
    def error(self) -> Float[Array, "..."]:
        """The objective at the end."""
        return self.history[..., -1]

    @property
    def change(self) -> Float[Array, "..."]:
        """The relative decrease of the objective in the last step: 0 at convergence."""
        before = self.history[..., -2:][..., 0]
        return safe_ratio(before - self.error, before)
