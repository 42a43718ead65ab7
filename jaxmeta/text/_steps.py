"""The steps from a corpus to its eigenpairs, each kept under the settings that it depends on."""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array
from scipy.sparse import csr_array

from jaxmeta import _checks, _files
from jaxmeta.eigen import Density, Eigenpairs, eigenvalue_density, leading_eigenpairs, multiply_by
from jaxmeta.noise import noise_std
from jaxmeta.progress import Progress
from jaxmeta.text._identity import identity
from jaxmeta.text.corpus import Corpus, Vocabulary, build_vocabulary, paths_of
from jaxmeta.text.counting import Counts, count_windows, from_arrays, symmetric_window, to_arrays

__all__ = ["Counting", "Steps", "contents", "vocabulary_of"]

VERSION = 1  # of all steps: one more whenever a step gives other numbers than before
RANKS = 16  # eigenpairs are computed by multiples of this, or all

Arrays = dict[str, np.ndarray]


def contents(corpus: Corpus) -> str:
    """Tell in a word what a corpus holds and how it is read."""
    files = [_files.digest(path) for path in paths_of(corpus.path)]
    how = [identity(corpus.tokenise), corpus.lines_are_documents, corpus.encoding]
    return hashlib.sha256(json.dumps([VERSION, files, how]).encode()).hexdigest()


def vocabulary_of(
    store: _files.Cache, corpus: Corpus, key: str, min_count: int, progress: Progress
) -> Vocabulary:
    """Read the vocabulary of a corpus, whose contents `key` tells."""

    def make() -> Arrays:
        words, counts, tokens = build_vocabulary(corpus, min_count=min_count, progress=progress)
        text = np.frombuffer("\n".join(words).encode(), np.uint8)
        return {"words": text, "counts": counts, "tokens": np.asarray(tokens)}

    stored = store.arrays("vocabulary", {"corpus": key, "min_count": min_count}, make)
    words = tuple(stored["words"].tobytes().decode().split("\n"))
    return Vocabulary(words, stored["counts"], int(stored["tokens"]))


@dataclasses.dataclass(frozen=True)
class Counting:
    """Counts of one corpus are looked at only if a step that needs them is not in the cache."""

    store: _files.Cache
    settings: dict[str, Any]
    """What the whole depends on: it is the same however it is split."""
    split: dict[str, Any]
    """What the halves depend on besides."""
    corpus: Corpus
    vocabulary: Vocabulary
    options: dict[str, Any]
    """Of `count_windows`."""

    @functools.cached_property
    def counted(self) -> Counts:
        return count_windows(self.corpus, self.vocabulary, **self.options)

    @functools.cached_property
    def whole(self) -> Counts:
        def make() -> Arrays:
            none = self.none
            return to_arrays(Counts(self.vocabulary.words, none, none, self.counted.whole))

        return from_arrays(self.store.arrays("counts", self.settings, make))

    @functools.cached_property
    def halves(self) -> Counts:
        def make() -> Arrays:
            _ = self.whole  # of the same pass: kept now, should the next step be interrupted
            return to_arrays(dataclasses.replace(self.counted, across=self.none))

        return from_arrays(self.store.arrays("halves", self.settings | self.split, make))

    @property
    def none(self) -> tuple[csr_array, ...]:
        """No pair at any offset."""
        return tuple(csr_array(x.shape, dtype=x.dtype) for x in self.counted.across)


@dataclasses.dataclass(frozen=True)
class Steps:
    """Each step of one signal comes from the cache if it is there."""

    counting: Counting
    name: str
    make: Callable[[csr_array], Any]
    """From sparse counts to a sparse signal."""
    weights: Sequence[float] | np.ndarray | None
    """Of the window's offsets."""
    tolerance: float
    progress: Progress

    def arrays(self, stage: str, key: dict[str, Any], make: Callable[[], Arrays]) -> Arrays:
        return self.counting.store.arrays(stage, self.settings | key, make)

    @functools.cached_property
    def settings(self) -> dict[str, Any]:
        kept = self.counting.store.folder is not None
        return self.counting.settings | {
            "signal": identity(self.make) if kept else None,
            "weights": None if self.weights is None else np.asarray(self.weights).tolist(),
            "dtype": str(jnp.result_type(float)),
        }

    def say(self, stage: str, fraction: float) -> None:
        self.progress(f"{self.name} {stage}", fraction)

    def signal(self, part: str) -> csr_array:
        """The signal of the whole corpus, or of its first or second half."""
        counts = self.counting.whole if part == "whole" else self.counting.halves
        made = self.make(symmetric_window(getattr(counts, part), weights=self.weights))
        if not scipy.sparse.issparse(made):
            given = f"signal of {self.name}", f"a {type(made).__name__}", "a SciPy sparse matrix"
            _checks.fail(*given, "use log_count, shifted_pmi or ppmi", TypeError)
        return made.astype(jnp.result_type(float))

    @functools.cached_property
    def multiply(self) -> Callable[[Array], Array]:
        return multiply_by(self.signal("whole"))

    @functools.cached_property
    def sigma(self) -> float:
        def make() -> Arrays:
            self.say("noise", 0.0)
            sigma = noise_std(self.signal("first"), self.signal("second"))
            self.say("noise", 1.0)
            return {"sigma": np.asarray(sigma)}

        return float(self.arrays("noise", self.counting.split, make)["sigma"])

    @functools.cached_property
    def density(self) -> Density:
        def make() -> Arrays:
            found = eigenvalue_density(self.multiply, n=self.n, key=jax.random.key(0))
            return {name: np.asarray(x) for name, x in found._asdict().items()}

        stored = self.arrays("density", {}, make)
        return Density(jnp.asarray(stored["points"]), jnp.asarray(stored["counts"]))

    @property
    def n(self) -> int:
        return len(self.counting.vocabulary.words)

    def eigenpairs(self, k: int) -> Eigenpairs:
        """More than k leading eigenpairs, or all; cut from more of them if these are kept."""
        # More than wanted, as the density is an estimate; and not of every size, as each compiles.
        rank = min(self.n, RANKS * (2 + 9 * k // (8 * RANKS)))

        def make() -> Arrays:
            found = leading_eigenpairs(
                self.multiply,
                n=self.n,
                rank=rank,
                key=jax.random.key(1),
                tolerance=self.tolerance,
                progress=self.say,
            )
            return {name: np.asarray(x) for name, x in found._asdict().items() if name != "density"}

        key = {"tolerance": self.tolerance}
        for enough in (*range(rank, self.n, RANKS), self.n):
            settings = self.settings | key | {"rank": enough}
            if (stored := self.counting.store.find("eigenpairs", settings)) is not None:
                break
        else:
            stored = self.arrays("eigenpairs", key | {"rank": rank}, make)
        names = ("values", "vectors", "residuals")
        values, vectors, residuals = (jnp.asarray(stored[name][..., :rank]) for name in names)
        return Eigenpairs(values, vectors, residuals, self.density, int(stored["products"]))
