"""Plans against float64 NumPy: the rows fitted to, rows that come later, cuts, and noise."""

import pickle
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from combinations import SIGMAS, TRUTH, WIDTHS, N, default, draw
from helpers import DTYPE, EPS, assert_close, cast, exactly, rotation, rounded
from hypothesis import given, settings
from strategies import seeds

from jaxmeta import METHODS, Settings, apply, fit, meta_embedding, moments, standardise
from jaxmeta.combine import rotated_average
from jaxmeta.methods import one_to_n
from jaxmeta.plans import PLANS, apply_plan, plan_of
from jaxmeta.weightings import WEIGHTINGS
from jaxmeta.weights import rank_weights

pytestmark = pytest.mark.slow

FILES = ("default", "UW", "UW-unit", "AVG", "AVG-rotated", "SVD", "PCA", "1TON")
BY_NOISE = tuple(name for name in PLANS if name in WEIGHTINGS and PLANS[name].needs)


def in_32_bit(cases):
    """Cases for the leg with fewer digits alone."""
    return [pytest.param(*case, marks=pytest.mark.one_leg) for case in cases]


SETTINGS = Settings(sigmas=SIGMAS)


def same_products(found, expected, terms=256):
    """Inner products agree; bases may differ."""
    found = exactly(found)
    assert found.shape == expected.shape
    expected = expected @ expected.T
    assert_close(found @ found.T, expected, scale=np.linalg.norm(expected), terms=terms)


@pytest.mark.parametrize(
    ("name", "on_host"),
    [
        *(("default", True), ("default", False), ("DW", False), ("SVD", False)),
        *in_32_bit((name, False) for name in TRUTH if name not in ("default", "DW", "SVD")),
    ],
)
def test_rows_of_a_plan(rng, name, on_host):
    """Those that it was fitted to, in one piece or in blocks, and those that come later."""
    sources, later = draw(rng), draw(rng, 7)
    given_ = tuple(e.astype(DTYPE) for e in sources) if on_host else cast(sources)
    stats = moments(tuple(e[:20] for e in given_)) + moments(tuple(e[20:] for e in given_))
    plan = plan_of(name, stats, SETTINGS)
    assert (plan.method, plan.widths) == (name, WIDTHS)
    if plan.rows is not None:
        assert float(plan.rows) == N
    for rows in (sources, later):
        found = apply_plan(plan, cast(rows))
        assert found.dtype == DTYPE
        assert found.shape[1] == plan.width
        same_products(found, TRUTH[name](sources, rows))
    both = meta_embedding(name, cast(sources), SETTINGS)
    same_products(both, exactly(apply_plan(plan, cast(sources))))


def test_every_plan_has_a_truth():
    assert set(TRUTH) | set(BY_NOISE) | {"AVG-rotated"} == set(PLANS)
    assert set(PLANS) <= set(METHODS)


@pytest.mark.one_leg
def test_plans_are_what_the_library_computes_directly(rng):
    """The road of moments, beside functions that decompose the rows themselves."""
    sources = cast(draw(rng))
    ready = tuple(map(standardise, sources))
    weights = rank_weights(ready)
    direct = np.concatenate([exactly(e * c) for e, c in zip(ready, weights, strict=True)], axis=1)
    same_products(meta_embedding("default", sources), direct)
    same_products(meta_embedding("1TON", sources), exactly(one_to_n(sources, k=13).embedding))
    rotated = rotated_average(sources)
    assert_close(
        meta_embedding("AVG-rotated", sources), exactly(rotated.embedding), scale=8, terms=256
    )


@pytest.mark.parametrize(
    "name", ["default", *in_32_bit((name,) for name in (*FILES[1:], "SW", "DW", "aligned"))]
)
def test_missing_rows_count_for_nothing(rng, name):
    """What they hold changes nothing; nobody has to fill them in."""
    sources = draw(rng)
    present = rng.uniform(size=(N, 3)) < 0.8
    present[0] = True
    spoilt = tuple(
        np.where(has[:, None], e, np.nan) for e, has in zip(sources, present.T, strict=True)
    )
    zeros = tuple(np.where(has[:, None], e, 0) for e, has in zip(sources, present.T, strict=True))
    here = jnp.asarray(present)
    if name == "1TON":
        with pytest.raises(ValueError, match="words that a source lacks, expected all for 1TON"):
            fit(name, cast(spoilt), SETTINGS._replace(present=here))
        return
    stats = moments(cast(spoilt), here)
    plan = fit(name, stats, SETTINGS)
    found = apply(plan, cast(spoilt), here)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found, apply(plan, cast(zeros), here))
    if name in ("SVD", "UW"):
        same_products(found, TRUTH[name](zeros, zeros))
    if name == "default":
        parts = [default((e[has],), (e,)) for e, has in zip(sources, present.T, strict=True)]
        for j, has in enumerate(present.T):
            parts[j][~has] = 0
        ranks = [
            1 / np.linalg.norm(p[has].T @ p[has]) ** 2
            for p, has in zip(parts, present.T, strict=True)
        ]
        both = [p * (r / sum(ranks)) ** 0.5 for p, r in zip(parts, ranks, strict=True)]
        same_products(found, np.concatenate(both, axis=1))


