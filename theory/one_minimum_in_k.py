r"""The best dimensionality is the only local minimum of the PIP loss.

Printed (appendix, "PIP loss and optimal dimensionality"): the PIP loss as a function of $k$ has a
unique minimum. It need not: where the noisy signal has values of similar size whose directions
agree with the ideal to different degrees, the curve goes up and down again.

Corrected: the number of minima is the number of times that the sign of
$\mu_k^{2a} - 2\tilde u_k'EE'\tilde u_k$ turns from minus to plus, and there is one minimum exactly
when it does so once. Proof. The sign is that of the increment, see `convex_in_k.py`.
"""

import numpy as np

from .convex_in_k import curve, draw_noisy, increments, library_squares
from .dense import Array
from .instances import Rng
from .verdict import Counterexample, Origin, Verdict, equal, in_64_bit

CLAIM = "PIP loss against k has one minimum"
ORIGIN = Origin(
    "reading",
    "E",
    "there is a unique global minimum corresponding to the optimal dimensionality",
    ("pip_curve",),
)
PRINTED_HOLDS = False


def minima(steps: Array, rounding: float) -> int:
    """The number of local minima of a curve with these steps, plateaus counted once."""
    signs = np.sign(steps[np.abs(steps) > rounding])
    signs = np.concatenate([[-1], signs, [1]])
    return int(np.sum((signs[:-1] < 0) & (signs[1:] > 0)))


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Minima of the curve, counted directly, through the increments and on the library's."""
    drawn = [draw_noisy(rng) for _ in range(instances)]
    counts = []
    for x, library in zip(drawn, library_squares(drawn), strict=True):
        squares = curve(*x.dense) ** 2
        steps = np.diff(squares), increments(*x.dense), np.diff(library)
        counts.append([minima(step, 1e-11 * squares.max()) for step in steps])
    direct, *predicted = np.transpose(counts)
    return Verdict(
        "one_minimum_in_k", CLAIM, instances, equal(direct, 1, 1), equal(predicted, direct, 1)
    )


@in_64_bit
def counterexample() -> Counterexample:
    """The noisy signal's second direction is worthless, its third is not: two minima."""
    vectors, values = np.eye(4)[:, [0, 3, 1]], np.array([3.0, 2.0, 1.9])
    drawn = np.diag([3.0, 2.0, 0.0, 0.0]), vectors, values, 0.5
    found = minima(np.diff(curve(*drawn)), 1e-9)
    setting = "minima of a curve whose second direction is noise and whose third is signal"
    return Counterexample(setting, found, 1.0, minima(increments(*drawn), 1e-9))
