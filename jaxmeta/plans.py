r"""How each linear method makes a plan of moments, by name: `PLANS`.

A plan (see `jaxmeta.affine`) needs of the rows no more than their `moments`, and a method that
needs less says so: `needs`. In `jaxmeta.fit` there are also methods that need the rows themselves.
"""

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from jaxmeta import _checks
from jaxmeta._twofold import axes
from jaxmeta._types import Present, Scalar
from jaxmeta.affine import Plan, Seen, apply_plan, reduced
from jaxmeta.combine import rotations_between
from jaxmeta.covariance import Moments, Pair, centred_gram, mean_of, pairs_of, raw_gram
from jaxmeta.linalg import norm, safe_ratio, safe_sqrt
from jaxmeta.noise import debias, spiked_overlap
from jaxmeta.progress import Progress
from jaxmeta.spectral import power
from jaxmeta.weightings import WEIGHTINGS, Observed, weigh

__all__ = [
    "PLANS",
    "Plan",
    "Planned",
    "Settings",
    "apply_plan",
    "check_k",
    "check_needs",
    "needs",
    "plan_of",
    "reduced",
]


class Settings(NamedTuple):
    """What a method may need beside the sources."""

    present: Present | None = None
    """Whether source j has word w; None if all do."""
    sigmas: tuple[float, ...] | None = None
    """The noise in an entry of each source's signal: see `noise_std`, `build_sources`."""
    alpha: Scalar = 0.5
    """The exponent with which sources were made of their signals."""
    observed: tuple[Observed, ...] | None = None
    """What weights depend on, source by source, if that is more than `sigmas` and `alpha` say."""
    ideal: Float[Array, "n d"] | None = None
    """The ideal embedding, where it is known."""
    k: int | float | None = None
    """Dimensions of the result, or the share of its PIP norm that fewer dimensions may cost; None
    is as many as the sources have, or the paper's choice where a method has one."""
    shrink: bool = False
    """Whether directions of the result get the lengths that noise leaves them: by `sigmas`, for
    weighted concatenations."""
    neighbours: int = 2000
    """Of a word in each source, for LLE."""
    key: Key[Array, ""] | None = None
    """For what is random."""
    epochs: int = 200
    """Of training, for autoencoders."""
    progress: Progress | None = None


class Planned(NamedTuple):
    """How a plan is made of moments."""

    fit: Callable[[Moments, Settings], Plan]
    summary: str
    part: str = "raw"
    """Of which rows moments are needed: "raw" or "unit" ones, or "" of none."""
    pairs: bool = False
    """Whether sources are compared with each other."""
    k: int | None = None
    """Dimensions unless said otherwise; None if the sources decide."""
    needs: str = ""
    """The field of `Settings` that must be given, or ""."""
    missing: bool = True
    """Whether sources may lack words."""


_HOW = {
    "sigmas": "estimate the noise with noise_std or build_sources, or use 'default'",
    "ideal": "pass the ideal embedding, or use another method",
    "key": "pass key=jax.random.key(0)",
}


def check_needs(name: str, needed: str, settings: Settings) -> None:
    """Raise unless settings have the field that a method needs, if it needs one."""
    by_noise = needed == "sigmas" and settings.observed is not None
    if needed and getattr(settings, needed) is None and not by_noise:
        _checks.fail(f"settings.{needed}", "None", f"it for {name}", _HOW[needed])


def needs(name: str, settings: Settings) -> dict[str, Any]:
    """What `moments` have to hold for a method, as settings of that function."""
    name = _checks.named("name", name, PLANS)
    part, pairs = PLANS[name].part, PLANS[name].pairs
    cut = settings.k is not None or settings.shrink
    if name in WEIGHTINGS and settings.observed is not None:
        part = ""
    if cut and not part:
        part = "unit" if name == "UW-unit" else "raw"
    return {"parts": (part,) if part else (), "pairs": pairs or cut}


