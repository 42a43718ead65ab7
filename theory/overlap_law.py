r"""How far noise turns a direction.

Not in the paper, whose weights take the directions of a source for those of the ideal. Stated
(`benaych12`): for one ideal value $\lambda > \tau$, noisy and ideal direction have the squared
cosine $1 - \tau^2/\lambda^2$. It holds; for symmetric noise up to $O(1/n)$ and with standard error

    sqrt(2 / n) (tau / lambda)^2 sqrt((lambda^2 + tau^2) / (lambda^2 - tau^2)).

Proof, in the notation of `debiased_spectrum.py`. An eigenvector with first entry $v$ has
$v(\mu - Z_2)^{-1}b$ for the others, so $1 = v^2(1 + b'(\mu - Z_2)^{-2}b) = v^2(1 - s'(\mu))$, and
$v^2$ tends to $1/(1 - g') = 1 - 1/\lambda^2$. For the error write
$g_k = \int\rho/(\mu - x)^k$: the fluctuations of $\sigma z + s$ and of $s'$ have variances
$\frac2n(1 + g_2)$ and $\frac2ng_4$, and covariance $-\frac2ng_3$. What moves $v^2$ is
$s'$ at the moved $\mu$, that is $\delta s' + 2g_3v^2(\sigma z + \delta s)$, and since
$1 + g_2 = 1/v^2$ its variance is $\frac2n(g_4 + 4g_3^2v^2 - 4g_3^2v^2) = \frac2ng_4$. Then
$\delta v^2 = v^4\delta s'$, and differentiating $g_2 = 1/(\lambda^2 - 1)$ twice by $\mu$ gives
$g_4 = \lambda^4(\lambda^2 + 1)/(\lambda^2 - 1)^5$.

Checked to six standard errors and $10/n$ at $n = 200, 800, 3200$, at each of which the errors
spread as stated: they shrink by half from one to the next.
"""

import jax.numpy as jnp
import numpy as np

import jaxmeta

from .dense import Array
from .instances import Rng
from .spikes import Spikes, draw, tally
from .verdict import Origin, Verdict, in_64_bit

CLAIM = "squared cosine = 1 - tau^2 / lambda^2"
ORIGIN = Origin(
    "ours",
    "",
    "",
    ("spiked_overlap",),
)
PRINTED_HOLDS = True


def stated(spikes: Spikes) -> Array:
    """Error of the formula."""
    return spikes.cosine - (1 - spikes.ideal**-2)


def library(spikes: Spikes) -> Array:
    """Error of what the library says."""
    size = max(spikes.n, spikes.ideal.size)
    ideal = jnp.asarray(spikes.ideal)
    return spikes.cosine - np.asarray(jaxmeta.noise.spiked_overlap(ideal, sigma=size**-0.5, n=size))


def standard_error(spikes: Spikes) -> Array:
    """Of the squared cosine."""
    square = spikes.ideal**2
    return np.sqrt(2 / spikes.n * (square + 1) / (square - 1)) / square


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Formula and library against the directions of spikes of known size."""
    drawn = draw(rng, instances)
    printed, corrected = (tally(drawn, errors, standard_error, 10) for errors in (stated, library))
    return Verdict("overlap_law", CLAIM, instances, printed, corrected)
