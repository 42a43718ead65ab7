r"""Whether the PIP loss is robust to too many dimensions.

Printed (appendix D, after Yin and Shen): when the dimensions kept cover more than half of the
energy, $\sum_{i \le k}\lambda_i^2 > ½\sum_i\lambda_i^2$, and $\alpha \in [0.5, 1]$, the "PIP loss
will be robust to overparametrisation because the variance terms will decrease without significantly
affecting the bias term". No number is given. Read as: from such a $k$ on, keeping all dimensions
raises the loss above its smallest value by at most a tenth of the ideal's norm. Where noise is
above the weaker values it does not hold: each dimension of noise adds to the loss, half of the
energy or not.

Corrected: what dimensions after $k$ can add is bounded by their own strengths, and the share of
these falls as $\alpha$ grows, below ½ and above 1 as well:

    loss_r^2 <= loss_k^2 + sum_{i=k+1}^r mu_i^{4a},
    sum_{i>k} mu_i^{4a} / sum_i mu_i^{4a} falls with a.

Proof. By `convex_in_k.py` dimension $i$ adds $\mu_i^{2a}(\mu_i^{2a} - 2t_i)$ with $t_i \ge 0$.
For $p < q$ the weights $\mu_i^q/\sum\mu^q$ are those of $p$ times $\mu_i^{q-p}$, which falls with
$i$.
"""

import numpy as np

from .convex_in_k import Noisy, curve, draw_noisy, library_squares
from .dense import Array, power
from .instances import Rng
from .verdict import Counterexample, Origin, Verdict, at_most, both, equal, in_64_bit

CLAIM = "beyond half of the energy more dimensions cost <= 10 %, alpha in [1/2, 1]"
ORIGIN = Origin(
    "reading",
    "D",
    "PIP loss will be robust to overparametrisation because the variance terms will decrease "
    "without significantly affecting the bias term",
    ("pip_curve",),
)
PRINTED_HOLDS = False


def rise(ideal: Array, losses: Array) -> float:
    """From the best k with more than half of the energy to all k, over the ideal's norm."""
    energy = np.cumsum(ideal**2) / np.sum(ideal**2)
    after = losses[1 + int(np.argmax(energy > 0.5)) :]
    return float((after[-1] - after.min()) / losses[0])


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Rises of dense curves; the bound on them, on the library's, and how its share falls."""
    drawn = [draw_noisy(rng)._replace(alpha=rng.uniform(0.5, 1)) for _ in range(instances)]
    drawn = [refreshed(x) for x in drawn]
    losses = np.array([curve(*x.dense) for x in drawn])
    scale = losses[:, :1] ** 2 + np.array([[np.sum(power(x.values, 4 * x.alpha))] for x in drawn])
    library = library_squares(drawn)
    strengths = np.array([power(x.values, 4 * x.alpha) for x in drawn])
    tails = np.pad(np.cumsum(strengths[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))
    bounded = at_most(library[:, -1:], library + tails, scale)
    more = [power(x.values, 4 * x.alpha * rng.uniform(1, 2)) for x in drawn]
    heavier = np.array([np.cumsum(x[::-1])[::-1] / x.sum() for x in more])
    falls = at_most(heavier, tails[:, :-1] / tails[:, :1], 1)
    return Verdict(
        "robust_alpha",
        CLAIM,
        instances,
        at_most([rise(x.ideal, c) for x, c in zip(drawn, losses, strict=True)], 0.1, 1),
        both(both(bounded, falls), equal(library, losses**2, scale)),
    )


def refreshed(drawn: Noisy) -> Noisy:
    """The same, with values that no exponent takes out of range."""
    return drawn._replace(ideal=drawn.ideal / drawn.ideal[0], values=drawn.values / drawn.ideal[0])


@in_64_bit
def counterexample() -> Counterexample:
    """One value of signal, half of the energy and more, and twenty of noise at half its size."""
    n = 21
    ideal, values = np.pad([1.0], (0, n - 1)), np.append(1.0, np.full(n - 1, 0.5))
    drawn = Noisy(np.eye(n), ideal, np.eye(n), values, 0.5)
    losses = curve(*drawn.dense)
    (library,) = library_squares([drawn])
    setting = "squared rise, one value 1 of signal, twenty of noise at 1/2, alpha = 1/2: truth, "
    setting += "a tenth, the bound"
    return Counterexample(setting, losses[-1] ** 2, 0.01, float(library[1] + 20 * 0.25))
