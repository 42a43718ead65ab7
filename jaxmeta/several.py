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
from jaxmeta.linalg import (
    axis_lengths,
    common_unit,
    fix_signs,
    matmul,
    right_axes,
    safe_ratio,
    safe_sqrt,
)
from jaxmeta.noise import debias, spiked_overlap
from jaxmeta.shrinkage import rie_strengths
from jaxmeta.spectral import Spectrum, check_spectrum, power

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
        return _average(tuple(signals), _stacked(sigmas, dtype))
    weights, sigma = _precision(_stacked(sigmas, dtype))
    parts = [m * m.dtype.type(w) for m, w in zip(signals, weights, strict=True)]
    return Average(sum(parts[1:], start=parts[0]), sigma)


@jax.jit
def _average(signals: tuple[Array, ...], noise: Array) -> Average:
    weights, sigma = _precision(noise)
    return Average(sum(m * w for m, w in zip(signals, weights, strict=True)), sigma)


def _stacked(numbers: Any, dtype: Any) -> Float[Array, " N"]:
    found = jnp.stack([jnp.asarray(x, dtype) for x in numbers])
    return jnp.where(found < 0, jnp.nan, found)


def _relative(sizes: Float[Array, "N ..."]) -> Float[Array, "N ..."]:
    """The least of them over each, 1 where both are 0."""
    least = jnp.min(sizes, axis=0, keepdims=True)
    return jnp.where(sizes == 0, 1, least / jnp.where(sizes == 0, 1, sizes))


def _precision(noise: Float[Array, " N"]) -> tuple[Float[Array, " N"], Float[Array, ""]]:
    """Weights by precision, with sum 1, and the sigma of the average."""
    size = common_unit(noise)
    weights = _relative(noise / size) ** 2
    total = jnp.sum(weights)
    return weights / total, size * (jnp.min(noise / size) / jnp.sqrt(total))


def _check(sources: Any, *, sigmas: Any, alpha: Any = 0.5, **given: Any) -> None:
    _checks.sources("sources", sources, Spectrum)
    for j, source in enumerate(sources):
        check_spectrum(f"sources[{j}]", source)
        _checks.descending(f"sources[{j}].values", source.values)
        _checks.same_rows(**{"sources[0]": sources[0].vectors, f"sources[{j}]": source.vectors})
    _checks.numbers_per_source("sigmas", sigmas, [1] * len(sources))
    for j, sigma in enumerate(sigmas):
        _checks.not_negative(f"sigmas[{j}]", sigma)
    _checks.scalar("alpha", alpha)
    shares, eigenvalues = given.get("shares"), given.get("eigenvalues")
    if shares is not None:
        _checks.array("shares", shares, 1)
        _checks.count("shares", shares, len(sources))
    if eigenvalues is not None:
        _checks.count("eigenvalues", eigenvalues, len(sources))
        for j, values in enumerate(eigenvalues):
            _checks.array(f"eigenvalues[{j}]", values, 1)
            if values.shape[0] != (n := sources[0].vectors.shape[0]):
                do = "see complete_spectrum, or leave them out"
                _checks.fail(f"eigenvalues[{j}]", f"{values.shape[0]} of them", f"all {n}", do)


class _Views(NamedTuple):
    """What the model says of sources: p, and 1 - p that does not cancel where noise is small."""

    overlaps: Array
    rest: Array

    def add(self) -> tuple[Array, Array, Array]:
        """The least rest, of how many times each is that, and S times the least."""
        least, share = jnp.min(self.rest, axis=0), _relative(self.rest)
        return least, share, jnp.sum(self.overlaps * share, axis=0)


def _values(sources: Sequence[Spectrum]) -> Float[Array, "N k"]:
    """Zeros stand for what some sources do not have."""
    most = max(s.values.shape[0] for s in sources)
    return jnp.stack([jnp.pad(s.values, (0, most - s.values.shape[0])) for s in sources])


