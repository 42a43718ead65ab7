r"""Every way of combining sources, by name.

`METHODS` is the one list that experiments, commands and users see; `meta_embedding` runs an entry.
That is a function of the sources and of `Settings`, with a line on what it is, what it needs, and
whether it can do with sources that lack words.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from jaxmeta import _checks
from jaxmeta.methods.autoencode import (
    averaged_autoencoder,
    concatenated_autoencoder,
    decoupled_autoencoder,
)
from jaxmeta.combine import average, concatenate, known, rotated_average, svd_reduce
from jaxmeta.methods.lle import locally_linear
from jaxmeta.noise import usvt
from jaxmeta.methods.one_ton import one_to_n, one_to_n_plus, released_one_to_n
from jaxmeta.prepare import rank_weights, standardise, unit_rows
from jaxmeta.progress import Progress
from jaxmeta.spectral import spectrum_of
from jaxmeta.weights import (
    aligned_weights,
    dimension_weights,
    released_dimension_weights,
    shrinkage_weights,
    source_weights,
)

__all__ = ["METHODS", "Method", "Settings", "meta_embedding"]


class Settings(NamedTuple):
    """What a method may need beside the sources."""

    present: Bool[Array, "n N"] | None = None
    """Whether source j has word w; None if all do."""
    sigmas: tuple[float, ...] | None = None
    """The noise in an entry of each source's signal: see `noise_std`, `build_sources`."""
    alpha: float = 0.5
    """The exponent with which sources were made of their signals."""
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
    """"sigmas", "key" or "": the field of `Settings` that must be given."""
    missing: bool = True
    """Whether sources may lack words."""
    k: int | None = None
    """Dimensions unless said otherwise; None if the sources decide."""


def meta_embedding(
    name: str, sources: Sequence[Float[Array, "n _"]], settings: Settings | None = None
) -> Float[Array, "n m"]:
    """The meta-embedding of the sources by the method of that name, one of `METHODS`.

    >>> import jax.numpy as jnp
    >>> sources = (jnp.ones((3, 1)), jnp.eye(3)[:, :2])
    >>> print(meta_embedding("UW", sources).shape, meta_embedding("AVG", sources).shape)
    (3, 3) (3, 2)
    """
    if name not in METHODS:
        raise ValueError(f"name: got {name!r}, expected one of {', '.join(METHODS)}; choose one.")
    settings = settings or Settings()
    method = METHODS[name]
    known(sources, settings.present)  # the checks alone
    if method.needs and getattr(settings, method.needs) is None:
        how = {
            "sigmas": "estimate the noise with noise_std or build_sources, or use 'default'",
            "key": "pass key=jax.random.key(0)",
        }[method.needs]
        raise ValueError(f"settings.{method.needs}: got None, expected it for {name}; {how}.")
    if settings.sigmas is not None:
        _checks.count("settings.sigmas", settings.sigmas, len(sources))
    if not method.missing and settings.present is not None and not bool(settings.present.all()):
        raise ValueError(
            f"settings.present: got words that a source lacks, expected all for {name}; align with "
            "vocabulary='intersection' or missing='predict', and leave present out."
        )
    return method.run(tuple(sources), settings)


def _unweighted(sources: tuple[Array, ...], settings: Settings) -> Array:
    return concatenate(known(sources, settings.present))


def _row_normalised(sources: tuple[Array, ...], settings: Settings) -> Array:
    return concatenate(tuple(map(unit_rows, known(sources, settings.present))))


def _default(sources: tuple[Array, ...], settings: Settings) -> Array:
    present = settings.present
    ready = tuple(
        standardise(source, present=None if present is None else present[:, j])
        for j, source in enumerate(sources)
    )
    return concatenate(ready, rank_weights(ready))


def _weighted(weigh: Callable[..., Any], sources: tuple[Array, ...], settings: Settings) -> Array:
    """Concatenation on principal axes, by weights from values, noise, n and alpha."""
    sources, n = known(sources, settings.present), sources[0].shape[0]
    spectra = [spectrum_of(source, alpha=settings.alpha) for source in sources]
    values = tuple(spectrum.values for spectrum in spectra)
    assert settings.sigmas is not None
    weights = weigh(values, settings.sigmas, n, settings.alpha)
    axes = tuple(s.vectors * (s.values**settings.alpha)[None, :] for s in spectra)
    return concatenate(axes, weights)


