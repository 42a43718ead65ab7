r"""The noise of a signal of counts, from signals of nested parts of its corpus.

`jaxmeta.noise.noise_std` takes it that a half of a corpus has twice the variance of the whole, in
every entry the same (section 3.5 of the paper). Neither holds for counts. A pair that was seen once
varies as much in a half as in the whole, and one that was not seen does not vary at all; and rows
of rare words are noisier than those of frequent ones. Both show in the differences of halves, of
quarters and of eighths: how variance grows is extrapolated to the whole, and its *profile* tells
how to scale words so that all rows are equally noisy, as the laws of random matrices need it (see
`jaxmeta.equalise`). What logarithms and cut-offs of few counts do to the mean of an entry is a
bias, which all parts share: no difference shows it.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxmeta import _checks
from jaxmeta._brief import brief

__all__ = ["EqualRows", "NestedNoise", "equal_rows", "nested_noise", "semicircle_distance"]

NEAR = 32  # points of block Lanczos stand together, as many as a block has columns
FLOOR = 0.01  # of the mean variance: what an entry that no part has seen may vary by


class EqualRows(NamedTuple):
    """Factors of words that make all rows of a matrix of variances equal."""

    scales: Float[Array, " n"]
    residual: float
    """How far a row is from the mean of all, relative to it."""


class NestedNoise(NamedTuple):
    """The noise of a whole, as its parts tell."""

    sigma: Float[Array, ""]
    """Standard deviation of the noise in an entry, root mean square over all."""
    standard_error: Float[Array, ""]
    """Of sigma, from how parts of one size differ; NaN from halves alone."""
    growth: Float[Array, " l"]
    """Variance of the whole over that of a half, of a half over a quarter, and so on; the first is
    extrapolated. Independent sums have ½, whatever their size."""
    scales: Float[Array, " n"]
    r"""$s$, with which all rows of $s_is_jZ_{ij}$ have the variance $\sigma^2$."""
    residual: Float[Array, ""]
    """Of the scales: see `EqualRows`."""

    def __repr__(self) -> str:
        return brief(self)


def nested_noise(levels: Sequence[Iterable[Any]]) -> NestedNoise:
    r"""The noise of a signal, from the signals of halves, of quarters and so on of its corpus.

    `levels[0]` gives the signals of two halves, `levels[1]` those of four quarters, of which the
    first two are of the first half, and so on; dense arrays, or SciPy sparse matrices, which stay
    sparse; a generator holds two at a time. They are to be signals of the whole: counts of parts
    multiplied to have its total. With $v_l$ the variance at level $l$, $\log v$ of the whole is the
    polynomial in the level through all of them, $3\log v_1 - 3\log v_2 + \log v_3$ from three; from
    halves alone $v_1/2$, as in `jaxmeta.noise.noise_std`. The profile is that of the halves. For
    the host. Cost: a pass over each signal, and one over the halves for each step of `equal_rows`.

    >>> import numpy as np
    >>> draw = lambda size: np.random.default_rng(size).normal(size=(size, 50, 50)) * size**0.5
    >>> noise = nested_noise([draw(2), draw(4), draw(8)])
    >>> print(f"{noise.sigma:.2f}", noise.growth.round(2))
    0.98 [0.48 0.5  0.51]
    """
    if not levels:
        _checks.fail("levels", "none", "that of two halves at least", "pass [(first, second)]")
    profile: Any = None
    variances = []
    for level, signals in enumerate(levels):
        own = []
        for squares in _squares(signals, level):
            own.append(float(squares.mean()) / 2)
            if level == 0:
                profile = squares
        if len(own) != 2**level:
            got, expected = f"{2 * len(own)} signals", f"{2 ** (level + 1)}, as of nested parts"
            _checks.fail(f"levels[{level}]", got, expected, "halve every part of the level before")
        variances.append(np.array(own))
    found, order = [float(v.mean()) for v in variances], len(variances)
    coefficients = [(-1) ** i * math.comb(order, i + 1) for i in range(order)]
    if order == 1 or min(found) == 0:
        whole, error = found[0] / 2, math.nan
    else:
        logs = zip(coefficients, found, strict=True)
        whole = math.exp(sum(c * math.log(v) for c, v in logs))
        error = _error(coefficients, variances)
    sigma = whole**0.5
    all_of_them = np.array([whole, *found])
    below = np.where(all_of_them[1:] == 0, 1, all_of_them[1:])
    rows = equal_rows(profile)
    dtype = rows.scales.dtype
    return NestedNoise(
        sigma=jnp.asarray(sigma, dtype),
        standard_error=jnp.asarray(sigma * error / 2, dtype),
        growth=jnp.asarray(all_of_them[:-1] / below, dtype),
        scales=rows.scales,
        residual=jnp.asarray(rows.residual, dtype),
    )


def _squares(signals: Iterable[Any], level: int) -> Iterator[Any]:
    """Squared differences of each two signals, with a product and a mean."""
    name, first = f"levels[{level}]", None
    signals = iter(signals)
    for pair in zip_longest(signals, signals):
        if pair[1] is None:
            _checks.fail(name, "an odd number of signals", "pairs", "pass both halves of a part")
        first = pair[0] if first is None else first
        for signal in pair:
            _checks.array(name, signal, 2)
            if signal.shape != first.shape or signal.shape[0] != signal.shape[1]:
                got = f"shapes {first.shape} and {signal.shape}"
                do = "count all parts over one vocabulary"
                _checks.fail(name, got, "square ones, all of one shape", do)
            if _checks.is_sparse(signal) != _checks.is_sparse(first):
                got, do = "a sparse and a dense matrix", "convert one of them"
                _checks.fail(name, got, "all of one kind", do, TypeError)
        if _checks.is_sparse(first):
            difference = (pair[0] - pair[1]).tocsr()
            difference.data **= 2
            yield difference
        else:
            yield (np.asarray(pair[0]) - np.asarray(pair[1])) ** 2


def _error(coefficients: Sequence[int], variances: Sequence[np.ndarray]) -> float:
    """Standard error of the logarithm of the whole's variance, if that of all parts is alike."""
    several = [np.log(v) for v in variances if len(v) > 1]
    squares = sum(float(np.sum((x - x.mean()) ** 2)) for x in several)
    own = squares / sum(len(x) - 1 for x in several)
    of_means = sum(c**2 / len(v) for c, v in zip(coefficients, variances, strict=True))
    return math.sqrt(own * of_means)


