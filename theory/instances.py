"""Instances of "an ideal, N sources and their weights", drawn so as to be hard, in NumPy alone.

Every frame is a complete n x n orthogonal matrix, because the printed bound asks for columns beyond
those that a source has. Tests of the library draw from here too, and of more kinds: counts on
record are of the kinds in SPECTRA, RELATIONS and WEIGHTS alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .dense import Array, Bound, bound, eigen, embedding, pip, power

Rng = np.random.Generator

SPECTRA = ("flat", "repeated", "zero tail", "power law", "12 orders", "random")
MORE_SPECTRA = ("zero", "wide")  # with nothing to measure by; so spread as fits in 32 bit
RELATIONS = ("aligned", "nearly aligned", "noisy", "leading", "duplicated", "random", "orthogonal")
MORE_RELATIONS = ("as the ideal", "copies")  # as "leading" and "duplicated", values and all
WEIGHTS = ("ones", "matched", "sparse", "random")
MORE_WEIGHTS = ("zeros",)
BASES = ("random", "identity", "permuted", "nearly identity")


class Layout(NamedTuple):
    """Sizes: words, dimensions of each source, dimensions of the ideal."""

    n: int
    sizes: tuple[int, ...]
    d: int


# d = K, d > K and d < K; N = 1 to 5; k = 1.
LAYOUTS = (
    Layout(12, (1,), 1),
    Layout(16, (4,), 8),
    Layout(16, (6,), 4),
    Layout(16, (2, 3), 5),
    Layout(16, (3, 3), 9),
    Layout(12, (1, 1), 3),
    Layout(18, (4, 2), 5),
    Layout(20, (2, 3, 4), 9),
    Layout(20, (3, 1, 2), 11),
    Layout(20, (2, 1, 3, 2), 10),
    Layout(20, (1, 1, 1, 1, 1), 5),
    Layout(24, (2, 3, 1, 2, 2), 13),
)


@dataclass(eq=False)
class Instance:
    """An ideal and its sources, as complete frames and spectra, with weights and exponents."""

    u: Array
    ideal: Array
    q: Sequence[Array]
    mu: Sequence[Array]
    c: Sequence[Array]
    alpha: float
    alphas: Sequence[float]
    spectrum: str = ""
    relation: str = ""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Dimensions of each source."""
        return tuple(mu.size for mu in self.mu)

    @property
    def layout(self) -> Layout:
        """Sizes of everything."""
        return Layout(self.u.shape[0], self.sizes, self.ideal.size)

    def pips(self) -> tuple[Array, Array]:
        """All inner products of the ideal and of the weighted concatenation."""
        sources = [
            embedding(q, mu, alpha) * c
            for q, mu, c, alpha in zip(self.q, self.mu, self.c, self.alphas, strict=True)
        ]
        return pip(embedding(self.u, self.ideal, self.alpha)), pip(np.concatenate(sources, axis=1))

    @cached_property
    def loss(self) -> float:
        """The PIP loss, directly."""
        ideal, meta = self.pips()
        return float(np.linalg.norm(ideal - meta))

    @cached_property
    def scale(self) -> float:
        """The size of the two matrices that the loss compares."""
        return float(sum(map(np.linalg.norm, self.pips())))

    @cached_property
    def terms(self) -> Bound:
        """The terms of the bound, directly."""
        ideal, *sources = (
            (vectors[:, : values.size], values)
            for vectors, values in zip((self.u, *self.q), (self.ideal, *self.mu), strict=True)
        )
        return bound(ideal, sources, self.c, self.alpha, self.alphas)

    def with_weights(self, c: Sequence[Array]) -> "Instance":
        """The same sources under other weights."""
        return replace(self, c=c)


def losses(instances: Sequence[Instance]) -> Array:
    """The true PIP loss of each."""
    return np.array([instance.loss for instance in instances])


def scales(instances: Sequence[Instance]) -> Array:
    """The size of the matrices compared in each."""
    return np.array([instance.scale for instance in instances])


def orthonormal(x: Array) -> Array:
    """Columns made orthonormal one after the other, each on its own side."""
    q, r = np.linalg.qr(x)
    return q * np.sign(np.diag(r))


def frame(rng: Rng, n: int, k: int | None = None) -> Array:
    """k (or n) orthonormal columns, uniformly at random."""
    return orthonormal(rng.standard_normal((n, k or n)))


def nearly(rng: Rng, x: Array, top: float = -1) -> Array:
    """A frame that is off another by an angle between 1e-12 and 10 ** top."""
    return orthonormal(x + 10 ** rng.uniform(-12, top) * rng.standard_normal(x.shape))


def symmetric_noise(rng: Rng, n: int) -> Array:
    """A symmetric Gaussian matrix with unit variance off the diagonal."""
    z = rng.standard_normal((n, n))
    return (z + z.T) / np.sqrt(2)


