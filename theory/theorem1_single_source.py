r"""The single-source form, after Yin and Shen, that Theorem 1 extends.

The paper (section 1) says that its analysis "extends the bias-variance decomposition of PIP loss
for word embedding" (`yin18`), and does not print that. Theirs is not Theorem 1 with one source: in
the code that they released for it (PIP-experiments, `PIP_upper_bound/upper_bd_est.py`, `gt_ub`)
the bias starts at $k + 1$ and the complement at $i + 1$, as they should,

    loss <= sqrt(sum_{i=k+1}^{d} lambda_i^{4a})
          + sum_{i=1}^{k} (lambda_i^{2a} - lambda_{i+1}^{2a}) |P_i P_i' - Q_i Q_i'|
          + sqrt(sum_{i=1}^{k} (lambda_i^{2a} - mu_i^{2a})^2),

with $P_i$, $Q_i$ the first $i$ directions of ideal and source. That form is tested here; the page
of their paper was not at hand. It fails for $d > k$ whenever $\lambda_{k+1} > 0$ matters: the
telescoping sum over $i \le k$ ends with $\lambda_k^{2a} - \lambda_{k+1}^{2a}$, which loses
$\lambda_{k+1}^{2a}\|P_kP_k' - Q_kQ_k'\|$. What Theorem 1 prints for it, one index early twice, is
larger and fails less often. For $d = k$ the form is right, since $\lambda_{k+1} = 0$ by definition.

Corrected, and proved, in `theorem1.py` with N = 1.
"""

import numpy as np

from .dense import power, projector_distance
from .instances import Instance, Rng
from .library import bounds
from .theorem1 import check_layouts, flat
from .verdict import Counterexample, Origin, Verdict, in_64_bit

CLAIM = "PIP loss <= bias + variance terms, one source (Yin and Shen)"
ORIGIN = Origin(
    "reading",
    "1",
    "Our theoretical analysis extends the bias-variance decomposition of PIP loss for word "
    "embedding",
    ("bound_terms",),
)
PRINTED_HOLDS = False


def released(instance: Instance) -> float:
    """The right-hand side as their code has it; the source's weights are in its strengths."""
    (q,), (mu,), (c,) = instance.q, instance.mu, instance.c
    k = mu.size
    a = power(np.pad(instance.ideal, (0, k + 1)), 2 * instance.alpha)
    directions = [
        (a[i] - a[i + 1]) * projector_distance(instance.u[:, : i + 1], q[:, : i + 1])
        for i in range(k)
    ]
    magnitude = np.linalg.norm(a[:k] - c**2 * power(mu, 2 * instance.alpha))
    return float(np.linalg.norm(a[k:]) + sum(directions) + magnitude)


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Released and corrected form on random instances with one source."""
    name = "theorem1_single_source"
    return check_layouts(name, CLAIM, rng, instances, {1}, printed=released)


@in_64_bit
def counterexample(k: int = 40) -> Counterexample:
    """A source orthogonal to a flat ideal: sqrt(3k) against sqrt(k)."""
    instance = flat(3 * k, [np.roll(np.eye(3 * k), k, axis=1)], k)
    (corrected,) = bounds([instance]).telescoped
    setting = f"all values 1, k = {k}, d = 2k, source orthogonal to the ideal"
    return Counterexample(setting, instance.loss, released(instance), corrected)
