r"""Several noisy views of one ideal: what to do with them, and how good that will be.

The model: source $j$ sees the values $\lambda_i$ of the ideal through noise $\tau_j = \sigma_j\sqrt
n$ of its own, along directions that have a cosine $b_j$ with those of the ideal and are random
beside that. So dimension $i$ of source $j$ overlaps with direction $i$ of the ideal by $p_{ji} =
b_j^2(1 - \tau_j^2/\lambda_i^2)$, and the same dimension of two sources by $p_{ji}p_{li}$. Assumed:
few directions beside $n$, their values in the same order in every source, noise that is independent
of that of the others. The share $b_j^2$ of source $j$ follows from all pairs: see `sharing`. Of an
ideal value a direction keeps, as its strength, at most

* $1 - 1/\sum_j(\lambda^2/\tau_j^2)$ where *signals* are averaged first, if all shares are 1;
* $S/(1 + S)$, $S = \sum_j p_j/(1 - p_j)$, where *embeddings* are stacked and decomposed again;
* the root of $T/(1 + T)$, $T = \sum_j p_j^2/(1 - p_j^2)$, where they are concatenated.

The first is the largest if sources share all, the second above the third always. With one source
all three are the same. References: `baharav25`, `sen26`, `ma24`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxmeta import _brief, _checks
from jaxmeta._checks import checked
from jaxmeta._types import Numbers, Scalar
from jaxmeta._views import (
    Views,
    check,
    continued,
    each,
    ideal_of,
    in_unit,
    precision,
    relative,
    side_by_side,
    stacked,
    values_of,
    views_of,
)
from jaxmeta.linalg import axis_lengths, fix_signs, matmul, right_axes, safe_ratio, safe_sqrt
from jaxmeta.noise import debias, spiked_overlap
from jaxmeta.shrinkage import rie_strengths
from jaxmeta.spectral import Spectrum, power

__all__ = ["Average", "Uses", "average_signals", "best_use", "sharing", "stack_spectra"]

_COST = 1.6  # times tau^2: what squares of `rie_strengths` add up to in noise, whatever n is


class Average(NamedTuple):
    """Signals averaged by the precision of each."""

    signal: Any
    """Dense, or sparse if they were."""
    sigma: Float[Array, ""]
    """Its noise."""


class Uses(NamedTuple):
    """The PIP loss that each use of several sources leaves, as predicted by the model."""

    average: Float[Array, ""]
    """`average_signals` of those that are kept, decomposed, with `shrinkage_weights`."""
    rotation_invariant: Float[Array, ""]
    """The same with `rie_strengths`; infinite without eigenvalues, or if alpha is not ½."""
    stack: Float[Array, ""]
    """`stack_spectra`, with the shares."""
    aligned: Float[Array, ""]
    """Concatenation of those that are kept, with `aligned_weights`."""
    single: Float[Array, ""]
    """The best source alone, with `shrinkage_weights`."""
    shares: Float[Array, " N"]
    """Those of `sharing`. All 0: nothing is in common, and no use is better than none."""
    kept: Bool[Array, " N"]
    """Which sources to average, or to concatenate."""
    source: Int[Array, ""]
    """The best source."""

    @property
    def best(self) -> str:
        """The use with the smallest loss: the name of its field."""
        return min(self._fields[:5], key=lambda name: float(getattr(self, name)))

    def __repr__(self) -> str:
        return _brief.brief(self)


def average_signals(signals: Sequence[Any], sigmas: Numbers) -> Average:
    r"""The average $\sum_jM_j/\sigma_j^2 \,/\, \sum_j1/\sigma_j^2$, and its $\sigma$.

    That is $(\sum_j1/\sigma_j^2)^{-½}$, the smallest that weights with sum 1 leave. A signal
    without noise takes all. Signals must be of one kind (PPMI, say), counted over one vocabulary:
    they stand for one ideal. Sparse ones stay sparse. Cost: $O(N)$ times the entries.

    >>> import jax.numpy as jnp
    >>> found = average_signals((jnp.full((2, 2), 5.0), jnp.zeros((2, 2))), (0.5, 1.0))
    >>> print(found.signal[0], f"{found.sigma:.4f}")
    [4. 4.] 0.4472
    """
    _checks.sources("signals", signals)
    sparse = _checks.is_sparse(signals[0])
    for j, signal in enumerate(signals):
        if _checks.is_sparse(signal) != sparse:
            got, do = "sparse and dense matrices", "convert some of them"
            _checks.fail("signals", got, "all of one kind", do, TypeError)
        _checks.array(f"signals[{j}]", signal, 2)
        if signal.shape != signals[0].shape:
            got = f"shapes {signals[0].shape} and {signal.shape}"
            _checks.fail("signals", got, "the same", "count all over one vocabulary")
    _checks.numbers_per_source("sigmas", sigmas, [1] * len(signals))
    for j, sigma in enumerate(sigmas):
        _checks.not_negative(f"sigmas[{j}]", sigma)
    dtype = jax.dtypes.canonicalize_dtype(signals[0].dtype)
    if not sparse:
        return _average(tuple(signals), stacked(sigmas, dtype))
    weights, sigma = precision(stacked(sigmas, dtype))
    parts = [m * m.dtype.type(w) for m, w in zip(signals, weights, strict=True)]
    return Average(sum(parts[1:], start=parts[0]), sigma)


@jax.jit
def _average(signals: tuple[Array, ...], noise: Array) -> Average:
    weights, sigma = precision(noise)
    return Average(sum(m * w for m, w in zip(signals, weights, strict=True)), sigma)


@checked(check)
def sharing(sources: Sequence[Spectrum], *, sigmas: Numbers) -> Float[Array, " N"]:
    r"""The share $b_j^2$ of each source: how far its directions are those that all have.

    By the model, $\langle\mathrm{PIP}_j, \mathrm{PIP}_l\rangle$ of two denoised sources ($\alpha =
    ½$) is $b_j^2b_l^2$ times what it is if all is shared, but for chance, which is known. Whole PIP
    matrices are compared since directions of near values mix. Shares are those that fit all pairs
    best, each as exact as chance lets it be; where that leaves a choice they are even, as of two
    sources. One inside its noise counts as sharing all, one below .05 as sharing nothing. An
    agreement that falls short of the expected by less than two fifths of what noise takes from it
    counts as full: with many directions the model errs by a good part of that. Several groups of
    sources that share nothing with one another are not told apart. Cost: $O(nK^2)$.
    """
    n, dtype, count = *sources[0].vectors.shape[:1], sources[0].vectors.dtype, len(sources)
    values, noise, _ = in_unit(sources, sigmas)
    # The largest values of noise alone scatter about its edge by some n^(-2/3).
    edge = (2 + 4 * n ** (-2 / 3)) * n**0.5 * noise[:, None]
    values = jnp.where(values <= edge, 0, values)
    debiased = each(debias, values, noise, n)
    overlaps = each(spiked_overlap, debiased, noise, n)
    x = debiased * overlaps
    every = side_by_side(sources, safe_sqrt(x))
    found = jnp.sum((matmul(every.T, every) ** 2).reshape(count, -1, count, x.shape[1]), (1, 3))
    found = found - jnp.outer(jnp.sum(x, axis=1), jnp.sum(x, axis=1)) / n
    y = x * overlaps
    chance = jnp.outer(jnp.sum(y, axis=1), jnp.sum(y, axis=1)) / n
    expected = 0.6 * matmul(y, y.T) + 0.4 * matmul(y * overlaps, (y * overlaps).T) - chance
    expected = jnp.where(jnp.eye(count, dtype=bool), 0, jnp.maximum(expected, 0))
    ratios = jnp.clip(safe_ratio(found, expected), 0, 1)
    own = jnp.sum(x**2, axis=1)
    weights = safe_ratio(expected**2, jnp.outer(own, own))
    known = jnp.any(weights != 0, axis=0).astype(dtype)
    # Where agreements are no more than chance, or say nothing (of two sources), shares are even.
    even = jnp.diag(known) - safe_ratio(jnp.outer(known, known), jnp.sum(known))
    little = 16 / n**2 + 1e-4
    even = little * even

    def step(_, shares):
        """Gauss and Newton's, of those that do not press against 1."""
        slope = matmul(weights * (ratios - jnp.outer(shares, shares)), shares)
        slope = slope - matmul(even, shares)
        free = jnp.where((shares < 1) | (slope < 0), known, 0)
        curvature = weights * jnp.outer(shares, shares) + even
        curvature = curvature + jnp.diag(matmul(weights, shares**2) + little)
        curvature = jnp.where(jnp.outer(free, free) > 0, curvature, jnp.diag(1 - free))
        return jnp.clip(shares + jnp.linalg.solve(curvature, free * slope), 0, 1)

    shares = lax.fori_loop(0, 30, step, jnp.ones(count, dtype))
    return jnp.where(shares < 0.05, 0, shares)


