r"""What the exponent does to a spectrum.

Printed (appendix, "Effect of the robustness parameter"): for values $\ge 1$ a larger $\alpha$
emphasises the leading directions; for values in $(0, 1]$ an $\alpha > 1$ diminishes them further
while $\alpha \in [0, 1]$ enlarges them. It holds, with "enlarges" for
$\lambda^\alpha \ge \lambda$.

Proof. $(\lambda_1/\lambda_i)^\alpha$ grows with $\alpha$ because $\lambda_1 \ge \lambda_i$,
whatever their size; and $\lambda^\alpha \ge \lambda$ on $(0, 1]$ exactly when $\alpha \le 1$.
"""

import jax.numpy as jnp
import numpy as np

import jaxmeta

from .dense import Array, power
from .instances import SPECTRA, Rng, draw_spectrum
from .verdict import Origin, Verdict, at_most, in_64_bit

CLAIM = "a larger alpha favours leading directions; alpha < 1 lifts weak ones"
ORIGIN = Origin(
    "printed",
    "D",
    r"increasing $\alpha (> 0)$ results in emphasising the top left singular vectors",
    ("embed",),
)
PRINTED_HOLDS = True


def sides(values: Array, low: float, high: float, to) -> tuple[Array, Array]:
    """Left and right sides of the two claims, for exponents low <= high and the power `to`."""
    small = np.minimum(values / values[0], 1)
    less, more = (to(values, p) / to(values, p)[0] for p in (high, low))
    lifted = (small, to(small, low)) if low <= 1 else (to(small, low), small)
    return np.concatenate([less, lifted[0]]), np.concatenate([more, lifted[1]])


def library_power(values: Array, alpha: float) -> Array:
    """Lengths of the columns of the library's embedding."""
    spectrum = jaxmeta.Spectrum(jnp.eye(values.size), jnp.asarray(values))
    return np.diag(jaxmeta.embed(spectrum, k=values.size, alpha=alpha))


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Random spectra and pairs of exponents, directly and through the library's embeddings."""
    printed, library = [], []
    for _ in range(instances):
        values = draw_spectrum(rng, 6, str(rng.choice(SPECTRA)))
        low, high = np.sort(rng.uniform(0, 2, 2))
        printed.append(sides(values, low, high, power))
        library.append(sides(values, low, high, library_power))
    tallies = [
        at_most([less for less, _ in pairs], [more for _, more in pairs], 1)
        for pairs in (printed, library)
    ]
    return Verdict("exponent", CLAIM, instances, tallies[0], tallies[1])
