r"""The ideal value behind a noisy one.

Printed (section 3.5): the ideal spectrum is estimated by universal singular value thresholding,
$\lambda_i = \max(\tilde\lambda_i - 2\tau, 0)$, $\tau = \sigma\sqrt n$. As an estimate of a value it
is far off: by $2\tau - \tau^2/\lambda$, for large $n$ as much as for small, which is 75 % of
$\lambda = 2\tau$ and still 19 % of $\lambda = 10\tau$. What is $2\tau$ is the edge of the noise
alone, not how far noise lifts a value that stands out from it.

Corrected: for symmetric noise and one ideal value $\lambda > \tau$, up to $O(1/n)$,

    lambda = (mu + sqrt(mu^2 - 4 tau^2)) / 2,
    relative standard error sqrt(2 / n) / sqrt(lambda^2 / tau^2 - 1).

Proof, with $\tau = 1$. In a basis that starts with $u$, let $b$ be the noise beside the first
diagonal entry $\lambda + \sigma z$ and $Z_2$ that of the other coordinates. Eliminating these, an
eigenvalue of the whole outside the spectrum of $Z_2$ solves $\mu - \lambda = \sigma z + s(\mu)$,
$s(\mu) = b'(\mu - Z_2)^{-1}b$. As $b$ is independent of $Z_2$ with entries of variance $1/n$, $s$
tends to $g(\mu) = \int\rho(x)/(\mu - x)\,dx$ with $\rho$ the semicircle on $[-2, 2]$, for which
$g + 1/g = \mu$. So $g = 1/\lambda$, $\mu = \lambda + 1/\lambda$: solve for $\lambda \ge 1$. For the
error: $s$ fluctuates with variance $\frac2n\int\rho/(\mu - x)^2 = -\frac2n g'$, $\sigma z$ with
variance $2/n$, the spectrum of $Z_2$ only by $O(1/n)$; so $\mu(1 - g')$ moves with variance
$\frac2n(1 - g')$ and $\mu$ with variance $\frac2n/(1 - g')$. From $g = 1/\lambda$,
$g' = -1/(\lambda^2 - 1)$ and $1/(1 - g') = 1 - 1/\lambda^2 = d\mu/d\lambda$, and the variance of
$\lambda$ is $\frac2n/(1 - 1/\lambda^2)$.

Checked to six standard errors and $5/n$ at $n = 200, 800, 3200$, at each of which the errors spread
as stated: they shrink by half from one to the next.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta

from .dense import Array
from .instances import Rng
from .spikes import Spikes, draw, tally
from .verdict import Counterexample, Origin, Verdict, in_64_bit

CLAIM = "value - 2 sigma sqrt n estimates the ideal value"
ORIGIN = Origin(
    "reading",
    "3.5",
    "we can estimate the spectrum of the ideal signal matrix … using universal singular value"
    " thresholding",
    ("usvt", "debias"),
)
PRINTED_HOLDS = False


def thresholded(spikes: Spikes) -> Array:
    """Relative error of the printed estimate."""
    return estimated(jaxmeta.usvt, spikes) / spikes.ideal - 1


def debiased(spikes: Spikes) -> Array:
    """Relative error of the corrected one."""
    return estimated(jaxmeta.debias, spikes) / spikes.ideal - 1


def estimated(estimate: Callable[..., jax.Array], spikes: Spikes) -> Array:
    """Ideal values by a function of the library, each on its own: n matters by tau = 1 alone."""
    size = max(spikes.n, spikes.noisy.size)
    return np.asarray(estimate(jnp.asarray(spikes.noisy), sigma=size**-0.5, n=size))


def standard_error(spikes: Spikes) -> Array:
    """Of the debiased value, relative."""
    return np.sqrt(2 / spikes.n / (spikes.ideal**2 - 1))


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Both estimates of spikes of known size."""
    drawn = draw(rng, instances)
    printed, corrected = (
        tally(drawn, errors, standard_error, 5) for errors in (thresholded, debiased)
    )
    return Verdict("debiased_spectrum", CLAIM, instances, printed, corrected)


@in_64_bit
def counterexample() -> Counterexample:
    """The limit of large n, where 2 tau is lifted to 2.5 tau."""
    noisy = jnp.array([2.5])
    setting = "ideal value 2, tau = 1, lifted to 2.5 for large n"
    printed, corrected = (f(noisy, sigma=0.1, n=100)[0] for f in (jaxmeta.usvt, jaxmeta.debias))
    return Counterexample(setting, 2.0, float(printed), float(corrected))