@checked(check)
def stack_spectra(
    sources: Sequence[Spectrum],
    *,
    sigmas: Numbers,
    alpha: Scalar,
    shares: Float[Array, " N"] | None = None,
) -> Spectrum:
    r"""Sources side by side, decomposed again: directions that all agree on, with shrunk values.

    Needs embeddings and their noise alone. With weights $1/\sqrt{1 - p_j}$ the leading axis of $N$
    views of a direction overlaps with it by $S/(1 + S)$, more than with any others, and its
    squared singular value is $1 + S$ where that of noise is 1. Here each direction is in units of
    $\lambda^{2\alpha}/(1 + S)$ besides, so that what a squared singular value exceeds the noise by
    *is* its strength $\lambda^{2\alpha}S/(1 + S)$. Returns as many directions as the widest source
    has, ready for `embed` with the same `alpha` (above 0), which then needs no weights; the last
    ones, of hardly any value, may be cut. `shares` are those of `sharing`; None means that all
    share one ideal. Axes of equal values are not unique. Cost: $O(nK^2)$. Reference: `baharav25`.
    """
    n, dtype = sources[0].vectors.shape[0], sources[0].vectors.dtype
    values, noise, size = in_unit(sources, sigmas)
    alpha = jnp.asarray(alpha, dtype)
    shares = jnp.ones(len(sources), dtype) if shares is None else shares
    debiased = each(debias, values, noise, n)
    ideal = ideal_of(debiased, noise, shares, n)
    views = views_of(ideal, debiased, noise, shares, n)
    least, share, both = views.add()
    unit = safe_ratio(power(ideal, 2 * alpha), least + both)
    squares, floors = (
        jnp.where(views.overlaps == 0, 0, unit[None, :] * x) for x in (share, least[None, :])
    )
    every = side_by_side(sources, safe_sqrt(squares))
    axes = right_axes(every, every.shape[1])
    image = matmul(every, axes)
    lengths = axis_lengths(image)
    strengths = jnp.maximum(lengths**2 - matmul(jnp.ravel(floors), axes**2), 0)
    order = jnp.argsort(-strengths)[: debiased.shape[1]]
    image, lengths, strengths = image[:, order], lengths[order], strengths[order]
    # What has no length has any direction that is left.
    short = lengths == 0
    others, _ = jnp.linalg.qr(lax.stop_gradient(image))
    vectors = jnp.where(short[None, :], others, image / jnp.where(short, 1, lengths)[None, :])
    exponent = jnp.where(alpha == 0, jnp.nan, 1 / (2 * alpha))
    return Spectrum(fix_signs(vectors), size * power(strengths, exponent))