def plan_of(name: str, moments: Moments, settings: Settings | None = None) -> Plan:
    """The plan of a method in `PLANS`, from `moments` of its sources.

    A result of `settings.k` dimensions has the leading directions of the whole one; for a `k` below
    1 it has the fewest that change no more than that fraction of the PIP norm. Moments that are NaN
    give NaN.

    >>> import jax.numpy as jnp
    >>> from jaxmeta.covariance import moments
    >>> sources = (jnp.eye(3)[:, :2], jnp.ones((3, 1)))
    >>> plan = plan_of("SVD", moments(sources), Settings(k=1))
    >>> print(plan.values.round(3), f"{plan.lost:.3f}")
    [1.932 1.    0.518] 0.267
    """
    name, settings = _checks.named("name", name, PLANS), settings or Settings()
    wanted, widths = needs(name, settings), moments.widths
    for part in wanted["parts"]:
        if not set(pairs_of(len(widths), wanted["pairs"])) <= set(getattr(moments, part)):
            do = f"compute them with **jaxmeta.plans.needs({name!r}, settings)"
            _checks.fail("moments", f"none of {part} rows, or not of pairs", f"it for {name}", do)
    for field in ("sigmas", "observed"):
        if getattr(settings, field) is not None:
            _checks.count(f"settings.{field}", getattr(settings, field), len(widths))
    _checks.scalar("settings.alpha", settings.alpha)
    for j, sigma in enumerate(settings.sigmas or ()):
        _checks.not_negative(f"settings.sigmas[{j}]", sigma)
    check_k(settings.k, sum(widths))
    if settings.shrink and name not in WEIGHTINGS:
        do = "choose one, such as 'UW' or 'aligned'"
        _checks.fail("settings.shrink", f"True for {name!r}", "a name in WEIGHTINGS", do)
    plan = PLANS[name].fit(moments, settings)
    if settings.k is not None and plan.values is None:
        plan = reduced(plan, moments, settings.k)
    return dataclasses.replace(plan, method=name, rows=moments.count.value)


def check_k(k: Any, most: int, name: str = "settings.k") -> None:
    """Raise unless `k` is a number of dimensions, a fraction, or None."""
    if isinstance(k, float):
        if not 0 <= k < 1:
            do = "pass an int for a number of dimensions, or a fraction such as 0.05"
            _checks.fail(name, str(k), "a fraction from 0 to below 1", do)
    elif k is not None:
        _checks.integer(name, k, least=1, most=most, of="the concatenation")


@jax.jit
def _spectrum(pair: Pair) -> tuple[Array, Array]:
    """Singular values and axes of a source as it is."""
    return axes(raw_gram(pair))


@jax.jit
def _standard(pair: Pair) -> tuple[Array, Array, Array]:
    """The centre, the map and the effective rank of `standardise`."""
    centre = mean_of(pair)
    gram = centred_gram(pair, (centre, centre))
    # Rows of length 1 that differ by their rounding alone are the same.
    rounding = pair.rows * (8 * float(jnp.finfo(centre.dtype).eps)) ** 2
    vary = jnp.trace(gram.high) > rounding
    values, v = axes(jax.tree.map(lambda x: jnp.where(vary, x, 0 * x), gram))
    halves = power(values, 0.5)
    size = norm(halves)
    scale = safe_ratio(power(values, -0.5), size * jnp.ones_like(values))
    rank = safe_ratio(jnp.ones_like(size), jnp.sum(safe_ratio(halves, size) ** 4))
    return centre, v * scale[None, :], rank


def _own(moments: Moments, part: str = "raw") -> list[Pair]:
    """Each source with itself."""
    return [getattr(moments, part)[j, j] for j in range(len(moments.widths))]


def _ones(moments: Moments) -> tuple[Array, ...]:
    return tuple(jnp.ones(width, moments.count.high.dtype) for width in moments.widths)


def _as_they_are(moments: Moments, settings: Settings) -> Plan:
    return _weighted("UW", moments, settings) if settings.shrink else Plan(None, _ones(moments))


def _default(moments: Moments, _: Settings) -> Plan:
    _warn_of_few_rows(moments)
    centres, maps, ranks = zip(*map(_standard, _own(moments, "unit")), strict=True)
    return Plan(tuple(centres), _by_rank(maps, ranks), unit=True)


@jax.jit
def _by_rank(maps: tuple[Array, ...], ranks: tuple[Array, ...]) -> tuple[Array, ...]:
    """Maps, each of them by the root of its share of the ranks."""
    stacked = jnp.stack(ranks)
    weights = safe_sqrt(safe_ratio(stacked, jnp.full_like(stacked, jnp.sum(stacked))))
    return tuple(c * move for c, move in zip(weights, maps, strict=True))


def _warn_of_few_rows(moments: Moments) -> None:
    """As many centred rows as dimensions, or fewer, are all about equally far apart."""
    few = []
    for j, (pair, width) in enumerate(zip(_own(moments, "unit"), moments.widths, strict=True)):
        sums = pair.sums.high
        if not isinstance(sums, jax.core.Tracer) and np.asarray(sums)[0, 0] <= width:
            few.append(f"source {j} has {sums[0, 0]:.0f} rows for {width} dimensions")
    if few:
        message = (
            f"default: {', '.join(few)}: so few do not tell which directions matter, and a single "
            "row becomes zeros. Fit it to more rows than dimensions, or use 'UW'."
        )
        warnings.warn(message, UserWarning, stacklevel=2)