def _ideals(values: Any, sigmas: Any, n: int) -> tuple[Array, ...]:
    return tuple(usvt(v, sigma=s, n=n) for v, s in zip(values, sigmas, strict=True))


def _sw(values: Any, sigmas: Any, n: int, alpha: float) -> Any:
    return source_weights(_ideals(values, sigmas, n), values, alpha=alpha)


def _dw(values: Any, sigmas: Any, n: int, alpha: float) -> Any:
    return dimension_weights(_ideals(values, sigmas, n), values, alpha=alpha)


def _each(weigh: Callable[..., Array], values: Any, sigmas: Any, n: int, alpha: float) -> Any:
    """Weights of each source by itself."""
    pairs = zip(values, sigmas, strict=True)
    return tuple(weigh(v, sigma=s, n=n, alpha=alpha) for v, s in pairs)


def _aligned(values: Any, sigmas: Any, n: int, alpha: float) -> Any:
    return aligned_weights(values, sigmas=jnp.asarray(sigmas, values[0].dtype), n=n, alpha=alpha)


def _average(sources: tuple[Array, ...], settings: Settings) -> Array:
    return average(sources, present=settings.present)


def _rotated(sources: tuple[Array, ...], settings: Settings) -> Array:
    return rotated_average(sources, present=settings.present).embedding


def _size(name: str, sources: tuple[Array, ...], settings: Settings) -> int:
    """Dimensions that are asked for, or the paper's, if the sources have as many."""
    most = min(sources[0].shape[0] - 1, sum(source.shape[1] for source in sources))
    return min(METHODS[name].k or most, most) if settings.k is None else settings.k


def _svd(sources: tuple[Array, ...], settings: Settings) -> Array:
    return svd_reduce(sources, k=_size("SVD", sources, settings), present=settings.present)


def _one_to_n(sources: tuple[Array, ...], settings: Settings) -> Array:
    return one_to_n(sources, k=_size("1TON", sources, settings)).embedding


def _released_one_to_n(sources: tuple[Array, ...], settings: Settings) -> Array:
    k = _size("1TON as released", sources, settings)
    return released_one_to_n(sources, k=k, key=settings.key).embedding


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
    return train(
        sources,
        key=settings.key,
        present=settings.present,
        epochs=settings.epochs,
        progress=settings.progress,
        **more,
    ).embedding


def _aaeme(sources: tuple[Array, ...], settings: Settings) -> Array:
    return _autoencoded(
        averaged_autoencoder, sources, settings, k=_size("AAEME", sources, settings)
    )


def _by_noise(weigh: Callable[..., Any], summary: str) -> Method:
    return Method(partial(_weighted, weigh), summary, needs="sigmas")


METHODS: dict[str, Method] = {
    "default": Method(_default, "standardised sources, weights by effective rank; for files"),
    "UW": Method(_unweighted, "concatenation as it is"),
    "UW, unit rows": Method(_row_normalised, "concatenation of rows of length 1"),
    "SW": _by_noise(_sw, "source weights, Eq. 9, to each source's own USVT ideal"),
    "DW": _by_noise(_dw, "dimension weights, Eq. 8, to each source's own USVT ideal"),
    "DW as released": _by_noise(
        partial(_each, released_dimension_weights), "the reciprocal of DW, as in the released code"
    ),
    "spiked": _by_noise(partial(_each, shrinkage_weights), "weights that know what noise turns"),
    "aligned": _by_noise(_aligned, "the best weights if sources share one ideal"),
    "AVG": Method(_average, "mean of the sources, padded with zeros"),
    "AVG, rotated": Method(_rotated, "mean after rotation of the sources onto each other"),
    "SVD": Method(_svd, "leading directions of the concatenation", k=200),
    "1TON": Method(_one_to_n, "one embedding that all sources are linear in", missing=False, k=300),
    "1TON as released": Method(
        _released_one_to_n, "the same by the released descent", needs="key", missing=False, k=300
    ),
    "1TON+": Method(_one_to_n_plus, "1TON fitted to the words that each source has", k=300),
    "LLE": Method(_lle, "words made up of their neighbours in all sources", needs="key", k=200),
    "DAEME": Method(
        partial(_autoencoded, decoupled_autoencoder), "codes of each source, coupled", needs="key"
    ),
    "CAEME": Method(
        partial(_autoencoded, concatenated_autoencoder), "codes that decode together", needs="key"
    ),
    "AAEME": Method(_aaeme, "codes that are added up", needs="key", k=300),
}
"""Name to method."""
