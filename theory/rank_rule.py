r"""The rank of the ideal signal.

Printed (section 3.5): "the rank is the smallest $(i+1)$ for which
$\tilde\lambda_i \le 2\sigma\sqrt n$". The smallest such $i$ is one more than the number of values
above the threshold, so the printed rank is two too large.

Corrected: the rank is the number of $\tilde\lambda_i > 2\sigma\sqrt n$. Proof. The estimate keeps
$\max(\tilde\lambda_i - 2\sigma\sqrt n, 0)$, which is positive for exactly these, and the rank of a
matrix is the number of its non-zero singular values.
"""

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta

from .dense import Array
from .instances import SPECTRA, Rng, draw_spectrum, frame
from .verdict import Counterexample, Origin, Verdict, equal, in_64_bit

CLAIM = "rank = smallest i + 1 with value i <= 2 sigma sqrt n"
ORIGIN = Origin(
    "printed",
    "3.5",
    r"The rank of $M$ is determined by the smallest $(i+1)$ for which $\tilde\lambda_i \le "
    r"2\sigma\sqrt n$",
    ("usvt_rank",),
)
PRINTED_HOLDS = False


def printed(values: Array, threshold: float) -> int:
    """The rule as printed, counting from one; after the last value comes 0."""
    below = np.flatnonzero(np.append(values, 0.0) <= threshold)
    return int(below[0] + 1) + 1


@jax.vmap
def corrected(values: jax.Array, threshold: jax.Array) -> jax.Array:
    """The library's rank, at a noise and a size whose threshold needs no rounding."""
    return jaxmeta.noise.usvt_rank(values, sigma=threshold / 8, n=16)


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Both rules against the rank of the thresholded matrix."""
    truth: list[int] = []
    drawn: list[tuple[Array, float]] = []
    n = 12
    while len(truth) < instances:
        values = draw_spectrum(rng, n, str(rng.choice(SPECTRA)))
        threshold = float(np.quantile(values, rng.random()) * rng.choice([0.0, 0.7, 1.0, 1.3]))
        kept = np.maximum(values - threshold, 0)
        if np.any((kept > 0) & (kept < 1e-9 * values.max())):
            continue  # a value within rounding of the threshold has no definite rank
        u = frame(rng, n)
        truth.append(int(np.linalg.matrix_rank((u * kept) @ u.T, tol=1e-10 * values.max())))
        drawn.append((values, threshold))
    found = corrected(*(jnp.asarray(x) for x in map(np.array, zip(*drawn, strict=True))))
    rule = [printed(*pair) for pair in drawn]
    return Verdict("rank_rule", CLAIM, len(truth), equal(rule, truth, n), equal(found, truth, n))


@in_64_bit
def counterexample() -> Counterexample:
    """Two values above the threshold."""
    values = np.array([5.0, 4.0, 1.0])
    (found,) = corrected(jnp.asarray(values)[None], jnp.array([2.0]))
    return Counterexample("values (5, 4, 1), threshold 2", 2.0, printed(values, 2.0), float(found))
