"""What every public function promises: Preparation, methods, signals and diagnosis."""

import jax
import jax.numpy as jnp
import numpy as np
from api_promises import promises_of
from api_rows import (
    COUNTS_DEGENERATE,
    NEIGHBOURS,
    PRESENT,
    SOURCES_DEGENERATE,
    WORDS,
    Row,
    cooccurrences,
    descending,
    embedding,
    frame,
    inner_products,
    partly_seen,
    twice,
    two_sources,
    with_shift,
    zero_source,
)
from helpers import rotation

import jaxmeta
from jaxmeta.methods import Layer
from jaxmeta.methods.autoencode import _Wiring
from jaxmeta.spelling import WordForms, separation


def network(encoders, sources):
    wiring = _Wiring(jnp.tanh, normalise=True)
    return jaxmeta.methods.autoencoded_rows(
        jaxmeta.methods.Autoencoder(encoders, (), wiring), sources
    )


ORDERED = np.argwhere(np.triu(np.ones((WORDS, WORDS)), 1))
PAIRS = WordForms(*(np.tile(rows, (9, 1)) for rows in (ORDERED[::3], ORDERED[1::3])))


def layers(rng):
    return tuple(Layer(rng.normal(size=(k, 2)), rng.normal(size=2)) for k in (2, 3))


