r"""A different exponent for the ideal and for every source.

Printed: "Theorem 1 still holds when all alpha are different". As Theorem 1 does not hold, neither
does this. The corrected theorem does extend: the exponent of source $j$ enters through
$b_i = c_{j,i}^2 \mu_{j,i}^{2\alpha_j}$ alone, and the proof in `theorem1.py` uses of $b$ only that
it is a vector.
"""

import numpy as np

from .instances import Instance, Rng, frame
from .library import bounds
from .theorem1 import check_layouts, printed
from .verdict import Counterexample, Origin, Verdict, in_64_bit

CLAIM = "the bound holds when all alphas differ"
ORIGIN = Origin(
    "printed",
    "3.4",
    "Theorem 1 still holds when all alpha are different",
    ("bound_terms",),
)
PRINTED_HOLDS = False


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Printed and corrected form with an exponent of its own for everything."""
    sources = {1, 2, 3, 4, 5}
    return check_layouts("different_alphas", CLAIM, rng, instances, sources, different_alphas=True)


@in_64_bit
def counterexample(k: int = 40) -> Counterexample:
    """The ideal at 1/2, the sources at 1 and 0; flat, so that exponents change nothing."""
    n = 3 * k
    u = frame(np.random.default_rng(0), n)
    ones = [np.ones(k)] * 2
    frames = [np.roll(u, k, axis=1), u]
    instance = Instance(u, np.ones(2 * k), frames, ones, ones, 0.5, [1.0, 0.0])
    (corrected,) = bounds([instance]).telescoped
    setting = f"all values 1, k = {k}, d = 2k, alphas 1/2, 1, 0, in a random basis"
    return Counterexample(setting, instance.loss, printed(instance), corrected)
