r"""The bias term.

Printed (Term 1 of the proof, and Eq. 7): what the ideal holds beyond the sources has norm
$\sqrt{\sum_{i=K}^{d}\lambda_i^{4\alpha}}$. One term too many: the last dimension of the last source
is counted as lost. For $d = K$, which the paper assumes in section 3.5, the bias is 0 and the print
says $\lambda_K^{2\alpha}$.

Corrected: the sum starts at $K + 1$. Proof. $X_{0,3}$ has orthonormal columns, so
$\|X_{0,3}D^{2\alpha}X_{0,3}'\| = \|D^{2\alpha}\|$ over its own $d - K$ values. It falls as $K$
grows, as the paper says.
"""

import numpy as np

from .dense import power
from .instances import LAYOUTS, Instance, Rng, draw
from .library import bounds
from .verdict import Counterexample, Origin, Verdict, equal, in_64_bit

CLAIM = "bias = norm of the ideal beyond K (Term 1)"
ORIGIN = Origin(
    "printed",
    "3.4, A",
    "The first term … can be identified as a bias due to meta-embedding",
    ("bound_terms",),
)
PRINTED_HOLDS = False


def direct(instance: Instance) -> float:
    """The norm of what the ideal holds in columns after the K-th."""
    total = sum(instance.sizes)
    beyond = instance.u[:, total : instance.ideal.size]
    a = power(instance.ideal[total:], 2 * instance.alpha)
    return float(np.linalg.norm((beyond * a) @ beyond.T))


def printed(instance: Instance) -> float:
    """The sum from K to d."""
    a = power(instance.ideal[sum(instance.sizes) - 1 :], 2 * instance.alpha)
    return float(np.linalg.norm(a))


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """The printed sum and the library's bias against the norm of the n x n matrix."""
    drawn = draw(rng, instances, LAYOUTS)
    truth = [direct(instance) for instance in drawn]
    scale = [np.linalg.norm(power(x.ideal, 2 * x.alpha)) for x in drawn]
    as_printed = equal(truth, [printed(instance) for instance in drawn], scale)
    return Verdict("bias", CLAIM, instances, as_printed, equal(truth, bounds(drawn).bias, scale))


@in_64_bit
def counterexample() -> Counterexample:
    """One source that is the ideal: nothing is lost, and the print says 1."""
    one, u = [np.ones(2)], np.eye(3)
    instance = Instance(u, np.ones(2), [u], one, one, 0.5, [0.5])
    (bias,) = bounds([instance]).bias
    return Counterexample("d = K = 2, all values 1", direct(instance), printed(instance), bias)
