r"""Dimension weights (DW): $c_{j,i} = \lambda_{\theta_j+i}^\alpha / \mu_{j,i}^\alpha$.

Printed (Eq. 8, section 3.4): they minimise the magnitude terms. It holds: they make them 0. It
needs $\mu_{j,i} > 0$ wherever $\lambda_{\theta_j+i} > 0$; a dimension without strength cannot be
given any.

Proof. $c_{j,i}^2\mu_{j,i}^{2\alpha} = \lambda_{\theta_j+i}^{2\alpha}$, term by term, and a norm is
not negative. With different exponents, $c = \lambda^\alpha / \mu^{\alpha_j}$, the same.
"""

from collections.abc import Iterator

import numpy as np

import jaxmeta

from .dense import Array, power
from .instances import Instance, Rng, draw
from .verdict import Origin, Verdict, equal, in_64_bit

CLAIM = "DW (Eq. 8) makes the magnitude terms 0"
ORIGIN = Origin(
    "printed",
    "3.4",
    "finding suitable concatenation coefficients such that the magnitude variance terms are "
    "minimised",
    ("dimension_weights",),
)
PRINTED_HOLDS = True


def strengths(instance: Instance) -> Iterator[tuple[Array, Array]]:
    """For every source, its block of the ideal and its own spectrum, to the power 2 alpha."""
    padded = np.pad(instance.ideal, (0, sum(instance.sizes)))
    starts = np.cumsum((0, *instance.sizes[:-1]))
    for start, mu, alpha in zip(starts, instance.mu, instance.alphas, strict=True):
        block = padded[start : start + mu.size]
        yield power(block, 2 * instance.alpha), power(mu, 2 * alpha)


def draw_positive(rng: Rng, instances: int) -> list[Instance]:
    """Instances whose sources have no zero values and no exponent that makes the ratio overflow."""
    drawn = draw(rng, instances)
    for instance in drawn:
        instance.mu = [np.maximum(mu, 1e-3 * (mu.max() or 1)) for mu in instance.mu]
    return drawn


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """The printed ratio and the library's weights."""
    printed, library, scale = [], [], []
    for instance in draw_positive(rng, instances):
        weights = jaxmeta.dimension_weights(
            instance.ideal, tuple(instance.mu), alpha=instance.alpha
        )
        for (a, b), c in zip(strengths(instance), weights, strict=True):
            printed.append(np.linalg.norm(a - np.sqrt(a / b) ** 2 * b))
            library.append(np.linalg.norm(a - np.asarray(c) ** 2 * b))
            scale.append(np.linalg.norm(a))
    corrected = equal(library, 0, scale)
    return Verdict("dimension_weights", CLAIM, instances, equal(printed, 0, scale), corrected)
