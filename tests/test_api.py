"""What every public function promises, checked for every one of them.

A row of the table holds a call with arrays for its only arguments, arguments at a generic point
and arguments at degenerate ones. A new public function without a row fails the first test.
"""

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import DTYPE, IN_64_BIT, assert_close, assert_trees_close, cast, rotation
from jax import export
from jax.test_util import check_grads

import jaxmeta
from jaxmeta import Spectrum
from jaxmeta.methods import Layer
from jaxmeta.methods.autoencode import _Wiring

WORDS = 7
# These look at values, read files or loop on the host, so they cannot be traced.
HOST_MODULES = (
    jaxmeta.text.corpus,
    jaxmeta.text.counting,
    jaxmeta.eigen,
    jaxmeta.text.sources,
    jaxmeta.text.synthetic,
    jaxmeta.files.vectors,
)
HOST_ONLY = {
    "align",
    "averaged_autoencoder",
    "best_reconstructed",
    "concatenated_autoencoder",
    "decoupled_autoencoder",
    "diagnose",
    "locally_linear",
    "merge_files",
    "meta_embedding",
    "plot_diagnosis",
    "reconstruction_matrix",
    "validate",
    "write_whole",
} | {
    name
    for module in HOST_MODULES
    for name in module.__all__
    if inspect.isfunction(getattr(module, name))
}
OF_FUNCTIONS = {"gradient_weights", "minimise"}  # take a function first: see test_optimise


class Row(NamedTuple):
    """A public function under test."""

    call: Callable
    generic: Callable
    """From a random generator to arguments where everything is smooth."""
    degenerate: dict[str, Callable]
    """Arguments where values repeat, vanish or coincide."""
    smooth: Callable = lambda out: out
    """The part of the output that has derivatives at degenerate points."""
    totals: Callable = lambda out: [x for x in jax.tree.leaves(out) if x.ndim == 0]
    """Numbers that depend on every argument, so that NaN in any of them must show."""
    discrete: bool = False
    """Whether all outputs are integers: no derivatives, and no NaN."""
    terms: int = 16
    """How many roundings are in a row; iterations have more."""


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
    return rng.uniform(1, 9, (4, 3))


def partly_seen(rng):
    """Pairs that were never seen, and words that never occur."""
    counts = rng.uniform(1, 9, (5, 5)) * (rng.uniform(size=(5, 5)) < 0.6)
    counts[1], counts[:, 3], counts[0, 0] = 0, 0, 2
    return counts


COUNTS_DEGENERATE = {
    "partly seen": partly_seen,
    "symmetric": lambda rng: (x := partly_seen(rng)) + x.T,
    "independent": lambda rng: np.outer(np.arange(1, 5), np.ones(3)),  # noqa: ARG005
    "one pair": lambda rng: np.eye(3)[:, :1] * np.eye(3)[0],  # noqa: ARG005
}


def with_shift(make):
    """Counts and a shift."""
    return lambda rng: (make(rng), rng.uniform(2, 3))


# Of words that a source lacks nothing is read, so none of them may be where NaN is put.
PRESENT = jnp.ones((WORDS, 2), bool).at[1, 0].set(False).at[2, 1].set(False)
NEIGHBOURS = jnp.asarray([np.delete(np.arange(WORDS), i)[[0, 2, 4]] for i in range(WORDS)])


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


def network(encoders, sources):
    wiring = _Wiring(jnp.tanh, normalise=True)
    return jaxmeta.methods.autoencoded_rows(
        jaxmeta.methods.Autoencoder(encoders, (), wiring), sources
    )


def layers(rng):
    return tuple(Layer(rng.normal(size=(k, 2)), rng.normal(size=2)) for k in (2, 3))


