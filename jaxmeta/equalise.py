r"""The ideal, estimated where noise differs from word to word.

The laws by which `jaxmeta.shrinkage` knows the strength of a noisy direction hold where all rows of
the noise are alike. With the scales $s$ of `jaxmeta.nested.nested_noise` they are so for
$\mathrm{diag}(s)\tilde M\,\mathrm{diag}(s)$: its eigenvalues are shrunk, the scales undone, and
what comes out decomposed again. Directions move, too, away from the words that are noisy, so that
the result can be nearer to the ideal than any weights of the observed directions. It is a
`Spectrum`: `embed` makes an embedding of it, `jaxmeta.pip.pip_curve` and
`jaxmeta.quadratic.pip_quadratic` take it for the ideal, and so k and weights of the source come
from what they take for one. Reference: `landa23`, `gavish23`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxmeta import _checks
from jaxmeta._brief import brief
from jaxmeta._checks import checked
from jaxmeta._types import Scalar
from jaxmeta.eigen import Eigenpairs
from jaxmeta.linalg import eigh, fix_signs, matmul
from jaxmeta.noise import usvt_rank
from jaxmeta.shrinkage import rie_strengths
from jaxmeta.spectral import Spectrum

__all__ = ["IdealEstimate", "equalise", "estimate_ideal", "restore"]


class IdealEstimate(NamedTuple):
    """An estimate of the ideal signal."""

    spectrum: Spectrum
    """Its directions and values, which are shrunk already."""
    signs: Float[Array, " r"]
    """Of its eigenvalues: values are their magnitudes."""

    def __repr__(self) -> str:
        return brief(self)


def equalise(signal: Any, scales: Float[Array, " n"]) -> Any:
    r"""$s_i\tilde M_{ij}s_j$, whose noise has the same variance in all rows.

    `scales` are those of `jaxmeta.nested.nested_noise`. A SciPy sparse signal stays sparse.
    """
    _checks.array("signal", signal, 2)
    _checks.array("scales", scales, 1)
    if signal.shape != 2 * scales.shape:
        got, do = f"{scales.shape[0]} for shape {signal.shape}", "take the scales of this signal"
        _checks.fail("scales", got, "one for each row and column", do)
    if not _checks.is_sparse(signal):
        return _equalise(signal, scales)
    factors = np.asarray(scales, signal.dtype)
    stored = signal.tocsr(copy=True)
    stored.data *= factors[stored.indices] * np.repeat(factors, np.diff(stored.indptr))
    return stored


_equalise = jax.jit(lambda signal, scales: scales[:, None] * signal * scales[None, :])


def estimate_ideal(
    pairs: Eigenpairs, *, sigma: Scalar, scales: Float[Array, " n"], k: int | None = None
) -> IdealEstimate:
    r"""Estimate the ideal from leading eigenpairs of the equalised signal, and its density.

    They are shrunk by `rotation_invariant`, with `sigma` and `scales` those of
    `jaxmeta.nested.nested_noise`. The `k` leading ones are kept: if None, those of `pairs` that are
    above the edge of the noise. Symmetric signals alone: of others the strengths are known for one
    variance (`rotation_invariant_rectangular`), and are not those of the PIP loss. For the host.
    Cost: $O(n^2)$ for the strengths, $O(nk^2)$ to decompose again.

    >>> import jax, jax.numpy as jnp, numpy as np
    >>> from jaxmeta.eigen import leading_eigenpairs, multiply_by
    >>> from jaxmeta.pip import pip_curve
    >>> from jaxmeta.spectral import decompose
    >>> s, z = np.linspace(0.3, 3, 100), np.random.default_rng(0).normal(size=(100, 100))
    >>> ideal = Spectrum(jnp.full((100, 1), 0.1), jnp.array([40.0]))
    >>> signal, scales = jnp.asarray(0.4 + (z + z.T) / np.outer(s, s) / 2**0.5), jnp.asarray(s)
    >>> equal = multiply_by(equalise(signal, scales))
    >>> pairs = leading_eigenpairs(equal, n=100, rank=100, key=jax.random.key(0))
    >>> found = estimate_ideal(pairs, sigma=1.0, scales=scales, k=1)
    >>> for one in (decompose(signal, rank=1), found.spectrum):
    ...     print(pip_curve(ideal, one, alpha=0.5).round(1))
    [66.9]
    [9.4]
    """
    values = jnp.asarray(pairs.spectrum, pairs.vectors.dtype)
    # Less noise than rounding is none, and has no law.
    least = jnp.finfo(values.dtype).eps * jnp.max(jnp.abs(values))
    strengths = rie_strengths(values, sigma=jnp.maximum(sigma, least))
    if k is None:
        above = int(usvt_rank(jnp.abs(values), sigma=sigma, n=len(values)))
        k = max(1, min(above, len(pairs.values)))
    _checks.integer("k", k, least=1, most=len(pairs.values), of="pairs")
    shrunk = (jnp.sign(values) * strengths)[:k]
    return restore(shrunk, pairs.vectors[:, :k], scales)


@checked()
def restore(
    eigenvalues: Float[Array, " r"], vectors: Float[Array, "n r"], scales: Float[Array, " n"]
) -> IdealEstimate:
    r"""Undo `equalise`: decompose $\sum_i\xi_iw_iw_i^\top$ with $w_i = v_i/s$ by entries.

    Cost: $O(nr^2 + r^3)$; values can be differentiated, and directions where values differ.
    """
    _checks.array("eigenvalues", eigenvalues, 1)
    _checks.matrices(vectors=vectors, scales=scales[:, None])
    basis, triangle = jnp.linalg.qr(vectors / scales[:, None])
    values, rotation = eigh(matmul(triangle * eigenvalues[None, :], triangle.T))
    order = jnp.argsort(-jnp.abs(values))
    values = values[order]
    found = Spectrum(fix_signs(matmul(basis, rotation[:, order])), jnp.abs(values))
    return IdealEstimate(found, jnp.sign(values))