# Cuts


@pytest.mark.parametrize("name", ["default", *in_32_bit((x,) for x in ("UW", "AVG", "PCA"))])
@pytest.mark.parametrize("k", [1, 3, 0.5, 0.05, 0.0])
def test_a_cut_says_exactly_what_it_loses(rng, name, k):
    sources = draw(rng)
    whole = TRUTH[name](sources, sources)
    pip = whole @ whole.T
    plan = fit(name, cast(sources), SETTINGS._replace(k=k))
    found = exactly(apply(plan, cast(sources)))
    assert found.shape == (N, plan.width)
    values = np.linalg.svd(whole, compute_uv=False)
    assert_close(plan.values, values[: len(plan.values)], scale=values[0], terms=64)
    change = np.linalg.norm(pip - found @ found.T) / np.linalg.norm(pip)
    assert_close(plan.lost, change, scale=1, terms=64)
    assert_close(plan.losses[plan.width], plan.lost, scale=1)
    kept = np.sqrt(np.append(np.cumsum(values[::-1] ** 4)[::-1], 0) / np.sum(values**4))
    if isinstance(k, int):
        assert plan.width == k
    else:
        assert change <= k + 64 * EPS
        assert plan.width == 1 or kept[plan.width - 1] > k
    # Of all that have as few dimensions it is the nearest (Eckart and Young).
    assert_close(change, kept[plan.width], scale=1, terms=64)