@checked(check)
def best_use(
    sources: Sequence[Spectrum],
    *,
    sigmas: Numbers,
    alpha: Scalar,
    eigenvalues: Sequence[Float[Array, " n"]] | None = None,
) -> Uses:
    r"""What to do with several sources of one ideal: `.best`, and the predicted loss of each use.

    From values, noise and overlaps of directions: sources may have been cut to their leading
    dimensions. Directions that are shared in part are $N$ directions of an average, one for each
    eigenvalue of the weighted Gram matrix of the sources' own ideal ones. Sources that share
    nothing with the others are left out; with two of them alone nobody can say which is wrong.
    `eigenvalues` are all of each source's signal, with their signs. With them, at $\alpha = ½$,
    losses include what lies inside the noise of all. Its energy is known, its values go
    on by the power law of those that are seen, and an average sees more of them. What
    `rie_strengths` find in the sharpest source beyond the spiked model they find in the average as
    well, the less the less noise that has, at a cost that is known from pure noise. Losses are
    within some per cent of the truth while there are few directions beside $n$; sources that share
    *dense* spectra in part are beyond the model. Where averages are no choice, for want of signals,
    take the smallest of the others. No derivatives: this is to decide by. Cost: $O(nK^2)$; $O(n^2)$
    with eigenvalues.
    """
    n, dtype, count = sources[0].vectors.shape[0], sources[0].vectors.dtype, len(sources)
    noise, alpha = stacked(sigmas, dtype), jnp.asarray(alpha, dtype)
    shares, full = sharing(sources, sigmas=sigmas), jnp.ones(count, dtype)
    debiased = each(debias, values_of(sources), noise, n)
    ideal = ideal_of(debiased, noise, shares, n)
    views, alone = (views_of(ideal, debiased, noise, x, n) for x in (shares, full))
    strength = power(ideal, 2 * alpha)
    total = jnp.sum(strength**2)
    everything, inside, whole = None, _Inside(jnp.zeros((), dtype), jnp.zeros((), dtype)), ideal
    if eigenvalues is not None:
        everything = jnp.stack([jnp.asarray(x, dtype) for x in eigenvalues])
        inside = _inside(everything, noise, shares, total)
        inside = jax.tree.map(lambda x: jnp.where(alpha == 0.5, x, 0), inside)
        whole = continued(ideal, inside.sure, n)

    # Those that share most come first: how many are worth averaging?
    place = jnp.argsort(jnp.argsort(-shares))
    choices = place[None, :] <= jnp.arange(count)[:, None]
    averages = jax.vmap(lambda kept: _averaged(kept, whole, noise, shares, alpha, n))(choices)
    averages = total + inside.energy + averages
    kept = choices[jnp.argmin(averages)]
    least, _, both = views.add()
    stack = -jnp.sum((strength * safe_ratio(both, least + both)) ** 2)
    own = strength[None, :] * alone.overlaps
    singles = jnp.sum(own * (own - 2 * strength[None, :] * views.overlaps), axis=1)
    used = Views(*(jnp.where(kept[:, None], x, y) for x, y in zip(alone, (0, 1), strict=True)))
    least, share, _ = used.add()
    terms = used.overlaps * share / (1 + used.overlaps)
    all_terms = least + jnp.sum(used.overlaps * terms, axis=0)
    given = safe_ratio(strength, all_terms)[None, :] * terms
    seen = given * views.overlaps
    together = jnp.sum(seen, axis=0)
    aligned = jnp.sum(given**2 - seen**2) + jnp.sum(together * (together - 2 * strength))
    changes = jnp.stack([stack, aligned, jnp.min(singles)])
    average, rotation = jnp.min(averages), jnp.full((), jnp.inf, dtype)
    if everything is not None:
        of_kept = jnp.where(kept, noise, jnp.inf)
        at = jnp.argmin(of_kept)
        spiked = (debiased * each(spiked_overlap, debiased, noise, n))[at]
        gain, cost = _beyond_spikes(everything[at], spiked, of_kept, total, inside)
        rotation = average - (2 * jnp.mean(shares, where=kept) - 1) * gain + cost
        rotation = jnp.where(alpha == 0.5, rotation, jnp.inf)
    squares = jnp.stack([average, rotation, *(total + inside.energy + changes)])
    average, rotation, stack, aligned, single = safe_sqrt(squares)
    return Uses(average, rotation, stack, aligned, single, shares, kept, jnp.argmin(singles))


