r"""The noise of signals that are averaged by their precision.

Not in the paper, which concatenates. Stated: of all averages of signals $M + \sigma_jZ_j$ with
weights that sum to one, that with $w_j \propto \sigma_j^{-2}$ has the least noise, of variance
$1/\sum_j\sigma_j^{-2}$, and a signal without noise takes all. It holds.

Proof. The noise is independent, so the variance is $\sum_jw_j^2\sigma_j^2$. By Cauchy and Schwarz
$1 = (\sum_jw_j\sigma_j\cdot\sigma_j^{-1})^2 \le \sum_jw_j^2\sigma_j^2\sum_j\sigma_j^{-2}$, with
equality where $w_j\sigma_j \propto \sigma_j^{-1}$. As $\sigma_j \to 0$ the others' weights vanish.

Checked: weights and sigma of the library (its averages of signals that are 1 at one place each)
against this, and against other weights; and the spread of averages of noise, to six standard
errors.
"""

import numpy as np

import jaxmeta

from .dense import Array
from .instances import Rng, symmetric_noise
from .verdict import Origin, Verdict, at_most, both, equal, in_64_bit

CLAIM = "the average by precision has the least noise, 1 / sum of 1 / sigma^2"
ORIGIN = Origin("ours", "", "", ("average_signals",))
PRINTED_HOLDS = True
MEASURED, WORDS = 30, 60


def library(sigmas: Array) -> tuple[Array, float]:
    """Weights and sigma."""
    signals = tuple(np.eye(sigmas.size)[:, None])
    average = jaxmeta.several.average_signals(signals, tuple(map(float, sigmas)))
    return np.asarray(average.signal)[0], float(average.sigma)


def draw(rng: Rng) -> Array:
    """Noise of one to six sources, over six orders; of some there is none."""
    sigmas = 10 ** rng.uniform(-3, 3, rng.integers(1, 7))
    return np.where(rng.random(sigmas.size) < 0.05, 0, sigmas)


def measured(rng: Rng) -> tuple[float, float]:
    """By how many times is the spread of an average of noise its sigma, and the standard error."""
    sigmas = 10 ** rng.uniform(-1, 1, 3)
    noise = tuple(s * symmetric_noise(rng, WORDS) for s in sigmas)
    signal, sigma = jaxmeta.several.average_signals(noise, tuple(map(float, sigmas)))
    entries = np.asarray(signal)[np.triu_indices(WORDS, 1)]
    return float(np.sqrt(np.mean(entries**2)) / sigma), (2 * entries.size) ** -0.5


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Formula and library against the variance of weights, theirs and others."""
    wrong, apart, scales, found, others = [], [], [], [], []
    for _ in range(instances):
        sigmas = draw(rng)
        weights, sigma = library(sigmas)
        precisions = 1 / np.maximum(sigmas, 1e-150) ** 2
        wrong.append(abs(np.sum(precisions) ** -0.5 - sigma) / np.max(sigmas, initial=1))
        apart.append(np.abs(weights - precisions / precisions.sum()).max())
        other = rng.dirichlet(np.ones(sigmas.size))
        other = weights + rng.uniform(0, 1) * (other - weights)
        found.append(np.sqrt(np.sum((weights * sigmas) ** 2)))
        others.append(np.sqrt(np.sum((other * sigmas) ** 2)))
        scales.append(np.max(sigmas))
    spread, error = np.transpose([measured(rng) for _ in range(MEASURED)])
    least = at_most(found, others, scales)
    noise = at_most(np.abs(spread - 1), 6 * error, 1)
    same = both(equal(wrong, 0, 1), equal(apart, 0, 1))
    return Verdict("precision_average", CLAIM, instances, both(least, noise), both(same, least))
