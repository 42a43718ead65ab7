"""What every public function promises: Weights, in closed form, exact and released."""

import jax
import jax.numpy as jnp
import numpy as np
from api_promises import promises_of
from api_rows import (
    SOURCES_DEGENERATE,
    SPIKED_DEGENERATE_WITH_ALPHA,
    WEIGHTS_DEGENERATE,
    N,
    Row,
    aligned_sources,
    descending,
    duplicated_sources,
    frame,
    inner_products,
    orthogonal_sources,
    quadratic_arguments,
    spiked_arguments,
    twice,
    two_sources,
    weight_arguments,
    with_alpha,
)

import jaxmeta


def near_views(rng):
    """Two sources whose directions are alike."""
    first = frame(rng, 2)
    second, _ = np.linalg.qr(first + rng.normal(size=first.shape) / 4)
    return tuple(jaxmeta.Spectrum(x, 4 + descending(rng, 2)) for x in (first, second))


TABLE = {
    "rank_weights": Row(
        jaxmeta.weights.rank_weights,
        lambda rng: (two_sources(rng),),
        {**SOURCES_DEGENERATE},
        scaling=(((1, 2),), 0),
    ),
    "agreement_weights": Row(
        jaxmeta.quadratic.agreement_weights,
        lambda rng: (two_sources(rng),),
        {},
        terms=256,
        scaling=((1,), 0),
    ),
    "released_one_to_n": Row(
        lambda sources, rate: jaxmeta.released.released_one_to_n(
            sources, k=2, key=jax.random.key(0), rate=rate, steps=3
        ),
        lambda rng: (two_sources(rng), rng.uniform(0.01, 0.02)),
        {name: lambda rng, m=make: (*m(rng), 0.01) for name, make in SOURCES_DEGENERATE.items()},
        totals=lambda out: [out.error],
        scaling=((1, -2), (1, 0, 2)),
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
        scaling=((1, 1, None), 0),
    ),
    "dimension_weights": Row(
        lambda ideal, values, alpha, source_alphas: jaxmeta.dimension_weights(
            ideal, values, alpha=alpha, source_alphas=source_alphas
        ),
        lambda rng: (descending(rng, 5), *weight_arguments(rng)[1:]),
        WEIGHTS_DEGENERATE,
        scaling=((4, (2, 0), None, None), (1, 2)),
    ),
    "exact_weights": Row(
        lambda ideal, sources: jaxmeta.exact_weights(jaxmeta.pip_quadratic(ideal, sources)),
        quadratic_arguments,
        {"orthogonal": orthogonal_sources, "duplicated": duplicated_sources},
        smooth=lambda out: out.weights,
        totals=lambda out: [out.residual],
        terms=1024,
        scaling=((2, 1), (1, 0, 0)),
    ),
    "non_negative": Row(
        jaxmeta.optimise.non_negative,
        lambda rng: (rng.uniform(0.5, 1.5, 3),),
        {"negative": lambda rng: (-np.ones(3),)},  # noqa: ARG005
        takes=("another axis", "integers", "no entry"),
        scaling=((1,), 1),
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
        scaling=((1, 0, 2), 2, 4),  # the entries of the quadratic
    ),
    "simplex": Row(
        jaxmeta.optimise.simplex,
        lambda rng: (rng.uniform(0.3, 0.35, 3),),
        {"equal": lambda rng: (np.ones(3),)},  # noqa: ARG005
        takes=("another axis", "integers", "no entry"),
    ),
    "released_dimension": Row(
        jaxmeta.released.released_dimension,
        lambda rng: (rng.uniform(1, 2, 5),),
        {},
        discrete=True,
        scaling=((1,), 0),
    ),
    "released_dimension_weights": Row(
        lambda values, sigma, alpha: jaxmeta.released.released_dimension_weights(
            values, sigma=sigma, n=N, alpha=alpha
        ),
        with_alpha(spiked_arguments),
        {"no noise": lambda rng: (descending(rng, 5), 0.0, 0.5)},
        scaling=((1, 1, None), 0),
    ),
    "released_noise_std": Row(
        jaxmeta.released.released_noise_std,
        lambda rng: (rng.normal(size=(4, 3)), rng.normal(size=(4, 3))),
        {"identical": twice(lambda rng: rng.normal(size=(4, 3)))},
        scaling=((1, 1), 1),
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
            # Those of 2021 depend on the unit of the signals.
            scaling=() if "2021" in function.__name__ else ((1, 1, None), 0),
        )
        for function in (
            jaxmeta.released.released_source_weights,
            jaxmeta.released.released_2020_dimension_weights,
            jaxmeta.released.released_2021_source_weights,
            jaxmeta.released.released_2021_dimension_weights,
        )
    },
    "shrinkage_weights": Row(
        lambda values, sigma, alpha: jaxmeta.shrinkage_weights(
            values, sigma=sigma, n=N, alpha=alpha
        ),
        with_alpha(spiked_arguments),
        SPIKED_DEGENERATE_WITH_ALPHA,
        scaling=((1, 1, None), 0),
    ),
    "source_weights": Row(
        lambda ideal, values, alpha, source_alphas: jaxmeta.source_weights(
            ideal, values, alpha=alpha, source_alphas=source_alphas
        ),
        lambda rng: (descending(rng, 5), *weight_arguments(rng)[1:]),
        WEIGHTS_DEGENERATE,
        scaling=((2, 0, None, None), 1),
    ),
    "source_weights, own ideals": Row(
        lambda ideals, values, alpha: jaxmeta.source_weights(ideals, values, alpha=alpha),
        lambda rng: (weight_arguments(rng)[1], *weight_arguments(rng)[1:3]),
        {"zero": lambda rng: ((np.zeros(3),), (np.zeros(3),), 0.0)},  # noqa: ARG005
        scaling=((2, 0, None), 1),
    ),
    "strength_weights": Row(
        lambda values, strengths, alpha: jaxmeta.strength_weights(values, strengths, alpha=alpha),
        lambda rng: (descending(rng, 5), descending(rng, 5), rng.uniform(0.4, 0.6)),
        {
            "equal": lambda rng: (np.ones(5), np.ones(5), 0.5),  # noqa: ARG005
            "zero": lambda rng: (np.zeros(5), np.zeros(5), 0.5),  # noqa: ARG005
            "negative": lambda rng: (np.ones(5), -np.ones(5), 0.5),  # noqa: ARG005
        },
        scaling=((2, 4, None), 1),
    ),
    "average_signals": Row(
        jaxmeta.several.average_signals,
        lambda rng: (tuple(rng.normal(size=(2, 4, 3))), tuple(rng.uniform(0.2, 0.3, 2))),
        {
            "equal": lambda rng: ((x := rng.normal(size=(4, 3)), x), (0.25, 0.25)),
            "one without noise": lambda rng: (tuple(rng.normal(size=(2, 4, 3))), (0.25, 0.0)),
            "no noise": lambda rng: (tuple(rng.normal(size=(2, 4, 3))), (0.0, 0.0)),
        },
        totals=lambda out: [jnp.sum(out.signal)],
        scaling=((1, 1), (1, 1)),
    ),
    "sharing": Row(
        lambda sources, sigmas: jaxmeta.several.sharing(sources, sigmas=sigmas),
        lambda rng: (near_views(rng), tuple(rng.uniform(0.2, 0.3, 2))),
        {
            "no noise": lambda rng: (near_views(rng), (0.0, 0.0)),
            "noise alone": lambda rng: (near_views(rng), (9.0, 9.0)),
            "copies": lambda rng: ((near_views(rng)[0],) * 2, (0.25, 0.25)),
        },
        totals=lambda out: [jnp.sum(out)],
        scaling=((((0, 1), (0, 1)), 1), 0),
    ),
    "stack_spectra": Row(
        lambda sources, sigmas, alpha, shares: inner_products(
            jaxmeta.embed(
                jaxmeta.several.stack_spectra(sources, sigmas=sigmas, alpha=alpha, shares=shares),
                k=2,
                alpha=alpha,
            )
        ),
        lambda rng: (
            near_views(rng),
            tuple(rng.uniform(0.2, 0.3, 2)),
            rng.uniform(0.4, 0.6),
            rng.uniform(0.5, 0.9, 2),
        ),
        {
            "no noise": lambda rng: (near_views(rng), (0.0, 0.0), 0.5, np.ones(2)),
            "noise alone": lambda rng: (near_views(rng), (9.0, 9.0), 0.5, np.ones(2)),
            "nothing shared": lambda rng: (near_views(rng), (0.25, 0.25), 0.5, np.zeros(2)),
        },
        totals=lambda out: [jnp.sum(out)],
        scaling=((((0, 1), (0, 1)), 1, None, 0), 1),
        terms=256,  # two decompositions
    ),
    "sum_to_one": Row(
        jaxmeta.weights.sum_to_one,
        lambda rng: (rng.uniform(0.5, 1.5, 3),),
        {"equal": lambda rng: (np.ones(3),)},  # noqa: ARG005
        scaling=((1,), 0),
    ),
    "sum_to_one, dimension weights": Row(
        jaxmeta.weights.sum_to_one,
        lambda rng: ((rng.uniform(0.5, 1.5, 3), rng.uniform(0.5, 1.5, 2)),),
        {"zero among them": lambda rng: ((np.eye(3)[0], np.ones(2)),)},  # noqa: ARG005
        scaling=(((1, 2),), 0),
    ),
}

test_promises = promises_of(TABLE)
