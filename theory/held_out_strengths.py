r"""Strengths of directions of one half of a corpus, seen by the other half.

Not in the paper (`chen21`). Let $\tilde M_1 = M + Z_1$ and $\tilde M_2 = M + Z_2$ have independent
noise of mean 0, whatever its variances and its law. For directions $\tilde u_i$ of the first and
the signs of its eigenvalues, stated:

1. $\mathrm{sign}(\mu_i)\,\tilde u_i^\top\tilde M_2\tilde u_i$ is
   $\mathrm{sign}(\mu_i)\,\tilde u_i^\top M\tilde u_i$ on the average: unbiased for that half.
2. $\langle\tilde M_1, \tilde M_2\rangle$ is $\|M\|_F^2$ on the average.
3. Of the same half neither is so: $\mathrm{sign}(\mu_i)\,\tilde u_i^\top\tilde M_1\tilde u_i =
   |\mu_i|$ is too large, and so is $\|\tilde M_1\|_F^2$.

Proof. Given $Z_1$, the directions and signs are constants and $Z_2$ has mean 0: 1, and 2 by
$\langle M, Z_1\rangle$, which has mean 0 as well. For 3,
$\mathbb E\|\tilde M_1\|^2 = \|M\|^2 + \mathbb E\|Z_1\|^2$; and
$|\mu_1| = \max_u|u^\top\tilde M_1u| \ge |u_1^\top\tilde M_1u_1|$ with $u_1$ the ideal's own, which
is $|\lambda_1|$ on the average already, while $|\tilde u_1^\top M\tilde u_1| \le |\lambda_1|$.

Checked on means over many draws, for noise of three kinds: alike in all entries; with rows that
differ by a factor of up to 16; and with few entries that are not 0. A mean is unbiased if it is
within six of its standard errors of 0, and biased if it is further. The strengths are summed over
the leading dimensions, as many as the ideal has.
"""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

import jaxmeta.crossvalidation

from .dense import Array
from .instances import Rng, frame, symmetric_noise
from .verdict import Origin, Tally, Verdict, both, equal, in_64_bit

CLAIM = "sign(mu) u'M2 u is unbiased for sign(mu) u'M u of M1's directions; sign(mu) u'M1 u is not"
ORIGIN = Origin("ours", "", "", ("held_out_strengths", "shared_square"))
PRINTED_HOLDS = True
N, VALUES = 40, np.array([12.0, -9.0, 6.0])
SCALES = np.array([np.sum(np.abs(VALUES)), np.sum(VALUES**2)] * 2)
KINDS = ("alike", "rows", "rare")


def noise(rng: Rng, kind: str, width: Array) -> Array:
    """Symmetric, of mean 0 and variance 1/4 in the mean."""
    z = symmetric_noise(rng, N) / 2
    if kind == "rows":
        return z * np.outer(width, width) / np.mean(width**2)
    if kind == "rare":
        seen = np.triu(rng.random((N, N)) < 0.1)
        return z * (seen | seen.T) / np.sqrt(0.1)
    return z


def dense(signal: Array, first: Array, second: Array) -> tuple[Array, Array, Array]:
    """Leading eigenpairs of the first half; and four errors, relative to the ideal's own.

    Strengths by the other half and by the same one, less those of the ideal signal; the products
    of both halves and of one with itself, less the square of the ideal.
    """
    values, vectors = np.linalg.eigh(first)
    leading = np.argsort(-np.abs(values))[: VALUES.size]
    values, vectors = values[leading], vectors[:, leading]

    def strength(matrix: Array) -> float:
        return float(np.sign(values) @ np.diag(vectors.T @ matrix @ vectors))

    square = np.sum(signal**2)
    errors = (
        strength(second) - strength(signal),
        np.sum(first * second) - square,
        strength(first) - strength(signal),
        np.sum(first**2) - square,
    )
    return values, vectors, np.array(errors) / SCALES


def tally(errors: Array, kinds: NDArray[np.str_]) -> Tally:
    """Kinds of noise and columns whose mean is not as stated; the largest mean that should be 0."""
    wrong, worst = 0, 0.0
    for kind in KINDS:
        own = errors[kinds == kind]
        mean, error = own.mean(axis=0), own.std(axis=0, ddof=1) / np.sqrt(len(own))
        wrong += int(np.sum(~(np.abs(mean[:2]) <= 6 * error[:2])))
        wrong += int(np.sum(~(mean[2:] > 6 * error[2:])))
        worst = max(worst, float(np.abs(mean[:2]).max()))
    return Tally(wrong, worst)


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Halves with noise of three kinds; sums by matrices, and by the library."""
    kinds = np.resize(KINDS, instances)
    drawn, found = [], []
    for kind in kinds:
        ideal, width = frame(rng, N, VALUES.size), 4 ** rng.uniform(-0.5, 0.5, N)
        signal = (ideal * VALUES) @ ideal.T
        first, second = (signal + noise(rng, str(kind), width) for _ in range(2))
        found.append(dense(signal, first, second))
        drawn.append((first, second))
    errors = np.stack([errors for _, _, errors in found])
    firsts, seconds = (jnp.asarray(np.stack(x)) for x in zip(*drawn, strict=True))
    values, vectors = (jnp.asarray(np.stack(x)) for x in list(zip(*found, strict=True))[:2])

    def strengths(mu: jax.Array, u: jax.Array, other: jax.Array) -> jax.Array:
        spectrum = jaxmeta.Spectrum(u, jnp.abs(mu))
        return jaxmeta.crossvalidation.held_out_strengths(
            spectrum, jnp.sign(mu), lambda x: other @ x
        )

    square = jax.vmap(jaxmeta.crossvalidation.shared_square)
    ours = np.stack([
        np.asarray(jax.vmap(strengths)(values, vectors, seconds)).sum(axis=1),
        np.asarray(square(firsts, seconds)),
        np.asarray(jax.vmap(strengths)(values, vectors, firsts)).sum(axis=1),
        np.asarray(square(firsts, firsts)),
    ], axis=1) / SCALES  # fmt: skip
    # What they estimate, by matrices alone.
    own = np.abs(np.asarray(values)).sum(axis=1) / SCALES[0] - errors[:, 2]
    truth = np.stack([own, np.ones(instances)] * 2, axis=1)
    agree = equal(ours, truth + errors, 1)
    return Verdict(
        "held_out_strengths",
        CLAIM,
        instances,
        tally(errors, kinds),
        both(agree, tally(ours - truth, kinds)),
    )
