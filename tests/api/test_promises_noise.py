"""What every public function promises: Noise, shrinkage and dimensions."""

import jax
import jax.numpy as jnp
import numpy as np
from api_promises import promises_of
from api_rows import (
    SPIKED_DEGENERATE,
    SPIKED_DEGENERATE_WITH_ALPHA,
    WORDS,
    N,
    Row,
    descending,
    frame,
    moments,
    spiked_arguments,
    twice,
    with_alpha,
)

import jaxmeta
from jaxmeta.crossvalidation import shared_square
from jaxmeta.equalise import equalise, restore

TABLE = {
    "best_dimension": Row(
        lambda values, strengths, alpha: jaxmeta.best_dimension(values, strengths, alpha=alpha),
        lambda rng: (descending(rng, 5), descending(rng, 5) - 1, rng.uniform(0.4, 0.6)),
        {},
        discrete=True,
        scaling=((1, 1, None), 0),
    ),
    "bulk_noise_std": Row(
        lambda values: jaxmeta.noise.bulk_noise_std(values, n=5, m=9),
        lambda rng: (descending(rng, 5),),
        {"zero": lambda rng: (np.zeros(5),)},  # noqa: ARG005
        scaling=((1,), 1),
    ),
    "complete_spectrum": Row(
        lambda top, trace, square_norm: jaxmeta.shrinkage.complete_spectrum(
            top, n=9, trace=trace, square_norm=square_norm
        ),
        moments,
        {"nothing left": lambda rng: (np.ones(4), 4.0, 4.0)},  # noqa: ARG005
        moving=lambda out: out[:4],  # what it makes up is constant, it says
        scaling=((1, 1, 2), 1),
    ),
    "debias": Row(
        lambda values, sigma: jaxmeta.debias(values, sigma=sigma, n=N),
        spiked_arguments,
        SPIKED_DEGENERATE,
        scaling=((1, 1), 1),
    ),
    "debias, rectangular": Row(
        lambda values, sigma: jaxmeta.debias(values, sigma=sigma, n=N, m=9),
        spiked_arguments,
        {"at the edge": lambda rng: (np.full(5, 1.75), 0.25)},  # noqa: ARG005
        scaling=((1, 1), 1),
    ),
    "effective_rank": Row(
        jaxmeta.noise.effective_rank,
        lambda rng: (descending(rng, 5),),
        {"equal": lambda rng: (np.ones(5),), "one": lambda rng: (np.eye(5)[0],)},  # noqa: ARG005
        scaling=((1,), 0),
    ),
    "equalise": Row(
        equalise,
        lambda rng: (rng.normal(size=(4, 4)), rng.uniform(0.5, 2, 4)),
        {"zero": lambda rng: (np.zeros((4, 4)), np.zeros(4))},  # noqa: ARG005
        totals=lambda out: [jnp.sum(out)],
        scaling=((1, 0), 1),
    ),
    "ideal_strengths": Row(
        lambda eigenvalues, sigma, alpha: jaxmeta.ideal_strengths(
            eigenvalues, sigma=sigma, alpha=alpha, size=12
        ),
        with_alpha(lambda rng: (descending(rng, 8) - 4, rng.uniform(0.2, 0.3))),
        {"equal": lambda rng: (np.ones(8), 0.25, 0.5)},  # noqa: ARG005
        totals=lambda out: [jnp.sum(out.values)],  # the residual knows no exponent
        tolerance=0.1,  # good to some per cent, it says
        terms=4096,  # forty linear systems, each as ill conditioned as its barrier is steep
        scaling=((1, 1, None), (1, 0)),
    ),
    "noise_std": Row(
        jaxmeta.noise_std,
        lambda rng: (rng.normal(size=(4, 3)), rng.normal(size=(4, 3))),
        {"identical": twice(lambda rng: rng.normal(size=(4, 3)))},
        scaling=((1, 1), 1),
    ),
    "shared_square": Row(
        shared_square,
        lambda rng: (rng.normal(size=(4, 3)), rng.normal(size=(4, 3))),
        {"zero": lambda rng: (np.zeros((4, 3)), np.zeros((4, 3)))},  # noqa: ARG005
        scaling=((1, 1), 2),
    ),
    "spiked_overlap": Row(
        lambda values, sigma: jaxmeta.noise.spiked_overlap(values, sigma=sigma, n=N),
        spiked_arguments,
        SPIKED_DEGENERATE,
        scaling=((1, 1), 0),
    ),
    "spiked_overlap, rectangular": Row(
        lambda values, sigma: jaxmeta.noise.spiked_overlap(values, sigma=sigma, n=N, m=9),
        spiked_arguments,
        {"zero": lambda rng: (np.zeros(5), 0.25)},  # noqa: ARG005
        scaling=((1, 1), 0),
    ),
    "paper_dimension": Row(
        lambda values, sigma, alpha: jaxmeta.paper_dimension(values, sigma=sigma, n=N, alpha=alpha),
        with_alpha(spiked_arguments),
        {},
        discrete=True,
        scaling=((1, 1, None), 0),
    ),
    "spiked_paper_dimension": Row(
        lambda values, sigma, alpha: jaxmeta.dimension.spiked_paper_dimension(
            values, sigma=sigma, n=N, alpha=alpha
        ),
        with_alpha(spiked_arguments),
        {},
        discrete=True,
        scaling=((1, 1, None), 0),
    ),
    "paper_curve": Row(
        lambda values, sigma, alpha: jaxmeta.dimension.paper_curve(
            values, sigma=sigma, n=N, alpha=alpha
        ),
        with_alpha(lambda rng: (6 + descending(rng, 5), rng.uniform(0.2, 0.3))),
        SPIKED_DEGENERATE_WITH_ALPHA,
        totals=lambda out: [jnp.sum(out)],
        scaling=((1, 1, None), 1),
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
        scaling=((1, 1, None, 2), 1),
    ),
    "restore": Row(
        restore,
        lambda rng: (descending(rng, 3) - 2, frame(rng, 3), rng.uniform(0.5, 2, WORDS)),
        {
            "repeated": lambda rng: (np.ones(3), frame(rng, 3), np.ones(WORDS)),
            "zero": lambda rng: (np.zeros(3), frame(rng, 3), np.ones(WORDS)),
        },
        smooth=lambda out: out.spectrum.values,
        totals=lambda out: [jnp.sum(out.spectrum.values)],
        scaling=((1, 0, 0), ((0, 1), 0)),
    ),
    "rotation_invariant": Row(
        lambda eigenvalues, sigma: jaxmeta.rotation_invariant(eigenvalues, sigma=sigma),
        lambda rng: (rng.normal(size=WORDS), rng.uniform(0.2, 0.3)),
        {
            "equal": lambda rng: (np.ones(WORDS), 0.25),  # noqa: ARG005
            "zero": lambda rng: (np.zeros(WORDS), 0.25),  # noqa: ARG005
        },
        scaling=((1, 1), 1),
    ),
    "rotation_invariant_rectangular": Row(
        lambda values, sigma: jaxmeta.shrinkage.rotation_invariant_rectangular(
            values, sigma=sigma, n=WORDS, m=WORDS + 2
        ),
        lambda rng: (descending(rng, WORDS), rng.uniform(0.2, 0.3)),
        {
            "equal": lambda rng: (np.ones(WORDS), 0.25),  # noqa: ARG005
            "zero": lambda rng: (np.zeros(WORDS), 0.25),  # noqa: ARG005
        },
        scaling=((1, 1), 1),
    ),
    "select_dimension": Row(
        lambda values, sigma, alpha: jaxmeta.select_dimension(
            values, sigma=sigma, n=N, alpha=alpha
        ),
        with_alpha(spiked_arguments),
        {},
        discrete=True,
        scaling=((1, 1, None), 0),
    ),
    "simulate_curve": Row(
        lambda ideal, sigma, alpha: jaxmeta.dimension.simulate_curve(
            ideal, sigma=sigma, n=6, alpha=alpha, key=jax.random.key(1), draws=3
        ),
        with_alpha(lambda rng: (descending(rng, 3), rng.uniform(0.2, 0.3))),
        {},  # singular vectors have no derivatives where values coincide
        terms=64,  # an SVD
        scaling=((1, 1, None), 1),
    ),
    "simulate_curve, blocked": Row(
        lambda ideal, sigma, alpha: jaxmeta.dimension.simulate_curve(
            ideal, sigma=sigma, n=N, alpha=alpha, key=jax.random.key(1), draws=3, depth=2
        ),
        with_alpha(lambda rng: (descending(rng, 3), rng.uniform(0.2, 0.3))),
        {},
        terms=64,
        scaling=((1, 1, None), 1),
    ),
    "spiked_strengths": Row(
        lambda values, sigma, alpha: jaxmeta.noise.spiked_strengths(
            values, sigma=sigma, n=N, alpha=alpha
        ),
        with_alpha(spiked_arguments),
        SPIKED_DEGENERATE_WITH_ALPHA,
        scaling=((1, 1, None), 1),
    ),
    "usvt": Row(
        lambda values, sigma: jaxmeta.usvt(values, sigma=sigma, n=N),
        spiked_arguments,
        SPIKED_DEGENERATE,
        scaling=((1, 1), 1),
    ),
    "usvt_rank": Row(
        lambda values, sigma: jaxmeta.noise.usvt_rank(values, sigma=sigma, n=N),
        spiked_arguments,
        {},
        discrete=True,
        scaling=((1, 1), 0),
    ),
    "rie_strengths": Row(
        lambda eigenvalues, sigma: jaxmeta.shrinkage.rie_strengths(eigenvalues, sigma=sigma),
        lambda rng: (descending(rng, WORDS), rng.uniform(0.6, 0.7)),  # off the kink
        {
            "equal": lambda rng: (np.ones(WORDS), 0.25),  # noqa: ARG005
            "zero": lambda rng: (np.zeros(WORDS), 0.25),  # noqa: ARG005
        },
        scaling=((1, 1), 1),
    ),
}

test_promises = promises_of(TABLE)
