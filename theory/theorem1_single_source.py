r"""The single-source form, after Yin and Shen, that Theorem 1 extends.

Printed: Theorem 1 with one source; the bound on the PIP loss of one embedding of $k$ dimensions
against an ideal of $d$. It fails for $d > k$ whenever $\lambda_{k+1} > 0$ matters: the telescoping
sum over $i \le k$ ends with $\lambda_k^{2a} - \lambda_{k+1}^{2a}$, which loses
$\lambda_{k+1}^{2a}\|PP' - QQ'\|$. For $d = k$ the printed form is right, since
$\lambda_{k+1} = 0$ by definition.

Corrected, and proved, in `theorem1.py` with N = 1.
"""

import numpy as np

from .instances import Rng
from .library import bounds
from .theorem1 import check_layouts, flat, printed
from .verdict import Counterexample, Verdict, in_64_bit

CLAIM = "PIP loss <= bias + variance terms, one source (Yin and Shen)"
PRINTED_HOLDS = False


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Printed and corrected form on random instances with one source."""
    return check_layouts("theorem1_single_source", CLAIM, rng, instances, {1})


@in_64_bit
def counterexample(k: int = 40) -> Counterexample:
    """A source orthogonal to a flat ideal: sqrt(3k) against sqrt(k + 1)."""
    instance = flat(3 * k, [np.roll(np.eye(3 * k), k, axis=1)], k)
    (corrected,) = bounds([instance]).telescoped
    setting = f"all values 1, k = {k}, d = 2k, source orthogonal to the ideal"
    return Counterexample(setting, instance.loss, printed(instance), corrected)
