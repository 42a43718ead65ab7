"""Instances of "an ideal, N sources and their weights", drawn so as to be hard.

Every frame is a complete n x n orthogonal matrix, because the printed bound asks for columns beyond
those that a source has.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta
from theory.dense import Array, eigen, embedding, frame, pip, strength, symmetric_noise

Rng = np.random.Generator

SPECTRA = ("flat", "repeated", "zero tail", "power law", "12 orders", "random")
BATCH = 64
RELATIONS = ("aligned", "nearly aligned", "noisy", "leading", "duplicated", "random", "orthogonal")


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

    def with_weights(self, c: Sequence[Array]) -> "Instance":
        """The same sources under other weights."""
        return replace(self, c=c)


def losses(instances: Sequence[Instance]) -> Array:
    """The true PIP loss of each."""
    return np.array([instance.loss for instance in instances])


def scales(instances: Sequence[Instance]) -> Array:
    """The size of the matrices compared in each."""
    return np.array([instance.scale for instance in instances])


def draw(
    rng: Rng, count: int, layouts: Sequence[Layout] = LAYOUTS, *, different_alphas: bool = False
) -> list[Instance]:
    """`count` instances, spread evenly over the layouts."""
    return [
        _draw_one(rng, layouts[i % len(layouts)], different_alphas=different_alphas)
        for i in range(count)
    ]


def draw_spectrum(rng: Rng, size: int, kind: str) -> Array:
    """A descending spectrum of one of the kinds in SPECTRA."""
    i = np.arange(1.0, size + 1)
    values = {
        "flat": lambda: np.ones(size),
        "repeated": lambda: rng.choice([1.0, 0.5, 0.1], size),
        "zero tail": lambda: rng.random(size) * (i <= rng.integers(1, size + 1)),
        "power law": lambda: i ** -rng.uniform(0.3, 2),
        "12 orders": lambda: 10 ** rng.uniform(-12, 0, size),
        "random": lambda: rng.random(size),
    }[kind]()
    return np.sort(values)[::-1] * 10 ** rng.uniform(-1, 1)


def draw_alpha(rng: Rng) -> float:
    """An exponent from 0 to 2, the landmarks more often than not."""
    return float(rng.choice([0, 0.25, 0.5, 1, 2, rng.uniform(0, 2), rng.uniform(0, 2)]))


def _draw_one(rng: Rng, layout: Layout, *, different_alphas: bool) -> Instance:
    n, sizes, d = layout
    spectrum, relation = str(rng.choice(SPECTRA)), str(rng.choice(RELATIONS))
    u, ideal = frame(rng, n), draw_spectrum(rng, d, spectrum)
    alpha = draw_alpha(rng)
    alphas = [draw_alpha(rng) if different_alphas else alpha for _ in sizes]
    padded = np.pad(ideal, (0, max(sum(sizes) - d, 0)))
    starts = np.cumsum((0, *sizes[:-1]))
    q: list[Array] = []
    mu, c = [], []
    for j, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        q.append(
            q[0] if relation == "duplicated" and j else _draw_frame(rng, u, start, padded, relation)
        )
        block = padded[start : start + size]
        own = draw_spectrum(rng, size, str(rng.choice(SPECTRA)))
        mu.append(block if rng.random() < 0.5 else own)
        c.append(_draw_weights(rng, block, mu[-1], alpha, alphas[j]))
    return Instance(u, ideal, q, mu, c, alpha, alphas, spectrum, relation)


def _draw_frame(rng: Rng, u: Array, start: int, ideal: Array, relation: str) -> Array:
    n = u.shape[0]
    aligned = np.roll(u, -start, axis=1)
    if relation == "aligned":
        return aligned
    if relation == "nearly aligned":
        return np.linalg.qr(aligned + 10 ** rng.uniform(-12, -1) * rng.standard_normal((n, n)))[0]
    if relation == "noisy":
        level = 10 ** rng.uniform(-2, 0) * ideal.max() / np.sqrt(n)
        signal = (u[:, : ideal.size] * ideal) @ u[:, : ideal.size].T
        return eigen(signal + level * symmetric_noise(rng, n))[0]
    if relation == "leading":
        return u
    if relation == "orthogonal":
        return np.roll(u, -ideal.size, axis=1)
    return frame(rng, n)


def _draw_weights(rng: Rng, block: Array, mu: Array, alpha: float, source_alpha: float) -> Array:
    kind = rng.integers(4)
    if kind == 0:
        return np.ones(mu.size)
    if kind == 1:
        own = strength(mu, source_alpha)
        return np.where(own > 0, strength(block, alpha) / np.where(own > 0, own, 1), 0)
    return rng.uniform(0, 2, mu.size) * (kind != 2 or rng.random(mu.size) < 0.5)


def spectra(instance: Instance) -> tuple[jaxmeta.Spectrum, tuple[jaxmeta.Spectrum, ...]]:
    """The ideal and the sources of an instance, as the library takes them."""

    def spectrum(frame: Array, values: Array) -> jaxmeta.Spectrum:
        return jaxmeta.Spectrum(jnp.asarray(frame[:, : values.size]), jnp.asarray(values))

    sources = zip(instance.q, instance.mu, strict=True)
    return spectrum(instance.u, instance.ideal), tuple(spectrum(q, mu) for q, mu in sources)


class Bounds(NamedTuple):
    """Bias and the three forms of the bound, one entry per instance."""

    bias: Array
    telescoped: Array
    split: Array
    tight: Array


def bounds(instances: Sequence[Instance]) -> Bounds:
    """The library's bound terms for all instances: one compilation for each layout."""
    groups = defaultdict(list)
    for i, instance in enumerate(instances):
        groups[instance.layout].append(i)
    totals = np.zeros((4, len(instances)))
    # Batches of one size, the last one filled up, so that a layout is compiled once and for all.
    batches = [
        members[i : i + BATCH] for members in groups.values() for i in range(0, len(members), BATCH)
    ]
    for members in batches:
        chosen = [instances[i] for i in members]
        if len(instances) > 1:
            chosen += chosen[-1:] * (BATCH - len(chosen))
        arguments = [
            (*spectra(x), tuple(x.c), np.float64(x.alpha), tuple(np.float64(a) for a in x.alphas))
            for x in chosen
        ]
        ideal, sources, c, alpha, alphas = jax.tree.map(lambda *x: jnp.stack(x), *arguments)
        terms = jax.vmap(_bound_terms)(ideal, sources, c, alpha, alphas)
        forms = (terms.bias, terms.telescoped, terms.split, terms.tight)
        totals[:, members] = np.stack(forms)[:, : len(members)]
    return Bounds(*totals)


def _bound_terms(ideal, sources, c, alpha, alphas):
    return jaxmeta.bound_terms(ideal, sources, c, alpha=alpha, source_alphas=alphas)