TABLE = {
    "cosine_shares": Row(
        jaxmeta.diagnosis.cosine_shares,
        lambda rng: (two_sources(rng), (rng.uniform(0.5, 1.5, 2), rng.uniform(0.5, 1.5))),
        {name: lambda rng, m=make: m(rng) for name, make in SOURCES_DEGENERATE.items()},
        takes=("integers",),
        scaling=((1, 0), 0),
    ),
    "squared_error": Row(
        jaxmeta.methods.squared_error,
        lambda rng: (rng.normal(size=(4, 3)), rng.normal(size=(4, 3))),
        {"identical": twice(lambda rng: rng.normal(size=(4, 3)))},
        scaling=((1, 1), 2),
    ),
    "squared_cosine_proximity": Row(
        jaxmeta.methods.squared_cosine_proximity,
        lambda rng: (rng.normal(size=(4, 3)), rng.normal(size=(4, 3))),
        {
            "identical": twice(lambda rng: rng.normal(size=(4, 3))),
            "zero": twice(lambda rng: np.zeros((4, 3))),  # noqa: ARG005
        },
        scaling=((1, 1), 0),
    ),
    "disagreement": Row(
        jaxmeta.diagnosis.disagreement,
        lambda rng: (two_sources(rng),),
        SOURCES_DEGENERATE,
        scaling=(((1, 2),), 0),
    ),
    "separation": Row(
        lambda source: separation(source, PAIRS),
        lambda rng: (embedding(rng, 3),),
        {
            "zero": lambda rng: (np.zeros((WORDS, 3)),),  # noqa: ARG005
            "equal words": lambda rng: (np.ones((WORDS, 3)),),  # noqa: ARG005
            "one zero": lambda rng: (embedding(rng, 3) * (np.arange(WORDS) > 0)[:, None],),
        },
        scaling=((1,), 0),
    ),
    "autoencoded_rows": Row(
        network,
        lambda rng: (layers(rng), two_sources(rng)),
        {
            "one zero": lambda rng: (layers(rng), zero_source(rng)),
            "no weights": lambda rng: (jax.tree.map(np.zeros_like, layers(rng)), two_sources(rng)),
        },
        takes=("another axis", "integers", "no entry"),
    ),
    "nearest_neighbours": Row(
        lambda source: jaxmeta.methods.nearest_neighbours(source, neighbours=3),
        lambda rng: (embedding(rng, 4),),
        {},
        discrete=True,
        scaling=((1,), 0),
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
        scaling=((2, 0, None), (1, 1, 4)),
    ),
    "one_to_n_plus": Row(
        lambda sources, ridge: jaxmeta.methods.one_to_n_plus(
            sources, PRESENT, k=2, ridge=ridge, steps=3
        ),
        lambda rng: (two_sources(rng), rng.uniform(0.1, 0.2)),
        {name: lambda rng, m=make: (*m(rng), 0.1) for name, make in SOURCES_DEGENERATE.items()},
        smooth=lambda out: (inner_products(out.embedding), out.error),
        totals=lambda out: [out.error],
        scaling=((1, 0), (1, 0, 2)),
    ),
    "predict_missing": Row(
        lambda sources, ridge: jaxmeta.files.predict_missing(sources, PRESENT, ridge=ridge),
        lambda rng: (two_sources(rng), rng.uniform(0.1, 0.2)),
        {name: lambda rng, m=make: (*m(rng), 0.1) for name, make in SOURCES_DEGENERATE.items()},
        scaling=(((1, 2), 0), (1, 2)),
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
            scaling=((1,), int(function is jaxmeta.prepare.centre_rows)),
        )
        for function in (
            jaxmeta.prepare.centre_rows,
            jaxmeta.prepare.unit_rows,
            jaxmeta.prepare.unit_frobenius,
            jaxmeta.prepare.unit_spectral,
            jaxmeta.standardise,
        )
    },
    "centre_rows, of some words": Row(
        lambda source: jaxmeta.prepare.centre_rows(source, present=jnp.arange(WORDS) != 2),
        lambda rng: (embedding(rng, 3),),
        {},
        scaling=((1,), 1),
    ),
    "spectrum_power": Row(
        lambda source, exponent: jaxmeta.prepare.spectrum_power(source, exponent=exponent),
        lambda rng: (two_sources(rng)[1], rng.uniform(0.4, 0.6)),
        {
            "equal values": lambda rng: (frame(rng, 3), 0.5),
            "zero": lambda rng: (np.zeros((WORDS, 3)), 0.5),  # noqa: ARG005
        },
        smooth=inner_products,
        scaling=((2, None), 1),
    ),
    "remove_leading": Row(
        lambda source: jaxmeta.prepare.remove_leading(source, count=1),
        lambda rng: (two_sources(rng)[1],),
        {"zero": lambda rng: (np.zeros((WORDS, 3)),)},  # noqa: ARG005
        scaling=((1,), 1),
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
        scaling=((1,), 0),
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
        scaling=((1, 0), 0),
    ),
    "reconstruction_weights": Row(
        lambda sources, ridge: jaxmeta.methods.reconstruction_weights(
            sources, (NEIGHBOURS, NEIGHBOURS[:, :2]), ridge=ridge
        ),
        lambda rng: (two_sources(rng), rng.uniform(0.1, 0.2)),
        {name: lambda rng, m=make: (*m(rng), 0.1) for name, make in SOURCES_DEGENERATE.items()},
        scaling=((1, 0), 0),
    ),
    "log_count": Row(
        jaxmeta.log_count,
        lambda rng: (cooccurrences(rng),),
        {
            "zero": lambda rng: (np.zeros((5, 5)),),  # noqa: ARG005
            "partly seen": lambda rng: (partly_seen(rng),),
        },
        takes=("integers",),
    ),
    "ppmi": Row(
        lambda counts, shift: jaxmeta.ppmi(counts, shift=shift),
        with_shift(lambda rng: cooccurrences(rng) + 40 * np.eye(5)),  # off the kink
        {name: with_shift(make) for name, make in COUNTS_DEGENERATE.items()},
        takes=("integers",),
        scaling=((1, 0), 0),
    ),
    "ppmi, at its kink": Row(
        jaxmeta.ppmi,
        lambda rng: (cooccurrences(rng) + 40 * np.eye(5),),
        {name: lambda rng, m=make: (m(rng),) for name, make in COUNTS_DEGENERATE.items()},
        takes=("integers",),
        scaling=((1,), 0),
    ),
    "shifted_pmi": Row(
        lambda counts, shift: jaxmeta.shifted_pmi(counts, shift=shift, unobserved=-2.0),
        with_shift(cooccurrences),
        {name: with_shift(make) for name, make in COUNTS_DEGENERATE.items()},
        takes=("integers",),
        scaling=((1, 0), 0),
    ),
}

test_promises = promises_of(TABLE)