TABLE = {
    "average": Row(
        jaxmeta.average,
        lambda rng: (two_sources(rng),),
        SOURCES_DEGENERATE,
    ),
    "average, of words that are missing": Row(
        lambda sources: jaxmeta.average(sources, present=PRESENT),
        lambda rng: (two_sources(rng),),
        {},
    ),
    "cosine_shares": Row(
        jaxmeta.diagnosis.cosine_shares,
        lambda rng: (two_sources(rng), (rng.uniform(0.5, 1.5, 2), rng.uniform(0.5, 1.5))),
        {name: lambda rng, m=make: m(rng) for name, make in SOURCES_DEGENERATE.items()},
    ),
    "disagreement": Row(
        jaxmeta.diagnosis.disagreement,
        lambda rng: (two_sources(rng),),
        SOURCES_DEGENERATE,
    ),
    "encode": Row(
        network,
        lambda rng: (layers(rng), two_sources(rng)),
        {
            "one zero": lambda rng: (layers(rng), zero_source(rng)),
            "no weights": lambda rng: (jax.tree.map(np.zeros_like, layers(rng)), two_sources(rng)),
        },
    ),
    "nearest_neighbours": Row(
        lambda source: jaxmeta.methods.nearest_neighbours(source, neighbours=3),
        lambda rng: (embedding(rng, 4),),
        {},
        discrete=True,
    ),
    "one_to_n": Row(
        lambda sources, weights, alpha: jaxmeta.methods.one_to_n(
            sources, k=3, weights=weights, alpha=alpha
        ),
        lambda rng: (two_sources(rng), tuple(rng.uniform(0.5, 1.5, 2)), rng.uniform(0.4, 0.6)),
        {
            f"{name}, {which}": lambda rng, m=make, w=weights, a=alpha: (*m(rng), w, a)
            for name, make in SOURCES_DEGENERATE.items()
            for which, weights, alpha in (
                ("all of it", (1.0, 1.0), 1.0),
                ("whitened", (1.0, 1.0), 0.0),
                ("no weight", (1.0, 0.0), 0.5),
            )
        },
        smooth=lambda out: (inner_products(out.embedding), out.error),
        totals=lambda out: [jnp.sum(out.embedding)],
    ),
    "one_to_n_plus": Row(
        lambda sources, ridge: jaxmeta.methods.one_to_n_plus(
            sources, PRESENT, k=2, ridge=ridge, steps=3
        ),
        lambda rng: (two_sources(rng), rng.uniform(0.1, 0.2)),
        {name: lambda rng, m=make: (*m(rng), 0.1) for name, make in SOURCES_DEGENERATE.items()},
        smooth=lambda out: (inner_products(out.embedding), out.error),
        totals=lambda out: [out.error],
    ),
    "predict_missing": Row(
        lambda sources, ridge: jaxmeta.files.predict_missing(sources, PRESENT, ridge=ridge),
        lambda rng: (two_sources(rng), rng.uniform(0.1, 0.2)),
        {name: lambda rng, m=make: (*m(rng), 0.1) for name, make in SOURCES_DEGENERATE.items()},
    ),
    **{
        function.__name__: Row(
            function,
            lambda rng: (two_sources(rng)[1] + rng.normal(size=(WORDS, 3)),),
            {
                "equal words": lambda rng: (np.ones((WORDS, 3)),),  # noqa: ARG005
                "equal values": lambda rng: (frame(rng, 3),),
                "zero": lambda rng: (np.zeros((WORDS, 3)),),  # noqa: ARG005
            },
            smooth=inner_products,
        )
        for function in (
            jaxmeta.prepare.centre_rows,
            jaxmeta.prepare.unit_rows,
            jaxmeta.prepare.unit_frobenius,
            jaxmeta.prepare.unit_spectral,
            jaxmeta.standardise,
        )
    },
    "centre, of some words": Row(
        lambda source: jaxmeta.prepare.centre_rows(source, present=jnp.arange(WORDS) != 2),
        lambda rng: (embedding(rng, 3),),
        {},
    ),
    "spectrum_power": Row(
        lambda source, exponent: jaxmeta.prepare.spectrum_power(source, exponent=exponent),
        lambda rng: (two_sources(rng)[1], rng.uniform(0.4, 0.6)),
        {
            "equal values": lambda rng: (frame(rng, 3), 0.5),
            "zero": lambda rng: (np.zeros((WORDS, 3)), 0.5),  # noqa: ARG005
        },
        smooth=inner_products,
    ),
    "remove_leading": Row(
        lambda source: jaxmeta.prepare.remove_leading(source, count=1),
        lambda rng: (two_sources(rng)[1],),
        {"zero": lambda rng: (np.zeros((WORDS, 3)),)},  # noqa: ARG005
    ),
    "balanced_exponent": Row(
        jaxmeta.prepare.balanced_exponent,
        lambda rng: (descending(rng, 5),),
        {
            "equal": lambda rng: (np.ones(5),),  # noqa: ARG005
            "zero": lambda rng: (np.zeros(5),),  # noqa: ARG005
            "some zero": lambda rng: (np.append(descending(rng, 3), [0.0, 0.0]),),
        },
        terms=256,
    ),
    "rank_weights": Row(
        jaxmeta.weights.rank_weights,
        lambda rng: (two_sources(rng),),
        {**SOURCES_DEGENERATE},
    ),
    "agreement_weights": Row(
        jaxmeta.quadratic.agreement_weights,
        lambda rng: (two_sources(rng),),
        {},
        terms=256,
    ),
    "principal_axes": Row(
        jaxmeta.combine.principal_axes,
        lambda rng: (two_sources(rng)[1],),
        {
            "equal values": lambda rng: (frame(rng, 3),),
            "zero": lambda rng: (np.zeros((WORDS, 3)),),  # noqa: ARG005
        },
        smooth=inner_products,
    ),
    "reconstruction_weights, fewer than dimensions": Row(
        lambda source, ridge: jaxmeta.methods.reconstruction_weights(
            (source,), (NEIGHBOURS,), ridge=ridge
        ),
        lambda rng: (embedding(rng, 4) @ rotation(rng, 4), rng.uniform(0.1, 0.2)),
        {
            "equal words": lambda rng: (np.ones((WORDS, 4)), 0.1),  # noqa: ARG005
            "zero": lambda rng: (np.zeros((WORDS, 4)), 0.1),  # noqa: ARG005
        },
    ),
    "reconstruction_weights": Row(
        lambda sources, ridge: jaxmeta.methods.reconstruction_weights(
            sources, (NEIGHBOURS, NEIGHBOURS[:, :2]), ridge=ridge
        ),
        lambda rng: (two_sources(rng), rng.uniform(0.1, 0.2)),
        {name: lambda rng, m=make: (*m(rng), 0.1) for name, make in SOURCES_DEGENERATE.items()},
    ),
    "released_one_to_n": Row(
        lambda sources, rate: jaxmeta.released.released_one_to_n(
            sources, k=2, key=jax.random.key(0), rate=rate, steps=3
        ),
        lambda rng: (two_sources(rng), rng.uniform(0.01, 0.02)),
        {name: lambda rng, m=make: (*m(rng), 0.01) for name, make in SOURCES_DEGENERATE.items()},
        totals=lambda out: [out.error],
    ),
    "rotated_average": Row(
        lambda sources: jaxmeta.combine.rotated_average(sources, steps=3),
        lambda rng: ((*two_sources(rng), embedding(rng, 3) + 3),),
        {
            "equal values": lambda rng: ((frame(rng, 2), (e := frame(rng, 3)), e),),
            "identical": lambda rng: (((e := embedding(rng, 3)), e, e),),
        },
    ),
    "svd_reduce": Row(
        lambda sources, weights: jaxmeta.svd_reduce(sources, k=3, weights=weights),
        lambda rng: (two_sources(rng), (rng.uniform(0.5, 1.5, 2), rng.uniform(0.5, 1.5))),
        {
            name: lambda rng, m=make: (*m(rng), (np.ones(2), 1.0))
            for name, make in SOURCES_DEGENERATE.items()
        },
        smooth=inner_products,
    ),
    "log_count": Row(
        jaxmeta.log_count,
        lambda rng: (cooccurrences(rng),),
        {
            "zero": lambda rng: (np.zeros((4, 3)),),  # noqa: ARG005
            "partly seen": lambda rng: (partly_seen(rng),),
        },
    ),
    "ppmi": Row(
        lambda counts, shift: jaxmeta.ppmi(counts, shift=shift),
        with_shift(lambda rng: cooccurrences(rng) + 40 * np.eye(4, 3)),  # off the kink
        {name: with_shift(make) for name, make in COUNTS_DEGENERATE.items()},
    ),
    "ppmi, at its kink": Row(
        jaxmeta.ppmi,
        lambda rng: (cooccurrences(rng) + 40 * np.eye(4, 3),),
        {name: lambda rng, m=make: (m(rng),) for name, make in COUNTS_DEGENERATE.items()},
    ),
    "shifted_pmi": Row(
        lambda counts, shift: jaxmeta.shifted_pmi(counts, shift=shift, unobserved=-2.0),
        with_shift(cooccurrences),
        {name: with_shift(make) for name, make in COUNTS_DEGENERATE.items()},
    ),
    "aligned_weights": Row(
        lambda values, sigmas, alpha: jaxmeta.aligned_weights(
            values, sigmas=sigmas, n=N, alpha=alpha
        ),
        with_alpha(aligned_sources),
        {
            "equal": lambda rng: ((np.full(2, 4.0), np.full(3, 4.0)), (0.25, 0.25), 0.5),  # noqa: ARG005
            "at the edge": lambda rng: ((np.full(2, 2.0), np.full(3, 2.0)), (0.25, 0.25), 0.5),  # noqa: ARG005
            "zero": lambda rng: ((np.zeros(2), np.zeros(3)), (0.25, 0.5), 0.5),  # noqa: ARG005
        },
    ),
    "best_dimension": Row(
        lambda values, strengths, alpha: jaxmeta.best_dimension(values, strengths, alpha=alpha),
        lambda rng: (descending(rng, 5), descending(rng, 5) - 1, rng.uniform(0.4, 0.6)),
        {},
        discrete=True,
    ),
    "best_order": Row(
        lambda ideal, sources, weights, alpha, source_alphas: jaxmeta.bounds.best_order(
            ideal, sources, weights, alpha=alpha, source_alphas=source_alphas
        ),
        bound_arguments,
        BOUND_DEGENERATE,
        totals=lambda out: [out.tight],
    ),
    "blocks": Row(
        lambda values: jaxmeta.spectral.split_by_source(values, sizes=(2, 3, 2)),
        lambda rng: (descending(rng, 6),),
        {"zero": lambda rng: (np.zeros(6),)},  # noqa: ARG005
    ),
    "bound_terms": Row(
        lambda ideal, sources, weights, alpha, source_alphas: jaxmeta.bound_terms(
            ideal, sources, weights, alpha=alpha, source_alphas=source_alphas
        ),
        bound_arguments,
        BOUND_DEGENERATE,
        totals=lambda out: [out.telescoped, out.split, out.tight],
    ),
    "complete_spectrum": Row(
        lambda top, trace, square_norm: jaxmeta.shrinkage.complete_spectrum(
            top, n=9, trace=trace, square_norm=square_norm
        ),
        moments,
        {"nothing left": lambda rng: (np.ones(4), 4.0, 4.0)},  # noqa: ARG005
    ),
    "concatenate": Row(
        jaxmeta.concatenate,
        lambda rng: ((embedding(rng, 2), embedding(rng, 3)), (rng.normal(size=2), rng.normal())),
        {"zero": lambda rng: ((embedding(rng, 2), np.zeros((WORDS, 3))), (np.zeros(2), 0.0))},
    ),
    "debias": Row(
        lambda values, sigma: jaxmeta.debias(values, sigma=sigma, n=N),
        spiked_arguments,
        SPIKED_DEGENERATE,
    ),
    "debias, rectangular": Row(
        lambda values, sigma: jaxmeta.debias(values, sigma=sigma, n=N, m=9),
        spiked_arguments,
        {"at the edge": lambda rng: (np.full(5, 1.75), 0.25)},  # noqa: ARG005
    ),
    "decompose": Row(
        lambda signal: jaxmeta.decompose(signal + signal.T),
        lambda rng: ((q := frame(rng, WORDS)) * descending(rng, WORDS) @ q.T / 2,),
        {
            "repeated": lambda rng: (np.eye(WORDS),),  # noqa: ARG005
            "zero": lambda rng: (np.zeros((WORDS, WORDS)),),  # noqa: ARG005
        },
        smooth=lambda out: out.values,
    ),
    "decompose, general": Row(
        lambda signal: jaxmeta.decompose(signal, symmetric=False),
        lambda rng: (embedding(rng, 4) @ rotation(rng, 4),),
        {
            "repeated": lambda rng: (frame(rng, 4),),
            "zero": lambda rng: (np.zeros((WORDS, 4)),),  # noqa: ARG005
        },
        smooth=lambda out: out.values,
    ),
    "dimension_weights": Row(
        lambda ideal, values, alpha, source_alphas: jaxmeta.dimension_weights(
            ideal, values, alpha=alpha, source_alphas=source_alphas
        ),
        lambda rng: (descending(rng, 5), *weight_arguments(rng)[1:]),
        WEIGHTS_DEGENERATE,
    ),
    "effective_rank": Row(
        jaxmeta.noise.effective_rank,
        lambda rng: (descending(rng, 5),),
        {"equal": lambda rng: (np.ones(5),), "one": lambda rng: (np.eye(5)[0],)},  # noqa: ARG005
    ),
    "exact_weights": Row(
        lambda ideal, sources: jaxmeta.exact_weights(jaxmeta.pip_quadratic(ideal, sources)),
        quadratic_arguments,
        {"orthogonal": orthogonal_sources, "duplicated": duplicated_sources},
        smooth=lambda out: out.weights,
        totals=lambda out: [out.residual],
        terms=1024,
    ),
    "non_negative": Row(
        jaxmeta.optimise.non_negative,
        lambda rng: (rng.uniform(0.5, 1.5, 3),),
        {"negative": lambda rng: (-np.ones(3),)},  # noqa: ARG005
    ),
    "per_source": Row(
        lambda ideal, sources: jaxmeta.quadratic.per_source(
            jaxmeta.pip_quadratic(ideal, sources), sizes=(2, 3)
        ),
        quadratic_arguments,
        {"duplicated": duplicated_sources},
        totals=lambda out: [],  # noqa: ARG005
    ),
    "pip_quadratic": Row(
        jaxmeta.pip_quadratic,
        quadratic_arguments,
        {"duplicated": duplicated_sources},
        totals=lambda out: [],  # noqa: ARG005
    ),
    "quadratic_loss": Row(
        lambda ideal, sources, squares: jaxmeta.quadratic.quadratic_loss(
            jaxmeta.pip_quadratic(ideal, sources), squares
        ),
        lambda rng: (*quadratic_arguments(rng), rng.uniform(0.5, 1.5, 5)),
        {"nothing": lambda rng: (*duplicated_sources(rng), np.zeros(5))},
    ),
    "simplex": Row(
        jaxmeta.optimise.simplex,
        lambda rng: (rng.uniform(0.3, 0.35, 3),),
        {"equal": lambda rng: (np.ones(3),)},  # noqa: ARG005
    ),
    "embed": Row(
        lambda spectrum, alpha: jaxmeta.embed(spectrum, k=4, alpha=alpha),
        lambda rng: (spectrum(rng, 4), rng.uniform(0.4, 0.6)),
        {
            "zero": lambda rng: (Spectrum(frame(rng, 4), np.zeros(4)), 0.25),
            "no exponent": lambda rng: (Spectrum(frame(rng, 4), np.eye(4)[0]), 0.0),
        },
    ),
    "ideal_strengths": Row(
        lambda eigenvalues, sigma, alpha: jaxmeta.ideal_strengths(
            eigenvalues, sigma=sigma, alpha=alpha, size=12
        ),
        with_alpha(lambda rng: (descending(rng, 8) - 4, rng.uniform(0.2, 0.3))),
        {"equal": lambda rng: (np.ones(8), 0.25, 0.5)},  # noqa: ARG005
        totals=lambda out: [jnp.sum(out.values)],  # the residual knows no exponent
        terms=4096,  # forty linear systems, each as ill conditioned as its barrier is steep
    ),
    "lemma1": Row(
        jaxmeta.bounds.lemma1,
        lambda rng: (frame(rng, 3), frame(rng, 3)),
        {
            "identical": twice(lambda rng: frame(rng, 3)),
            "orthogonal": lambda rng: ((q := frame(rng, 6))[:, :3], q[:, 3:]),
            "zero": twice(lambda rng: np.zeros((WORDS, 3))),  # noqa: ARG005
        },
    ),
    "noise_std": Row(
        jaxmeta.noise_std,
        lambda rng: (rng.normal(size=(4, 3)), rng.normal(size=(4, 3))),
        {"identical": twice(lambda rng: rng.normal(size=(4, 3)))},
    ),
    "overlap": Row(
        lambda values, sigma: jaxmeta.noise.spiked_overlap(values, sigma=sigma, n=N),
        spiked_arguments,
        SPIKED_DEGENERATE,
    ),
    "overlap, rectangular": Row(
        lambda values, sigma: jaxmeta.noise.spiked_overlap(values, sigma=sigma, n=N, m=9),
        spiked_arguments,
        {"zero": lambda rng: (np.zeros(5), 0.25)},  # noqa: ARG005
    ),
    "paper_dimension": Row(
        lambda values, sigma, alpha: jaxmeta.paper_dimension(values, sigma=sigma, n=N, alpha=alpha),
        with_alpha(spiked_arguments),
        {},
        discrete=True,
    ),
    "paper_curve": Row(
        lambda values, sigma, alpha: jaxmeta.dimension.paper_curve(
            values, sigma=sigma, n=N, alpha=alpha
        ),
        with_alpha(lambda rng: (6 + descending(rng, 5), rng.uniform(0.2, 0.3))),
        SPIKED_DEGENERATE_WITH_ALPHA,
        totals=lambda out: [jnp.sum(out)],
    ),
    "predicted_curve": Row(
        lambda values, strengths, alpha, total: jaxmeta.dimension.predicted_curve(
            values, strengths, alpha=alpha, total=total
        ),
        lambda rng: (descending(rng, 5), descending(rng, 5) - 1, rng.uniform(0.4, 0.6), 99.0),
        {
            "no loss": lambda rng: ((x := descending(rng, 3)), x, 0.5, np.sum(x**2)),
            "zero": lambda rng: (np.zeros(3), np.zeros(3), 0.5, 0.0),  # noqa: ARG005
        },
        totals=lambda out: [out[-1]],
    ),
    "pip_curve": Row(
        lambda ideal, noisy, alpha: jaxmeta.pip_curve(ideal, noisy, alpha=alpha),
        lambda rng: (spectrum(rng, 4), spectrum(rng, 3), rng.uniform(0.4, 0.6)),
        {
            "identical": lambda rng: ((s := Spectrum(np.eye(WORDS)[:, :3], np.ones(3))), s, 0.5),  # noqa: ARG005
            "zero": lambda rng: ((s := Spectrum(frame(rng, 3), np.zeros(3))), s, 0.5),
        },
    ),
    "pip_loss": Row(
        jaxmeta.pip_loss,
        lambda rng: (embedding(rng, 3), embedding(rng, 4)),
        {
            "identical": twice(lambda rng: embedding(rng, 3)),
            "repeated": twice(lambda rng: frame(rng, 3)),
            "duplicated": lambda rng: ((e := embedding(rng, 2)), np.append(e, e, axis=1)),
            "one zero": lambda rng: (embedding(rng, 3), np.zeros((WORDS, 4))),
            "zero": twice(lambda rng: np.zeros((WORDS, 3))),  # noqa: ARG005
        },
    ),
    "pip_matrix": Row(
        jaxmeta.pip.pip_matrix,
        lambda rng: (embedding(rng, 3),),
        {"zero": lambda rng: (np.zeros((WORDS, 3)),)},  # noqa: ARG005
    ),
    "principal_sines": Row(
        jaxmeta.linalg.principal_sines,
        lambda rng: (frame(rng, 3), frame(rng, 2)),
        {
            "identical": twice(lambda rng: frame(rng, 3)),
            "orthogonal": lambda rng: ((q := frame(rng, 6))[:, :3], q[:, 3:]),
        },
    ),
    "procrustes": Row(
        jaxmeta.procrustes,
        lambda rng: (embedding(rng, 3), embedding(rng, 3) + 3),
        {
            "identical": twice(lambda rng: embedding(rng, 3)),
            # Equal singular values: the rotation is unique, and smooth.
            "repeated": twice(lambda rng: frame(rng, 3)),
        },
    ),
    "procrustes, to more dimensions": Row(
        jaxmeta.procrustes,
        lambda rng: (embedding(rng, 2), embedding(rng, 4) + 3),
        {"repeated": lambda rng: ((q := frame(rng, 4))[:, :2], q)},
    ),
    "procrustes, to fewer dimensions": Row(
        jaxmeta.procrustes,
        lambda rng: (embedding(rng, 4), embedding(rng, 2) + 3),
        {"repeated": lambda rng: ((q := frame(rng, 4)), q[:, :2])},
    ),
    "released_dimension": Row(
        jaxmeta.released.released_dimension, lambda rng: (rng.uniform(1, 2, 5),), {}, discrete=True
    ),
    "released_dimension_weights": Row(
        lambda values, sigma, alpha: jaxmeta.released.released_dimension_weights(
            values, sigma=sigma, n=N, alpha=alpha
        ),
        with_alpha(spiked_arguments),
        {"no noise": lambda rng: (descending(rng, 5), 0.0, 0.5)},
    ),
    "released_noise_std": Row(
        jaxmeta.released.released_noise_std,
        lambda rng: (rng.normal(size=(4, 3)), rng.normal(size=(4, 3))),
        {"identical": twice(lambda rng: rng.normal(size=(4, 3)))},
    ),
    **{
        function.__name__: Row(
            lambda values, sigmas, alpha, function=function: function(
                values, sizes=(2, 3), sigmas=sigmas, n=N, alpha=alpha
            ),
            lambda rng: (
                (4 + descending(rng, 2), 4 + descending(rng, 5)),  # what is read of them
                tuple(rng.uniform(0.2, 0.3, 2)),
                rng.uniform(0.4, 0.6),
            ),
            {"zero": lambda rng: ((np.zeros(2), np.zeros(5)), (0.25, 0.0), 0.5)},  # noqa: ARG005
        )
        for function in (
            jaxmeta.released.released_source_weights,
            jaxmeta.released.released_2020_dimension_weights,
            jaxmeta.released.released_2021_source_weights,
            jaxmeta.released.released_2021_dimension_weights,
        )
    },
    "rotate": Row(
        jaxmeta.combine.rotate_onto,
        lambda rng: (embedding(rng, 3), embedding(rng, 3) + 3),
        {
            "identical": twice(lambda rng: embedding(rng, 3)),
            "repeated": twice(lambda rng: frame(rng, 3)),
        },
    ),
    "rotate, to more dimensions": Row(
        jaxmeta.combine.rotate_onto,
        lambda rng: (embedding(rng, 2), embedding(rng, 4) + 3),
        {},
    ),
    "rotation_invariant": Row(
        lambda eigenvalues, sigma: jaxmeta.rotation_invariant(eigenvalues, sigma=sigma),
        lambda rng: (rng.normal(size=WORDS), rng.uniform(0.2, 0.3)),
        {
            "equal": lambda rng: (np.ones(WORDS), 0.25),  # noqa: ARG005
            "zero": lambda rng: (np.zeros(WORDS), 0.25),  # noqa: ARG005
        },
    ),
    "rotation_invariant_rectangular": Row(
        lambda values, sigma: jaxmeta.shrinkage.rotation_invariant_rectangular(
            values, sigma=sigma, n=WORDS, m=9
        ),
        lambda rng: (descending(rng, WORDS), rng.uniform(0.2, 0.3)),
        {
            "equal": lambda rng: (np.ones(WORDS), 0.25),  # noqa: ARG005
            "zero": lambda rng: (np.zeros(WORDS), 0.25),  # noqa: ARG005
        },
    ),
    "select_dimension": Row(
        lambda values, sigma, alpha: jaxmeta.select_dimension(
            values, sigma=sigma, n=N, alpha=alpha
        ),
        with_alpha(spiked_arguments),
        {},
        discrete=True,
    ),
    "select_sources": Row(
        lambda ideal, sources, alpha: jaxmeta.bounds.select_sources(
            ideal, sources, count=1, alpha=alpha
        ),
        lambda rng: (spectrum(rng, 4), (spectrum(rng, 2), spectrum(rng, 3)), 0.5),
        {},
        discrete=True,
    ),
    "shrinkage_weights": Row(
        lambda values, sigma, alpha: jaxmeta.shrinkage_weights(
            values, sigma=sigma, n=N, alpha=alpha
        ),
        with_alpha(spiked_arguments),
        SPIKED_DEGENERATE_WITH_ALPHA,
    ),
    "simulate_curve": Row(
        lambda ideal, sigma, alpha: jaxmeta.dimension.simulate_curve(
            ideal, sigma=sigma, n=6, alpha=alpha, key=jax.random.key(1), draws=3
        ),
        with_alpha(lambda rng: (descending(rng, 3), rng.uniform(0.2, 0.3))),
        {},  # singular vectors have no derivatives where values coincide
        terms=64,  # an SVD
    ),
    "simulate_curve, blocked": Row(
        lambda ideal, sigma, alpha: jaxmeta.dimension.simulate_curve(
            ideal, sigma=sigma, n=N, alpha=alpha, key=jax.random.key(1), draws=3, depth=2
        ),
        with_alpha(lambda rng: (descending(rng, 3), rng.uniform(0.2, 0.3))),
        {},
        terms=64,
    ),
    "source_weights": Row(
        lambda ideal, values, alpha, source_alphas: jaxmeta.source_weights(
            ideal, values, alpha=alpha, source_alphas=source_alphas
        ),
        lambda rng: (descending(rng, 5), *weight_arguments(rng)[1:]),
        WEIGHTS_DEGENERATE,
    ),
    "source_weights, own ideals": Row(
        lambda ideals, values, alpha: jaxmeta.source_weights(ideals, values, alpha=alpha),
        lambda rng: (weight_arguments(rng)[1], *weight_arguments(rng)[1:3]),
        {"zero": lambda rng: ((np.zeros(3),), (np.zeros(3),), 0.0)},  # noqa: ARG005
    ),
    "spectrum_of": Row(
        lambda embedding, alpha: jaxmeta.spectrum_of(embedding, alpha=alpha),
        lambda rng: (embedding(rng, 3) @ rotation(rng, 3), rng.uniform(0.4, 0.6)),
        {
            "repeated": lambda rng: (frame(rng, 3), 0.5),
            "zero": lambda rng: (np.zeros((WORDS, 3)), 0.5),  # noqa: ARG005
        },
        smooth=lambda out: out.values,
    ),
    "spiked_strengths": Row(
        lambda values, sigma, alpha: jaxmeta.noise.spiked_strengths(
            values, sigma=sigma, n=N, alpha=alpha
        ),
        with_alpha(spiked_arguments),
        SPIKED_DEGENERATE_WITH_ALPHA,
    ),
    "strength_weights": Row(
        lambda values, strengths, alpha: jaxmeta.strength_weights(values, strengths, alpha=alpha),
        lambda rng: (descending(rng, 5), descending(rng, 5), rng.uniform(0.4, 0.6)),
        {
            "equal": lambda rng: (np.ones(5), np.ones(5), 0.5),  # noqa: ARG005
            "zero": lambda rng: (np.zeros(5), np.zeros(5), 0.5),  # noqa: ARG005
            "negative": lambda rng: (np.ones(5), -np.ones(5), 0.5),  # noqa: ARG005
        },
    ),
    "sum_to_one": Row(
        jaxmeta.weights.sum_to_one,
        lambda rng: (rng.uniform(0.5, 1.5, 3),),
        {"equal": lambda rng: (np.ones(3),)},  # noqa: ARG005
    ),
    "sum_to_one, dimension weights": Row(
        jaxmeta.weights.sum_to_one,
        lambda rng: ((rng.uniform(0.5, 1.5, 3), rng.uniform(0.5, 1.5, 2)),),
        {"zero among them": lambda rng: ((np.eye(3)[0], np.ones(2)),)},  # noqa: ARG005
    ),
    "usvt": Row(
        lambda values, sigma: jaxmeta.usvt(values, sigma=sigma, n=N),
        spiked_arguments,
        SPIKED_DEGENERATE,
    ),
    "usvt_rank": Row(
        lambda values, sigma: jaxmeta.noise.usvt_rank(values, sigma=sigma, n=N),
        spiked_arguments,
        {},
        discrete=True,
    ),
}

