r"""Cross-validated strengths: directions from one part of a corpus, strengths from another.

What noise put into a direction of one part is independent of the other, so $\mathrm{sign}(\mu_i)\,
\tilde u_i^\top\tilde M_2\tilde u_i$ is $\tilde u_i^\top M\tilde u_i$ on the average, whatever the
noise is like: a check of all rules and weights that needs no model and no ideal. It is one of a
part, though, whose directions are worse than those of the whole and whose strengths are smaller:
its best k is too small for the whole. At $\alpha = ½$, where loss is linear in the ideal signal.
Reference: `chen21`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxmeta import _checks
from jaxmeta.eigen import Multiply
from jaxmeta.linalg import safe_sqrt
from jaxmeta.pip import loss_changes
from jaxmeta.spectral import Spectrum

__all__ = ["CrossValidated", "cross_validated", "held_out_strengths", "shared_square"]


class CrossValidated(NamedTuple):
    """Values of the directions of parts, and their strengths in other parts."""

    values: Float[Array, "s r"]
    """Of s parts, each descending."""
    strengths: Float[Array, "s r"]
    total: Float[Array, ""]
    """The squared norm of what parts have in common."""

    @property
    def curve(self) -> Float[Array, " r"]:
        """Root mean squared loss of the first k dimensions."""
        return self.loss_of(jnp.ones_like(self.values))

    @property
    def dimension(self) -> Int[Array, ""]:
        """The k at which that is smallest."""
        return 1 + jnp.argmin(self.curve)

    def loss_of(self, weights: Float[Array, "s r"]) -> Float[Array, " r"]:
        """The same with a weight for each dimension of each part."""
        # A weighted direction has the value c^2 mu and the same strength.
        squares = jax.vmap(loss_changes)(weights**2 * self.values, self.strengths)
        return safe_sqrt(self.total + jnp.mean(squares, axis=0))


def held_out_strengths(
    spectrum: Spectrum, signs: Float[Array, " r"], multiply: Multiply
) -> Float[Array, " r"]:
    r"""$\mathrm{sign}(\mu_i)\,\tilde u_i^\top\tilde M_2\tilde u_i$ of directions of another part.

    `multiply` is that of `jaxmeta.eigen.multiply_by` for the signal $\tilde M_2$. Cost: r products
    with it.
    """
    return signs * jnp.sum(spectrum.vectors * multiply(spectrum.vectors), axis=0)


def cross_validated(
    spectra: Sequence[Spectrum],
    signs: Sequence[Float[Array, " r"]],
    others: Sequence[Multiply],
    *,
    total: Any,
) -> CrossValidated:
    """Each of the `spectra`, of signals of parts of a corpus, seen by another part.

    `others[p]` multiplies with a signal of a part that shares no text with that of `spectra[p]`,
    and `total` is `shared_square` of two such parts. Two halves, each seen by the other, are two.

    >>> import jax.numpy as jnp
    >>> first = Spectrum(jnp.eye(2), jnp.array([5.0, 1.0]))
    >>> second = jnp.diag(jnp.array([4.0, -1.0]))
    >>> found = cross_validated([first], [jnp.ones(2)], [lambda x: second @ x], total=19.0)
    >>> print(found.curve.round(2), found.dimension)
    [2.   2.65] 1
    """
    _checks.sources("spectra", spectra, Spectrum)
    _checks.count("signs", signs, len(spectra))
    _checks.count("others", others, len(spectra))
    rank = min(len(spectrum.values) for spectrum in spectra)
    cut = [Spectrum(s.vectors[:, :rank], s.values[:rank]) for s in spectra]
    seen = [
        held_out_strengths(s, sign[:rank], other)
        for s, sign, other in zip(cut, signs, others, strict=True)
    ]
    values = jnp.stack([s.values for s in cut])
    return CrossValidated(values, jnp.stack(seen), jnp.asarray(total, values.dtype))


def shared_square(first: Any, second: Any) -> Float[Array, ""]:
    r"""$\langle\tilde M_1, \tilde M_2\rangle$, which is $\|M\|_F^2$ on the average.

    Of signals of two parts of a corpus, dense or SciPy sparse: their noise is independent.
    """
    for name, value in (("first", first), ("second", second)):
        _checks.array(name, value, 2)
    if first.shape != second.shape:
        got, do = f"shapes {first.shape} and {second.shape}", "count both over one vocabulary"
        _checks.fail("first and second", got, "the same", do)
    if _checks.is_sparse(first):
        return jnp.asarray(first.multiply(second).sum())
    return jnp.vdot(first, second, precision=jax.lax.Precision.HIGHEST)
