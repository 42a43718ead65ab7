r"""The one table of weights: names, and what each makes of what sources carry.

A source carries values, its number of words, its exponent and, where they are known, its noise and
all of its eigenvalues: an `Observed`. An entry of `WEIGHTINGS` takes all sources, and gives a
weight, or one per dimension, for each: what `concatenate` takes.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxmeta import _checks
from jaxmeta._types import Scalar, Weights
from jaxmeta.noise import usvt
from jaxmeta.quadratic import PipQuadratic, exact_weights
from jaxmeta.released import (
    released_2020_dimension_weights,
    released_2021_dimension_weights,
    released_2021_source_weights,
    released_dimension_weights,
    released_source_weights,
)
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
    strengths: Float[Array, " k"] | None = None
    """Of its dimensions against an ideal that was estimated (`jaxmeta.pip.strengths_against`)."""


class Weighting(NamedTuple):
    """A way of weighting sources."""

    weights: Callable[..., Weights]
    """From the sources, and from the quadratic of an ideal if it needs one."""
    summary: str
    needs: str = ""
    """What sources must carry: "", "sigma", "eigenvalues" (and sigma), "strengths"; or "ideal"."""


def weigh(name: str, sources: Sequence[Observed], ideal: PipQuadratic | None = None) -> Weights:
    """The weights of that name, one of `WEIGHTINGS`, for sources that carry what it needs.

    `ideal` is that of `pip_quadratic`, for `exact`.

    >>> import jax.numpy as jnp
    >>> source = Observed(jnp.array([4.0, 2.5]), n=100, alpha=0.5, sigma=0.1)
    >>> for name in ("DW", "spiked"):
    ...     print(f"{name}: {weigh(name, [source])[0][0]:.3f}")
    DW: 0.707
    spiked: 0.931
    """
    name = _checks.named("name", name, WEIGHTINGS)
    weights, _, needs = WEIGHTINGS[name]
    if needs == "ideal":
        if ideal is None:
            do = "pass pip_quadratic(ideal_embedding, sources)"
            _checks.fail("ideal", "None", f"a PipQuadratic for {name}", do)
        return weights(sources, ideal)
    fields = ("sigma", "eigenvalues") if needs == "eigenvalues" else (needs,) if needs else ()
    for j, source in enumerate(sources):
        for field in fields:
            if getattr(source, field) is None:
                do = "estimate it, as build_sources does, or choose another weighting"
                _checks.fail(f"sources[{j}].{field}", "None", f"it for {name}", do)
    return weights(sources)


def _each(field: str, sources: Sequence[Observed]) -> tuple[Any, ...]:
    return tuple(getattr(source, field) for source in sources)


def _denoised(sources: Sequence[Observed]) -> tuple[Array, ...]:
    """Each source's own USVT ideal."""
    return tuple(usvt(s.values, sigma=s.sigma, n=s.n) for s in sources)


def _own(match: Callable[..., Any], sources: Sequence[Observed]) -> Any:
    return match(_denoised(sources), _each("values", sources), alpha=sources[0].alpha)


def _blocks(match: Callable[..., Any], sources: Sequence[Observed]) -> Any:
    pooled = jnp.sort(jnp.concatenate(_denoised(sources)), descending=True)
    return match(pooled, _each("values", sources), alpha=sources[0].alpha)


def _of_each(weights: Callable[..., Array], sources: Sequence[Observed]) -> tuple[Array, ...]:
    return tuple(weights(s.values, sigma=s.sigma, n=s.n, alpha=s.alpha) for s in sources)


def _whole(weights: Callable[..., Any], sources: Sequence[Observed]) -> Any:
    """Released weights, which read beyond the dimensions of a source."""
    values = (jnp.abs(jnp.asarray(s.eigenvalues, s.values.dtype)) for s in sources)
    return weights(
        tuple(jnp.sort(x, descending=True) for x in values),
        sizes=tuple(s.values.shape[0] for s in sources),
        sigmas=_each("sigma", sources),
        n=sources[0].n,
        alpha=sources[0].alpha,
    )