rows = pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
CONTINUOUS = {name: row for name, row in TABLE.items() if not row.discrete}
continuous = pytest.mark.parametrize("row", CONTINUOUS.values(), ids=CONTINUOUS)
corners = pytest.mark.parametrize(
    ("row", "make"),
    [
        pytest.param(row, make, id=f"{name}: {point}")
        for name, row in CONTINUOUS.items()
        for point, make in {"generic": row.generic, **row.degenerate}.items()
    ],
)


def norm_of(tree):
    """What rounding errors are relative to; at least 1, for weights and angles."""
    leaves = [np.asarray(x, np.float64).ravel() for x in jax.tree.leaves(tree)]
    return max(1.0, np.linalg.norm(np.concatenate(leaves)))


def floats(tree):
    return [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating)]


def total(tree):
    return sum(jnp.sum(x) for x in floats(tree))


def test_every_public_function_has_a_row():
    public = {
        name
        for name, value in vars(jaxmeta).items()
        if not name.startswith("_") and callable(value) and not inspect.isclass(value)
    }
    assert public == {name.split(",")[0] for name in TABLE} | HOST_ONLY | OF_FUNCTIONS


def test_every_name_is_exported():
    """What a module lists as public and is a function of the paper's topics is in `jaxmeta` too."""
    for module in (
        "alignment",
        "autoencode",
        "bounds",
        "combine",
        "counting",
        "corpus",
        "diagnosis",
        "eigen",
        "locally_linear",
        "merge",
        "noise",
        "one_ton",
        "methods",
        "pip",
        "prepare",
        "quadratic",
        "signals",
        "sources",
        "synthetic",
        "vectors",
        "weights",
    ):
        names = importlib.import_module(f"jaxmeta.{module}").__all__
        assert [name for name in names if not hasattr(jaxmeta, name)] == []


