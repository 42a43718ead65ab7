r"""The one table of weights: names, and what each makes of what sources carry.

A source carries the values of its dimensions, how many words it has, its exponent and, where they
are known, its noise and all of its eigenvalues: an `Observed`. Weights of one source depend on that
source alone, those of several on all of them (`aligned`, `blocks`, most released ones), and `exact`
on an ideal as well. Every entry of `WEIGHTINGS` takes all sources and gives a weight, or one for
each dimension, for each: what `concatenate` takes.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxmeta import _checks, released
from jaxmeta._types import Scalar, Weights
from jaxmeta.noise import usvt
from jaxmeta.quadratic import PipQuadratic, exact_weights
from jaxmeta.shrinkage import ideal_strengths, rie_strengths
from jaxmeta.spectral import split_by_source
from jaxmeta.weights import (
    aligned_weights,
    dimension_weights,
    shrinkage_weights,
    source_weights,
    strength_weights,
)

__all__ = ["WEIGHTINGS", "Observed", "Weighting", "weigh"]


class Observed(NamedTuple):
    """What weights may depend on of one source."""

    values: Float[Array, " k"]
    """Of its dimensions, descending."""
    n: int
    """Words."""
    alpha: Scalar
    """The exponent of the embedding."""
    sigma: Scalar | None = None
    """The noise in an entry of its signal."""
    eigenvalues: Float[Array, " n"] | None = None
    """All of its signal, by magnitude, with their signs."""
    positive: bool = False
    """Whether the ideal is known to have no negative eigenvalues."""


class Weighting(NamedTuple):
    """A way of weighting sources."""

    weights: Callable[..., Weights]
    """From the sources, and from the quadratic of an ideal if it needs one."""
    summary: str
    needs: str = ""
    """What sources must carry: "", "sigma", "eigenvalues" (and sigma); or "ideal"."""


def weigh(name: str, sources: Sequence[Observed], ideal: PipQuadratic | None = None) -> Weights:
    """The weights of that name, one of `WEIGHTINGS`, for sources that carry what it needs.

    `ideal` is that of `pip_quadratic`, for `exact`.

    >>> import jax.numpy as jnp
    >>> source = Observed(jnp.array([4.0, 2.5]), n=100, alpha=0.5, sigma=0.1)
    >>> print(weigh("DW", [source])[0].round(3), weigh("spiked", [source])[0].round(3))
    [0.707 0.447] [0.93  0.775]
    """
    _checks.one_of("name", name, WEIGHTINGS)
    weighting = WEIGHTINGS[name]
    if weighting.needs == "ideal":
        if ideal is None:
            do = "pass pip_quadratic(ideal_embedding, sources)"
            _checks.fail("ideal", "None", f"a PipQuadratic for {name}", do)
        return weighting.weights(sources, ideal)
    for j, source in enumerate(sources):
        for field in {"": (), "sigma": ("sigma",)}.get(weighting.needs, ("sigma", "eigenvalues")):
            if getattr(source, field) is None:
                do = "estimate it, as build_sources does, or choose another weighting"
                _checks.fail(f"sources[{j}].{field}", "None", f"it for {name}", do)
    return weighting.weights(sources)


def _values(sources: Sequence[Observed]) -> tuple[Array, ...]:
    return tuple(source.values for source in sources)


def _sigmas(sources: Sequence[Observed]) -> tuple[Any, ...]:
    return tuple(source.sigma for source in sources)


def _denoised(sources: Sequence[Observed]) -> tuple[Array, ...]:
    """Each source's own USVT ideal."""
    return tuple(usvt(s.values, sigma=s.sigma, n=s.n) for s in sources)


def _matched(match: Callable[..., Any], sources: Sequence[Observed]) -> Any:
    return match(_denoised(sources), _values(sources), alpha=sources[0].alpha)


def _matched_to_blocks(match: Callable[..., Any], sources: Sequence[Observed]) -> Any:
    pooled = jnp.sort(jnp.concatenate(_denoised(sources)), descending=True)
    return match(pooled, _values(sources), alpha=sources[0].alpha)


def _of_each(weights: Callable[..., Array], sources: Sequence[Observed]) -> tuple[Array, ...]:
    return tuple(weights(s.values, sigma=s.sigma, n=s.n, alpha=s.alpha) for s in sources)


