r"""The paper's choice of the dimensionality, without its Monte Carlo.

The recipe (section 4.1 and appendix E): take the USVT spectrum $s$ for the ideal, add noise to it
again, and choose the $k$ up to its rank with the smallest PIP loss of such draws. What it computes
has closed forms.

Ours, as first stated: the argmin is where $\mu > (2 + \sqrt3)\tau$ ends, at $\alpha = ½$
(`jaxmeta.dimension.spiked_paper_dimension`), as noise lifts $s > \tau$ to $s + \tau^2/s$ with
overlap $1 - \tau^2/s^2$. That holds for a few values far apart. Where a large share of all values
is above the edge of the noise, they repel each other, and the Monte Carlo keeps more.

Corrected (`jaxmeta.paper_curve`, `jaxmeta.paper_dimension`), for any spectrum: with $\tau = 1$ and
$\mu$ the $2n$ values $\pm s$, zeros included, let $v(x)$ solve $\frac1{2n}\sum_\mu 1/((x - \mu)^2 +
v^2) = 1$, or be 0 where the sum is smaller. Then the draw's values are, up to fluctuations,
$y(x_k)$, and its strengths the means of $s^{2\alpha}$ with weights $1/((x_k - \mu)^2 + v^2)$, where

    y(x) = x + 1/2n sum (x - mu) / ((x - mu)^2 + v^2),
    N(x) = 1/pi sum [arg(x - mu + iv) - v (x - mu) / ((x - mu)^2 + v^2)],   N(x_k) = k - 1/2.

Proof. The eigenvalues of $[[0, Y], [Y', 0]]$ for $Y = \mathrm{diag}(s) + \sigma Z$ are plus and
minus the values of $Y$, and its resolvent is in the mean that of $[[w, -s], [-s, w]]$ with $w = z -
g(z)$ and $g$ its trace over $2n$, so $g = G(w)$, $G(w) = \frac1{2n}\sum 1/(w - \mu)$. At the real
axis write $w = x + iv$: then $\mathrm{Im}\,z = v - v\frac1{2n}\sum 1/|w - \mu|^2 = 0$, which is the
equation for $v$, and $y = \mathrm{Re}\,z$ (`biane97`). $\Phi = \frac1{2n}\sum\log(w - \mu) +
g^2/2$ has the derivative $g$ by $z$, so its imaginary part is $\pi$ times the share of eigenvalues
above $y$; $\mathrm{Im}\,g = -v$ gives $N = 2n$ times that. The squared entries of left vectors near
$y$ are the imaginary part of the resolvent's diagonal over that of its trace: the weights.

Checked against dense draws: the loss there of the $k$ chosen, over the smallest, and the curve, to
$1.5/\sqrt n$ of the ideal's norm, a limit that was chosen from simulation and not proved.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta

from .dense import Array, power
from .instances import Rng
from .verdict import Counterexample, Origin, Verdict, at_most, both, in_64_bit

CLAIM = "the paper's Monte Carlo chooses k where mu > (2 + sqrt 3) tau ends"
ORIGIN = Origin("ours", "4.1, E", "", ("paper_dimension", "paper_curve", "spiked_paper_dimension"))
PRINTED_HOLDS = False
SIZES = (24, 48)
ALPHAS = (0.25, 0.5, 1.0)
DRAWS = 4


class Draw(NamedTuple):
    """Mean losses of dense draws, the closed curve, and what it is measured by."""

    simulated: Array
    closed: Array
    spiked_k: int
    k: int
    norm: float


def simulate(rng: Rng, ideal: Array, n: int, alpha: float) -> Array:
    """Root mean squared losses at k = 1, ..., the rank, by n x n matrices; tau = 1."""
    strength, squares = power(ideal, 2 * alpha), []
    for _ in range(DRAWS):
        noisy = rng.standard_normal((n, n)) / np.sqrt(n)
        noisy[np.diag_indices(ideal.size)] += ideal
        u, values, _ = np.linalg.svd(noisy)
        b = power(values[: ideal.size], 2 * alpha)
        t = (u[: ideal.size, : ideal.size] ** 2).T @ strength
        squares.append(strength @ strength + np.cumsum(b * (b - 2 * t)))
    return np.sqrt(np.maximum(np.mean(squares, axis=0), 0))


def draw_spectrum(rng: Rng, n: int) -> Array:
    """Noisy values: power laws, of which some or all are above the edge; in units of tau."""
    return rng.uniform(4, 15) * np.arange(1, n + 1.0) ** -rng.uniform(0.2, 0.8)


def library(noisy: Array, alpha: Array, n: int) -> tuple[Array, Array, Array]:
    """Closed curves and both choices of k for many spectra of one size."""

    def of_one(values, alpha):
        options = {"sigma": n**-0.5, "n": n, "alpha": alpha}
        return (
            jaxmeta.dimension.paper_curve(values, **options),
            jaxmeta.dimension.spiked_paper_dimension(values, **options),
            jaxmeta.paper_dimension(values, **options),
        )

    curves, spiked, dense = jax.vmap(of_one)(jnp.asarray(noisy), jnp.asarray(alpha))
    return np.asarray(curves), np.asarray(spiked), np.asarray(dense)


def solve(rng: Rng, n: int, alphas: Array) -> list[Draw]:
    """Spectra of one size."""
    noisy = np.array([draw_spectrum(rng, n) for _ in alphas])
    found = []
    for values, alpha, *closed in zip(noisy, alphas, *library(noisy, alphas, n), strict=True):
        ideal = values[values > 2] - 2
        curve, spiked, k = closed
        norm = float(np.linalg.norm(power(ideal, 2 * alpha)))
        simulated = simulate(rng, ideal, n, alpha)
        found.append(Draw(simulated, curve[: ideal.size], int(spiked), int(k), norm))
    return found


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Losses at both choices of k, and whole curves, against dense draws."""
    alphas = rng.choice(ALPHAS, instances)
    drawn = [
        (draw, 1.5 / np.sqrt(n))
        for n, own in zip(SIZES, np.array_split(alphas, len(SIZES)), strict=True)
        for draw in solve(rng, n, own)
    ]
    limits = [draw.simulated.min() + limit * draw.norm for draw, limit in drawn]
    norms = [draw.norm for draw, _ in drawn]
    spiked = [draw.simulated[draw.spiked_k - 1] for draw, _ in drawn]
    dense = [draw.simulated[draw.k - 1] for draw, _ in drawn]
    errors = [np.abs(draw.simulated - draw.closed).max() / draw.norm for draw, _ in drawn]
    return Verdict(
        "paper_recipe",
        CLAIM,
        instances,
        at_most(spiked, limits, norms),
        both(at_most(dense, limits, norms), at_most(errors, [limit for _, limit in drawn], 1)),
    )


@in_64_bit
def counterexample() -> Counterexample:
    """All of 60 values above the edge: the Monte Carlo keeps them all."""
    noisy = 9 * np.arange(1.0, 61) ** -0.3
    _, (spiked,), (dense,) = library(noisy[None], np.array([0.5]), 60)
    simulated = simulate(np.random.default_rng(0), noisy - 2, 60, 0.5)
    setting = "k for 60 values 9 i^-0.3 in units of tau, n = 60, alpha = 1/2: draws, spiked, dense"
    return Counterexample(setting, 1 + float(np.argmin(simulated)), float(spiked), float(dense))
