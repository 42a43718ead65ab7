r"""One ideal value in symmetric noise: its exact law, cheaply, at any size.

The signal is $\lambda uu' + \sigma Z$ with $\tau = \sigma\sqrt n = 1$. Gaussian noise looks the
same in every basis, so $u$ may be the first coordinate. Householder reflections that leave it alone
bring $Z$ to tridiagonal form without changing the law: the diagonal stays normal with variance 2,
and beside it stand the lengths of what was reflected, $\chi_{n-1}, \chi_{n-2}, \ldots, \chi_1$, all
independent. The leading eigenpair of such a matrix takes $O(n)$.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg

from .dense import Array
from .instances import Rng, symmetric_noise
from .verdict import Tally

SIZES = (200, 800, 3200)
RATIOS = (2.0, 10.0)
DENSE = 50


class Spikes(NamedTuple):
    """Draws of one size; in units of tau."""

    n: int
    ideal: Array
    noisy: Array
    """The leading eigenvalue."""
    cosine: Array
    """The square of its eigenvector's cosine with the ideal direction."""


def draw(rng: Rng, instances: int) -> list[Spikes]:
    """Spikes from 2 to 10 tau, as many at each size; the first few from dense matrices."""
    found = []
    for i, n in enumerate(SIZES):
        ideal = rng.uniform(*RATIOS, len(range(i, instances, len(SIZES))))
        matrices = DENSE if n == min(SIZES) else 0
        pairs = [(dense if j < matrices else tridiagonal)(rng, n, x) for j, x in enumerate(ideal)]
        noisy, cosine = np.transpose(pairs)
        found.append(Spikes(n, ideal, noisy, cosine))
    return found


def dense(rng: Rng, n: int, ideal: float) -> tuple[float, float]:
    """The leading eigenvalue and its squared cosine, from an n x n matrix."""
    signal = symmetric_noise(rng, n) / np.sqrt(n)
    signal[0, 0] += ideal
    values, vectors = scipy.linalg.eigh(signal, subset_by_index=(n - 1, n - 1))
    return values[0], vectors[0, 0] ** 2


def tridiagonal(rng: Rng, n: int, ideal: float) -> tuple[float, float]:
    """The same in law, from the tridiagonal form."""
    diagonal = np.sqrt(2 / n) * rng.standard_normal(n)
    diagonal[0] += ideal
    beside = np.sqrt(rng.chisquare(np.arange(n - 1, 0, -1)) / n)
    values, vectors = scipy.linalg.eigh_tridiagonal(
        diagonal, beside, select="i", select_range=(n - 1, n - 1)
    )
    return values[0], vectors[0, 0] ** 2


def tally(
    drawn: list[Spikes],
    errors: Callable[[Spikes], Array],
    standard_error: Callable[[Spikes], Array],
    second_order: float,
) -> Tally:
    """Draws that err by more than six standard errors and second_order / n; the worst error.

    If there is none, sizes count at which the root mean square of errors over standard errors is
    more than six of *its* standard errors (and second_order / sqrt n) from 1.
    """
    wrong, unlike, worst = 0, 0, 0.0
    for spikes in drawn:
        error, expected = np.abs(errors(spikes)), standard_error(spikes)
        wrong += int(np.sum(~(error <= 6 * expected + second_order / spikes.n)))
        spread = np.sqrt(np.mean((error / expected) ** 2))
        allowed = 6 / np.sqrt(2 * error.size) + second_order / np.sqrt(spikes.n)
        unlike += int(not abs(spread - 1) <= allowed)
        worst = max(worst, float(error.max()))
    return Tally(wrong or unlike, worst)
