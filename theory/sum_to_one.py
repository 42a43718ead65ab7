r"""The constraints $\sum_j c_j = 1$ and $\sum_i c_{j,i} = 1$.

Printed (below Eqs. 3 and 5): weights satisfy them. The closed forms of Eqs. 8 and 9 do not, and
cannot both meet them and minimise the magnitude terms.

Corrected: normalisation is a step of its own (`jaxmeta.sum_to_one`). Source weights may be
normalised freely: all of them change by one factor, so no cosine does. Proof: inner products change
by the square of the factor, norms by the factor. Normalising dimension weights source by source
multiplies source $j$ by $1/\sum_i c_{j,i}$, a different factor for each, which is a source
weighting that nothing asked for.
"""

import jax.numpy as jnp
import numpy as np

import jaxmeta

from .dense import Array, embedding, pip
from .dimension_weights import draw_positive
from .instances import Rng
from .verdict import Counterexample, Origin, Verdict, equal, in_64_bit

CLAIM = "the closed forms sum to one"
ORIGIN = Origin(
    "printed",
    "3.2, 3.3",
    r"Concatenation weights $c_j$ satisfy $\sum_{j=1}^N c_j = 1$",
    ("sum_to_one",),
)
PRINTED_HOLDS = False


def cosines(e: Array) -> Array:
    """Cosines of all pairs of rows; 0 for rows of zeros."""
    norms = np.linalg.norm(e, axis=1)
    return pip(e / np.where(norms > 0, norms, 1)[:, None])


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Sums of SW as they are, and cosines of the meta-embedding before and after normalisation."""
    sums: list[float] = []
    changes: list[tuple[float, float]] = []
    for instance in draw_positive(rng, instances):
        alpha = instance.alpha
        c = jaxmeta.source_weights(instance.ideal, tuple(instance.mu), alpha=alpha)
        normalised = jaxmeta.weights.sum_to_one(c)
        sources = [
            jnp.asarray(embedding(q, mu, alpha))
            for q, mu in zip(instance.q, instance.mu, strict=True)
        ]
        before, after = (
            cosines(np.asarray(jaxmeta.concatenate(sources, weights)))
            for weights in (c, normalised)
        )
        sums.append(float(c.sum()))
        if sums[-1] > 0:
            changes.append((float(np.abs(before - after).max()), float(normalised.sum() - 1)))
    return Verdict(
        "sum_to_one", CLAIM, instances, equal(sums, 1, np.maximum(sums, 1)), equal(changes, 0, 1)
    )


@in_64_bit
def counterexample() -> Counterexample:
    """Two sources equal to their blocks: both weights are 1, their sum 2."""
    ideal = jnp.array([4.0, 3.0, 2.0, 1.0])
    c = jaxmeta.source_weights(ideal, (ideal[:2], ideal[2:]), alpha=0.5)
    setting = "sum of SW for sources equal to their blocks of the ideal"
    return Counterexample(setting, float(c.sum()), 1.0, float(c.sum()))
