r"""What the paper's released code does, under honest names.

There the ratio of Eq. 8 stands upside down, blocks are cut from a source's own spectrum, the argmin
over $k$ is counted from zero, the window is not symmetric, and 1TON is a descent from random maps.
Weights of two earlier states of that code are here too: which of them made the tables is not known.
"""

import functools
import operator
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, Int, Key

from jaxmeta import _checks
from jaxmeta._checks import checked
from jaxmeta._types import Numbers, Scalar, Sources, Spectra
from jaxmeta.combine import OneToN, concatenate, split_columns
from jaxmeta.linalg import column_norms, common_unit, matmul, right_axes, safe_ratio, safe_sqrt
from jaxmeta.noise import difference, usvt
from jaxmeta.spectral import power
from jaxmeta.weights import dimension_weights, source_weights

__all__ = [
    "released_2020_dimension_weights",
    "released_2021_dimension_weights",
    "released_2021_source_weights",
    "released_dimension",
    "released_dimension_weights",
    "released_noise_std",
    "released_one_to_n",
    "released_source_weights",
    "released_window",
]


def released_window(offsets: Sequence[Any]) -> Any:
    r"""The released code's window of $w$ places before a word and $w - 1$ after it, $w$ offsets.

    $X = \sum_{d<w} D_d + \sum_{d \le w} D_d^\top$: six on the left and five on the right for a
    window of 6. It is not symmetric. `offsets` are those of `jaxmeta.text.Counts`.
    """
    _checks.offsets(offsets)
    total = functools.partial(functools.reduce, operator.add)
    return total([*offsets[:-1], total(offsets).T.tocsr()])


def released_noise_std(first_half: Any, second_half: Any) -> Float[Array, ""]:
    r"""Half the standard deviation of $\tilde M_1 - \tilde M_2$.

    Smaller than `noise_std` where the two halves differ in the mean.
    """
    entries, count = difference(first_half, second_half)
    unit = common_unit(entries)
    entries = entries / unit
    mean = jnp.sum(entries) / count
    unstored = count - entries.size
    return unit * safe_sqrt((jnp.sum((entries - mean) ** 2) + unstored * mean**2) / count) / 2


@checked(discrete=True)
def released_dimension(curve: Float[Array, " r"]) -> Int[Array, ""]:
    """The dimensionality that is read off a curve: one too few.

    It is the argmin, counted from zero, of losses that start at k = 1.
    """
    _checks.array("curve", curve, 1)
    return jnp.argmin(curve)


@checked(_checks.noisy_descending, static=("n",))
def released_dimension_weights(
    values: Float[Array, " k"], *, sigma: Scalar, n: int, alpha: Scalar
) -> Float[Array, " k"]:
    r"""DW of the released code: $(\mu_i/\lambda_i)^\alpha$, with $\lambda$ the USVT estimate.

    The reciprocal of Eq. 8 lifts weak dimensions. It is infinite from the edge of the noise on, so
    pass no more dimensions than `usvt_rank`.
    """
    exponent = jnp.asarray(alpha, values.dtype)
    return power(values, exponent) / power(usvt(values, sigma=sigma, n=n), exponent)


def _check_spectra(source_values: Any, *, sizes: Any, sigmas: Any, n: int, alpha: Any) -> None:
    _checks.sources("source_values", source_values)
    _checks.sizes("sizes", sizes)
    _checks.count("sizes", sizes, len(source_values))
    _checks.count("sigmas", sigmas, len(source_values))
    _checks.scalar("alpha", alpha)
    for j, (values, end) in enumerate(zip(source_values, np.cumsum(sizes), strict=True)):
        _checks.descending(f"source_values[{j}]", values)
        _checks.not_negative(f"sigmas[{j}]", sigmas[j])
        _checks.integer("n", n, least=values.shape[0])
        if values.shape[0] < end:
            do = "released weights read beyond the source's own dimensions: pass its whole spectrum"
            got = f"{values.shape[0]} values"
            _checks.fail(f"source_values[{j}]", got, f"at least {end}", do)