def _in_unit(sources: Sequence[Spectrum], sigmas: Numbers) -> tuple[Array, Array, Array]:
    """Values and noise in a unit in which no square overflows or vanishes, and the unit."""
    values = _values(sources)
    noise = _stacked(sigmas, values.dtype)
    size = common_unit(values, noise)
    return values / size, noise / size, size


def _side_by_side(sources: Sequence[Spectrum], scales: Float[Array, "N k"]) -> Float[Array, "n K"]:
    """All directions, each times a number."""
    parts = [s.vectors * x[None, : s.values.shape[0]] for s, x in zip(sources, scales, strict=True)]
    padded = [jnp.pad(x, ((0, 0), (0, scales.shape[1] - x.shape[1]))) for x in parts]
    return jnp.concatenate(padded, axis=1)


def _each(function: Any, rows: Array, noise: Array, n: int) -> Array:
    return jax.vmap(lambda row, sigma: function(row, sigma=sigma, n=n))(rows, noise)


def _ideal(debiased: Array, noise: Array, shares: Array, n: int) -> Array:
    """The values of the ideal: the mean over sources, by precision."""
    # If nothing is shared no source is better than another.
    trust = jnp.where(jnp.any(shares > 0), shares, 1) * _relative(noise) ** 2
    precision = trust[:, None] * _each(spiked_overlap, debiased, noise, n)
    return safe_ratio(jnp.sum(precision * debiased, axis=0), jnp.sum(precision, axis=0))


def _views(ideal: Array, debiased: Array, noise: Array, shares: Array, n: int) -> _Views:
    lost = safe_ratio(n**0.5 * noise[:, None], ideal[None, :]) ** 2
    unseen, shares = (debiased == 0) | (lost >= 1), shares[:, None]
    overlaps = shares * jnp.where(unseen, 0, 1 - lost)
    return _Views(overlaps, jnp.where(unseen, 1, 1 - shares + shares * lost))


@checked(_check)
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
    values, noise, _ = _in_unit(sources, sigmas)
    # The largest values of noise alone scatter about its edge by some n^(-2/3).
    edge = (2 + 4 * n ** (-2 / 3)) * n**0.5 * noise[:, None]
    values = jnp.where(values <= edge, 0, values)
    debiased = _each(debias, values, noise, n)
    overlaps = _each(spiked_overlap, debiased, noise, n)
    x = debiased * overlaps
    every = _side_by_side(sources, safe_sqrt(x))
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


@checked(_check)
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
    values, noise, size = _in_unit(sources, sigmas)
    alpha = jnp.asarray(alpha, dtype)
    shares = jnp.ones(len(sources), dtype) if shares is None else shares
    debiased = _each(debias, values, noise, n)
    ideal = _ideal(debiased, noise, shares, n)
    views = _views(ideal, debiased, noise, shares, n)
    least, share, both = views.add()
    unit = safe_ratio(power(ideal, 2 * alpha), least + both)
    squares, floors = (
        jnp.where(views.overlaps == 0, 0, unit[None, :] * x) for x in (share, least[None, :])
    )
    every = _side_by_side(sources, safe_sqrt(squares))
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


