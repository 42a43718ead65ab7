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

import numpy as np

from theory.dense import Array, eigen, frame, pip, strength, symmetric_noise
from theory.instances import SPECTRA, Rng, draw_alpha, draw_spectrum
from theory.verdict import Counterexample, Verdict, equal

CLAIM = "PIP loss against k is convex"
PRINTED_HOLDS = False


def curve(ideal: Array, vectors: Array, values: Array, alpha: float) -> Array:
    """The loss at k = 0, 1, ..., directly."""
    e = vectors * strength(values, alpha)
    return np.array([np.linalg.norm(ideal - pip(e[:, :k])) for k in range(values.size + 1)])


def increments(ideal: Array, vectors: Array, values: Array, alpha: float) -> Array:
    """The corrected statement's right-hand side."""
    b = strength(values, 2 * alpha)
    return b * (b - 2 * np.einsum("ik,ij,jk->k", vectors, ideal, vectors))


def draw_noisy(rng: Rng, n: int = 16) -> tuple[Array, Array, Array, float]:
    """Inner products of an ideal; directions and values of its noisy signal; the exponent."""
    alpha = draw_alpha(rng)
    spectrum = draw_spectrum(rng, n, str(rng.choice(SPECTRA)))
    u = frame(rng, n)
    noise = 10 ** rng.uniform(-2, 0) * spectrum.max() / np.sqrt(n) * symmetric_noise(rng, n)
    vectors, values = eigen((u * spectrum) @ u.T + noise)
    return pip(u * strength(spectrum, alpha)), vectors, values, alpha


def check(rng: Rng, instances: int) -> Verdict:
    """How far the curve bends the wrong way, and its increments."""
    bends, errors, scale = [], [], []
    for _ in range(instances):
        drawn = draw_noisy(rng)
        losses = curve(*drawn)
        bends.append(max(-np.diff(losses, 2).min(), 0) / losses.max())
        errors.append(np.diff(losses**2) - increments(*drawn))
        scale.append(np.full(errors[-1].size, losses.max() ** 2))
    return Verdict("convex_in_k", CLAIM, instances, equal(bends, 0, 1), equal(errors, 0, scale))


def counterexample() -> Counterexample:
    """A flat ideal of four dimensions, no noise: sqrt(4 - k)."""
    drawn = np.eye(4), np.eye(4), np.ones(4), 0.5
    predicted = np.sqrt(4 + np.cumsum(increments(*drawn)))
    setting = (
        "flat ideal, d = 4, no noise: loss at k = 2; at most this if convex; by the increments"
    )
    losses = curve(*drawn)
    return Counterexample(setting, losses[2], (losses[1] + losses[3]) / 2, predicted[1])