def _spectra(
    source_values: Spectra, sizes: tuple[int, ...], sigmas: Numbers, n: int
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Block j of source j's own values, and its leading USVT values."""
    ends = np.cumsum(sizes)
    shifted = (v[end - k : end] for v, k, end in zip(source_values, sizes, ends, strict=True))
    thresholded = (usvt(v, sigma=s, n=n) for v, s in zip(source_values, sigmas, strict=True))
    return tuple(shifted), tuple(v[:k] for v, k in zip(thresholded, sizes, strict=True))


@checked(_check_spectra, static=("sizes", "n"))
def released_source_weights(
    source_values: Spectra, *, sizes: tuple[int, ...], sigmas: Numbers, n: int, alpha: Scalar
) -> Float[Array, " N"]:
    r"""SW of the released code: Eq. 9 with the spectra exchanged, and a shifted block.

    Block $j$ of source $j$'s *own* noisy values plays the ideal, its leading USVT values the
    source. So `source_values` are all values of each source, and `sizes` its dimensions.
    """
    return source_weights(*_spectra(source_values, sizes, sigmas, n), alpha=alpha)


@checked(_check_spectra, static=("sizes", "n"))
def released_2020_dimension_weights(
    source_values: Spectra, *, sizes: tuple[int, ...], sigmas: Numbers, n: int, alpha: Scalar
) -> tuple[Float[Array, " _"], ...]:
    r"""DW as released in 2020: $(\mu_{j,\theta_j+i}/\lambda_{j,i})^\alpha$, a shifted block on top.

    Arguments are those of `released_source_weights`.
    """
    return dimension_weights(*_spectra(source_values, sizes, sigmas, n), alpha=alpha)


@checked(_check_spectra, static=("sizes", "n"))
def released_2021_source_weights(
    source_values: Spectra, *, sizes: tuple[int, ...], sigmas: Numbers, n: int, alpha: Scalar
) -> Float[Array, " N"]:
    r"""SW of the released code during April 2021: a cube root, and a shifted block.

    $(\sum_i\mu_{j,\theta_j+i}^{2\alpha}/\sum_i\lambda_{j,i}^{4\alpha})^{1/3}$, which depends on the
    unit of the signals. Arguments are those of `released_source_weights`.
    """
    exponent = 2 * jnp.asarray(alpha, source_values[0].dtype)
    ratios = [
        safe_ratio(jnp.sum(power(a, exponent)), jnp.sum(power(b, 2 * exponent)))
        for a, b in zip(*_spectra(source_values, sizes, sigmas, n), strict=True)
    ]
    return power(jnp.stack(ratios), 1 / 3)


@checked(_check_spectra, static=("sizes", "n"))
def released_2021_dimension_weights(
    source_values: Spectra, *, sizes: tuple[int, ...], sigmas: Numbers, n: int, alpha: Scalar
) -> tuple[Float[Array, " _"], ...]:
    r"""DW of the released code during April 2021: a cube root, and a shifted block.

    $(\mu_{j,\theta_j+i}^{2\alpha}/\lambda_{j,i}^{4\alpha})^{1/3}$: see
    `released_2021_source_weights`.
    """
    exponent = 2 * jnp.asarray(alpha, source_values[0].dtype)
    pairs = zip(*_spectra(source_values, sizes, sigmas, n), strict=True)
    ratios = (safe_ratio(power(a, exponent), power(b, 2 * exponent)) for a, b in pairs)
    return tuple(power(ratio, 1 / 3) for ratio in ratios)


@checked(static=("k", "steps"))
def released_one_to_n(
    sources: Sources, *, k: int, key: Key[Array, ""], rate: Scalar = 0.1, steps: int = 100
) -> OneToN:
    r"""1TON as in the released code: gradient steps on the maps, from random ones.

    $A = CM^\top(MM^\top)^{-1}$ is always the exact counterpart of the maps, and `steps` times $M
    \leftarrow M + 2\eta A^\top(C - AM)$, $\eta$ being the `rate`. With a small rate $MM^\top$ stays
    what it was at the start, and $A$ tends to that of `one_to_n` in a random metric; with a large
    one the fit comes to a halt above the minimum.

    Cost: $O(nK^2)$ once, and $O(K^2k)$ for each step. Reference: `yin16`.

    >>> import jax, jax.numpy as jnp
    >>> e = jnp.array([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> found = released_one_to_n((e, e[:, :1]), k=1, key=jax.random.key(0))
    >>> print(found.error.round(3))
    1.0
    """
    whole = concatenate(sources)
    width, dtype = whole.shape[1], whole.dtype
    _checks.integer("k", k, least=1, most=width, of="the concatenation")
    _checks.scalar("rate", rate)
    _checks.integer("steps", steps, least=1)
    v = right_axes(whole, width)
    root = column_norms(matmul(whole, v))[:, None] * v.T
    rate = jnp.asarray(rate, dtype)

    def fit(maps):
        """The pseudo-inverse of the maps, and what they do not explain."""
        q, r = jnp.linalg.qr(maps.T)
        return solve_triangular(r, q.T).T, root - matmul(matmul(root, q), q.T)

    def step(maps, _):
        inverse, left = fit(maps)
        maps = maps + 2 * rate * matmul(matmul(root, inverse).T, left)
        return maps, jnp.sum(left**2)

    maps, errors = lax.scan(step, jax.random.normal(key, (k, width), dtype), length=steps)
    inverse, left = fit(maps)
    history = jnp.append(errors, jnp.sum(left**2))
    return OneToN(matmul(whole, inverse), split_columns(maps, sources), history)
