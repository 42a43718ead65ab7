"""Hypothesis strategies for spectra, orthonormal frames and source sets, as the theory draws them.

Kinds are drawn by name and the numbers through a seed: shapes stay fixed, because each new one
compiles. All numbers are rounded to the dtype of the run, so that oracle and library see the same.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from helpers import IN_64_BIT, rounded
from hypothesis import strategies as st

from jaxmeta import Spectrum
from theory import instances

WORDS = 16
Layout = partial(instances.Layout, WORDS)

# One to five sources; the ideal as long as all sources together, longer, and shorter.
LAYOUTS = (
    Layout((1,), 1),
    Layout((5,), 8),
    Layout((2, 3), 5),
    Layout((3, 3), 4),
    Layout((2, 1, 3), 9),
    Layout((1, 1, 1, 1, 1), 7),
)

SPECTRA = tuple(  # the fourth power of a small number is none in 32 bit
    kind for kind in instances.SPECTRA + instances.MORE_SPECTRA if IN_64_BIT or kind != "12 orders"
)
RELATIONS = instances.RELATIONS + instances.MORE_RELATIONS
WEIGHTS = (*((kind,) for kind in instances.WEIGHTS + instances.MORE_WEIGHTS), instances.WEIGHTS)

seeds = st.integers(0, 2**32 - 1)


def nearly(frame, rng):
    """Columns that are off `frame` by an angle between 1e-12 and 1e-1."""
    return instances.nearly(rng, frame)


@st.composite
def spectra(draw, size):
    rng = np.random.default_rng(draw(seeds))
    return rounded(instances.draw_spectrum(rng, size, draw(st.sampled_from(SPECTRA))))


@st.composite
def frames(draw, k):
    rng = np.random.default_rng(draw(seeds))
    return rounded(instances.draw_basis(rng, WORDS, draw(st.sampled_from(instances.BASES)))[:, :k])


@st.composite
def embeddings(draw, k):
    """Frames with the columns scaled by a spectrum (of a fourth of the range), and rotated."""
    rng = np.random.default_rng(draw(seeds))
    return rounded(draw(frames(k)) * draw(spectra(k)) ** 0.25 @ instances.frame(rng, k))


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
    rng = np.random.default_rng(draw(seeds))
    x = instances.draw_one(
        rng,
        layout,
        draw(st.sampled_from(SPECTRA)),
        draw(st.sampled_from(RELATIONS)),
        basis=draw(st.sampled_from(instances.BASES)),
        spectra=SPECTRA,
        weights=draw(st.sampled_from(WEIGHTS)),
        different_alphas=draw(st.booleans()),
    )

    def spectrum(vectors, values):
        return Spectrum(rounded(vectors[:, : values.size]), rounded(values))

    return Problem(
        spectrum(x.u, x.ideal if ordered else rng.permutation(x.ideal)),
        tuple(spectrum(q, mu) for q, mu in zip(x.q, x.mu, strict=True)),
        tuple(rounded(c) for c in x.c),
        float(rounded(x.alpha)),
        tuple(float(rounded(alpha)) for alpha in x.alphas),
    )