def _released(weights: Callable[..., Any], sources: Sequence[Observed]) -> Any:
    """Released weights read beyond the dimensions of a source."""
    whole = (jnp.abs(jnp.asarray(s.eigenvalues, s.values.dtype)) for s in sources)
    return weights(
        tuple(jnp.sort(x, descending=True) for x in whole),
        sizes=tuple(s.values.shape[0] for s in sources),
        sigmas=_sigmas(sources),
        n=sources[0].n,
        alpha=sources[0].alpha,
    )


def _by_strengths(
    strengths: Callable[..., Array], sources: Sequence[Observed]
) -> tuple[Array, ...]:
    found = []
    for s in sources:
        estimated = strengths(jnp.asarray(s.eigenvalues, s.values.dtype), s)
        found.append(strength_weights(s.values, estimated[: s.values.shape[0]], alpha=s.alpha))
    return tuple(found)


def _rie(eigenvalues: Array, source: Observed) -> Array:
    if isinstance(source.alpha, int | float) and source.alpha != 0.5:
        do = "use the weighting 'ideal strengths'"
        _checks.fail("alpha", str(source.alpha), "0.5 for RIE", do)
    return rie_strengths(eigenvalues, sigma=source.sigma, positive=source.positive)


def _ideal(eigenvalues: Array, source: Observed) -> Array:
    found = ideal_strengths(
        eigenvalues, sigma=source.sigma, alpha=source.alpha, positive=source.positive
    )
    return found.values


def _aligned(sources: Sequence[Observed]) -> tuple[Array, ...]:
    first = sources[0]
    return aligned_weights(_values(sources), sigmas=_sigmas(sources), n=first.n, alpha=first.alpha)


def _exact(sources: Sequence[Observed], ideal: PipQuadratic) -> tuple[Array, ...]:
    sizes = tuple(source.values.shape[0] for source in sources)
    return split_by_source(exact_weights(ideal).weights, sizes=sizes)


def _ones(sources: Sequence[Observed]) -> tuple[float, ...]:
    return (1.0,) * len(sources)


WEIGHTINGS: dict[str, Weighting] = {
    "UW": Weighting(_ones, "no weights"),
    "SW": Weighting(
        partial(_matched, source_weights),
        "source weights, Eq. 9, to each source's own USVT ideal",
        "sigma",
    ),
    "DW": Weighting(
        partial(_matched, dimension_weights),
        "dimension weights, Eq. 8, to each source's own USVT ideal",
        "sigma",
    ),
    "SW, blocks": Weighting(
        partial(_matched_to_blocks, source_weights),
        "source weights to blocks of all USVT values together, as in Theorem 1",
        "sigma",
    ),
    "DW, blocks": Weighting(
        partial(_matched_to_blocks, dimension_weights),
        "dimension weights to blocks of all USVT values together, as in Theorem 1",
        "sigma",
    ),
    "SW as released": Weighting(
        partial(_released, released.released_source_weights),
        "Eq. 9 with the spectra exchanged and a shifted block, as in the released code",
        "eigenvalues",
    ),
    "DW as released": Weighting(
        partial(_of_each, released.released_dimension_weights),
        "the reciprocal of DW, as in the released code",
        "sigma",
    ),
    "DW as released in 2020": Weighting(
        partial(_released, released.released_2020_dimension_weights),
        "the reciprocal of DW with a shifted block, as released in 2020",
        "eigenvalues",
    ),
    "SW as released in 2021": Weighting(
        partial(_released, released.released_2021_source_weights),
        "SW with a cube root and a shifted block, as released in 2021",
        "eigenvalues",
    ),
    "DW as released in 2021": Weighting(
        partial(_released, released.released_2021_dimension_weights),
        "DW with a cube root and a shifted block, as released in 2021",
        "eigenvalues",
    ),
    "spiked": Weighting(
        partial(_of_each, shrinkage_weights), "weights that know what noise turns", "sigma"
    ),
    "RIE": Weighting(
        partial(_by_strengths, _rie),
        "weights from the whole spectrum, at alpha ½",
        "eigenvalues",
    ),
    "ideal strengths": Weighting(
        partial(_by_strengths, _ideal),
        "weights from the whole spectrum, at any alpha",
        "eigenvalues",
    ),
    "aligned": Weighting(_aligned, "the best weights if sources share one ideal", "sigma"),
    "exact": Weighting(_exact, "the best weights of all, where the ideal is known", "ideal"),
}
"""Name to weighting."""
