"""The steps from a corpus to its eigenpairs, each kept under the settings that it depends on."""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from scipy.sparse import csr_array

from jaxmeta import _checks, _files
from jaxmeta.eigen import (
    Density,
    Eigenpairs,
    Multiply,
    eigenvalue_density,
    leading_eigenpairs,
    multiply_by,
)
from jaxmeta.equalise import equalise
from jaxmeta.nested import NestedNoise, nested_noise
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
    """What the parts depend on besides."""
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
            return to_arrays(Counts(self.vocabulary.words, (self.counted.whole,)))

        return from_arrays(self.store.arrays("whole", self.settings, make))

    @functools.cached_property
    def parts(self) -> Counts:
        def make() -> Arrays:
            _ = self.whole  # of the same pass: kept now, should the next step be interrupted
            return to_arrays(self.counted)

        settings = self.settings | self.split | {"parts": self.options["split"].parts}
        return from_arrays(self.store.arrays("parts", settings, make))


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
    window: Callable[..., csr_array] | None = None
    """From counts by offset to counts, where that is not `symmetric_window`."""

    def arrays(self, stage: str, key: dict[str, Any], make: Callable[[], Arrays]) -> Arrays:
        return self.counting.store.arrays(stage, self.settings | key, make)

    @functools.cached_property
    def settings(self) -> dict[str, Any]:
        kept = self.counting.store.folder is not None
        return self.counting.settings | {
            "signal": identity(self.make) if kept else None,
            "weights": None if self.weights is None else np.asarray(self.weights).tolist(),
            "dtype": str(jnp.result_type(float)),
            **({"near": identity(self.window)} if kept and self.window else {}),
        }

    def say(self, stage: str, fraction: float) -> None:
        self.progress(f"{self.name} {stage}", fraction)

    def near(self, number: int = 1, index: int = 0) -> csr_array:
        """Counts in the window, of the whole corpus or of one of `number` parts."""
        counts = self.counting.whole if number == 1 else self.counting.parts
        offsets = counts.part(number, index)
        if self.window is not None:
            return self.window(offsets)
        return symmetric_window(offsets, weights=self.weights)

    @functools.cached_property
    def total(self) -> float:
        """Of all counts in the window."""
        return float(self.near().sum())

    def signal_of(self, counts: csr_array) -> csr_array:
        made = self.make(counts)
        if not scipy.sparse.issparse(made):
            given = f"signal of {self.name}", f"a {type(made).__name__}", "a SciPy sparse matrix"
            _checks.fail(*given, "use log_count, shifted_pmi or ppmi", TypeError)
        return made.astype(jnp.result_type(float))

    def signal(self, number: int = 1, index: int = 0) -> csr_array:
        """The signal of the whole corpus, or of one of `number` parts: of two, 0 is the first half.

        Counts of a part are multiplied to have the total of the whole. Only logarithms of counts
        depend on it: PMI is the same for any factor.
        """
        counts = self.near(number, index)
        if number > 1:
            counts = counts * (self.total / float(counts.sum()))
        return self.signal_of(counts)

    def part_signals(self, number: int) -> Iterator[csr_array]:
        """Give the signals of `number` parts of the corpus, each made when it is asked for."""
        return (self.signal(number, index) for index in range(number))

    @functools.cached_property
    def sigma(self) -> float:
        def make() -> Arrays:
            self.say("noise", 0.0)
            # The paper takes counts of halves as they are, and not for the total of the whole.
            sigma = noise_std(*(self.signal_of(self.near(2, half)) for half in range(2)))
            self.say("noise", 1.0)
            return {"sigma": np.asarray(sigma)}

        return float(self.arrays("noise", self.counting.split, make)["sigma"])

    @functools.cached_property
    def nested(self) -> NestedNoise:
        """The noise as halves, their halves, and so on tell it."""
        parts = self.counting.options["split"].parts
        numbers = [2**level for level in range(1, parts.bit_length())]

        def make() -> Arrays:
            self.say("nested noise", 0.0)
            found = nested_noise([self.part_signals(number) for number in numbers])
            self.say("nested noise", 1.0)
            return {name: np.asarray(x) for name, x in found._asdict().items()}

        stored = self.arrays("nested", self.counting.split | {"parts": parts}, make)
        found = {name: jnp.asarray(stored[name]) for name in NestedNoise._fields}
        return NestedNoise(**found)

    @property
    def n(self) -> int:
        return len(self.counting.vocabulary.words)

    @functools.cached_property
    def observed(self) -> "Decomposed":
        """The signal as it is."""
        return Decomposed(self, {}, "", self.signal, symmetric=self.window is None)

    @functools.cached_property
    def equalised(self) -> "Decomposed":
        """The signal with noise that is the same for all words."""
        key = self.counting.split | {"equalised": self.counting.options["split"].parts}
        return Decomposed(
            self, key, "equalised ", lambda: equalise(self.signal(), self.nested.scales)
        )


@dataclasses.dataclass(frozen=True)
class Decomposed:
    r"""The spectrum of a matrix, from the cache if it is there.

    Of one that is not symmetric, singular values and left singular vectors: by $MM^\top$.
    """

    steps: Steps
    key: dict[str, Any]
    """What the matrix depends on, besides the settings of the steps."""
    name: str
    matrix: Callable[[], csr_array]
    symmetric: bool = True

    @functools.cached_property
    def multiply(self) -> Multiply:
        matrix = self.matrix()
        if self.symmetric:
            return multiply_by(matrix)
        left, right = multiply_by(matrix), multiply_by(matrix.T.tocsr())
        return lambda x: left(right(x))

    def values(self, eigenvalues: jax.Array) -> jax.Array:
        """Eigenvalues of what is multiplied with, as values of the matrix."""
        return eigenvalues if self.symmetric else jnp.sqrt(jnp.maximum(eigenvalues, 0))

    @functools.cached_property
    def density(self) -> Density:
        def make() -> Arrays:
            found = eigenvalue_density(self.multiply, n=self.steps.n, key=jax.random.key(0))
            return {name: np.asarray(x) for name, x in found._asdict().items()}

        stored = self.steps.arrays("density", self.key, make)
        return Density(self.values(jnp.asarray(stored["points"])), jnp.asarray(stored["counts"]))

    def eigenpairs(self, k: int) -> Eigenpairs:
        """More than k leading eigenpairs, or all; cut from more of them if these are kept."""
        steps, n = self.steps, self.steps.n
        # More than wanted, as the density is an estimate; and not of every size, as each compiles.
        rank = min(n, RANKS * (2 + 9 * k // (8 * RANKS)))

        def make() -> Arrays:
            found = leading_eigenpairs(
                self.multiply,
                n=n,
                rank=rank,
                key=jax.random.key(1),
                tolerance=steps.tolerance,
                progress=lambda stage, fraction: steps.say(self.name + stage, fraction),
            )
            return {name: np.asarray(x) for name, x in found._asdict().items() if name != "density"}

        key = self.key | {"tolerance": steps.tolerance}
        for enough in (*range(rank, n, RANKS), n):
            settings = steps.settings | key | {"rank": enough}
            if (stored := steps.counting.store.find("eigenpairs", settings)) is not None:
                break
        else:
            stored = steps.arrays("eigenpairs", key | {"rank": rank}, make)
        names = ("values", "vectors", "residuals")
        values, vectors, residuals = (jnp.asarray(stored[name][..., :rank]) for name in names)
        products = int(stored["products"])
        return Eigenpairs(self.values(values), vectors, residuals, self.density, products)
