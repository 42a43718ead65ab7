"""What every public function promises: Spectra, losses, bounds and combinations."""

import numpy as np
from api_promises import promises_of
from api_rows import (
    BOUND_DEGENERATE,
    PRESENT,
    SOURCES_DEGENERATE,
    WORDS,
    Row,
    bound_arguments,
    descending,
    embedding,
    frame,
    inner_products,
    spectrum,
    twice,
    two_sources,
)
from helpers import rotation

import jaxmeta
from jaxmeta import Spectrum
from jaxmeta.pip import strengths_against

TABLE = {
    "average": Row(
        jaxmeta.combine.average,
        lambda rng: (two_sources(rng),),
        SOURCES_DEGENERATE,
        scaling=((1,), 1),
    ),
    "average, of words that are missing": Row(
        lambda sources: jaxmeta.combine.average(sources, present=PRESENT),
        lambda rng: (two_sources(rng),),
        {},
        scaling=((1,), 1),
    ),
    "principal_axes": Row(
        jaxmeta.combine.principal_axes,
        lambda rng: (two_sources(rng)[1],),
        {
            "equal values": lambda rng: (frame(rng, 3),),
            "zero": lambda rng: (np.zeros((WORDS, 3)),),  # noqa: ARG005
        },
        smooth=inner_products,
        scaling=((1,), 1),
    ),
    "rotated_average": Row(
        lambda sources: jaxmeta.combine.rotated_average(sources, steps=3),
        lambda rng: ((*two_sources(rng), embedding(rng, 3) + 3),),
        {
            "equal values": lambda rng: ((frame(rng, 2), (e := frame(rng, 3)), e),),
            "identical": lambda rng: (((e := embedding(rng, 3)), e, e),),
        },
        scaling=((1,), (1, 0, 0)),
    ),
    "svd_reduce": Row(
        lambda sources, weights: jaxmeta.svd_reduce(sources, k=3, weights=weights),
        lambda rng: (two_sources(rng), (rng.uniform(0.5, 1.5, 2), rng.uniform(0.5, 1.5))),
        {
            name: lambda rng, m=make: (*m(rng), (np.ones(2), 1.0))
            for name, make in SOURCES_DEGENERATE.items()
        },
        smooth=inner_products,
        takes=("integers",),
        scaling=((1, 0), 1),
    ),
    "best_order": Row(
        lambda ideal, sources, weights, alpha, source_alphas: jaxmeta.bounds.best_order(
            ideal, sources, weights, alpha=alpha, source_alphas=source_alphas
        ),
        bound_arguments,
        BOUND_DEGENERATE,
        totals=lambda out: [out.tight],
        takes=("integers",),
        scaling=(((0, 1), ((0, 1), (0, 1)), 0, None, None), (0, 1)),
    ),
    "split_by_source": Row(
        lambda values: jaxmeta.spectral.split_by_source(values, sizes=(2, 3, 2)),
        lambda rng: (descending(rng, 6),),
        {"zero": lambda rng: (np.zeros(6),)},  # noqa: ARG005
        scaling=((1,), 1),
    ),
    "bound_terms": Row(
        lambda ideal, sources, weights, alpha, source_alphas: jaxmeta.bound_terms(
            ideal, sources, weights, alpha=alpha, source_alphas=source_alphas
        ),
        bound_arguments,
        BOUND_DEGENERATE,
        totals=lambda out: [out.telescoped, out.split, out.tight],
        takes=("integers",),
        scaling=(((0, 1), ((0, 1), (0, 1)), 0, None, None), 1),
    ),
    "concatenate": Row(
        jaxmeta.concatenate,
        lambda rng: ((embedding(rng, 2), embedding(rng, 3)), (rng.normal(size=2), rng.normal())),
        {"zero": lambda rng: ((embedding(rng, 2), np.zeros((WORDS, 3))), (np.zeros(2), 0.0))},
        takes=("integers",),
        scaling=((1, 0), 1),
    ),
    "decompose": Row(
        lambda signal: jaxmeta.decompose(signal + signal.T),
        lambda rng: ((q := frame(rng, WORDS)) * descending(rng, WORDS) @ q.T / 2,),
        {
            "repeated": lambda rng: (np.eye(WORDS),),  # noqa: ARG005
            "zero": lambda rng: (np.zeros((WORDS, WORDS)),),  # noqa: ARG005
        },
        smooth=lambda out: out.values,
        takes=("no entry",),
        scaling=((1,), (0, 1)),
    ),
    "decompose, general": Row(
        lambda signal: jaxmeta.decompose(signal, symmetric=False),
        lambda rng: (embedding(rng, 4) @ rotation(rng, 4),),
        {
            "repeated": lambda rng: (frame(rng, 4),),
            "zero": lambda rng: (np.zeros((WORDS, 4)),),  # noqa: ARG005
        },
        smooth=lambda out: out.values,
        scaling=((1,), (0, 1)),
    ),
    "embed": Row(
        lambda spectrum, alpha: jaxmeta.embed(spectrum, k=4, alpha=alpha),
        lambda rng: (spectrum(rng, 4), rng.uniform(0.4, 0.6)),
        {
            "zero": lambda rng: (Spectrum(frame(rng, 4), np.zeros(4)), 0.25),
            "no exponent": lambda rng: (Spectrum(frame(rng, 4), np.eye(4)[0]), 0.0),
        },
        scaling=(((0, 2), None), 1),
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
    "pip_curve": Row(
        lambda ideal, noisy, alpha: jaxmeta.pip_curve(ideal, noisy, alpha=alpha),
        lambda rng: (spectrum(rng, 4), spectrum(rng, 3), rng.uniform(0.4, 0.6)),
        {
            "identical": lambda _: (
                *(Spectrum(np.eye(WORDS)[:, :k], np.ones(k)) for k in (4, 3)),
                0.5,
            ),
            "zero": lambda rng: (
                *(Spectrum(frame(rng, k), np.zeros(k)) for k in (4, 3)),
                0.5,
            ),
        },
        scaling=(((0, 1), (0, 1), None), 1),
    ),
    "strengths_against": Row(
        lambda ideal, vectors, alpha: strengths_against(ideal, vectors, alpha=alpha),
        lambda rng: (spectrum(rng, 4), frame(rng, 3), rng.uniform(0.4, 0.6)),
        {"zero": lambda rng: (Spectrum(frame(rng, 4), np.zeros(4)), frame(rng, 3), 0.5)},
        scaling=(((0, 1), 0, None), 1),
    ),
    "pip_loss": Row(
        jaxmeta.pip_loss,
        lambda rng: (embedding(rng, 4), embedding(rng, 4)),
        {
            "identical": twice(lambda rng: embedding(rng, 4)),
            "repeated": twice(lambda rng: frame(rng, 4)),
            "duplicated": lambda rng: (
                np.pad(e := embedding(rng, 2), ((0, 0), (0, 2))),
                np.append(e, e, axis=1),
            ),
            "one zero": lambda rng: (embedding(rng, 4), np.zeros((WORDS, 4))),
            "zero": twice(lambda rng: np.zeros((WORDS, 4))),  # noqa: ARG005
        },
        order=2,  # said to be differentiable to all orders
        scaling=((1, 1), 2),
    ),
    "pip_matrix": Row(
        jaxmeta.pip.pip_matrix,
        lambda rng: (embedding(rng, 3),),
        {"zero": lambda rng: (np.zeros((WORDS, 3)),)},  # noqa: ARG005
        scaling=((1,), 2),
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
        jaxmeta.linalg.procrustes,
        lambda rng: (embedding(rng, 3), embedding(rng, 3) + 3),
        {
            "identical": twice(lambda rng: embedding(rng, 3)),
            # Equal singular values: the rotation is unique, and smooth.
            "repeated": twice(lambda rng: frame(rng, 3)),
        },
        scaling=((1, 2), 0),
    ),
    "procrustes, to more dimensions": Row(
        jaxmeta.linalg.procrustes,
        lambda rng: (embedding(rng, 2), embedding(rng, 4) + 3),
        {"repeated": lambda rng: ((q := frame(rng, 4))[:, :2], q)},
        scaling=((1, 2), 0),
    ),
    "procrustes, to fewer dimensions": Row(
        jaxmeta.linalg.procrustes,
        lambda rng: (embedding(rng, 4), embedding(rng, 2) + 3),
        {"repeated": lambda rng: ((q := frame(rng, 4)), q[:, :2])},
        scaling=((1, 2), 0),
    ),
    "rotate_onto": Row(
        jaxmeta.combine.rotate_onto,
        lambda rng: (embedding(rng, 3), embedding(rng, 3) + 3),
        {
            "identical": twice(lambda rng: embedding(rng, 3)),
            "repeated": twice(lambda rng: frame(rng, 3)),
        },
        scaling=((1, 2), 1),
    ),
    "rotate_onto, to more dimensions": Row(
        jaxmeta.combine.rotate_onto,
        lambda rng: (embedding(rng, 2), embedding(rng, 4) + 3),
        {},
        scaling=((1, 2), 1),
    ),
    "select_sources": Row(
        lambda ideal, sources, alpha: jaxmeta.bounds.select_sources(
            ideal, sources, count=1, alpha=alpha
        ),
        lambda rng: (spectrum(rng, 4), (spectrum(rng, 2), spectrum(rng, 3)), 0.5),
        {},
        discrete=True,
        scaling=(((0, 1), ((0, 1), (0, 1)), None), 0),
    ),
    "spectrum_of": Row(
        lambda embedding, alpha: jaxmeta.spectrum_of(embedding, alpha=alpha),
        lambda rng: (embedding(rng, 3) @ rotation(rng, 3), rng.uniform(0.4, 0.6)),
        {
            "repeated": lambda rng: (frame(rng, 3), 0.5),
            "zero": lambda rng: (np.zeros((WORDS, 3)), 0.5),  # noqa: ARG005
        },
        smooth=lambda out: out.values,
        scaling=((1, None), (0, 2)),
    ),
}

test_promises = promises_of(TABLE)
