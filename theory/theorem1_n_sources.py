r"""The N-source extension of Theorem 1.

Printed, with $\theta_j = k_1 + \cdots + k_{j-1}$:

    loss <= sqrt(sum_{i=theta_{N+1}}^{d} lambda_i^{4a})
          + sum_{j=1}^{N+1} ( sqrt(2) sum_{i=1+theta_j}^{theta_{j+1}}
                                (lambda_i^{2a} - lambda_{i+1}^{2a}) |Uj_{1:i}' U_{i:n}|
                            + sqrt(sum_i (lambda_i^{2a} - c_{j,i}^2 mu_{j,i}^{2a})^2) ).

There is no source $N + 1$, and $c_{j,i}$, $\mu_{j,i}$ must be $c_{j,i-\theta_j}$,
$\mu_{j,i-\theta_j}$. Read so, it is Theorem 1 with more sources, and fails for the same reasons.

Corrected, and proved, in `theorem1.py`: the proof there never uses that there are two sources. The
loss does not depend on the order of the sources and the bound does, so the best order is a bound
too (`jaxmeta.best_order`).
"""

import numpy as np

from .instances import LAYOUTS, Instance, Rng, draw, losses, scales
from .library import best_tight, bounds
from .theorem1 import check_layouts, printed
from .verdict import Counterexample, Origin, Verdict, at_most, both, in_64_bit

CLAIM = "PIP loss <= bias + variance terms, N = 1 to 5 sources"
ORIGIN = Origin(
    "printed",
    "A.1",
    "Theorem 1 can be extended for $N$ source embeddings as follows",
    ("bound_terms", "best_order"),
)
PRINTED_HOLDS = False


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Printed and corrected form for one to five sources; for three, the best order as well."""
    verdict = check_layouts("theorem1_n_sources", CLAIM, rng, instances, {1, 2, 3, 4, 5})
    drawn = draw(rng, instances, LAYOUTS[7:8])
    best = best_tight(drawn)
    chain = at_most([losses(drawn), best], [best, bounds(drawn).tight], scales(drawn))
    return verdict._replace(corrected=both(verdict.corrected, chain))


@in_64_bit
def counterexample(k: int = 10, sources: int = 4) -> Counterexample:
    """Every source holds what the ideal lacks."""
    n = 2 * sources * k
    outside = np.roll(np.eye(n), n // 2, axis=1)
    ones = [np.ones(k)] * sources
    ideal = np.ones(sources * k)
    instance = Instance(np.eye(n), ideal, [outside] * sources, ones, ones, 0.5, [0.5] * sources)
    (corrected,) = bounds([instance]).telescoped
    setting = f"all values 1, N = {sources}, k = {k}, every source orthogonal to the ideal"
    return Counterexample(setting, instance.loss, printed(instance), corrected)
