r"""How tight the bound is.

Printed (section 3.4): perturbation bounds of this kind are known to be tight. This one is attained,
and can also be as far off as one likes: if two sources hold each other's block of the ideal, the
concatenation is perfect and the bound is not 0.

Corrected: (1) for one source with a flat spectrum, $d = K$ and matched magnitudes the telescoped
bound *equals* the loss, by Lemma 1. (2) The order of the sources is free, because the loss does not
depend on it; in the best order (`jaxmeta.best_order`) the bound for swapped sources is 0 as well.
Proof of (2). The columns of a concatenation may be permuted without changing its inner products, so
each order gives a bound, and the least of them is one.
"""

import numpy as np

from .instances import Instance, Rng, frame, losses, scales
from .library import best_tight, bounds
from .verdict import Counterexample, Verdict, at_most, equal, in_64_bit

CLAIM = "the bound is tight: no loss, no bound"
PRINTED_HOLDS = False


def swapped(rng: Rng, n: int = 12, k: int = 2) -> Instance:
    """Two sources, each of which holds the other's block of the ideal."""
    u = frame(rng, n)
    ideal = np.sort(rng.random(2 * k) + 0.1)[::-1]
    frames = [np.roll(u, -k, axis=1), u]
    ones = [np.ones(k)] * 2
    return Instance(u, ideal, frames, [ideal[k:], ideal[:k]], ones, 0.5, [0.5, 0.5])


def flat(rng: Rng, n: int = 12, k: int = 4) -> Instance:
    """One source with the ideal's flat spectrum and its own directions."""
    one = np.full(k, rng.uniform(0.5, 2))
    return Instance(frame(rng, n), one, [frame(rng, n)], [one], [np.ones(k)], 0.5, [0.5])


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Swapped sources in their order and in the best one; flat single sources."""
    swaps = [swapped(rng) for _ in range(instances // 2)]
    flats = [flat(rng) for _ in range(instances // 2)]
    printed = at_most(bounds(swaps).telescoped, losses(swaps), scales(swaps))
    corrected = equal(
        np.concatenate([best_tight(swaps), bounds(flats).telescoped]),
        np.concatenate([losses(swaps), losses(flats)]),
        np.concatenate([scales(swaps), scales(flats)]),
    )
    return Verdict("tightness_of_bound", CLAIM, len(swaps) + len(flats), printed, corrected)


@in_64_bit
def counterexample() -> Counterexample:
    """Swapped sources: the loss is 0."""
    instance = swapped(np.random.default_rng(0))
    (bound,) = bounds([instance]).tight
    setting = "each of two sources holds the other's block: loss, bound, bound in the best order"
    (best,) = best_tight([instance])
    return Counterexample(setting, instance.loss, float(bound), float(best))
