r"""The telescoping sum.

Printed: $D_0^\alpha = \sum_{i=1}^{d}(\lambda_i^\alpha - \lambda_{i+1}^\alpha)I_i$ with
$\lambda_{d+1} = 0$, which is right, and then for the first block of $k_1 < d$ columns
$X D_{0,1}^{2\alpha} X' = \sum_{i=1}^{k_1}(\lambda_i^{2\alpha} - \lambda_{i+1}^{2\alpha})
X_{1:i}X_{1:i}'$, which is not: the sum falls short by $\lambda_{k_1+1}^{2\alpha}XX'$.

Corrected: inside a block the value after the last one is 0. Proof. The coefficient of column $l$ on
the right is $\sum_{i \ge l}^{k}(a_i - a_{i+1}) = a_l - a_{k+1}$, which is $a_l$ exactly when
$a_{k+1} = 0$.
"""

import numpy as np

from .dense import Array, power
from .instances import LAYOUTS, SPECTRA, Rng, draw, draw_alpha, draw_spectrum, frame, scales
from .library import bounds
from .verdict import Counterexample, Origin, Verdict, both, equal, in_64_bit

CLAIM = "X D^2a X' = sum of (lambda_i^2a - lambda_i+1^2a) X_i X_i', i <= k"
ORIGIN = Origin(
    "printed",
    "A",
    "Using the telescoping sum for the diagonal matrices, Term 2.1 can be evaluated as follows",
    ("bound_terms",),
)
PRINTED_HOLDS = False


def telescoped(x: Array, a: Array, after: float) -> Array:
    """The sum over a block with values `a`, where `after` is taken for the value after the last."""
    steps = a - np.append(a[1:], after)
    return sum(
        (step * x[:, : i + 1] @ x[:, : i + 1].T for i, step in enumerate(steps)),
        np.zeros((x.shape[0], x.shape[0])),
    )


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """A block of k columns, alone (k = d) or followed by others (k < d); the library's bound."""
    errors: dict[str, list[float]] = {"printed": [], "corrected": []}
    for _ in range(instances):
        n, k = 12, int(rng.integers(1, 7))
        values = draw_spectrum(rng, k + int(rng.integers(3)), str(rng.choice(SPECTRA)))
        a = power(values, 2 * draw_alpha(rng))
        x = frame(rng, n, k)
        direct = (x * a[:k]) @ x.T
        after = a[k] if a.size > k else 0.0
        for form, value in (("printed", after), ("corrected", 0.0)):
            error = np.linalg.norm(telescoped(x, a[:k], value) - direct)
            errors[form].append(float(error / np.linalg.norm(a)))
    printed, corrected = (equal(errors[form], 0, 1) for form in ("printed", "corrected"))
    drawn = draw(rng, instances, LAYOUTS[1:3])  # K < d and K > d
    truth = [x.terms.telescoped for x in drawn]
    library = equal(bounds(drawn).telescoped, truth, scales(drawn))
    return Verdict("telescoping", CLAIM, instances, printed, both(corrected, library))


@in_64_bit
def counterexample() -> Counterexample:
    """Two columns of a flat spectrum of three: the printed sum is zero."""
    x = np.eye(3)[:, :2]
    a = np.ones(2)
    norms = [float(np.linalg.norm(telescoped(x, a, after))) for after in (1.0, 0.0)]
    truth = float(np.linalg.norm((x * a) @ x.T))
    return Counterexample("norm of the block, lambda = (1, 1, 1), k = 2", truth, *norms)
