r"""Every way of combining sources, by name.

`METHODS` is the one list that experiments, commands and users see; `meta_embedding` runs an entry.
That is a function of the sources and of `Settings`, with a line on what it is, what it needs, and
whether it can do with sources that lack words. Weighted concatenations are those of `WEIGHTINGS`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float, Key

from jaxmeta import _checks
from jaxmeta._types import Present
from jaxmeta.combine import average, concatenate, known, rotated_average, svd_reduce
from jaxmeta.files.alignment import Aligned
from jaxmeta.files.vectors import Vectors
from jaxmeta.methods.autoencode import (
    averaged_autoencoder,
    concatenated_autoencoder,
    decoupled_autoencoder,
)
from jaxmeta.methods.lle import locally_linear
from jaxmeta.methods.one_ton import one_to_n, one_to_n_plus
from jaxmeta.prepare import standardise, unit_rows
from jaxmeta.progress import Progress
from jaxmeta.quadratic import pip_quadratic
from jaxmeta.released import released_one_to_n
from jaxmeta.spectral import embed, spectrum_of
from jaxmeta.text.sources import Source
from jaxmeta.weightings import WEIGHTINGS, Observed, Weighting, weigh
from jaxmeta.weights import rank_weights

__all__ = ["METHODS", "Method", "Settings", "meta_embedding"]


class Settings(NamedTuple):
    """What a method may need beside the sources."""

    present: Present | None = None
    """Whether source j has word w; None if all do."""
    sigmas: tuple[float, ...] | None = None
    """The noise in an entry of each source's signal: see `noise_std`, `build_sources`."""
    alpha: float = 0.5
    """The exponent with which sources were made of their signals."""
    observed: tuple[Observed, ...] | None = None
    """What weights depend on, source by source, if that is more than `sigmas` and `alpha` say."""
    ideal: Float[Array, "n d"] | None = None
    """The ideal embedding, where it is known."""
    k: int | None = None
    """Dimensions of the result, where they can be chosen; None is the paper's choice."""
    neighbours: int = 2000
    """Of a word in each source, for LLE."""
    key: Key[Array, ""] | None = None
    """For what is random."""
    epochs: int = 200
    """Of training, for autoencoders."""
    progress: Progress | None = None


class Method(NamedTuple):
    """A way of combining sources."""

    run: Callable[[tuple[Array, ...], Settings], Array]
    summary: str
    needs: str = ""
    """"sigmas", "ideal", "key" or "": the field of `Settings` that must be given."""
    missing: bool = True
    """Whether sources may lack words."""
    k: int | None = None
    """Dimensions unless said otherwise; None if the sources decide."""


_HOW = {
    "sigmas": "estimate the noise with noise_std or build_sources, or use 'default'",
    "ideal": "pass the ideal embedding, or use another method",
    "key": "pass key=jax.random.key(0)",
}


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

    Sources with words give `Vectors`, words and a matrix; arrays give an array.

    >>> import jax.numpy as jnp
    >>> sources = (jnp.ones((3, 1)), jnp.eye(3)[:, :2])
    >>> print(meta_embedding("UW", sources).shape, meta_embedding("AVG", sources).shape)
    (3, 3) (3, 2)
    """
    _checks.one_of("name", name, METHODS)
    method, settings = METHODS[name], settings or Settings()
    words, sources, settings = _unpacked(sources, settings)
    known(sources, settings.present)  # the checks alone
    by_noise = method.needs == "sigmas" and settings.observed is not None
    if method.needs and getattr(settings, method.needs) is None and not by_noise:
        do = _HOW[method.needs]
        _checks.fail(f"settings.{method.needs}", "None", f"it for {name}", do)
    for field in ("sigmas", "observed"):
        if getattr(settings, field) is not None:
            _checks.count(f"settings.{field}", getattr(settings, field), len(sources))
    if not method.missing and settings.present is not None and not bool(settings.present.all()):
        do = "align with vocabulary='intersection' or missing='predict', and leave present out"
        _checks.fail("settings.present", "words that a source lacks", f"all for {name}", do)
    found = method.run(tuple(sources), settings)
    return found if words is None else Vectors(words, np.asarray(found))


def _unpacked(
    sources: Any, settings: Settings
) -> tuple[tuple[str, ...] | None, Sequence[Array], Settings]:
    """Words, arrays, and settings with what sources carry besides."""
    if isinstance(sources, Aligned):
        # Rows that were filled in are there to be used; those of zeros stand for nothing.
        filled = all(each.how in ("", "mean", "predict") for each in sources.coverage)
        if settings.present is None and not filled:
            settings = settings._replace(present=sources.present)
        return sources.words, sources.sources, settings
    carry = [isinstance(source, Source) for source in sources]
    if not any(carry):
        return None, sources, settings
    first = sources[0]
    if not all(carry) or any(s.words != first.words or s.alpha != first.alpha for s in sources):
        expected = "arrays alone, or Sources of one vocabulary and one alpha"
        _checks.fail("sources", "sources of several kinds", expected, "build them together")
    settings = settings._replace(observed=tuple(s.observed for s in sources), alpha=first.alpha)
    return first.words, tuple(s.embedding for s in sources), settings


def _weighted(name: str, sources: tuple[Array, ...], settings: Settings) -> Array:
    """Concatenation on principal axes, under the weights of that name."""
    sources, observed = known(sources, settings.present), settings.observed
    if observed is None:
        spectra = [spectrum_of(source, alpha=settings.alpha) for source in sources]
        k, n = [spectrum.values.shape[0] for spectrum in spectra], sources[0].shape[0]
        sources = tuple(
            embed(s, k=size, alpha=settings.alpha) for s, size in zip(spectra, k, strict=True)
        )
        sigmas = settings.sigmas or (None,) * len(sources)
        observed = tuple(
            Observed(s.values, n, settings.alpha, sigma)
            for s, sigma in zip(spectra, sigmas, strict=True)
        )
    ideal = None if settings.ideal is None else pip_quadratic(settings.ideal, sources)
    return concatenate(sources, weigh(name, observed, ideal))


def _default(sources: tuple[Array, ...], settings: Settings) -> Array:
    present = settings.present
    ready = tuple(
        standardise(source, present=None if present is None else present[:, j])
        for j, source in enumerate(sources)
    )
    return concatenate(ready, rank_weights(ready))


def _size(name: str, sources: tuple[Array, ...], settings: Settings) -> int:
    """Dimensions that are asked for, or the paper's, if the sources have as many."""
    most = min(sources[0].shape[0] - 1, sum(source.shape[1] for source in sources))
    return min(METHODS[name].k or most, most) if settings.k is None else settings.k


