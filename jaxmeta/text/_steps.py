"""The steps from a corpus to its eigenpairs, each kept under the settings that it depends on."""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array
from scipy.sparse import csr_array

from jaxmeta import _files
from jaxmeta.eigen import Density, Eigenpairs, eigenvalue_density, leading_eigenpairs, multiply_by
from jaxmeta.noise import noise_std
from jaxmeta.progress import Progress
from jaxmeta.text.corpus import Corpus, Vocabulary, build_vocabulary, paths_of
from jaxmeta.text.counting import Counts, from_arrays, symmetric_window, to_arrays

__all__ = [
    "RANKS",
    "Counting",
    "Steps",
    "contents",
    "identity",
    "occurrences",
    "signal_of",
    "vocabulary_of",
]

VERSION = 1  # of all steps: one more whenever a step gives other numbers than before

RANKS = 16  # eigenpairs are computed by multiples of this, or all


@dataclasses.dataclass(frozen=True)
class Counting:
    """Counts of one corpus, looked at only if a step that needs them is not in the cache.

    One pass counts the whole and the halves. They are kept apart, as the whole is the same however
    it is split.
    """

    store: _files.Cache
    settings: dict[str, Any]
    settings_of_halves: dict[str, Any]
    count: Callable[[], Counts]

    @functools.cached_property
    def counted(self) -> Counts:
        return self.count()

    @functools.cached_property
    def whole(self) -> Counts:
        def make() -> dict[str, np.ndarray]:
            counts = self.counted
            none = _none(counts)
            return to_arrays(Counts(counts.words, none, none, counts.whole))

        return from_arrays(self.store.arrays("counts", self.settings, make))

    @functools.cached_property
    def halves(self) -> Counts:
        def make() -> dict[str, np.ndarray]:
            _ = self.whole  # of the same pass: kept now, should the next step be interrupted
            return to_arrays(dataclasses.replace(self.counted, across=_none(self.counted)))

        return from_arrays(self.store.arrays("halves", self.settings_of_halves, make))


def _none(counts: Counts) -> tuple[csr_array, ...]:
    return tuple(csr_array(x.shape, dtype=x.dtype) for x in counts.across)


@dataclasses.dataclass(frozen=True)
class Steps:
    """What is known of one signal, step by step, from the cache if it is there."""

    store: _files.Cache
    settings: dict[str, Any]
    settings_of_noise: dict[str, Any]
    signal: Callable[[str], csr_array]
    n: int
    tolerance: float
    recipe: Any
    progress: Progress

    def say(self, stage: str, fraction: float) -> None:
        self.progress(f"{self.recipe.name} {stage}", fraction)

    @functools.cached_property
    def multiply(self) -> Callable[[Array], Array]:
        return multiply_by(self.signal("whole"))

    def noise(self) -> float:
        def make() -> dict[str, np.ndarray]:
            self.say("noise", 0.0)
            sigma = noise_std(self.signal("first"), self.signal("second"))
            self.say("noise", 1.0)
            return {"sigma": np.asarray(sigma)}

        return float(self.store.arrays("noise", self.settings_of_noise, make)["sigma"])

    def density(self) -> Density:
        def make() -> dict[str, np.ndarray]:
            found = eigenvalue_density(self.multiply, n=self.n, key=jax.random.key(0))
            return {name: np.asarray(x) for name, x in found._asdict().items()}

        stored = self.store.arrays("density", self.settings, make)
        return Density(jnp.asarray(stored["points"]), jnp.asarray(stored["counts"]))

    def eigenpairs(self, rank: int, density: Density) -> Eigenpairs:
        names = ("values", "vectors", "residuals", "products")

        def make() -> dict[str, np.ndarray]:
            found = leading_eigenpairs(
                self.multiply,
                n=self.n,
                rank=rank,
                key=jax.random.key(1),
                tolerance=self.tolerance,
                progress=self.say,
            )
            return {name: np.asarray(getattr(found, name)) for name in names}

        key = self.settings | {"tolerance": self.tolerance}
        for enough in (*range(rank, self.n, RANKS), self.n):
            stored = self.store.find("eigenpairs", key | {"rank": enough})
            if stored is not None:
                break
        else:
            stored = self.store.arrays("eigenpairs", key | {"rank": rank}, make)
        values, vectors, residuals = (jnp.asarray(stored[name][..., :rank]) for name in names[:3])
        return Eigenpairs(values, vectors, residuals, density, int(stored["products"]))


def signal_of(
    recipe: Any,
    counting: Counting,
    weights: Sequence[float] | np.ndarray | None,
    part: str,
) -> csr_array:
    """The signal of the whole corpus, or of its first or second half."""
    counts = counting.whole if part == "whole" else counting.halves
    made = recipe.signal(symmetric_window(getattr(counts, part), weights=weights))
    if not scipy.sparse.issparse(made):
        raise TypeError(
            f"signal of {recipe.name}: got a {type(made).__name__}, expected a SciPy sparse "
            "matrix; use log_count, shifted_pmi or ppmi."
        )
    return made.astype(jnp.result_type(float))


def vocabulary_of(
    store: _files.Cache, corpus: Corpus, key: str, min_count: int, say: Progress
) -> Vocabulary:
    def make() -> dict[str, np.ndarray]:
        words, counts, tokens = build_vocabulary(corpus, min_count=min_count, progress=say)
        text = np.frombuffer("\n".join(words).encode(), np.uint8)
        return {"words": text, "counts": counts, "tokens": np.asarray(tokens)}

    stored = store.arrays("vocabulary", {"corpus": key, "min_count": min_count}, make)
    words = tuple(stored["words"].tobytes().decode().split("\n"))
    return Vocabulary(words, stored["counts"], int(stored["tokens"]))


def occurrences(vocabulary: Vocabulary, words: Sequence[str]) -> int:
    """How many tokens are one of the words."""
    counts = dict(zip(vocabulary.words, vocabulary.counts.tolist(), strict=True))
    return sum(counts.get(word, 0) for word in words)


def contents(corpus: Corpus) -> str:
    """What a corpus holds and how it is read, in a word."""
    files = [_files.digest(path) for path in paths_of(corpus.path)]
    how = [identity(corpus.tokenise), corpus.lines_are_documents, corpus.encoding]
    return hashlib.sha256(json.dumps([VERSION, files, how]).encode()).hexdigest()


def identity(function: Callable[..., Any]) -> str:
    """A name by which a function is known again in another run."""
    if isinstance(function, partial):
        given = [repr(x) for x in function.args]
        given += [f"{name}={x!r}" for name, x in sorted(function.keywords.items())]
        return f"{identity(function.func)}({', '.join(given)})"
    name = f"{function.__module__}.{function.__qualname__}"
    if "<" in name:
        raise ValueError(
            f"cache: got {name}, expected functions that have a name of their own; define it at "
            "the top of a module, or pass cache=None."
        )
    return name