@rows
def test_jit_equals_eager(row, rng):
    arguments = cast(row.generic(rng))
    compiled = jax.jit(row.call)(*arguments)
    with jax.disable_jit():
        eager = row.call(*arguments)
    scale = norm_of(arguments) * norm_of(compiled)
    assert_trees_close(compiled, eager, scale=scale, terms=row.terms)


in_32_bit = pytest.mark.skipif(
    IN_64_BIT, reason="the same operations in both legs; the 32-bit one checks"
)


@in_32_bit
@rows
def test_vmap_equals_a_loop(row, rng):
    each = [cast(row.generic(rng)) for _ in range(3)]
    batch = jax.tree.map(lambda *xs: jnp.stack(xs), *each)
    together = jax.vmap(row.call)(*batch)
    one_by_one = jax.tree.map(lambda *xs: jnp.stack(xs), *(row.call(*a) for a in each))
    scale = max(norm_of(a) for a in each) * norm_of(one_by_one)
    assert_trees_close(together, one_by_one, scale=scale, terms=row.terms)


@rows
@pytest.mark.parametrize("dtype", [jnp.float32] + [jnp.float64] * IN_64_BIT)
def test_dtype_follows_the_input(row, rng, dtype):
    out = row.call(*cast(row.generic(rng), dtype))
    assert bool(floats(out)) != row.discrete
    if row.discrete:
        assert all(jnp.issubdtype(x.dtype, jnp.integer) for x in jax.tree.leaves(out))
        return
    assert {x.dtype for x in floats(out)} == {jnp.dtype(dtype)}
    assert not any(x.weak_type for x in floats(out))


