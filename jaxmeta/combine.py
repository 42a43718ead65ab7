r"""Meta-embeddings from sources.

Sources travel as a tuple of $(n, k_j)$ arrays whose rows stand for the same words.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Real

from jaxmeta import _checks
from jaxmeta.linalg import matmul, procrustes

__all__ = ["concatenate", "rotate"]


@jax.jit
def concatenate(
    sources: Sequence[Float[Array, "n _"]],
    weights: Sequence[Real[Array, "..."] | float] | Real[Array, " N"] | None = None,
) -> Float[Array, "n K"]:
    r"""Weighted concatenation $\hat E = [E_1 C_1 \ldots E_N C_N]$ (Eqs. 4 and 6).

    `weights[j]` is a number (source weights) or one number per dimension of source $j$ (dimension
    weights); None means all 1. Cost: $O(nK)$. Reference: `bollegala22`.

    >>> import jax.numpy as jnp
    >>> sources = (jnp.ones((2, 1)), jnp.ones((2, 2)))
    >>> print(concatenate(sources, (2.0, jnp.array([3.0, 4.0]))))
    [[2. 3. 4.]
     [2. 3. 4.]]
    """
    _checks.sources("sources", sources)
    for j, source in enumerate(sources):
        _checks.array(f"sources[{j}]", source, 2)
        _checks.same_rows(**{"sources[0]": sources[0], f"sources[{j}]": source})
    if weights is None:
        return jnp.concatenate(sources, axis=1)
    _checks.numbers_per_source("weights", weights, [source.shape[1] for source in sources])
    weighted = [
        source * jnp.broadcast_to(jnp.asarray(c, source.dtype), source.shape)
        for source, c in zip(sources, weights, strict=True)
    ]
    return jnp.concatenate(weighted, axis=1)


@jax.jit
def rotate(source: Float[Array, "n k"], reference: Float[Array, "n m"]) -> Float[Array, "n m"]:
    r"""`source` rotated onto `reference`: $E\,\arg\max_Q\langle E_{ref}, EQ\rangle$.

    For averages of sources, and for weights of single dimensions, which mean something only in a
    shared basis. It changes no inner product if $k \le m$, so neither the PIP loss of a
    concatenation nor a term of the bound (`theory/rotation.py`).

    Cost: $O(nkm)$. Reference: `schonemann66`.

    >>> import jax.numpy as jnp
    >>> e = jnp.array([[1.0, 0.0], [0.0, 2.0]])
    >>> print(rotate(e[:, ::-1], e).round(5))
    [[1. 0.]
     [0. 2.]]
    """
    _checks.array("source", source, 2)
    _checks.array("reference", reference, 2)
    _checks.same_rows(source=source, reference=reference)
    return matmul(source, procrustes(source, reference))