def _strong(strengths: Callable[..., Array], sources: Sequence[Observed]) -> tuple[Array, ...]:
    """Weights by strengths that are estimated from all eigenvalues."""
    found = []
    for s in sources:
        eigenvalues = jnp.asarray(s.eigenvalues, s.values.dtype)
        estimated = strengths(eigenvalues, s)[: s.values.shape[0]]
        found.append(strength_weights(s.values, estimated, alpha=s.alpha))
    return tuple(found)


def _rie(eigenvalues: Array, source: Observed) -> Array:
    if isinstance(source.alpha, int | float) and source.alpha != 0.5:
        _checks.fail("alpha", str(source.alpha), "0.5 for RIE", "use 'ideal-strengths'")
    return rie_strengths(eigenvalues, sigma=source.sigma, positive=source.positive)


def _ideal(eigenvalues: Array, source: Observed) -> Array:
    settings = {"sigma": source.sigma, "alpha": source.alpha, "positive": source.positive}
    return ideal_strengths(eigenvalues, **settings).values


def _estimated(sources: Sequence[Observed]) -> tuple[Array, ...]:
    return tuple(strength_weights(s.values, s.strengths, alpha=s.alpha) for s in sources)


def _aligned(sources: Sequence[Observed]) -> tuple[Array, ...]:
    n, alpha = sources[0].n, sources[0].alpha
    values, sigmas = _each("values", sources), _each("sigma", sources)
    return aligned_weights(values, sigmas=sigmas, n=n, alpha=alpha)


def _exact(sources: Sequence[Observed], ideal: PipQuadratic) -> tuple[Array, ...]:
    sizes = tuple(source.values.shape[0] for source in sources)
    return split_by_source(exact_weights(ideal).weights, sizes=sizes)


def _ones(sources: Sequence[Observed]) -> tuple[float, ...]:
    return (1.0,) * len(sources)


_SW, _DW, _OF_2020 = source_weights, dimension_weights, released_2020_dimension_weights
_SW_2021, _DW_2021 = released_2021_source_weights, released_2021_dimension_weights

WEIGHTINGS: dict[str, Weighting] = {
    "UW": Weighting(_ones, "no weights"),
    "SW": Weighting(partial(_own, _SW), "Eq. 9, to each source's own USVT ideal", "sigma"),
    "DW": Weighting(partial(_own, _DW), "Eq. 8, to each source's own USVT ideal", "sigma"),
    "SW-blocks": Weighting(partial(_blocks, _SW), "Eq. 9, to blocks of all USVT values", "sigma"),
    "DW-blocks": Weighting(partial(_blocks, _DW), "Eq. 8, to blocks of all USVT values", "sigma"),
    "SW-released": Weighting(
        partial(_whole, released_source_weights),
        "Eq. 9 with the spectra exchanged, and a shifted block", "eigenvalues"),
    "DW-released": Weighting(
        partial(_of_each, released_dimension_weights), "the reciprocal of Eq. 8", "sigma"),
    "DW-released-2020": Weighting(
        partial(_whole, _OF_2020), "the same with a shifted block", "eigenvalues"),
    "SW-released-2021": Weighting(
        partial(_whole, _SW_2021), "a cube root, and a shifted block", "eigenvalues"),
    "DW-released-2021": Weighting(
        partial(_whole, _DW_2021), "a cube root, and a shifted block", "eigenvalues"),
    "spiked": Weighting(
        partial(_of_each, shrinkage_weights), "weights that know what noise turns", "sigma"),
    "RIE": Weighting(
        partial(_strong, _rie), "from the whole spectrum, at alpha ½", "eigenvalues"),
    "ideal-strengths": Weighting(
        partial(_strong, _ideal), "from the whole spectrum, at any alpha", "eigenvalues"),
    "estimated-ideal": Weighting(
        _estimated, "from an estimate of the ideal, as by equalised noise", "strengths"),
    "aligned": Weighting(_aligned, "the best concatenation if sources share one ideal", "sigma"),
    "exact": Weighting(_exact, "the best concatenation, where the ideal is known", "ideal"),
}  # fmt: skip
"""Name to weighting."""
