r"""Source weights (SW): $c_j^2 = \sum_i\lambda_i^{2\alpha}\mu_i^{2\alpha} / \sum_i\mu_i^{4\alpha}$.

Printed (Eq. 9): they minimise the magnitude terms among weights that are equal within a source; and
source weighting is dimension weighting with equal coefficients. Both hold.

Proof. In $q = c_j^2$ the squared magnitude term is the parabola $\|a - qb\|^2$ with minimum at
$q = \langle a, b\rangle/\langle b, b\rangle$, which is not negative because $a$ and $b$ are not.

Checked against a ternary search for the minimum over $q$, and by the embeddings: the concatenation
under source weights is the one under constant dimension weights.
"""

import jax.numpy as jnp
import numpy as np

import jaxmeta

from .dense import best_magnitude, embedding
from .dimension_weights import draw_positive, strengths
from .instances import Rng
from .verdict import Origin, Verdict, at_most, in_64_bit

CLAIM = "SW (Eq. 9) minimises the magnitude terms; it is DW with equal c"
ORIGIN = Origin(
    "printed",
    "3.3, 3.4",
    "source-weighting can be seen as a special case of dimension-weighting",
    ("source_weights", "concatenate"),
)
PRINTED_HOLDS = True


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """The printed formula and the library's weights are no worse than the best found by search."""
    printed: list[float] = []
    library: list[float] = []
    best: list[float] = []
    scale: list[float] = []
    for instance in draw_positive(rng, instances):
        weights = jaxmeta.source_weights(instance.ideal, tuple(instance.mu), alpha=instance.alpha)
        for (a, b), weight in zip(strengths(instance), np.asarray(weights), strict=True):
            formula = np.sqrt(np.sum(a * b) / np.sum(b * b))
            printed.append(float(np.linalg.norm(a - formula**2 * b)))
            library.append(float(np.linalg.norm(a - weight**2 * b)))
            best.append(best_magnitude(a, b))
            scale.append(float(np.linalg.norm(a)))
    return Verdict(
        "source_weights",
        CLAIM,
        instances,
        at_most(printed, best, scale),
        at_most([*library, special_case(rng)], [*best, 0.0], [*scale, 1.0]),
    )


def special_case(rng: Rng) -> float:
    """Largest difference of the concatenations under c_j and under c_j repeated k_j times."""
    (instance,) = draw_positive(rng, 1)
    sources = tuple(
        jnp.asarray(embedding(q, mu, instance.alpha))
        for q, mu in zip(instance.q, instance.mu, strict=True)
    )
    c = jnp.asarray(rng.random(len(sources)))
    repeated = [
        jnp.full(source.shape[1], weight) for source, weight in zip(sources, c, strict=True)
    ]
    difference = jaxmeta.concatenate(sources, c) - jaxmeta.concatenate(sources, repeated)
    return float(jnp.abs(difference).max())