def equal_rows(variances: Any, *, tolerance: float | None = None, steps: int = 1000) -> EqualRows:
    r"""Scales $s$ with which all rows of $s_i^2s_j^2V_{ij}$ have the mean that all of $V$ has.

    $V$ is symmetric, not negative, dense or SciPy sparse; a hundredth of its mean is added to every
    entry, and as much taken off the whole, so that words that never vary have a finite scale and
    the steps $s_i^2 \leftarrow (s_i^2/\sum_jV_{ij}s_j^2)^{½}$ converge (Sinkhorn). Equal rows, and
    variances of 0, give ones. Relative `tolerance` of rows: 10 eps of the dtype, if None. For the
    host. Cost: a product with $V$ a step, some tens of steps. References: `landa22`, `landa23`.

    >>> import numpy as np
    >>> d = np.array([1.0, 4.0])
    >>> scales = equal_rows(np.outer(d, d)).scales
    >>> print((scales[0] / scales[1]).round(2))
    1.97
    """
    _checks.array("variances", variances, 2)
    _checks.integer("steps", steps, least=1)
    stored = variances.data if _checks.is_sparse(variances) else np.asarray(variances)
    if not (np.isfinite(stored).all() and (stored >= 0).all()):
        do = "pass squares of differences"
        _checks.fail("variances", "numbers that are none", "finite ones, not negative", do)
    if not _checks.is_sparse(variances):
        variances = stored
    dtype = jnp.asarray(stored[:0]).dtype
    mean, n = float(variances.mean()), variances.shape[0]
    if mean == 0:
        return EqualRows(jnp.ones(n, dtype), 0.0)
    least = 10 * float(np.finfo(stored.dtype).eps) if tolerance is None else tolerance
    squares = np.ones(n)
    for _ in range(steps):
        seen = np.asarray(variances @ squares.astype(stored.dtype), np.float64) / mean
        rows = ((1 - FLOOR) * seen + FLOOR * squares.sum()) / n * squares
        residual = float(np.abs(rows / rows.mean() - 1).max())
        if residual <= least:
            break
        squares = squares / np.sqrt(rows)
    return EqualRows(jnp.asarray(np.sqrt(squares / rows.mean() ** 0.5), dtype), residual)


def semicircle_distance(eigenvalues: Any, *, sigma: Any, counts: Any = None) -> float:
    r"""How far noise is from the law that shrinkage assumes: the largest gap between the shares.

    The share of eigenvalues below each of them, and by the semicircle of radius $2\sigma\sqrt n$
    (Kolmogorov's distance). `counts` says how many each stands for, as of
    `jaxmeta.eigen.eigenvalue_density`: these are averaged over 32 neighbours. For the host.

    >>> import numpy as np
    >>> z = np.random.default_rng(0).normal(size=(400, 400))
    >>> print(f"{semicircle_distance(np.linalg.eigvalsh(z + z.T), sigma=2**0.5):.3f}")
    0.007
    """
    x = np.asarray(eigenvalues, np.float64)
    each = np.ones_like(x) if counts is None else np.asarray(counts, np.float64)
    order = np.argsort(x)
    x, upto = x[order], np.cumsum(each[order])
    n = upto[-1]
    middle = (upto - each[order] / 2) / n
    if len(x) < n and len(x) > NEAR:
        # The share rises in steps, at groups of points: their means lie on it.
        x, middle = (np.convolve(y, np.full(NEAR, 1 / NEAR), "valid") for y in (x, middle))
    at = np.clip(x / (2 * float(sigma) * n**0.5), -1, 1)
    law = 0.5 + (at * np.sqrt(1 - at**2) + np.arcsin(at)) / np.pi
    return float(np.max(np.abs(middle - law)))
