"""A row of the API table, and the arguments that rows share.

A row holds a call with arrays for its only arguments, arguments at a generic point and arguments at
degenerate ones. `api_promises` checks what every row promises.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from helpers import rotation

from jaxmeta import Spectrum

WORDS = 7


def everything(out):
    return out


class Row(NamedTuple):
    """A public function under test."""

    call: Callable
    generic: Callable
    """From a random generator to arguments where everything is smooth."""
    degenerate: dict[str, Callable]
    """Arguments where values repeat, vanish or coincide."""
    smooth: Callable = everything
    """The part of the output that has derivatives at degenerate points."""
    totals: Callable = lambda out: [x for x in jax.tree.leaves(out) if x.ndim == 0]
    """Numbers that depend on every argument, so that NaN in any of them must show."""
    discrete: bool = False
    """Whether all outputs are integers: no derivatives, and no NaN."""
    terms: int = 16
    """How many roundings are in a row; iterations have more."""
    takes: tuple[str, ...] = ()
    """What is no error here though it is elsewhere, such as integers for weights."""
    moving: Callable = everything
    """The part of the output that is not said to be constant to differentiation."""
    order: int = 1
    """Up to which derivatives are compared with finite differences."""
    tolerance: float | None = None
    """Of that comparison, where derivatives are said to be approximate."""
    scaling: tuple = ()
    """Powers of a unit that arguments and outputs have, and, third, the largest power of what is
    formed on the way if that is larger. A tuple goes entry by entry; None is an exponent, held at
    one half. Nothing at all: results are not homogeneous."""


def frame(rng, k):
    return rotation(rng, WORDS)[:, :k]


def descending(rng, k):
    """Values that are well apart, so that eigenvectors are well conditioned."""
    return np.arange(k, 0, -1) + rng.uniform(0.2, 0.5, k)


def spectrum(rng, k):
    return Spectrum(frame(rng, k), descending(rng, k))


def embedding(rng, k):
    return frame(rng, k) * descending(rng, k)


def bound_arguments(rng):
    return (
        spectrum(rng, 6),
        (spectrum(rng, 2), spectrum(rng, 3)),
        (rng.uniform(0.5, 1.5, 2), rng.uniform(0.5, 1.5, 3)),
        rng.uniform(0.4, 0.6),
        tuple(rng.uniform(0.4, 0.6, 2)),
    )


def aligned(rng):
    """Sources that are the blocks of an ideal of equal values."""
    q = frame(rng, 6)
    sources = (Spectrum(q[:, :2], np.ones(2)), Spectrum(q[:, 2:5], np.ones(3)))
    return Spectrum(q, np.ones(6)), sources, (np.ones(2), np.ones(3)), 0.5, (0.5, 0.5)


def duplicated(rng):
    _, (_, source), _, _, _ = bound_arguments(rng)
    first = Spectrum(source.vectors[:, :2], source.values[:2])
    longer = np.append(source.values, np.zeros(3))
    ideal = Spectrum(np.append(source.vectors, frame(rng, 3), axis=1), longer)
    return ideal, (first, source), (np.ones(2), np.ones(3)), 0.5, (0.5, 0.5)


def all_zero(rng):
    ideal, sources, _, _, _ = bound_arguments(rng)
    ideal, sources = jax.tree.map(np.zeros_like, (ideal, sources))
    return ideal, sources, (np.zeros(2), np.zeros(3)), 0.0, (0.0, 0.25)


BOUND_DEGENERATE = {"aligned": aligned, "duplicated": duplicated, "zero": all_zero}


def weight_arguments(rng):
    ideal, sources, _, alpha, source_alphas = bound_arguments(rng)
    return ideal.values, tuple(source.values for source in sources), alpha, source_alphas


WEIGHTS_DEGENERATE = {
    "equal": lambda rng: (np.ones(5), (np.ones(2), np.ones(3)), 0.5, (0.5, 0.5)),  # noqa: ARG005
    "zero": lambda rng: (np.zeros(5), (np.zeros(2), np.zeros(3)), 0.0, (0.0, 0.25)),  # noqa: ARG005
    "zero ideal": lambda rng: (np.zeros(5), (np.ones(2), np.ones(3)), 0.5, (0.5, 0.5)),  # noqa: ARG005
    "zero source": lambda rng: (np.ones(5), (np.zeros(2), np.ones(3)), 0.5, (0.5, 0.5)),  # noqa: ARG005
}


N = 16  # words of a signal of which the leading values are given: sigma sqrt n is 4 sigma


def spiked_arguments(rng):
    """Values above the noise, and its sigma."""
    return 2 + descending(rng, 5), rng.uniform(0.2, 0.3)


SPIKED_DEGENERATE = {
    "at the edge": lambda rng: (np.full(5, 2.0), 0.25),  # noqa: ARG005
    "at the least": lambda rng: (np.ones(5), 0.25),  # noqa: ARG005
    "zero": lambda rng: (np.zeros(5), 0.25),  # noqa: ARG005
    "no noise": lambda rng: (descending(rng, 5), 0.0),
    "nothing at all": lambda rng: (np.zeros(5), 0.0),  # noqa: ARG005
}


def with_alpha(make):
    """The same arguments and an exponent."""
    return lambda rng: (*make(rng), rng.uniform(0.4, 0.6))


SPIKED_DEGENERATE_WITH_ALPHA = {name: with_alpha(make) for name, make in SPIKED_DEGENERATE.items()}


def aligned_sources(rng):
    return (4 + descending(rng, 2), 4 + descending(rng, 3)), tuple(rng.uniform(0.2, 0.3, 2))


def moments(rng):
    """Leading eigenvalues, and trace and square norm of more than these."""
    top = descending(rng, 4) * np.array([1, -1, 1, 1])
    return top, top.sum() + rng.uniform(0.1, 0.3), np.sum(top**2) + rng.uniform(1.5, 2)


def quadratic_arguments(rng):
    return embedding(rng, 4), (embedding(rng, 2), embedding(rng, 3))


def orthogonal_sources(rng):
    q = frame(rng, 7)
    return q[:, :2], (q[:, 2:4], q[:, 4:])


def duplicated_sources(rng):
    e = embedding(rng, 3)
    return embedding(rng, 4), (e[:, :2], e)


def twice(make):
    """The same array for both arguments."""

    def arguments(rng):
        x = make(rng)
        return x, x

    return arguments


def cooccurrences(rng):
    return rng.uniform(1, 9, (5, 5))  # as all corners, for one program


def partly_seen(rng):
    """Pairs that were never seen, and words that never occur."""
    counts = rng.uniform(1, 9, (5, 5)) * (rng.uniform(size=(5, 5)) < 0.6)
    counts[1], counts[:, 3], counts[0, 0] = 0, 0, 2
    return counts


COUNTS_DEGENERATE = {
    "partly seen": partly_seen,
    "symmetric": lambda rng: (x := partly_seen(rng)) + x.T,
    "independent": lambda rng: np.outer(np.arange(1, 6), np.ones(5)),  # noqa: ARG005
    "one pair": lambda rng: np.eye(5)[:, :1] * np.eye(5)[0],  # noqa: ARG005
}


def with_shift(make):
    """Counts and a shift."""
    return lambda rng: (make(rng), rng.uniform(2, 3))


# Of words that a source lacks nothing is read, so none of them may be where NaN is put.
PRESENT = jnp.asarray(np.arange(WORDS)[:, None] != [1, 2])
NEIGHBOURS = jnp.asarray(
    np.stack([np.delete(np.arange(WORDS), i)[[0, 2, 4]] for i in range(WORDS)])
)


def two_sources(rng):
    """In no special basis."""
    return embedding(rng, 2) @ rotation(rng, 2), embedding(rng, 3) @ rotation(rng, 3)


def orthonormal_sources(rng):
    """All singular values, of each and of both, are the same."""
    return (q := frame(rng, 5))[:, :2], q[:, 2:]


def zero_source(rng):
    return embedding(rng, 2), np.zeros((WORDS, 3))


SOURCES_DEGENERATE = {
    "equal values": lambda rng: (orthonormal_sources(rng),),
    "duplicated": lambda rng: (duplicated_sources(rng)[1],),
    "one zero": lambda rng: (zero_source(rng),),
    "equal words": lambda rng: ((np.ones((WORDS, 2)), np.ones((WORDS, 3))),),  # noqa: ARG005
    "zero": lambda rng: ((np.zeros((WORDS, 2)), np.zeros((WORDS, 3))),),  # noqa: ARG005
}


def inner_products(e):
    """What is unique of an embedding whose basis is not."""
    return e @ e.T