class _Inside(NamedTuple):
    """The energy of the ideal that lies inside the noise of all sources."""

    energy: Array
    sure: Array
    """What is left of it by two standard errors."""


def _inside(everything: Array, noise: Array, shares: Array, seen: Array) -> _Inside:
    """From all eigenvalues of each source, less the energy that is seen."""
    n = everything.shape[1]
    trust = shares * relative(noise) ** 4
    energies = jnp.sum(everything**2, axis=1) - (n * noise) ** 2
    energy = safe_ratio(jnp.sum(trust * energies), jnp.sum(trust))
    sigma = noise[jnp.argmax(trust)]
    # Energies are sums of squares of Gaussians.
    error = sigma * safe_sqrt(8 * energy + 4 * (n * sigma) ** 2)
    hidden = jnp.maximum(energy - seen, 0)
    return _Inside(hidden, jnp.where(sigma == 0, 0, jnp.maximum(hidden - 2 * error, 0)))


def _averaged(
    kept: Array, ideal: Array, noise: Array, shares: Array, alpha: Array, n: int
) -> Array:
    """What the average of those that are kept changes of the squared loss."""
    count, (weights, sigma) = len(noise), precision(jnp.where(kept, noise, jnp.inf))
    cosines, roots = jnp.sqrt(shares), jnp.sqrt(weights)
    gram = jnp.where(jnp.eye(count, dtype=bool), 1, jnp.outer(cosines, cosines))
    lengths, axes = jnp.linalg.eigh(roots[:, None] * gram * roots[None, :])
    lengths = jnp.maximum(lengths, 0)
    cosine = safe_ratio(matmul(axes.T, roots * cosines) ** 2, lengths)
    lifted = lengths[:, None] * ideal[None, :]
    overlaps = each(spiked_overlap, lifted, jnp.full(count, sigma), n)
    given = power(lifted, 2 * alpha) * overlaps
    held = power(ideal, 2 * alpha)[None, :] * cosine[:, None] * overlaps
    return jnp.sum(given * (given - 2 * held))


def _beyond_spikes(
    values: Array, spiked: Array, noise: Array, seen: Array, inside: _Inside
) -> tuple[Array, Array]:
    """What `rie_strengths` gain in the average on the spiked model, and what noise costs them.

    The gain is that in the sharpest source, of these eigenvalues, as far as it is sure, and less as
    the noise of the average is less.
    """
    n, sigma, (_, of_average) = len(values), jnp.min(noise), precision(noise)
    # Noise alone: all eigenvalues are inside, nothing is found, and that is what it costs.
    found = rie_strengths(values, sigma=jnp.where(sigma == 0, 1, sigma))
    gain = jnp.sum(found**2) - jnp.sum(spiked**2) - _COST * n * sigma**2
    left = seen + inside.energy - jnp.sum(spiked**2)
    gain = safe_ratio(inside.sure * gain, left) * safe_ratio(of_average, sigma)
    return gain, _COST * n * of_average**2