@pytest.mark.one_leg
def test_k_that_cannot_be(rng):
    sources = cast(draw(rng))
    for k, message in (
        (0, "settings.k: got 0, expected 1 to 13"),
        (14, "settings.k: got 14, expected 1 to 13"),
        (1.0, "settings.k: got 1.0, expected a fraction from 0 to below 1"),
        (-0.1, "settings.k: got -0.1, expected a fraction"),
        (True, "expected an int"),
        ("5", "expected an int"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            fit("UW", sources, Settings(k=k))
    with pytest.raises(ValueError, match=r"the fraction 0\.1 of traced values, expected an int"):
        jax.jit(lambda e: fit("UW", moments(e), Settings(k=0.1)))(sources)
    wrong = (sources[0].at[3, 1].set(jnp.nan), *sources[1:])
    with pytest.raises(ValueError, match=r"settings\.k: got the fraction 0\.1 of NaN"):
        fit("UW", wrong, Settings(k=0.1))
    assert np.isnan(apply(fit("default", wrong), sources)).any()
    present = jnp.ones((N, 3), bool).at[0, 0].set(False)
    with pytest.raises(ValueError, match=r"settings\.k: got 2, expected None for a mean"):
        fit("AVG", sources, Settings(k=2, present=present))


@pytest.mark.one_leg
def test_k_in_a_program(rng):
    sources = cast(draw(rng))
    found = jax.jit(lambda e: apply(fit("default", moments(e), Settings(k=3)), e))(sources)
    same_products(found, exactly(meta_embedding("default", sources, Settings(k=3))))


# Noise


def known_ideal(rng, n, sigmas, rank=6, sizes=(9, 7, 8)):
    """An ideal, and what sources see of it."""
    u = np.linalg.qr(rng.normal(size=(n, rank)))[0]
    values = 8 / np.arange(1, rank + 1) ** 0.5
    sources = []
    for sigma, k in zip(sigmas, sizes, strict=False):
        noise = rng.normal(size=(n, n)) * sigma / 2**0.5
        mu, vectors = np.linalg.eigh((u * values) @ u.T + noise + noise.T)
        order = np.argsort(-np.abs(mu))[:k]
        sources.append(rounded(vectors[:, order] * np.abs(mu[order]) ** 0.5))
    return (u * values) @ u.T, tuple(sources)


def pip_error(ideal, rows):
    rows = exactly(rows)
    return np.linalg.norm(ideal - rows @ rows.T)


@pytest.mark.slow
@pytest.mark.one_leg
@pytest.mark.parametrize(
    ("name", "sigmas"),
    [("UW", (0.08, 0.08, 0.3)), ("aligned", (0.06, 0.12))],
)
def test_shrunk_directions_are_near_the_best_of_their_lengths(name, sigmas):
    """No lengths of the same directions do better by more than some per cent, knowing the ideal."""
    ratios = []
    for seed in range(4):
        ideal, sources = known_ideal(np.random.default_rng(seed), 300, sigmas)
        given_ = Settings(sigmas=sigmas)
        cut = meta_embedding(name, cast(sources), given_._replace(k=6))
        shrunk = exactly(meta_embedding(name, cast(sources), given_._replace(k=6, shrink=True)))
        # The same directions: columns are orthogonal, and only their lengths differ.
        directions = exactly(cut) / np.linalg.norm(exactly(cut), axis=0)
        lengths = np.linalg.norm(shrunk, axis=0)
        assert_close(shrunk, directions * lengths, scale=3, terms=256)
        strengths = np.einsum("ia,ij,ja->a", directions, ideal, directions)
        best = directions * np.sqrt(np.maximum(strengths, 0))
        ratios.append(pip_error(ideal, shrunk) / pip_error(ideal, best))
        assert pip_error(ideal, shrunk) <= 1.02 * pip_error(ideal, cut)
    assert np.median(ratios) < 1.05
    assert min(ratios) >= 1 - 1e-4


@pytest.mark.one_leg
def test_one_source_is_shrunk_by_the_spiked_weights(rng):
    """Where there is one source its directions are the result's."""
    _, sources = known_ideal(rng, 60, (0.1,))
    settings = Settings(sigmas=(0.1,), shrink=True)
    found = meta_embedding("UW", cast(sources), settings)
    expected = exactly(meta_embedding("spiked", cast(sources), settings._replace(shrink=False)))
    same_products(found, expected, terms=1e4)


@pytest.mark.one_leg
def test_noise_at_which_nothing_is_left_and_none_at_all(rng):
    _, sources = known_ideal(rng, 60, (0.1,))
    none = meta_embedding("UW", cast(sources), Settings(sigmas=(0.0,), shrink=True))
    same_products(none, sources[0], terms=1e4)
    much = meta_embedding("UW", cast(sources), Settings(sigmas=(5.0,), shrink=True))
    assert not np.asarray(much).any()


@pytest.mark.one_leg
def test_shrinking_needs_noise(rng):
    sources = cast(draw(rng))
    with pytest.raises(ValueError, match=r"settings\.shrink: got True for 'PCA', expected a name"):
        fit("PCA", sources, Settings(sigmas=SIGMAS, shrink=True))
    with pytest.raises(ValueError, match=r"sources\[0\]\.sigma: got None, expected the noise"):
        fit("UW", sources, Settings(shrink=True))


# What plans are


@pytest.mark.one_leg
def test_bad_input(rng):
    sources = cast(draw(rng))
    plan = fit("default", sources)
    with pytest.raises(ValueError, match=r"widths \(4, 6, 3\), expected \(6, 4, 3\), those of the"):
        apply(plan, (sources[1], sources[0], sources[2]))
    with pytest.raises(ValueError, match=r"widths \(6, 4\), expected \(6, 4, 3\)"):
        apply(plan, sources[:2])
    with pytest.raises(ValueError, match="rows in"):
        apply(plan, (sources[0], sources[1][1:], sources[2]))
    with pytest.raises(TypeError, match="plan: got a tuple, expected a plan; make one with fit"):
        apply((1, 2), sources)
    with pytest.raises(ValueError, match=r"moments: got none of unit rows, or not of pairs, expec"):
        fit("default", moments(sources, parts=("raw",)))
    with pytest.raises(ValueError, match="not of pairs, expected it for SVD"):
        fit("SVD", moments(sources, pairs=False))
    with pytest.raises(ValueError, match="sigmas: got None, expected it for DW"):
        fit("DW", moments(sources))
    with pytest.raises(ValueError, match=r"settings\.sigmas: got 2 entries, expected 3"):
        fit("DW", moments(sources), Settings(sigmas=(0.1, 0.2)))
    for name in ("LLE", "1TON-released", "1TON+", "DAEME", "exact"):
        with pytest.raises(ValueError, match=re.escape(f"moments for {name}, expected sources")):
            fit(name, moments(sources), Settings(key=jax.random.key(0)))
    for name in ("LLE", "1TON-released"):
        with pytest.raises(ValueError, match="expected a method with a plan for other rows"):
            fit(name, sources, Settings(key=jax.random.key(0)))
    lacking = jnp.ones((N, 3), bool).at[0, 0].set(False)
    with pytest.raises(ValueError, match="'1TON\\+', expected a method with a plan"):
        fit("1TON+", sources, Settings(present=lacking))
    assert fit("1TON+", sources).method == "1TON"


@pytest.mark.one_leg
@pytest.mark.parametrize("n", [1, 5])
def test_the_default_of_few_rows_warns(rng, n):
    sources = tuple(e[:n] for e in cast(draw(rng)))
    with pytest.warns(UserWarning, match=f"default: source 0 has {n} rows for 6 dimensions"):
        plan = fit("default", moments(sources, parts=("unit",), pairs=False))
    assert np.isfinite(apply(plan, sources)).all()
    fit("UW", moments(sources))


@pytest.mark.slow
@pytest.mark.one_leg
@pytest.mark.parametrize("name", ["DAEME", "CAEME", "AAEME"])
def test_autoencoders_have_a_plan_in_their_encoders(rng, name):
    sources, later = cast(draw(rng)), cast(draw(rng, 5))
    settings = Settings(key=jax.random.key(0), epochs=2)
    plan = fit(name, sources, settings)
    found = apply(plan, sources)
    same = meta_embedding(name, sources, settings)
    np.testing.assert_array_equal(found, same)
    assert apply(plan, later).shape == (5, found.shape[1])
    with pytest.raises(ValueError, match="those of the plan"):
        apply(plan, later[::-1])


@pytest.mark.filterwarnings("ignore:default. source 0 has:UserWarning")
@pytest.mark.parametrize("name", ["default", *in_32_bit((x,) for x in ("SVD", "DW"))])
def test_hard_sources(rng, name):
    """Sources of zeros, duplicated columns, fewer rows than columns, one row: finite, no error."""
    e, f = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    zero = np.arange(5)[:, None] == 2
    cases = {
        "a block of zeros": (e, 0 * f),
        "all zeros": (0 * e, 0 * f),
        "duplicated columns": (e[:, [0, 1, 0]], e[:, :2]),
        "fewer rows than columns": (e[:2], f[:2]),
        "one row": (e[:1], f[:1]),
        "a zero row": (np.where(zero, 0, e), f),
    }
    settings = Settings(sigmas=(0.1, 0.1))
    for case, sources in cases.items():
        plan = fit(name, cast(tuple(map(rounded, sources))), settings)
        assert np.isfinite(exactly(apply(plan, cast(sources)))).all(), case
        # Noise in directions that the sources do not have is not blown up.
        other = tuple(rng.normal(size=x.shape) for x in sources)
        assert np.abs(exactly(apply(plan, cast(other)))).max() < 100, case


@pytest.mark.one_leg
def test_a_plan_is_a_pytree(rng):
    """It goes through jit, tree maps and pickle, and says what it is."""
    sources = cast(draw(rng))
    plan = fit("default", sources, Settings(k=4))
    expected = exactly(apply(plan, sources))
    np.testing.assert_array_equal(jax.jit(apply_plan)(plan, sources), expected)
    doubled = jax.tree.map(lambda x: x, plan)
    np.testing.assert_array_equal(apply(doubled, sources), expected)
    back = pickle.loads(pickle.dumps(plan))
    np.testing.assert_array_equal(apply(back, sources), expected)
    assert repr(plan) == "Plan('default', (6, 4, 3) to 4 of 13 columns)"


@pytest.mark.one_leg
def test_blocks_of_rows_compile_nothing(rng, compilations):
    sources = cast(draw(rng))
    plan = fit("default", sources)
    apply(plan, sources)
    apply(fit("default", cast(draw(rng))), sources)
    compilations.clear()
    for _ in range(3):
        apply(fit("default", cast(draw(rng))), cast(draw(rng)))
    assert not compilations


@pytest.mark.one_leg
@settings(max_examples=10)
@given(seed=seeds)
def test_order_of_rows_and_rotations_of_sources_change_nothing(seed):
    rng = np.random.default_rng(seed)
    sources = draw(rng, condition=3)
    order = rng.permutation(N)
    turned = tuple(rounded(e @ rotation(rng, e.shape[1])) for e in sources)
    expected = exactly(meta_embedding("default", cast(sources)))
    found = meta_embedding("default", cast(tuple(e[order] for e in sources)))
    same_products(found, expected[order], terms=2048)
    same_products(meta_embedding("default", cast(turned)), expected, terms=2048)