@checked(_check)
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
    `eigenvalues` are all of each source's signal, with their signs. With them losses include what
    lies inside the noise of all, of which `rie_strengths` find the same part in the average as in
    the sharpest source, at a cost that is known from pure noise. Losses are within some per cent of
    the truth while there are few directions beside $n$; sources that share *dense* spectra in part
    are beyond the model. Where averages are no choice, for want of signals, take the smallest of
    the others. No derivatives: this is to decide by. Cost: $O(nK^2)$; $O(n^2)$ with eigenvalues.
    """
    n, dtype, count = sources[0].vectors.shape[0], sources[0].vectors.dtype, len(sources)
    noise, alpha = _stacked(sigmas, dtype), jnp.asarray(alpha, dtype)
    shares, full = sharing(sources, sigmas=sigmas), jnp.ones(count, dtype)
    debiased = _each(debias, _values(sources), noise, n)
    ideal = _ideal(debiased, noise, shares, n)
    views, alone = (_views(ideal, debiased, noise, x, n) for x in (shares, full))
    strength = power(ideal, 2 * alpha)
    total = jnp.sum(strength**2)

    def averaged(kept, shares):
        weights, sigma = _precision(jnp.where(kept, noise, jnp.inf))
        cosines, roots = jnp.sqrt(shares), jnp.sqrt(weights)
        gram = jnp.where(jnp.eye(count, dtype=bool), 1, jnp.outer(cosines, cosines))
        lengths, axes = jnp.linalg.eigh(roots[:, None] * gram * roots[None, :])
        lengths = jnp.maximum(lengths, 0)
        cosine = safe_ratio(matmul(axes.T, roots * cosines) ** 2, lengths)
        lifted = lengths[:, None] * ideal[None, :]
        overlaps = _each(spiked_overlap, lifted, jnp.full(count, sigma), n)
        given = power(lifted, 2 * alpha) * overlaps
        held = strength[None, :] * cosine[:, None] * overlaps
        return total + jnp.sum(given * (given - 2 * held))

    # Those that share most come first: how many are worth averaging?
    place = jnp.argsort(jnp.argsort(-shares))
    choices = place[None, :] <= jnp.arange(count)[:, None]
    averages = jax.vmap(averaged, in_axes=(0, None))(choices, shares)
    kept = choices[jnp.argmin(averages)]
    least, _, both = views.add()
    stack = total - jnp.sum((strength * safe_ratio(both, least + both)) ** 2)
    own = strength[None, :] * alone.overlaps
    singles = total + jnp.sum(own * (own - 2 * strength[None, :] * views.overlaps), axis=1)
    used = _Views(*(jnp.where(kept[:, None], x, y) for x, y in zip(alone, (0, 1), strict=True)))
    least, share, _ = used.add()
    terms = used.overlaps * share / (1 + used.overlaps)
    all_terms = least + jnp.sum(used.overlaps * terms, axis=0)
    given = safe_ratio(strength, all_terms)[None, :] * terms
    seen = given * views.overlaps
    together = jnp.sum(seen, axis=0)
    aligned = total + jnp.sum(given**2 - seen**2) + jnp.sum(together * (together - 2 * strength))
    squares = jnp.stack([jnp.min(averages), jnp.inf, stack, aligned, jnp.min(singles)])
    if eigenvalues is not None:
        everything = jnp.stack([jnp.asarray(x, dtype) for x in eigenvalues])
        trust, variances = shares * _relative(noise) ** 4, n * noise**2
        energies = jnp.sum(everything**2, axis=1) - n * variances
        energy = safe_ratio(jnp.sum(trust * energies), jnp.sum(trust))
        inside = jnp.maximum(energy - total, 0)
        sharpest = jnp.argmin(jnp.where(kept, noise, jnp.inf))
        values, sigma = everything[sharpest], noise[sharpest]
        # Noise alone: all eigenvalues are inside, nothing is found, and that is what it costs.
        found = rie_strengths(values, sigma=jnp.where(sigma == 0, 1, sigma))
        spiked = (debiased * _each(spiked_overlap, debiased, noise, n))[sharpest]
        gain = jnp.sum(found**2) - jnp.sum(spiked**2) - _COST * variances[sharpest]
        left = total + inside - jnp.sum(spiked**2)
        # Energies are sums of squares of Gaussians: two standard errors of them are no energy.
        error = safe_sqrt(8 * energy * sigma**2 + 4 * variances[sharpest] ** 2)
        sure = jnp.where(sigma == 0, 0, jnp.maximum(inside - 2 * error, 0))
        gain = (2 * jnp.mean(shares, where=kept) - 1) * safe_ratio(sure * gain, left)
        _, sigma = _precision(jnp.where(kept, noise, jnp.inf))
        squares = squares + inside
        squares = squares.at[1].set(squares[0] - gain + _COST * n * sigma**2)
        squares = jnp.where(alpha == 0.5, squares, (squares - inside).at[1].set(jnp.inf))
    average, rotation, stack, aligned, single = safe_sqrt(squares)
    return Uses(average, rotation, stack, aligned, single, shares, kept, jnp.argmin(singles))
