r"""The shape of the PIP loss as a function of the dimensionality.

Printed (appendix, "PIP loss and optimal dimensionality"): the PIP loss of a $k$-dimensional
embedding against the ideal is convex in $k$. It is not, nor is it typically so: for a flat ideal
without noise it is $\sqrt{d - k}$, which is concave, and with noise the curve wiggles.

Corrected: with $\mu_i, \tilde u_i$ the values and directions of the noisy signal and $EE'$ the
ideal's inner products,

    loss_k^2 - loss_{k-1}^2 = mu_k^{2a} (mu_k^{2a} - 2 u_k' EE' u_k),

so dimension $k$ helps exactly when $\mu_k^{2a} < 2\tilde u_k'EE'\tilde u_k$. Proof. Adding
dimension $k$ adds $\mu_k^{2a}\tilde u_k\tilde u_k'$ to the embedding's inner products; expand the
square, and use that the $\tilde u_i$ are orthonormal.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta

from .dense import Array, eigen, embedding, pip, power
from .instances import SPECTRA, Rng, draw_alpha, draw_spectrum, frame, symmetric_noise
from .verdict import Counterexample, Origin, Verdict, both, equal, in_64_bit

CLAIM = "PIP loss against k is convex"
ORIGIN = Origin(
    "reading",
    "E",
    "We see that PIP loss is convex",
    ("pip_curve",),
)
PRINTED_HOLDS = False


def curve(ideal: Array, vectors: Array, values: Array, alpha: float) -> Array:
    """The loss at k = 0, 1, ..., directly."""
    e = vectors * power(values, alpha)
    return np.array([np.linalg.norm(ideal - pip(e[:, :k])) for k in range(values.size + 1)])


def increments(ideal: Array, vectors: Array, values: Array, alpha: float) -> Array:
    """The corrected statement's right-hand side."""
    b = power(values, 2 * alpha)
    return b * (b - 2 * np.einsum("ik,ij,jk->k", vectors, ideal, vectors))


class Noisy(NamedTuple):
    """Directions and values of an ideal and of its noisy signal, and the exponent."""

    u: Array
    ideal: Array
    vectors: Array
    values: Array
    alpha: float

    @property
    def dense(self) -> tuple[Array, Array, Array, float]:
        """Inner products of the ideal, and the rest."""
        return pip(embedding(self.u, self.ideal, self.alpha)), *self[2:]


def draw_noisy(rng: Rng, n: int = 16) -> Noisy:
    """Any signal, with any noise."""
    alpha = draw_alpha(rng)
    spectrum = draw_spectrum(rng, n, str(rng.choice(SPECTRA)))
    u = frame(rng, n)
    noise = 10 ** rng.uniform(-2, 0) * spectrum.max() / np.sqrt(n) * symmetric_noise(rng, n)
    return Noisy(u, spectrum, *eigen((u * spectrum) @ u.T + noise), alpha)


def library_squares(drawn: Sequence[Noisy]) -> Array:
    """The library's curves, squared, from k = 0 on."""

    def of_one(u, ideal, vectors, values, alpha):
        spectra = jaxmeta.Spectrum(u, ideal), jaxmeta.Spectrum(vectors, values)
        return jaxmeta.pip_curve(*spectra, alpha=alpha)

    curves = jax.vmap(of_one)(*(jnp.asarray(np.stack(x)) for x in zip(*drawn, strict=True)))
    start = [np.sum(power(x.ideal, 4 * x.alpha)) for x in drawn]
    return np.column_stack([start, np.asarray(curves) ** 2])


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """How far the curve bends the wrong way; its increments, and the library's curve."""
    drawn = [draw_noisy(rng) for _ in range(instances)]
    losses = np.array([curve(*x.dense) for x in drawn])
    scale = losses.max(axis=1, keepdims=True)
    bends = np.maximum(-np.diff(losses, 2).min(axis=1), 0) / scale[:, 0]
    by_increments = equal(np.diff(losses**2), [increments(*x.dense) for x in drawn], scale**2)
    by_library = equal(losses**2, library_squares(drawn), scale**2)
    corrected = both(by_increments, by_library)
    return Verdict("convex_in_k", CLAIM, instances, equal(bends, 0, 1), corrected)


@in_64_bit
def counterexample() -> Counterexample:
    """A flat ideal of four dimensions, no noise: sqrt(4 - k)."""
    drawn = np.eye(4), np.eye(4), np.ones(4), 0.5
    predicted = np.sqrt(4 + np.cumsum(increments(*drawn)))
    setting = (
        "flat ideal, d = 4, no noise: loss at k = 2; at most this if convex; by the increments"
    )
    losses = curve(*drawn)
    return Counterexample(setting, losses[2], (losses[1] + losses[3]) / 2, predicted[1])
