"""Sources of one corpus by the rule "equalised", the same by the paper's, and how long they take.

Their steps are in a folder of their own in the cache, so that the time is that from the text on.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments import _trained, corpus_to_sources
from jaxmeta import Recipe
from jaxmeta.files import Cache
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


def build_time(
    config: corpus_to_sources.Config, recipes: Sequence[Recipe], cache: Path
) -> _trained.Time:
    """Of all signals by the rule "equalised", at the exponent of the configuration.

    NaN if some steps were in the cache when they were built.
    """

    def make() -> dict[str, np.ndarray]:
        cold = not any(_folder(cache).glob("*"))
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
    return corpus_to_sources.build(told, recipes, _folder(cache))


def _folder(cache: Path) -> Path:
    return cache / "equalised"
