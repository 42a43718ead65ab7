r"""Whether the closed forms minimise the PIP loss.

Printed (abstract, section 3.4): the loss is a function of the coefficients alone, and its optimum
is found by differentiating; weighted concatenation so minimises the PIP loss. It does not: the
closed forms minimise the magnitude terms of an *upper bound*. Where directions are off, the loss is
smaller for smaller weights, and even no weights at all can be better than DW.

Corrected: for sources set against the blocks of an ideal, DW minimises the split and the telescoped
bound over all weights. Proof. Bias and direction terms do not depend on the weights, and DW brings
the magnitude terms to 0.

The printed form is tested in its weakest version: that DW is no worse than unweighted
concatenation. (The weights that do minimise the loss solve a non-negative least-squares problem.)
"""

import numpy as np

import jaxmeta

from .dimension_weights import draw_positive
from .instances import Instance, Rng, frame, losses, scales
from .library import bounds
from .verdict import Counterexample, Origin, Verdict, at_most, in_64_bit

CLAIM = "PIP loss under DW <= PIP loss unweighted"
ORIGIN = Origin(
    "reading",
    "abstract",
    "weighted concatenation can be seen as a spectrum matching operation …, minimising the "
    "pairwise inner-product loss",
    ("dimension_weights", "bound_terms"),
)
PRINTED_HOLDS = False


def weighted(instance: Instance) -> Instance:
    """The instance under dimension weights."""
    weights = jaxmeta.dimension_weights(instance.ideal, tuple(instance.mu), alpha=instance.alpha)
    return instance.with_weights([np.asarray(c) for c in weights])


def unweighted(instance: Instance) -> Instance:
    """The instance with all weights 1."""
    return instance.with_weights([np.ones(mu.size) for mu in instance.mu])


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """The loss of DW against that of UW; its bounds against those of the weights drawn."""
    drawn = draw_positive(rng, instances)
    dw, uw = [weighted(x) for x in drawn], [unweighted(x) for x in drawn]
    scale = scales(dw) + scales(uw) + scales(drawn)
    best, other = bounds(dw), bounds(drawn)
    return Verdict(
        "weights_minimise_loss",
        CLAIM,
        instances,
        at_most(losses(dw), losses(uw), scale),
        at_most([best.split, best.telescoped], [other.split, other.telescoped], scale),
    )


@in_64_bit
def counterexample() -> Counterexample:
    """A source orthogonal to the ideal: matching its spectrum adds error, and silence is better."""
    u = frame(np.random.default_rng(0), 4)
    ideal, weak = np.array([2.0, 1.0]), np.array([0.02, 0.01])
    source = np.roll(u, -2, axis=1)
    instance = Instance(u, ideal, [source], [weak], [np.ones(2)], 0.5, [0.5])
    (split,) = bounds([weighted(instance)]).split
    setting = "truth: loss under DW; printed: loss unweighted; corrected: split bound under DW"
    return Counterexample(setting, weighted(instance).loss, instance.loss, split)
