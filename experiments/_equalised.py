"""Sources of one corpus by the rule "equalised", the same by the paper's, and how long they take.

Their steps are in a folder of their own in the cache, so that the time is that from the text on.
"""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta
from experiments import _trained, corpus_to_sources
from jaxmeta import Recipe
from jaxmeta.eigen import leading_eigenpairs, multiply_by
from jaxmeta.files import Cache
from jaxmeta.spectral import Spectrum
from jaxmeta.text import Source

SIGNALS = {"PPMI": "LSA", "log counts": "GloVe", "PMI - log 3": "SGNS"}
"""Name of a signal to that of the method which has it."""


class Pair(NamedTuple):
    """One signal by both rules."""

    paper: Source
    equalised: Source


def sources(
    config: corpus_to_sources.Config,
    recipes: Sequence[Recipe],
    signals: Sequence[str],
    alpha: float,
    cache: Path,
) -> dict[str, Pair]:
    """Signals by both rules at an exponent."""
    own = [r for r in recipes if r.name in {SIGNALS[signal] for signal in signals}]
    built = [_by(rule, config, own, alpha, cache) for rule in ("paper", "equalised")]
    by_name = {pair[0].name: Pair(*pair) for pair in zip(*built, strict=True)}
    return {signal: by_name[SIGNALS[signal]] for signal in signals}


def widened(
    config: corpus_to_sources.Config,
    recipes: Sequence[Recipe],
    signal: str,
    pair: Pair,
    rank: int,
    cache: Path,
) -> Pair:
    """The pair with at least so many directions of the signal as it is."""
    source, name = pair.equalised, SIGNALS[signal]
    if rank <= len(source.spectrum.values):
        return pair
    (recipe,) = (r for r in recipes if r.name == name)

    def make() -> dict[str, np.ndarray]:
        words = jaxmeta.text.given_vocabulary(source.words)
        counts = jaxmeta.text.count_windows(recipe.corpus, words, window=config.window)
        made = recipe.signal(jaxmeta.text.symmetric_window(counts.whole))
        multiply = multiply_by(made.astype(source.spectrum.values.dtype))
        found = leading_eigenpairs(multiply, n=len(words.words), rank=rank, key=jax.random.key(1))
        return {"values": np.asarray(found.values), "vectors": np.asarray(found.vectors)}

    # Values of the source tell one text from another.
    key = {"signal": name, "rank": rank, "values": np.asarray(source.values).tolist()}
    found = Cache(cache).arrays("directions", key, make)
    spectrum = Spectrum(jnp.asarray(found["vectors"]), jnp.abs(found["values"]))
    return Pair(pair.paper, source._replace(spectrum=spectrum))


def build_time(
    config: corpus_to_sources.Config, recipes: Sequence[Recipe], cache: Path
) -> _trained.Time:
    """Of all signals by the rule "equalised", at the exponent of the configuration.

    NaN if some steps were in the cache when they were built.
    """

    def make() -> dict[str, np.ndarray]:
        cold = not any(_folder(config, cache).glob("*"))
        _by("equalised", config, recipes, config.alpha, cache)
        return {"cold": np.array(cold)}

    key: dict[str, Any] = {"sources": dataclasses.asdict(config)}
    made, took = _trained.timed(Cache(cache), "time", key, make)
    return took if made["cold"] else _trained.Time(np.nan, np.nan)


def _by(
    rule: str,
    config: corpus_to_sources.Config,
    recipes: Sequence[Recipe],
    alpha: float,
    cache: Path,
) -> tuple[Source, ...]:
    told = dataclasses.replace(config, rule=rule, alpha=alpha)
    return corpus_to_sources.build(told, recipes, _folder(config, cache))


def _folder(config: corpus_to_sources.Config, cache: Path) -> Path:
    text = json.dumps(dataclasses.asdict(config), sort_keys=True)
    return cache / f"equalised_{hashlib.sha256(text.encode()).hexdigest()[:8]}"
