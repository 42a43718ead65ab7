r"""The noise of a signal, from two halves of a corpus.

Printed (section 3.5): if the signals of two halves are $M + Z_1$ and $M + Z_2$ with independent
noise of variance $2\sigma^2$, then $\sigma = \|\tilde M_1 - \tilde M_2\|_F/(2n)$ estimates the
noise of the whole. It holds, given that model.

Proof. The entries of $Z_1 - Z_2$ have variance $4\sigma^2$, so the expected squared norm is
$4\sigma^2n^2$. The estimate's relative error has standard deviation $1/(\sqrt2\,n)$ for independent
entries, and about $1/n$ for symmetric matrices, which have half as many. Checked to six of these.
"""

import jax.numpy as jnp
import numpy as np

import jaxmeta

from .instances import Rng, symmetric_noise
from .verdict import Origin, Tally, Verdict, in_64_bit

CLAIM = "sigma = |M1 - M2| / 2n estimates the noise"
ORIGIN = Origin(
    "printed",
    "3.5",
    "we can estimate the noise for symmetric signal matrices by",
    ("noise_std",),
)
PRINTED_HOLDS = True


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Formula and library: any signal plus noise, with independent and with symmetric entries."""
    n = 40
    errors = []
    for i in range(instances):
        sigma = 10 ** rng.uniform(-3, 3)
        signal = rng.standard_normal((n, n)) * 10 ** rng.uniform(-3, 3)
        noise = symmetric_noise if i % 2 else lambda rng, n: rng.standard_normal((n, n))
        halves = [signal + np.sqrt(2) * sigma * noise(rng, n) for _ in range(2)]
        formula = float(np.linalg.norm(halves[0] - halves[1])) / (2 * n)
        estimates = formula, float(jaxmeta.noise_std(*map(jnp.asarray, halves)))
        errors.append([abs(estimate / sigma - 1) * n for estimate in estimates])
    # Symmetric noise has variance 2 on the diagonal, which biases the square by 1 / n.
    printed, library = (
        Tally(int(np.sum(column > 6 + 0.5)), float(max(column) / n))
        for column in np.transpose(errors)
    )
    return Verdict("noise_estimate", CLAIM, instances, printed, library)