def _one_to_n_plus(sources: tuple[Array, ...], settings: Settings) -> Array:
    k = _size("1TON+", sources, settings)
    if settings.present is None:
        return one_to_n(sources, k=k).embedding
    return one_to_n_plus(sources, settings.present, k=k).embedding


def _lle(sources: tuple[Array, ...], settings: Settings) -> Array:
    assert settings.key is not None
    return locally_linear(
        sources,
        k=_size("LLE", sources, settings),
        neighbours=min(settings.neighbours, sources[0].shape[0] - 1),
        present=settings.present,
        key=settings.key,
        progress=settings.progress,
    ).embedding


def _autoencoded(
    train: Callable[..., Any], sources: tuple[Array, ...], settings: Settings, **more: int
) -> Array:
    key, present, epochs = settings.key, settings.present, settings.epochs
    progress = settings.progress
    found = train(sources, key=key, present=present, epochs=epochs, progress=progress, **more)
    return found.embedding


def _by_weights(name: str, weighting: Weighting) -> Method:
    needs = {"": "", "ideal": "ideal"}.get(weighting.needs, "sigmas")
    return Method(partial(_weighted, name), weighting.summary, needs)


METHODS: dict[str, Method] = {
    "default": Method(_default, "standardised sources, weights by effective rank; for files"),
    "UW": Method(lambda e, s: concatenate(known(e, s.present)), "concatenation as it is"),
    "UW, unit rows": Method(
        lambda e, s: concatenate(tuple(map(unit_rows, known(e, s.present)))),
        "concatenation of rows of length 1",
    ),
    **{name: _by_weights(name, found) for name, found in WEIGHTINGS.items() if name != "UW"},
    "AVG": Method(
        lambda e, s: average(e, present=s.present), "mean of the sources, padded with zeros"
    ),
    "AVG, rotated": Method(
        lambda e, s: rotated_average(e, present=s.present).embedding,
        "mean after rotation of the sources onto each other",
    ),
    "SVD": Method(
        lambda e, s: svd_reduce(e, k=_size("SVD", e, s), present=s.present),
        "leading directions of the concatenation",
        k=200,
    ),
    "1TON": Method(
        lambda e, s: one_to_n(e, k=_size("1TON", e, s)).embedding,
        "one embedding that all sources are linear in",
        missing=False,
        k=300,
    ),
    "1TON as released": Method(
        lambda e, s: released_one_to_n(e, k=_size("1TON as released", e, s), key=s.key).embedding,
        "the same by the released descent",
        needs="key",
        missing=False,
        k=300,
    ),
    "1TON+": Method(_one_to_n_plus, "1TON fitted to the words that each source has", k=300),
    "LLE": Method(_lle, "words made up of their neighbours in all sources", needs="key", k=200),
    "DAEME": Method(
        partial(_autoencoded, decoupled_autoencoder), "codes of each source, coupled", needs="key"
    ),
    "CAEME": Method(
        partial(_autoencoded, concatenated_autoencoder), "codes that decode together", needs="key"
    ),
    "AAEME": Method(
        lambda e, s: _autoencoded(averaged_autoencoder, e, s, k=_size("AAEME", e, s)),
        "codes that are added up",
        needs="key",
        k=300,
    ),
}
"""Name to method."""