@in_32_bit
@rows
def test_shapes_are_known_without_values(row, rng):
    arguments = cast(row.generic(rng))
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), arguments)
    expected, out = jax.eval_shape(row.call, *shapes), row.call(*arguments)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), out) == jax.tree.map(
        lambda x: (x.shape, x.dtype), expected
    )


def test_compilations_are_noticed(compilations):
    jax.jit(lambda x: x + 1)(0.0)
    assert compilations


@in_32_bit
@rows
def test_new_values_compile_nothing(row, rng, compilations):
    first, second = cast(row.generic(rng)), cast(row.generic(rng))
    # Exponents are Python numbers in scripts, and those must not be static either.
    first, second = (
        jax.tree.map(lambda x: float(x) if x.ndim == 0 else x, a) for a in (first, second)
    )
    jax.block_until_ready(row.call(*first))
    compilations.clear()
    jax.block_until_ready(row.call(*second))
    assert not compilations


@functools.cache
def compiled(call):
    return jax.jit(call)


@corners
def test_nan_in_gives_nan_out(row, make, rng):
    """Where values cannot be seen: outside jit some functions raise for them."""
    arguments = cast(make(rng))
    leaves, structure = jax.tree.flatten(arguments)
    for i, leaf in enumerate(leaves):
        # Of an ideal's vectors the last lies beyond all sources, where its value alone counts.
        last = leaf.size - 1 - (leaf.ndim == 2)
        for place in {0, leaf.size // 2, last}:
            spoilt = leaf.ravel().at[place].set(jnp.nan).reshape(leaf.shape)
            out = compiled(row.call)(*structure.unflatten([*leaves[:i], spoilt, *leaves[i + 1 :]]))
            where = f"argument {i} of {structure}, entry {place}"
            assert any(jnp.isnan(x).any() for x in floats(out)), where
            assert all(jnp.isnan(x) for x in row.totals(out)), where


@functools.cache
def derivatives(name):
    """Backward and forward derivatives of the sum of all outputs, compiled once for all points."""
    row = TABLE[name]

    def f(arguments):
        return total(row.smooth(row.call(*arguments)))

    ones = functools.partial(jax.tree.map, jnp.ones_like)
    return jax.jit(jax.grad(f)), jax.jit(lambda a: jax.jvp(f, (a,), (ones(a),))[1])


@corners
def test_gradients_are_finite(row, make, rng):
    arguments = cast(make(rng))
    (name,) = [name for name, other in TABLE.items() if other is row]
    backward, forward = derivatives(name)
    gradients, slope = backward(arguments), forward(arguments)
    leaves = jax.tree.leaves(gradients)
    assert jax.tree.map(jnp.shape, gradients) == jax.tree.map(jnp.shape, arguments)
    for gradient in (*leaves, slope):
        assert jnp.isfinite(gradient).all(), gradients
    # Along ones, the forward derivative is the sum of the backward ones.
    size = sum(float(jnp.sum(jnp.abs(gradient))) for gradient in leaves)
    expected = sum(float(jnp.sum(gradient)) for gradient in leaves)
    assert_close(slope, expected, scale=size + norm_of(arguments), terms=row.terms)


@pytest.mark.skipif(not IN_64_BIT, reason="finite differences keep too few digits in 32 bit")
@continuous
def test_gradients_against_finite_differences(row, rng):
    """With respect to all arguments: weights, spectra, alpha, embeddings.

    Arguments are moved as NumPy arrays, and are made JAX arrays again for the annotations.
    """
    order = 2 if row is TABLE["pip_loss"] else 1  # said to be differentiable to all orders
    tolerance = 0.1 if row is TABLE["ideal_strengths"] else None  # good to some per cent, it says
    if row is TABLE["complete_spectrum"]:  # what it makes up is constant, it says
        row = row._replace(call=lambda *arguments: TABLE["complete_spectrum"].call(*arguments)[:4])
    check_grads(
        lambda *arguments: floats(row.call(*jax.tree.map(jnp.asarray, arguments))),
        cast(row.generic(rng)),
        order=order,
        modes=("fwd", "rev"),
        atol=tolerance,
        rtol=tolerance,
    )


@pytest.mark.skipif(not IN_64_BIT, reason="the same operations in both legs; the 64-bit one checks")
@rows
def test_lowers_for_cuda(row, rng):
    """No operation without a kernel there; running it takes a GPU."""
    exported = export.export(jax.jit(row.call), platforms=["cuda"])(*cast(row.generic(rng)))
    assert exported.platforms == ("cuda",)
    assert {x.dtype for x in floats(exported.out_avals)} == (set() if row.discrete else {DTYPE})


def test_validate_is_for_the_host(rng):
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(jaxmeta.validate)(cast(spectrum(rng, 3)))
