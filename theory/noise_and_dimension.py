r"""Less noise, more dimensions.

Printed (sections 4.1 and E): the noise of GloVe is smaller than that of SGNS and LSA, "enabling us
to fit more dimensions for GloVe for the same cost in bias". Read as: for one spectrum a smaller
$\sigma$ never gives a smaller $k$. It holds, for the best $k$ of the spiked model and for the
library's rules. Between *different* spectra it need not: of the paper's own sources of text8, LSA
has less noise than SGNS (.3521, .3566) and fewer dimensions (119, 121), and ten times as much text
gives GloVe fewer (736, 380), not more.

Proof, spiked model. Dimension $i$ helps exactly if $\mu_i$ is above a multiple of $\tau$
(`dimension_rule.py`), and the multiple does not depend on $\tau$. For the paper's recipe on dense
spectra it is an observation.
"""

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta

from .dense import Array
from .dimension_rule import above, thresholds
from .instances import Rng
from .verdict import Origin, Verdict, at_most, both, equal, in_64_bit

CLAIM = "for one spectrum, a smaller sigma gives no smaller k"
ORIGIN = Origin(
    "reading",
    "4.1, E",
    "enabling us to fit more dimensions for GloVe for the same cost in bias",
    ("select_dimension", "spiked_paper_dimension", "paper_dimension"),
)
PRINTED_HOLDS = True
N, RANK = 20, 16


@jax.jit
@jax.vmap
def library(values: jax.Array, sigma: jax.Array) -> jax.Array:
    """k by the three rules."""
    options = {"sigma": sigma, "n": N, "alpha": 0.5}
    rules = (
        jaxmeta.select_dimension,
        jaxmeta.dimension.spiked_paper_dimension,
        jaxmeta.paper_dimension,
    )
    return jnp.stack([rule(values, **options) for rule in rules])


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Dense power laws at two levels of noise; thresholds by their definition, and the library."""
    tops, slopes = rng.uniform(3, 30, (instances, 1)), rng.uniform(0.2, 1.5, (instances, 1))
    values = tops * np.arange(1, RANK + 1.0) ** -slopes
    more = rng.uniform(0.3, 2, instances)
    less = more * rng.uniform(0.3, 1, instances)
    found = {"more": more, "less": less}
    best: dict[str, Array] = {}
    for name, tau in found.items():
        scaled = values / tau[:, None]
        best[name] = np.array([[above(row, x) for x in thresholds(0.5)] for row in scaled])
    rules = {
        name: np.asarray(library(jnp.asarray(values), jnp.asarray(tau / np.sqrt(N))))
        for name, tau in found.items()
    }
    same = [equal(rules[name][:, :2], best[name], 1) for name in found]
    return Verdict(
        "noise_and_dimension",
        CLAIM,
        instances,
        at_most(best["more"], best["less"], 1),
        both(both(*same), at_most(rules["more"], rules["less"], 1)),
    )
