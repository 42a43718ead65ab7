r"""The paper's choice of the dimensionality, without its Monte Carlo.

Printed (section 4.1 and appendix): take the USVT spectrum for the ideal, add noise to it again,
and choose the $k$ with the smallest PIP loss of one such draw. What it computes has a closed form:
for large $n$ the draw's values are $\lambda + \tau^2/\lambda$ and its overlaps $1 -
\tau^2/\lambda^2$ for the thresholded values $\lambda > \tau$, so the argmin is where $(\lambda +
\tau^2/\lambda)^{2\alpha} < 2\lambda^{2\alpha}(1 - \tau^2/\lambda^2)$ ends: at $\alpha = ½$, where
$\lambda > \sqrt3\,\tau$ ends, that is $\mu > (2 + \sqrt3)\tau$ (`jaxmeta.paper_dimension`). Proof:
`debiased_spectrum.py`, `overlap_law.py`, and `convex_in_k.py` for when a dimension helps. That
this $k$ is too small is in `dimension_rule.py`.

Checked against the mean of simulated curves (`jaxmeta.simulate_curve`), for spectra none of whose
values lies within a third of the threshold, where draws would decide.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta

from .instances import Rng
from .verdict import Verdict, equal, in_64_bit

CLAIM = "the paper's Monte Carlo chooses k where mu > (2 + sqrt 3) tau ends"
PRINTED_HOLDS = True
N, SIZE, DRAWS = 400, 4, 4


def simulate(values: jax.Array, key: jax.Array) -> jax.Array:
    """The k with the smallest mean loss over draws."""
    options = {"sigma": N**-0.5, "n": N, "alpha": 0.5, "draws": DRAWS, "depth": 5}
    return jaxmeta.dimension.simulate_curve(values, key=key, **options).dimension


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Thresholded values below 1.2 and above 2.4 tau, at least one of them above."""
    weak, strong = rng.uniform(0.3, 1.2, (2, instances, SIZE))
    above = np.arange(SIZE) < rng.integers(1, SIZE + 1, (instances, 1))
    ideal = -np.sort(-np.where(above, 2 * strong + 1.8, weak), axis=1)
    keys = jax.random.split(jax.random.key(int(rng.integers(2**31))), instances)
    simulated = jax.jit(jax.vmap(simulate))(jnp.asarray(ideal), keys)
    rule = np.sum(ideal + 2 > 2 + np.sqrt(3), axis=1)
    recipe = partial(jaxmeta.paper_dimension, sigma=N**-0.5, n=N, alpha=0.5)
    closed = jax.vmap(recipe)(jnp.asarray(ideal + 2))
    return Verdict(
        "paper_recipe", CLAIM, instances, equal(simulated, rule, SIZE), equal(closed, rule, SIZE)
    )
