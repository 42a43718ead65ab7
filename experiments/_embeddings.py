"""Embeddings by name: of single sources, by the methods of the library, and at other exponents.

The paper's weights have variants, in print and in its released code: `jaxmeta.WEIGHTINGS` says what
each of them is.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxmeta
from experiments._labels import name_of
from experiments._scoring import Embeddings
from jaxmeta.evaluate import WordPairs, tuned_weights
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
    sources: Sequence[Source],
    labels: Sequence[str],
    *,
    seed: int = 0,
    store: Store | None = None,
    **settings: Any,
) -> Embeddings:
    """Methods of the library by their labels; random ones by the seed, and kept in the store."""
    key, progress = jax.random.key(seed), jaxmeta.ProgressBar()
    given = jaxmeta.Settings(key=key, progress=progress, **settings)
    of = {"sources": [source.name for source in sources], "seed": seed, **settings}

    def make(label: str) -> np.ndarray:
        name = name_of(label)

        def run() -> dict[str, np.ndarray]:
            return {"e": jaxmeta.meta_embedding(name, tuple(sources), given).matrix}

        if store is None or jaxmeta.METHODS[name].needs != "key":
            return run()["e"]
        # Training takes minutes: a second run, or another table, need not do it again.
        usual = {"method": label, "usual k": jaxmeta.METHODS[name].k}
        settings_of = {**usual, **of, **store.settings}
        return jaxmeta.files.Cache(store.folder).arrays("method", settings_of, run)["e"]

    return {label: partial(make, label) for label in labels}


def of_unit_rows(sources: Sequence[Source], labels: Sequence[str]) -> Embeddings:
    """Concatenation of rows at length 1 by weights of those labels."""
    parts = tuple(jaxmeta.prepare.unit_rows(source.embedding) for source in sources)

    def make(label: str) -> Any:
        return jaxmeta.concatenate(parts, weights(label, sources))

    return {label: partial(make, label) for label in labels}


def tuned(sources: Sequence[Source], pairs: WordPairs) -> Callable[[], Any]:
    """Concatenation of rows at length 1 by the source weights that score best on these pairs."""
    parts = tuple(jaxmeta.prepare.unit_rows(source.embedding) for source in sources)

    def make() -> Any:
        found = tuned_weights(parts, sources[0].words, pairs)
        return jaxmeta.concatenate(parts, jax.numpy.asarray(found.weights, parts[0].dtype))

    return make


def weights(label: str, sources: Sequence[Source]) -> Any:
    """Weights of that label, from all that sources carry."""
    return jaxmeta.weightings.weigh(name_of(label), [source.observed for source in sources])


def at(sources: Sequence[Source], alpha: float) -> tuple[Source, ...]:
    """The sources at another exponent."""
    return tuple(source._replace(alpha=alpha) for source in sources)


def powers(sources: Sequence[Source], exponents: Sequence[float]) -> Embeddings:
    """Unweighted concatenation of sources at other exponents."""
    return {f"UW, alpha {a:g}": methods(at(sources, a), ("UW",))["UW"] for a in exponents}
