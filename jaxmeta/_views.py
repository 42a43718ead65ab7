"""What sources look like in the model of `jaxmeta.several`: noisy views of one ideal."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxmeta import _checks
from jaxmeta._types import Numbers
from jaxmeta.linalg import common_unit, safe_ratio, safe_sqrt
from jaxmeta.noise import spiked_overlap
from jaxmeta.spectral import Spectrum, check_spectrum

__all__ = [
    "Views",
    "check",
    "continued",
    "each",
    "ideal_of",
    "in_unit",
    "precision",
    "relative",
    "side_by_side",
    "stacked",
    "values_of",
    "views_of",
]


def stacked(numbers: Any, dtype: Any) -> Float[Array, " N"]:
    found = jnp.stack([jnp.asarray(x, dtype) for x in numbers])
    return jnp.where(found < 0, jnp.nan, found)


def relative(sizes: Float[Array, "N ..."]) -> Float[Array, "N ..."]:
    """The least of them over each, 1 where both are 0."""
    least = jnp.min(sizes, axis=0, keepdims=True)
    return jnp.where(sizes == 0, 1, least / jnp.where(sizes == 0, 1, sizes))


def precision(noise: Float[Array, " N"]) -> tuple[Float[Array, " N"], Float[Array, ""]]:
    """Weights by precision, with sum 1, and the sigma of the average."""
    size = common_unit(noise)
    weights = relative(noise / size) ** 2
    total = jnp.sum(weights)
    return weights / total, size * (jnp.min(noise / size) / jnp.sqrt(total))


def check(sources: Any, *, sigmas: Any, alpha: Any = 0.5, **given: Any) -> None:
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


class Views(NamedTuple):
    """What the model says of sources: p, and 1 - p that does not cancel where noise is small."""

    overlaps: Array
    rest: Array

    def add(self) -> tuple[Array, Array, Array]:
        """The least rest, of how many times each is that, and S times the least."""
        least, share = jnp.min(self.rest, axis=0), relative(self.rest)
        return least, share, jnp.sum(self.overlaps * share, axis=0)


def values_of(sources: Sequence[Spectrum]) -> Float[Array, "N k"]:
    """Zeros stand for what some sources do not have."""
    most = max(s.values.shape[0] for s in sources)
    return jnp.stack([jnp.pad(s.values, (0, most - s.values.shape[0])) for s in sources])


def in_unit(sources: Sequence[Spectrum], sigmas: Numbers) -> tuple[Array, Array, Array]:
    """Values and noise in a unit in which no square overflows or vanishes, and the unit."""
    values = values_of(sources)
    noise = stacked(sigmas, values.dtype)
    size = common_unit(values, noise)
    return values / size, noise / size, size


def side_by_side(sources: Sequence[Spectrum], scales: Float[Array, "N k"]) -> Float[Array, "n K"]:
    """All directions, each times a number."""
    parts = [s.vectors * x[None, : s.values.shape[0]] for s, x in zip(sources, scales, strict=True)]
    padded = [jnp.pad(x, ((0, 0), (0, scales.shape[1] - x.shape[1]))) for x in parts]
    return jnp.concatenate(padded, axis=1)


def each(function: Any, rows: Array, noise: Array, n: int) -> Array:
    return jax.vmap(lambda row, sigma: function(row, sigma=sigma, n=n))(rows, noise)


def ideal_of(debiased: Array, noise: Array, shares: Array, n: int) -> Array:
    """The values of the ideal: the mean over sources, by precision."""
    # If nothing is shared no source is better than another.
    trust = jnp.where(jnp.any(shares > 0), shares, 1) * relative(noise) ** 2
    precision = trust[:, None] * each(spiked_overlap, debiased, noise, n)
    return safe_ratio(jnp.sum(precision * debiased, axis=0), jnp.sum(precision, axis=0))


def views_of(ideal: Array, debiased: Array, noise: Array, shares: Array, n: int) -> Views:
    lost = safe_ratio(n**0.5 * noise[:, None], ideal[None, :]) ** 2
    unseen, shares = (debiased == 0) | (lost >= 1), shares[:, None]
    overlaps = shares * jnp.where(unseen, 0, 1 - lost)
    return Views(overlaps, jnp.where(unseen, 1, 1 - shares + shares * lost))


def continued(ideal: Float[Array, " k"], energy: Array, n: int) -> Float[Array, " n"]:
    """The values that are seen, and beyond them a power law until it has used up the energy.

    The law is that of the last half of what is seen; of fewer than 8 values there is none.
    """
    place = jnp.arange(1, n + 1, dtype=ideal.dtype)
    x, number = jnp.log(place), jnp.sum(ideal > 0, dtype=ideal.dtype)
    whole = jnp.pad(ideal, (0, n - len(ideal)))
    last = (place <= number) & (2 * place > number)
    y = jnp.log(jnp.where(last, whole, 1))
    x_mean, y_mean = jnp.mean(x, where=last), jnp.mean(y, where=last)
    away = jnp.where(last, x - x_mean, 0)
    slope = jnp.minimum(safe_ratio(jnp.sum(away * (y - y_mean)), jnp.sum(away**2)), 0)
    least = jnp.min(whole, where=whole > 0, initial=jnp.inf)
    law = jnp.minimum(jnp.exp(y_mean + slope * (x - x_mean)), least)
    squares = jnp.where((place > number) & (number >= 8), law**2, 0)
    before = jnp.cumsum(squares) - squares
    return jnp.where(whole > 0, whole, safe_sqrt(jnp.clip(energy - before, 0, squares)))
