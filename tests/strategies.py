"""Hypothesis strategies for spectra, orthonormal frames and source sets.

Kinds are drawn by name and the numbers through a seed: shapes stay fixed, because each new one
compiles. All numbers are rounded to the dtype of the run, so that oracle and library see the same.
"""

from typing import NamedTuple

import numpy as np
import oracles
from helpers import rounded
from hypothesis import strategies as st

from jaxmeta import Spectrum

WORDS = 16


class Layout(NamedTuple):
    """Sizes of the sources, and the number of values that the ideal has."""

    sizes: tuple[int, ...]
    d: int


# One to five sources; the ideal as long as all sources together, longer, and shorter.
LAYOUTS = (
    Layout((1,), 1),
    Layout((5,), 8),
    Layout((2, 3), 5),
    Layout((3, 3), 4),
    Layout((2, 1, 3), 9),
    Layout((1, 1, 1, 1, 1), 7),
)

SPECTRA = {
    "flat": lambda k, rng: np.full(k, rng.uniform(0.5, 2)),
    "repeated": lambda k, rng: np.repeat(rng.uniform(0.5, 2, k), 2)[:k],
    "zero tail": lambda k, rng: rng.uniform(0.5, 2, k) * (np.arange(k) < k // 2),
    "zero": lambda k, rng: np.zeros(k),  # noqa: ARG005
    "power law": lambda k, rng: (1 + np.arange(k)) ** -rng.uniform(0.5, 2),
    "wide": lambda k, rng: rng.uniform(1, 2) * np.logspace(6, -6, k),  # 12 orders of magnitude
    "random": lambda k, rng: rng.uniform(0, 3, k),
}

FRAMES = {
    "random": lambda k, rng: np.linalg.qr(rng.normal(size=(WORDS, k)))[0],
    "identity": lambda k, rng: np.eye(WORDS)[:, :k],  # noqa: ARG005
    "permuted": lambda k, rng: np.eye(WORDS)[:, rng.permutation(WORDS)[:k]],
    "nearly aligned": lambda k, rng: nearly(np.eye(WORDS)[:, :k], rng),
}

SOURCES = ("aligned", "orthogonal", "as the ideal", "duplicated", "noisy", "random")
WEIGHTS = ("ones", "zeros", "random", "dimension weights")

seeds = st.integers(0, 2**32 - 1)


def nearly(frame, rng):
    """Columns that are off `frame` by an angle between 1e-12 and 1e-1."""
    noise = rng.normal(size=frame.shape) * 10.0 ** rng.uniform(-12, -1)
    q, r = np.linalg.qr(frame + noise)
    return q * np.sign(np.diag(r))


@st.composite
def spectra(draw, size, *, ordered=True):
    rng = np.random.default_rng(draw(seeds))
    values = SPECTRA[draw(st.sampled_from(tuple(SPECTRA)))](size, rng)
    return rounded(np.sort(values)[::-1] if ordered else rng.permutation(values))


@st.composite
def frames(draw, k):
    rng = np.random.default_rng(draw(seeds))
    return rounded(FRAMES[draw(st.sampled_from(tuple(FRAMES)))](k, rng))


@st.composite
def embeddings(draw, k):
    """Frames with the columns scaled by a spectrum (of a fourth of the range), and rotated."""
    rng = np.random.default_rng(draw(seeds))
    scaled = draw(frames(k)) * draw(spectra(k)) ** 0.25
    return rounded(scaled @ np.linalg.qr(rng.normal(size=(k, k)))[0])


# Drawn in the dtype of the run, so that twice an alpha is the same number for the oracle.
alphas = st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0]) | st.floats(0, 2).map(
    lambda x: float(rounded(x))
)


class Problem(NamedTuple):
    """An ideal and sources to set against it, as float64 NumPy arrays."""

    ideal: Spectrum
    sources: tuple[Spectrum, ...]
    weights: tuple[np.ndarray, ...]
    alpha: float
    source_alphas: tuple[float, ...]


@st.composite
def problems(draw, layout, *, ordered=True):
    sizes, d = layout
    rng = np.random.default_rng(draw(seeds))
    ideal = Spectrum(draw(frames(d)), draw(spectra(d, ordered=ordered)))
    alpha = draw(alphas)
    per_source = st.tuples(*[alphas] * len(sizes))
    source_alphas = draw(per_source | st.just((alpha,) * len(sizes)))
    vectors, values = draw_sources(draw, rng, ideal, sizes)
    sources = tuple(
        Spectrum(rounded(q), rounded(mu)) for q, mu in zip(vectors, values, strict=True)
    )
    weights = draw_weights(draw, rng, ideal, sources, alpha, source_alphas)
    return Problem(ideal, sources, weights, alpha, source_alphas)


def draw_sources(draw, rng, ideal, sizes):
    """Vectors and values of one source for each size."""
    kind = draw(st.sampled_from(SOURCES))
    rest = oracles.complement(ideal.vectors)
    whole = np.concatenate([ideal.vectors, rest], axis=1)
    ends = np.cumsum(sizes)
    matched = [whole[:, end - k : end] for k, end in zip(sizes, ends, strict=True)]
    values = [draw(spectra(k)) for k in sizes]
    if kind == "aligned":
        return matched, values
    if kind == "orthogonal":
        return [rest[:, :k] for k in sizes], values
    if kind == "as the ideal":
        longer = np.pad(ideal.values, (0, sum(sizes)))
        return [whole[:, :k] for k in sizes], [longer[:k] for k in sizes]
    if kind == "duplicated":
        one, strengths = draw(frames(max(sizes))), draw(spectra(max(sizes)))
        return [one[:, :k] for k in sizes], [strengths[:k] for k in sizes]
    if kind == "noisy":
        return [nearly(p, rng) for p in matched], values
    return [draw(frames(k)) for k in sizes], values


def draw_weights(draw, rng, ideal, sources, alpha, source_alphas):
    """One weight for each dimension of each source."""
    kind = draw(st.sampled_from(WEIGHTS))
    sizes = [len(source.values) for source in sources]
    if kind == "ones":
        return tuple(np.ones(k) for k in sizes)
    if kind == "zeros":
        return tuple(np.zeros(k) for k in sizes)
    if kind == "random":
        return tuple(rounded(rng.uniform(0, 2, k)) for k in sizes)
    longer = np.pad(ideal.values, (0, sum(sizes)))
    own = np.split(longer[: sum(sizes)], np.cumsum(sizes)[:-1])
    return tuple(
        rounded(oracles.power(a, alpha) * oracles.power(source.values, -source_alpha))
        for a, source, source_alpha in zip(own, sources, source_alphas, strict=True)
    )
