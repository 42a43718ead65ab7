"""Embeddings by name: of single sources, by the methods of the library, and by other weights.

The paper's weights have variants, in print and in its released code:

* `SW`, `DW`: as printed, matched to each source's own USVT spectrum;
* `SW, blocks`, `DW, blocks`: as printed, matched to blocks of one spectrum as in Theorem 1. The
  paper does not say which spectrum; here it is that of all USVT values together;
* `SW as released`, `DW as released`: the released code, where the ratio stands upside down;
* `DW as released in 2020`: its earlier state, where dimension weights have shifted blocks too;
* `SW as released in 2021`, `DW as released in 2021`: its state of one month, with cube roots.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta
from experiments._scoring import Embeddings
from jaxmeta.text import Source


class Store(NamedTuple):
    """Where embeddings are kept, and what their sources are made of."""

    folder: Path
    settings: dict[str, Any]


VARIANTS = (
    "SW, blocks",
    "DW, blocks",
    "SW as released",
    "DW as released",
    "DW as released in 2020",
    "SW as released in 2021",
    "DW as released in 2021",
)


def single(sources: Sequence[Source]) -> Embeddings:
    """Each source by itself."""
    return {source.name: partial(getattr, source, "embedding") for source in sources}


def methods(
    sources: Sequence[Source], names: Sequence[str], *, seed: int, store: Store, **settings: Any
) -> Embeddings:
    """Methods of the library by their names; random ones by the seed, and kept in the store."""
    given = jaxmeta.Settings(
        sigmas=tuple(source.sigma for source in sources),
        alpha=sources[0].alpha,
        key=jax.random.key(seed),
        progress=jaxmeta.ProgressBar(),
        **settings,
    )
    parts = tuple(source.embedding for source in sources)
    of = {"sources": [source.name for source in sources], "seed": seed, **settings}

    def make(name: str) -> Any:
        run = partial(jaxmeta.meta_embedding, name, parts, given)
        if jaxmeta.METHODS[name].needs != "key":
            return run()
        # Training takes minutes: a second run, or another table, need not do it again.
        key = {"method": name, **of, **store.settings}
        kept = jaxmeta.files.Cache(store.folder).arrays(
            "method", key, lambda: {"e": np.asarray(run())}
        )
        return kept["e"]

    return {name: partial(make, name) for name in names}


def variants(
    sources: Sequence[Source], names: Sequence[str] = VARIANTS, *, unit_rows: bool = False
) -> Embeddings:
    """Concatenation by variants of the paper's weights, perhaps of rows at length 1."""
    return {name: partial(_weighted, name, tuple(sources), unit_rows) for name in names}


def powers(sources: Sequence[Source], exponents: Sequence[float]) -> Embeddings:
    """Unweighted concatenation of sources at other exponents."""
    return {f"UW, alpha {alpha:g}": partial(_at, tuple(sources), alpha) for alpha in exponents}


def _at(sources: tuple[Source, ...], alpha: float) -> Any:
    return jaxmeta.concatenate(
        tuple(jaxmeta.embed(s.spectrum, k=s.k, alpha=alpha) for s in sources)
    )


def _weighted(name: str, sources: tuple[Source, ...], unit_rows: bool) -> Any:
    parts = tuple(source.embedding for source in sources)
    if unit_rows:
        parts = tuple(map(jaxmeta.prepare.unit_rows, parts))
    return jaxmeta.concatenate(parts, weights(name, sources))


def weights(name: str, sources: tuple[Source, ...]) -> Any:
    """The weights of a variant; None for UW."""
    n, alpha = len(sources[0].words), sources[0].alpha
    values = tuple(source.values for source in sources)
    usvt = tuple(jaxmeta.usvt(s.values, sigma=s.sigma, n=n) for s in sources)
    weigh = jaxmeta.source_weights if name.startswith("SW") else jaxmeta.dimension_weights
    if name == "UW":
        return None
    if name in ("SW", "DW"):
        return weigh(usvt, values, alpha=alpha)
    if name.endswith("blocks"):
        pooled = jnp.sort(jnp.concatenate(usvt), descending=True)
        return weigh(pooled, values, alpha=alpha)
    if name == "DW as released":
        return tuple(
            jaxmeta.released.released_dimension_weights(s.values, sigma=s.sigma, n=n, alpha=alpha)
            for s in sources
        )
    released: dict[str, Callable[..., Any]] = {
        "SW as released": jaxmeta.released.released_source_weights,
        "DW as released in 2020": jaxmeta.released.released_2020_dimension_weights,
        "SW as released in 2021": jaxmeta.released.released_2021_source_weights,
        "DW as released in 2021": jaxmeta.released.released_2021_dimension_weights,
    }
    # They read beyond the dimensions of a source; there, values are from the density.
    whole = tuple(jnp.abs(jnp.asarray(s.eigenvalues, s.values.dtype)) for s in sources)
    return released[name](
        tuple(jnp.sort(x, descending=True) for x in whole),
        sizes=tuple(source.k for source in sources),
        sigmas=tuple(source.sigma for source in sources),
        n=n,
        alpha=alpha,
    )
