r"""The variance of the whole, extrapolated from halves, quarters and eighths.

Not in the paper, whose halves have twice the variance of the whole (section 3.5,
`noise_estimate.py`). Where that of the whole is not a half of $v_1$, that of the halves, but
$g_1v_1$, and $v_1 = g_2v_2$, $v_2 = g_3v_3$ with growths that change by a factor, $g_1/g_2 =
g_2/g_3$, stated:

1. $\log v = 3\log v_1 - 3\log v_2 + \log v_3$ is that of the whole;
2. $\sigma$ from the halves alone is off by the factor $1/\sqrt{2g_1}$.

It holds, for any growths. Proof. $\log v$ is then a polynomial of second degree in the level, whose
third difference is 0: 1. The halves give $\sigma^2 = v_1/2 = v/(2g_1)$: 2.

Checked with signals whose differences have the mean squares that they should, and not only on the
average, so that both hold up to rounding.
"""

import jax.numpy as jnp
import numpy as np

import jaxmeta.nested

from .dense import Array, norm
from .instances import Rng, symmetric_noise
from .verdict import Origin, Verdict, both, equal, in_64_bit

CLAIM = "sigma from nested parts follows a growth that changes by a factor; halves do not"
ORIGIN = Origin("ours", "", "", ("nested_noise", "noise_std"))
PRINTED_HOLDS = True
N = 12
LEVELS = 3


def parts(rng: Rng, variances: Array) -> list[list[Array]]:
    """Signals of halves, quarters and eighths; each two differ by twice their variance."""
    signal = symmetric_noise(rng, N) * 10 ** rng.uniform(-1, 1) * np.sqrt(variances[0])
    levels: list[list[Array]] = []
    for level, variance in enumerate(variances, 1):
        levels.append([])
        for _ in range(2 ** (level - 1)):
            z = symmetric_noise(rng, N)
            z *= np.sqrt(variance / 2) * N / norm(z)
            levels[-1] += [signal + z, signal - z]
    return levels


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Growths of ½ and others, of one size and of falling or rising ones."""
    rows = []
    for i in range(instances):
        growth = 0.5 if i % 4 == 0 else rng.uniform(0.3, 1.5)
        factor = 1.0 if i % 4 < 2 else rng.uniform(0.6, 1.6)
        # The growth of the whole, of halves, of quarters.
        growths = growth * factor ** np.arange(float(LEVELS))
        truth = 10 ** rng.uniform(-3, 3)
        variances = truth**2 / np.cumprod(growths, dtype=np.float64)
        levels = parts(rng, variances)
        seen = [np.mean([np.mean((a - b) ** 2) / 2 for a, b in zip(x[::2], x[1::2], strict=True)])
                for x in levels]  # fmt: skip
        formula = np.sqrt(seen[0] ** 3 / seen[1] ** 3 * seen[2])
        halves = np.sqrt(seen[0] / 2)
        found = jaxmeta.nested.nested_noise(levels)
        paper = float(jaxmeta.noise_std(*map(jnp.asarray, levels[0])))
        off = truth / np.sqrt(2 * growth)
        rows.append([truth, formula, float(found.sigma), off, halves, paper])
    truth, formula, ours, off, halves, paper = np.transpose(rows)
    by_hand, by_library = (
        both(equal(whole, truth, truth), equal(alone, off, off))
        for whole, alone in ((formula, halves), (ours, paper))
    )
    return Verdict("nested_variance", CLAIM, instances, by_hand, by_library)