def draw_basis(rng: Rng, n: int, kind: str) -> Array:
    """An orthogonal matrix of one of the kinds in BASES."""
    if kind == "random":
        return frame(rng, n)
    if kind == "permuted":
        return np.eye(n)[:, rng.permutation(n)]
    return np.eye(n) if kind == "identity" else nearly(rng, np.eye(n))


def draw_spectrum(rng: Rng, size: int, kind: str) -> Array:
    """A descending spectrum of one of the kinds in SPECTRA and MORE_SPECTRA."""
    i = np.arange(1.0, size + 1)
    values = {
        "flat": lambda: np.ones(size),
        "repeated": lambda: rng.choice([1.0, 0.5, 0.1], size),
        "zero tail": lambda: rng.random(size) * (i <= rng.integers(1, size + 1)),
        "power law": lambda: i ** -rng.uniform(0.3, 2),
        "12 orders": lambda: 10 ** rng.uniform(-12, 0, size),
        "random": lambda: rng.random(size),
        "zero": lambda: np.zeros(size),
        "wide": lambda: np.logspace(6, -6, size),
    }[kind]()
    return np.sort(values)[::-1] * 10 ** rng.uniform(-1, 1)


def draw_alpha(rng: Rng) -> float:
    """An exponent from 0 to 2, the landmarks more often than not."""
    return float(rng.choice([0, 0.25, 0.5, 1, 2, rng.uniform(0, 2), rng.uniform(0, 2)]))


def draw(
    rng: Rng, count: int, layouts: Sequence[Layout] = LAYOUTS, *, different_alphas: bool = False
) -> list[Instance]:
    """`count` instances, spread evenly over the layouts."""
    return [
        draw_one(
            rng,
            layouts[i % len(layouts)],
            str(rng.choice(SPECTRA)),
            str(rng.choice(RELATIONS)),
            different_alphas=different_alphas,
        )
        for i in range(count)
    ]


def draw_one(
    rng: Rng,
    layout: Layout,
    spectrum: str,
    relation: str,
    *,
    basis: str = "random",
    spectra: Sequence[str] = SPECTRA,
    weights: Sequence[str] = WEIGHTS,
    different_alphas: bool,
) -> Instance:
    """An ideal of one spectrum, sources of one relation to it; of the rest what may be drawn."""
    n, sizes, d = layout
    u, ideal = draw_basis(rng, n, basis), draw_spectrum(rng, d, spectrum)
    alpha = draw_alpha(rng)
    alphas = [draw_alpha(rng) if different_alphas else alpha for _ in sizes]
    padded = np.pad(ideal, (0, max(sum(sizes) - d, 0)))
    duplicated = relation in ("duplicated", "copies")
    shared = draw_spectrum(rng, max(sizes), spectrum) if relation == "copies" else padded
    q: list[Array] = []
    mu, c = [], []
    for j, (end, size) in enumerate(zip(np.cumsum(sizes), sizes, strict=True)):
        start = end - size
        q.append(q[0] if duplicated and j else _draw_frame(rng, u, start, padded, relation))
        block = padded[start:end]
        own = draw_spectrum(rng, size, str(rng.choice(spectra)))
        drawn = block if rng.random() < 0.5 else own
        mu.append(shared[:size] if relation in MORE_RELATIONS else drawn)
        c.append(_draw_weights(rng, block, mu[-1], alpha, alphas[j], str(rng.choice(weights))))
    return Instance(u, ideal, q, mu, c, alpha, alphas, spectrum, relation)


def _draw_frame(rng: Rng, u: Array, start: int, ideal: Array, relation: str) -> Array:
    n = u.shape[0]
    aligned = np.roll(u, -start, axis=1)
    if relation == "aligned":
        return aligned
    if relation == "nearly aligned":
        return nearly(rng, aligned)
    if relation == "noisy":
        level = 10 ** rng.uniform(-2, 0) * ideal.max() / np.sqrt(n)
        signal = (u[:, : ideal.size] * ideal) @ u[:, : ideal.size].T
        return eigen(signal + level * symmetric_noise(rng, n))[0]
    if relation in ("leading", "as the ideal"):
        return u
    if relation == "orthogonal":
        return np.roll(u, -ideal.size, axis=1)
    return frame(rng, n)


def _draw_weights(
    rng: Rng, block: Array, mu: Array, alpha: float, source_alpha: float, kind: str
) -> Array:
    if kind in ("ones", "zeros"):
        return np.full(mu.size, float(kind == "ones"))
    if kind == "matched":
        own = power(mu, source_alpha)
        return np.where(own > 0, power(block, alpha) / np.where(own > 0, own, 1), 0)
    return rng.uniform(0, 2, mu.size) * (kind != "sparse" or rng.random(mu.size) < 0.5)