def _observed(moments: Moments, settings: Settings) -> tuple[tuple[Observed, ...], list[Array]]:
    """What weights depend on, by the spectra of the sources, and their principal axes."""
    sigmas = settings.sigmas or (None,) * len(moments.widths)
    observed, turns, n = [], [], max(moments.widths)
    for pair, sigma in zip(_own(moments), sigmas, strict=True):
        values, v = _spectrum(pair)
        alpha = jnp.asarray(settings.alpha, values.dtype)
        values = power(values, jnp.where(alpha == 0, jnp.nan, 1 / alpha))
        # The count of rows is data here. Noise counts as sigma sqrt n alone, so n may be another.
        scaled = None if sigma is None else sigma * jnp.sqrt(pair.rows / n)
        observed.append(Observed(values, n, settings.alpha, scaled))
        turns.append(v)
    return tuple(observed), turns


def _weighted(name: str, moments: Moments, settings: Settings) -> Plan:
    """Weights on principal axes, or on the columns of sources that carry what weights need."""
    if settings.observed is None:
        observed, maps = _observed(moments, settings)
        weights = weigh(name, observed)
        maps = [
            v * jnp.broadcast_to(c, v.shape[1])[None, :] for v, c in zip(maps, weights, strict=True)
        ]
    else:
        observed, weights = settings.observed, weigh(name, settings.observed)
        maps = [c * one for c, one in zip(weights, _ones(moments), strict=True)]
    plan = Plan(None, tuple(maps))
    if not settings.shrink:
        return plan
    k = sum(moments.widths) if settings.k is None else settings.k
    return reduced(plan, moments, k, _seen(observed))


def _seen(observed: Sequence[Observed]) -> Seen:
    """What the spiked model says of the directions of sources with known noise."""
    ideal, overlaps = [], []
    for j, source in enumerate(observed):
        if source.sigma is None:
            do = "pass settings.sigmas, or leave shrink out"
            _checks.fail(f"sources[{j}].sigma", "None", "the noise, to shrink by", do)
        values = debias(source.values, sigma=source.sigma, n=source.n)
        overlaps.append(spiked_overlap(values, sigma=source.sigma, n=source.n))
        ideal.append(power(values, source.alpha))
    return Seen(tuple(ideal), tuple(overlaps))


def _average(moments: Moments, _: Settings) -> Plan:
    width, dtype = max(moments.widths), moments.count.high.dtype
    return Plan(None, tuple(jnp.eye(k, width, dtype=dtype) for k in moments.widths), join="mean")


def _rotated(moments: Moments, _: Settings) -> Plan:
    count = range(len(moments.widths))
    upper = {key: raw_gram(pair).value for key, pair in moments.raw.items()}
    grams = [[upper[i, j] if i <= j else upper[j, i].T for j in count] for i in count]
    return Plan(None, rotations_between(grams)[0], join="mean")


def _leading(name: str, moments: Moments, settings: Settings, *, centred: bool = False) -> Plan:
    """The leading directions of the concatenation: as many as are asked for, or the paper's."""
    centres, most = tuple(map(mean_of, _own(moments))) if centred else None, sum(moments.widths)
    k = min(PLANS[name].k or most, most) if settings.k is None else settings.k
    return reduced(Plan(centres, _ones(moments)), moments, k)


def _by_weights(name: str) -> Planned:
    found = WEIGHTINGS[name]
    required = {"": "", "ideal": "ideal"}.get(found.needs, "sigmas")
    return Planned(partial(_weighted, name), found.summary, needs=required)


PLANS: dict[str, Planned] = {
    "default": Planned(
        _default, "standardised sources, weights by effective rank; for files", "unit"
    ),
    "UW": Planned(_as_they_are, "concatenation as it is", ""),
    "UW-unit": Planned(
        lambda sums, _: Plan(None, _ones(sums), unit=True), "concatenation of rows of length 1", ""
    ),
    **{name: _by_weights(name) for name in WEIGHTINGS if name not in ("UW", "exact")},
    "AVG": Planned(_average, "mean of the sources, padded with zeros", ""),
    "AVG-rotated": Planned(
        _rotated, "mean after rotation of the sources onto each other", pairs=True
    ),
    "SVD": Planned(
        partial(_leading, "SVD"), "leading directions of the concatenation", pairs=True, k=200
    ),
    "PCA": Planned(
        partial(_leading, "PCA", centred=True),
        "leading directions of the concatenation, centred",
        pairs=True,
        k=200,
    ),
    "1TON": Planned(
        partial(_leading, "1TON"),
        "one embedding that all sources are linear in",
        pairs=True,
        k=300,
        missing=False,
    ),
}
"""Name to how a plan is made."""
