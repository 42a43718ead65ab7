r"""Theorem 1: the bound on the PIP loss of two sources.

Printed (Eq. 7), with $\lambda_{d+1} = 0$, for sources $U^{(1)}, \mu$ and $U^{(2)}, \nu$:

    loss <= sqrt(sum_{i=K}^{d} lambda_i^{4a})
          + sqrt(2) sum_{i=1}^{k_1} (lambda_i^{2a} - lambda_{i+1}^{2a}) |U1_{1:i}' U_{i:n}|
          + sqrt(2) sum_{i=k_1+1}^{K} (lambda_i^{2a} - lambda_{i+1}^{2a}) |U2_{1:i}' U_{i:n}|
          + magnitude_1 + magnitude_2.

It fails for two reasons. The telescoping sum of a block must end with $\lambda_{k_1}^{2a} - 0$, not
$\lambda_{k_1}^{2a} - \lambda_{k_1+1}^{2a}$ (see `telescoping.py`), so a term
$\lambda_{k_1+1}^{2a}\|P P' - Q Q'\|$ is lost. And source 2 is compared with the wrong columns: its
*first* $k_2$ directions stand against columns $k_1 + 1, \ldots, K$ of $U$. That the bias starts one
term early and the complement one column early makes the print larger, and does not save it.

Corrected: see `jaxmeta.bounds`. Proof. Write $A_j = P_j \mathrm{diag}(a_j) P_j'$ for block $j$ of
the ideal, $B_j = Q_j \mathrm{diag}(b_j) Q_j'$ for the weighted source $j$, and $T$ for what the
ideal has beyond $K$. Then $EE' - \hat E\hat E' = T + \sum_j (A_j - B_j)$, and the triangle
inequality gives loss $\le \|T\| + \sum_j \|A_j - B_j\|$, where $\|T\|$ is the bias because the
columns of $U$ are orthonormal: the tight form. With $A_j' = Q_j \mathrm{diag}(a_j) Q_j'$,
$\|A_j - B_j\| \le \|A_j - A_j'\| + \|A_j' - B_j\|$; the second term is $\|a_j - b_j\|$ because
$Q_j$ has orthonormal columns: the split form. Finally
$\mathrm{diag}(a) = \sum_i (a_i - a_{i+1}) I_i$ with $a_{k+1} = 0$, $I_i$ the projector onto the
first $i$ coordinates, so
$A_j - A_j' = \sum_i (a_i - a_{i+1})(P_{1:i}P_{1:i}' - Q_{1:i}Q_{1:i}')$, and the triangle
inequality gives the telescoped form. Nothing here depends on there being two sources, nor
on the exponent of the sources, which enters through $b$ alone. For unsorted ideal values the same
steps hold with $|a_i - a_{i+1}|$.
"""

from collections.abc import Callable

import numpy as np

from .dense import Array, power
from .instances import LAYOUTS, Instance, Rng, draw, losses, scales
from .library import bounds
from .verdict import Counterexample, Origin, Verdict, at_most, in_64_bit, tightness

CLAIM = "PIP loss <= bias + variance terms, two sources (Eq. 7)"
ORIGIN = Origin(
    "printed",
    "3.4, A",
    "the PIP loss between their dimension-weighted meta-embedding … and an ideal meta-"
    "embedding … is given by (7)",
    ("bound_terms",),
)
PRINTED_HOLDS = False


def printed(instance: Instance) -> float:
    """The right-hand side as printed, for any number of sources (Eq. 7 and its extension).

    Where the extension's indices run out of range they are read as in Eq. 7.
    """
    n = instance.u.shape[0]
    total = sum(instance.sizes)
    padded = np.pad(instance.ideal, (0, max(total + 1 - instance.ideal.size, 0)))
    a = power(padded, 2 * instance.alpha)
    bound = float(np.linalg.norm(a[total - 1 :]))  # i = K, ..., d
    start = 0
    for q, mu, c, alpha in zip(instance.q, instance.mu, instance.c, instance.alphas, strict=True):
        block = slice(start, start + mu.size)
        bound += float(np.linalg.norm(a[block] - c**2 * power(mu, 2 * alpha)))
        for i in range(start + 1, start + mu.size + 1):
            across = q[:, : min(i, n)].T @ instance.u[:, i - 1 :]
            bound += float(np.sqrt(2) * (a[i - 1] - a[i]) * np.linalg.norm(across))
        start += mu.size
    return bound


def check_layouts(
    name: str,
    claim: str,
    rng: Rng,
    instances: int,
    sources: set[int],
    *,
    printed: Callable[[Instance], float] = printed,
    different_alphas=False,
) -> Verdict:
    """Both forms on instances with the given numbers of sources."""
    layouts = [layout for layout in LAYOUTS if len(layout.sizes) in sources]
    drawn = draw(rng, instances, layouts, different_alphas=different_alphas)
    loss, scale, bound = losses(drawn), scales(drawn), bounds(drawn)
    chain = np.stack([loss, bound.tight, bound.split, bound.telescoped])
    return Verdict(
        name,
        claim,
        instances,
        at_most(loss, [printed(instance) for instance in drawn], scale),
        at_most(chain[:-1], chain[1:], scale),
        tightness(bound.telescoped, loss),
    )


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Printed and corrected form on random instances with two sources."""
    return check_layouts("theorem1", CLAIM, rng, instances, {2})


def flat(n: int, frames: list[Array], k: int) -> Instance:
    """All values 1, all weights 1, alpha 1/2, d = 2k: only directions matter."""
    ones = [np.ones(k) for _ in frames]
    return Instance(np.eye(n), np.ones(2 * k), frames, ones, ones, 0.5, [0.5] * len(frames))


def misled(k: int) -> Instance:
    """Source 2 holds the ideal's first block, source 1 nothing of it: the print sees 1 + sqrt 2."""
    u = np.eye(3 * k)
    return flat(3 * k, [np.roll(u, k, axis=1), u], k)


@in_64_bit
def counterexample(k: int = 40) -> Counterexample:
    """Two sources that mislead the print."""
    instance = misled(k)
    (corrected,) = bounds([instance]).telescoped
    setting = f"all values 1, k = {k}, d = 2k, source 2 = U, source 1 = columns 2k+1..3k of U"
    return Counterexample(setting, instance.loss, printed(instance), corrected)
