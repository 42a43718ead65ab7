r"""Every way of combining sources, by name.

`METHODS` is the one list that experiments, commands and users see; `meta_embedding` runs an entry.
That is a function of the sources and of `Settings`, with a line on what it is, what it needs, and
whether it can do with sources that lack words. Linear methods are those of `jaxmeta.plans.PLANS`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxmeta import _checks
from jaxmeta._types import Present
from jaxmeta.combine import known
from jaxmeta.covariance import Moments, moments
from jaxmeta.files.alignment import Aligned
from jaxmeta.files.vectors import Vectors
from jaxmeta.linalg import axis_lengths, matmul, right_axes
from jaxmeta.methods.autoencode import (
    Autoencoder,
    Training,
    autoencoded_rows,
    averaged_autoencoder,
    concatenated_autoencoder,
    decoupled_autoencoder,
    squared_cosine_proximity,
)
from jaxmeta.methods.lle import locally_linear
from jaxmeta.methods.metric import learnt_metric
from jaxmeta.methods.one_ton import one_to_n_plus
from jaxmeta.plans import PLANS, Plan, Settings, apply_plan, check_needs, needs, plan_of, reduced
from jaxmeta.quadratic import exact_weights, pip_quadratic
from jaxmeta.released import released_one_to_n
from jaxmeta.spectral import split_by_source
from jaxmeta.text.sources import Source
from jaxmeta.weightings import WEIGHTINGS

__all__ = ["METHODS", "Method", "apply", "fit", "meta_embedding"]


class Method(NamedTuple):
    """A way of combining sources."""

    run: Callable[[tuple[Array, ...], Settings], Any]
    """From sources to a plan, or to rows if there can be none."""
    summary: str
    needs: str = ""
    """"sigmas", "ideal", "key" or "": the field of `Settings` that must be given."""
    missing: bool = True
    """Whether sources may lack words."""
    k: int | None = None
    """Dimensions unless said otherwise; None if the sources decide."""
    unplanned: str = ""
    """Why there is no plan for other rows, where there is none."""


def fit(name: str, stats: Any, settings: Settings | None = None) -> Any:
    """The plan of a method: what `apply` does to the rows of these sources, or to any others.

    `stats` are the `moments` of sources, which is all that linear methods (those of
    `jaxmeta.plans.PLANS`) need to know; or the sources themselves, in any form that
    `meta_embedding` takes. Plans of linear methods can be fitted under `jit`, `vmap` and `grad`.

    >>> import jax.numpy as jnp
    >>> sources = (jnp.ones((3, 1)), jnp.eye(3)[:, :2])
    >>> plan = fit("default", sources)
    >>> print(plan.width, apply(plan, (jnp.ones((1, 1)), jnp.ones((1, 2)))).shape)
    3 (1, 3)
    """
    name = _checks.named("name", name, METHODS)
    if isinstance(stats, Moments):
        if name not in PLANS:
            do = METHODS[name].unplanned or "pass the sources themselves"
            _checks.fail("stats", f"moments for {name}", "sources", do)
        settings = settings or Settings()
        check_needs(name, METHODS[name].needs, settings)
        return plan_of(name, stats, settings)
    _, sources, settings = _unpacked(stats, settings or Settings())
    return _fitted(name, sources, settings, METHODS[name].unplanned)


def apply(plan: Any, sources: Any, present: Present | None = None) -> Any:
    """What the plan of `fit` makes of rows of the same sources, in the same order.

    `sources` and `present` are as in `meta_embedding`; a row that a source lacks counts as zeros
    there. Sources with words give `Vectors`, words and a matrix; arrays give an array. Cost:
    $O(nKm)$.
    """
    if isinstance(sources, Plan | Autoencoder):
        got = f"a {type(sources).__name__}"
        _checks.fail("sources", got, "sources", "pass the plan first, then the rows", TypeError)
    words, sources, settings = _unpacked(sources, Settings(present=present))
    found = _rows(plan, sources, settings.present)
    return found if words is None else Vectors(words, np.asarray(found))


def _rows(plan: Any, sources: Sequence[Any], present: Present | None) -> Array:
    if isinstance(plan, Plan):
        return apply_plan(plan, tuple(sources), present)
    if isinstance(plan, Autoencoder):
        return autoencoded_rows(plan, tuple(sources), present=present)
    _checks.fail("plan", f"a {type(plan).__name__}", "a plan", "make one with fit", TypeError)


def meta_embedding(name: str, sources: Any, settings: Settings | None = None) -> Any:
    """The meta-embedding of the sources by the method of that name, one of `METHODS`.

    Parameters
    ----------
    sources
        A tuple of arrays with a row for each of the same words; the `Source`s that `build_sources`
        returns, with the sigma, eigenvalues and alpha that they carry; or what `align` returns,
        with the words that its files lack.
    settings
        What the method may need besides.

    It is `apply` of what `fit` finds, but for the methods that have no plan. Sources with words
    give `Vectors`, words and a matrix; arrays give an array.

    >>> import jax.numpy as jnp
    >>> sources = (jnp.ones((3, 1)), jnp.eye(3)[:, :2])
    >>> print(meta_embedding("UW", sources).shape, meta_embedding("AVG", sources).shape)
    (3, 3) (3, 2)
    """
    name = _checks.named("name", name, METHODS)
    words, sources, settings = _unpacked(sources, settings or Settings())
    found = _fitted(name, sources, settings)
    if isinstance(found, Plan | Autoencoder):
        found = _rows(found, sources, settings.present)
    return found if words is None else Vectors(words, np.asarray(found))


def _fitted(name: str, sources: Sequence[Array], settings: Settings, unplanned: str = "") -> Any:
    """The plan of a method, or the rows of one that has none; an error if a plan is wanted."""
    method = METHODS[name]
    _checks.embeddings("sources", sources)
    if settings.present is not None:
        _checks.present(settings.present, sources[0].shape[0], len(sources))
    check_needs(name, METHODS[name].needs, settings)
    for field in ("sigmas", "observed"):
        if getattr(settings, field) is not None:
            _checks.count(f"settings.{field}", getattr(settings, field), len(sources))
    lacking = settings.present is not None and not bool(settings.present.all())
    if not method.missing and lacking:
        do = "align with vocabulary='intersection' or missing='predict', and leave present out"
        _checks.fail("settings.present", "words that a source lacks", f"all for {name}", do)
    if unplanned and (lacking or name != "1TON+"):
        _checks.fail("name", repr(name), "a method with a plan for other rows", unplanned)
    return method.run(tuple(sources), settings)


def _unpacked(
    sources: Any, settings: Settings
) -> tuple[tuple[str, ...] | None, Sequence[Any], Settings]:
    """Words, arrays, and settings with what sources carry besides."""
    if isinstance(sources, Aligned):
        # Rows that were filled in are there to be used; those of zeros stand for nothing.
        filled = all(each.how in ("", "mean", "predict") for each in sources.coverage)
        if settings.present is None and not filled:
            settings = settings._replace(present=sources.present)
        return sources.words, sources.sources, settings
    _checks.sources("sources", sources)
    carry = [isinstance(source, Source) for source in sources]
    if not any(carry):
        return None, sources, settings
    first = sources[0]
    if not all(carry) or any(s.words != first.words or s.alpha != first.alpha for s in sources):
        expected = "arrays alone, or Sources of one vocabulary and one alpha"
        _checks.fail("sources", "sources of several kinds", expected, "build them together")
    settings = settings._replace(observed=tuple(s.observed for s in sources), alpha=first.alpha)
    return first.words, tuple(s.embedding for s in sources), settings


def _linear(name: str, sources: tuple[Array, ...], settings: Settings) -> Plan:
    """The plan of a linear method."""
    return plan_of(name, moments(sources, settings.present, **needs(name, settings)), settings)


def _exact(sources: tuple[Array, ...], settings: Settings) -> Plan:
    """Weights by the ideal, of which moments of the sources know nothing."""
    sources = known(sources, settings.present)
    if settings.observed is None:
        # A column that is nothing but rounding would get a huge weight.
        axes = [right_axes(e, e.shape[1]) for e in sources]
        lengths = [axis_lengths(matmul(e, v)) for e, v in zip(sources, axes, strict=True)]
        turns = [jnp.where(x[None, :] > 0, v, 0) for x, v in zip(lengths, axes, strict=True)]
    else:
        turns = [jnp.eye(e.shape[1], dtype=e.dtype) for e in sources]
    quadratic = pip_quadratic(settings.ideal, tuple(map(matmul, sources, turns)))
    sizes = tuple(e.shape[1] for e in sources)
    weights = split_by_source(exact_weights(quadratic).weights, sizes=sizes)
    maps = tuple(v * c[None, :] for v, c in zip(turns, weights, strict=True))
    plan = Plan(None, maps, jnp.asarray(float(sources[0].shape[0])), method="exact")
    if settings.k is None:
        return plan
    return reduced(plan, moments(sources, parts=("raw",)), settings.k)


def _size(name: str, sources: tuple[Array, ...], settings: Settings, *, wider: bool = False) -> int:
    """Dimensions that are asked for, or the paper's; if it may not be wider, up to the sources'."""
    most = min(sources[0].shape[0] - 1, sum(source.shape[1] for source in sources))
    most = max(most, METHODS[name].k or most) if wider else most
    if isinstance(settings.k, float):
        do = "pass an int: it has no spectrum to cut"
        _checks.fail("settings.k", f"the fraction {settings.k} for {name}", "an int or None", do)
    return min(METHODS[name].k or most, most) if settings.k is None else settings.k


def _one_to_n_plus(sources: tuple[Array, ...], settings: Settings) -> Any:
    present = settings.present
    if present is None or bool(present.all()):
        return _linear("1TON", sources, settings)
    return one_to_n_plus(sources, present, k=_size("1TON+", sources, settings)).embedding


def _learnt_metric(sources: tuple[Array, ...], settings: Settings) -> Plan:
    del settings
    count = jnp.asarray(float(sources[0].shape[0]))
    maps = learnt_metric(sources).maps
    return Plan(None, maps, count, join="mean", unit=True, method="AVG-metric")


def _lle(e: tuple[Array, ...], s: Settings) -> Array:
    assert s.key is not None
    k, near = _size("LLE", e, s), min(s.neighbours, e[0].shape[0] - 1)
    return locally_linear(
        e, k=k, neighbours=near, present=s.present, key=s.key, progress=s.progress
    ).embedding


def _autoencoded(
    train: Callable[..., Any], e: tuple[Array, ...], s: Settings, **more: Any
) -> Autoencoder:
    found = train(e, key=s.key, present=s.present, epochs=s.epochs, progress=s.progress, **more)
    return found.parameters


def _autoencoders(ending: str, how: str, **settings: Any) -> dict[str, Method]:
    """Methods of the three kinds of autoencoders, trained with these settings."""

    def averaged(sources: tuple[Array, ...], given: Settings) -> Autoencoder:
        # Codes may be wider than all sources together, as the paper's are for SGNS + LSA.
        k = _size("AAEME", sources, given, wider=True)
        return _autoencoded(averaged_autoencoder, sources, given, k=k, training=training)

    training = Training(**settings)
    kinds = {
        "DAEME": (partial(_autoencoded, decoupled_autoencoder), "codes of each source, coupled"),
        "CAEME": (partial(_autoencoded, concatenated_autoencoder), "codes that decode together"),
    }
    return {
        **{
            name + ending: Method(partial(run, training=training), summary + how, needs="key")
            for name, (run, summary) in kinds.items()
        },
        "AAEME" + ending: Method(averaged, "codes that are added up" + how, needs="key", k=300),
    }


METHODS: dict[str, Method] = {
    **{
        name: Method(partial(_linear, name), plan.summary, plan.needs, plan.missing, plan.k)
        for name, plan in PLANS.items()
    },
    "exact": Method(_exact, WEIGHTINGS["exact"].summary, needs="ideal"),
    "1TON-released": Method(
        lambda e, s: released_one_to_n(e, k=_size("1TON-released", e, s), key=s.key).embedding,
        "the same by the released descent",
        needs="key",
        missing=False,
        k=300,
        unplanned="use '1TON', the minimum that it descends to",
    ),
    "AVG-metric": Method(
        _learnt_metric,
        "mean after rotation, in a metric by which words are like themselves",
        missing=False,
    ),
    "1TON+": Method(
        _one_to_n_plus,
        "1TON fitted to the words that each source has",
        k=300,
        unplanned="predict missing words first (missing='predict'), and use '1TON'",
    ),
    "LLE": Method(
        _lle,
        "words made up of their neighbours in all sources",
        needs="key",
        k=200,
        unplanned="it places the words that it is given beside each other; use a linear method",
    ),
    **_autoencoders("", ""),
    **_autoencoders("-cosine", ", by the angles of rows", cost=squared_cosine_proximity),
}
"""Name to method."""
