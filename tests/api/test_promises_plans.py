"""What every public function promises: moments and plans."""

from api_promises import promises_of
from api_rows import (
    PRESENT,
    SOURCES_DEGENERATE,
    Row,
    inner_products,
    two_sources,
)

from jaxmeta import Settings, moments
from jaxmeta.affine import apply_plan
from jaxmeta.covariance import mean_of, raw_gram
from jaxmeta.plans import needs, plan_of


def sums(sources):
    """Products of all pairs, as they are and of rows of length 1, and means."""
    stats = moments(sources, PRESENT)
    pairs = (*stats.raw.values(), *stats.unit.values())
    return [raw_gram(pair).value for pair in pairs], [mean_of(pair) for pair in pairs]


def default(sources):
    """Inner products of what a plan makes of the rows that it is fitted to."""
    stats = moments(sources, **needs("default", Settings()))
    return inner_products(apply_plan(plan_of("default", stats), sources))


def weighted(sources, sigmas, alpha):
    settings = Settings(sigmas=sigmas, alpha=alpha)
    stats = moments(sources, **needs("DW", settings))
    return inner_products(apply_plan(plan_of("DW", stats, settings), sources))


def later(sources, others):
    plan = plan_of("PCA", moments(sources, parts=("raw",)), Settings(k=2))
    return inner_products(apply_plan(plan, others, PRESENT))


def noisy(sources):
    return sources, (0.01, 0.02), 0.5


DEGENERATE = {
    name: lambda rng, make=make: noisy(*make(rng)) for name, make in SOURCES_DEGENERATE.items()
}
# At values that repeat a cut is not unique.
CLEAR = {name: SOURCES_DEGENERATE[name] for name in ("one zero", "zero")}


def generic(rng):
    return two_sources(rng), rng.uniform(0.01, 0.02, 2).tolist(), rng.uniform(0.4, 0.6)


TABLE = {
    "moments": Row(
        sums,
        lambda rng: (two_sources(rng),),
        SOURCES_DEGENERATE,
        totals=lambda _: [],
        scaling=((1,), ((2, 2, 2, 0, 0, 0), (1, 1, 1, 0, 0, 0))),
    ),
    "plan_of, default": Row(
        default,
        lambda rng: (two_sources(rng),),
        SOURCES_DEGENERATE,
        terms=256,
        scaling=((1,), 0),
    ),
    "plan_of, DW": Row(
        weighted,
        generic,
        DEGENERATE,
        terms=256,
        scaling=((1, 2, None), 2, 4),  # sums are in two pieces
    ),
    "apply_plan": Row(
        later,
        lambda rng: (two_sources(rng), two_sources(rng)),
        {"zero": lambda rng: (SOURCES_DEGENERATE["zero"](rng)[0], two_sources(rng))},
        terms=64,
        scaling=((1, 1), 2, 4),
    ),
}

test_promises = promises_of(TABLE)
