"""What every public function promises: How alike two embeddings are."""

import jax
import numpy as np
from api_promises import promises_of
from api_rows import SOURCES_DEGENERATE, WORDS, Row, embedding, frame, twice, two_sources
from helpers import rotation

from jaxmeta import covariance, similarity


# All of one shape, for one program; `test_similarity` has embeddings of different widths.
def alike(rng):
    """In no special basis, about other points."""
    e = embedding(rng, 4)
    return e @ rotation(rng, 4) + 1, e @ rotation(rng, 4) + embedding(rng, 4) - 2


def one_apart(rng):
    """Words that are the same but for one."""
    return np.eye(WORDS)[:, :1] * np.ones((1, 4)), embedding(rng, 4)


DEGENERATE = {
    "identical": twice(lambda rng: embedding(rng, 4)),
    "repeated": twice(lambda rng: frame(rng, 4)),
    "duplicated": lambda rng: (embedding(rng, 4), np.tile(embedding(rng, 2), 2)),
    "rank one": lambda rng: (embedding(rng, 1) * np.ones((1, 4)), embedding(rng, 4)),
    "one word apart": one_apart,
    "equal words": lambda rng: (embedding(rng, 4), np.ones((WORDS, 4))),
    "one zero": lambda rng: (embedding(rng, 4), np.zeros((WORDS, 4))),
    "zero": twice(lambda rng: np.zeros((WORDS, 4))),  # noqa: ARG005
}

TABLE = {
    "cka": Row(
        similarity.cka,
        alike,
        DEGENERATE,
        scaling=((1, 2), 0),
    ),
    "cka_of_moments": Row(
        lambda sources: similarity.cka_of_moments(covariance.moments(sources, parts=("raw",))),
        lambda rng: (two_sources(rng),),
        SOURCES_DEGENERATE,
        totals=lambda out: [out.sum()],
        scaling=((1,), 0, 2),
    ),
    "permutation_test": Row(
        lambda e, f: similarity.permutation_test(
            similarity.cka, e, f, key=jax.random.key(0), draws=3
        ),
        alike,
        {name: DEGENERATE[name] for name in ("identical", "one zero", "zero")},
        scaling=((1, 2), 0),
    ),
    "procrustes_distance": Row(
        similarity.procrustes_distance,
        alike,
        DEGENERATE,
        scaling=((1, 2), 0),
    ),
    "unbiased_cka": Row(
        similarity.unbiased_cka,
        alike,
        DEGENERATE,
        scaling=((1, 2), 0),
    ),
    "unbiased_hsic": Row(
        similarity.unbiased_hsic,
        alike,
        DEGENERATE,
        scaling=((1, 1), 4),
    ),
}

test_promises = promises_of(TABLE)
