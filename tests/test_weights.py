"""Closed-form weights against least squares, and what they do to the bound."""

import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from helpers import DTYPE, EPS, assert_close, assert_trees_close, cast, exactly, rounded
from hypothesis import given
from hypothesis import strategies as st
from strategies import LAYOUTS, Layout, alphas, problems, spectra

from jaxmeta import Spectrum, bound_terms, dimension_weights, source_weights
from jaxmeta.weights import sum_to_one

LIMITS = np.finfo(DTYPE)
layouts = pytest.mark.parametrize("layout", LAYOUTS, ids=str)


def strengths(problem, exponent):
    """Pairs of the values of block and source, at `exponent` times their alphas."""
    sizes = [len(source.values) for source in problem.sources]
    longer = np.pad(problem.ideal.values, (0, sum(sizes)))[: sum(sizes)]
    own = np.split(longer, np.cumsum(sizes)[:-1])
    return [
        (
            oracles.power(block, exponent * problem.alpha),
            oracles.power(source.values, exponent * source_alpha),
        )
        for block, source, source_alpha in zip(
            own, problem.sources, problem.source_alphas, strict=True
        )
    ]


def weights_of(rule, problem):
    return rule(
        cast(problem.ideal.values),
        cast(tuple(source.values for source in problem.sources)),
        alpha=problem.alpha,
        source_alphas=problem.source_alphas,
    )


@layouts
@given(data=st.data())
def test_source_weights_minimise_the_magnitude(layout, data):
    problem = data.draw(problems(layout, ordered=False))
    weights = exactly(weights_of(source_weights, problem))
    for c, (a, b) in zip(weights, strengths(problem, 2), strict=True):
        expected = oracles.source_weight(a, b)
        # A weight smaller than this comes of products of a and b that are no numbers any more.
        least = np.sqrt(LIMITS.tiny * oracles.norm(a) / (oracles.norm(b) or 1))
        assert_close(c, expected, scale=max(expected, least / EPS))
        fitted = oracles.norm(a - c**2 * b)
        rounding = 16 * EPS * oracles.norm(a)
        assert fitted <= oracles.best_magnitude(a, b) + rounding
        for factor in (0.0, 0.5, 0.99, 1.01, 2.0):
            assert fitted <= oracles.norm(a - (factor * c) ** 2 * b) + rounding


@layouts
@given(data=st.data())
def test_dimension_weights_bring_one_spectrum_to_the_other(layout, data):
    problem = data.draw(problems(layout))
    weights = weights_of(dimension_weights, problem)
    for c, (a, b) in zip(weights, strengths(problem, 1), strict=True):
        np.testing.assert_array_equal(exactly(c)[b == 0], 0)
        assert_close((exactly(c) * b)[b > 0], a[b > 0], scale=a.max())


@pytest.mark.parametrize("layout", [Layout((2, 3), 5), Layout((3, 3), 4)], ids=str)
@given(data=st.data())
def test_weights_and_the_bound(layout, data):
    """DW leaves of the magnitude what the source has no dimension for; SW lowers it."""
    problem = data.draw(problems(layout))

    def magnitude(weights):
        terms = bound_terms(
            cast(problem.ideal),
            cast(problem.sources),
            weights,
            alpha=problem.alpha,
            source_alphas=problem.source_alphas,
        )
        return exactly(terms.magnitude)

    pairs = strengths(problem, 2)
    by_dimension = magnitude(weights_of(dimension_weights, problem))
    per_source = zip(layout.sizes, weights_of(source_weights, problem), strict=True)
    by_source = magnitude(tuple(jnp.full(k, c) for k, c in per_source))
    given_ones = magnitude(tuple(jnp.ones(k) for k in layout.sizes))
    for j, (a, b) in enumerate(pairs):
        scale = oracles.norm(a)
        assert_close(by_dimension[j], oracles.norm(a[b == 0]), scale=scale)
        assert by_dimension[j] <= by_source[j] + 16 * EPS * scale
        assert by_source[j] <= given_ones[j] + 16 * EPS * (scale + oracles.norm(b))


@given(values=spectra(4), alpha=alphas, ratio=st.sampled_from([0.25, 1.0, 16.0]))
def test_equal_ratios_give_equal_weights(values, alpha, ratio):
    """SW is DW where all ratios of ideal and source are the same."""
    ideal = rounded(ratio * values)
    (by_dimension,) = dimension_weights(cast(ideal), (cast(values),), alpha=alpha)
    (by_source,) = source_weights(cast(ideal), (cast(values),), alpha=alpha)
    present = values > 0
    if present.any():
        expected = ratio**alpha
        assert_close(by_source, expected, scale=expected)
        assert_close(
            exactly(by_dimension)[present], np.full(present.sum(), expected), scale=expected
        )
    else:
        assert by_source == 0


@pytest.mark.parametrize("rule", [source_weights, dimension_weights])
def test_one_ideal_is_cut_into_blocks_and_several_are_not(rng, rule):
    values = cast(tuple(rng.uniform(1, 2, k) for k in (2, 3)))
    ideal = np.sort(rng.uniform(1, 2, 5))[::-1]
    together = rule(cast(ideal), values, alpha=0.5)
    apart = rule(cast((ideal[:2], ideal[2:])), values, alpha=0.5)
    assert_trees_close(together, apart, scale=0)
    own = rule(cast((ideal, ideal)), values, alpha=0.5)
    by_itself = [rule(cast(ideal), (mu,), alpha=0.5) for mu in values]
    for j in range(2):
        assert_close(own[j], by_itself[j][0], scale=0)
    assert not np.allclose(own[1], together[1])


@pytest.mark.parametrize("rule", [source_weights, dimension_weights])
@pytest.mark.parametrize("length", [1, 3, 4])
def test_a_short_ideal_is_padded_with_zeros(rng, rule, length):
    values = cast(tuple(rng.uniform(1, 2, k) for k in (2, 3)))
    short = rng.uniform(1, 2, length)
    expected = rule(cast(np.pad(short, (0, 5 - length))), values, alpha=0.5)
    assert_trees_close(rule(cast(short), values, alpha=0.5), expected, scale=0)
    each = cast((short[:1], short[:1]))
    padded = cast((np.append(short[:1], 0), np.append(short[:1], [0, 0])))
    assert_trees_close(rule(each, values, alpha=0.5), rule(padded, values, alpha=0.5), scale=0)


@pytest.mark.parametrize("rule", [source_weights, dimension_weights])
def test_alpha_of_each_source(rng, rule):
    ideal, values = rng.uniform(1, 2, 5), tuple(rng.uniform(1, 2, k) for k in (2, 3))
    ideal, values = rounded(ideal), tuple(map(rounded, values))
    at_once = rule(cast(ideal), cast(values), alpha=0.5, source_alphas=(1.0, 2.0))
    as_array = rule(cast(ideal), cast(values), alpha=0.5, source_alphas=jnp.array([1.0, 2.0]))
    # The source's own exponent is a change of its values.
    changed = (values[0] ** 2.0, values[1] ** 4.0)
    expected = rule(cast(ideal), cast(changed), alpha=0.5)
    assert_trees_close(at_once, expected, scale=2)
    assert_trees_close(as_array, at_once, scale=0)


def test_zeros():
    zero, one = jnp.zeros(2), jnp.ones(2)
    for alpha in (0.0, 0.5, 2.0):
        np.testing.assert_array_equal(source_weights(jnp.ones(4), (zero, one), alpha=alpha), [0, 1])
        np.testing.assert_array_equal(source_weights(zero, (one,), alpha=alpha), [0])
        (c,) = dimension_weights(one, (jnp.array([1.0, 0.0]),), alpha=alpha)
        np.testing.assert_array_equal(c, [1, 0])
        (c,) = dimension_weights(zero, (one,), alpha=alpha)
        np.testing.assert_array_equal(c, [0, 0])


@pytest.mark.parametrize("rule", [source_weights, dimension_weights])
@pytest.mark.parametrize("alpha", [0.5, 1.0])
@pytest.mark.parametrize(("top", "bottom"), [(1e9, 1e-9), (1e-9, 1e9), (1e12, 1e9), (1e-9, 1e-12)])
def test_single_precision_does_not_overflow(rule, alpha, top, bottom):
    """Values whose fourth powers no float32 holds."""
    ideal, source = np.array([top, top / 2]), np.array([bottom, bottom / 2])
    (c,) = rule(cast(ideal, jnp.float32), (cast(source, jnp.float32),), alpha=alpha)
    eps, expected = float(jnp.finfo(jnp.float32).eps), (top / bottom) ** alpha
    assert_close(c, np.full(c.shape, expected), scale=expected, eps=eps)


def test_bound_of_weights_that_span_many_orders_of_magnitude():
    """The square of such a weight is no float32, what it makes of the source is."""
    ideal, source = (
        Spectrum(jnp.eye(3, dtype=jnp.float32)[:, :2], cast(values, jnp.float32))
        for values in (np.array([1e6, 1e5]), np.array([1e-6, 1e-7]))
    )
    weights = dimension_weights(ideal.values, (source.values,), alpha=2.0)
    terms = bound_terms(ideal, (source,), weights, alpha=2.0)
    assert_close(terms.block, [0], scale=1e24, eps=float(jnp.finfo(jnp.float32).eps))


@pytest.mark.parametrize("values", [[1.0, 0.0], [0.0, 0.0]])
def test_nan_is_not_taken_for_the_weight_of_a_missing_dimension(values):
    ideal, source = jnp.array([1.0, jnp.nan]), cast(np.array(values))
    assert np.isnan(source_weights(ideal, (source,), alpha=0.5)).all()
    assert np.isnan(dimension_weights(ideal, (source,), alpha=0.5)[0]).any()


def test_sum_to_one(rng):
    weights = rounded(rng.uniform(0.5, 2, 4))
    scaled = exactly(sum_to_one(cast(weights)))
    assert_close(scaled.sum(), 1, scale=1)
    assert_close(scaled, weights / weights.sum(), scale=1)
    parts = (weights[:1], weights[1:])
    scaled = sum_to_one(cast(parts))
    assert isinstance(scaled, tuple)
    for c, part in zip(scaled, parts, strict=True):
        assert_close(c, part / part.sum(), scale=1)


def test_weights_that_sum_to_zero_cannot_be_made_to_sum_to_one():
    assert np.all(np.isnan(sum_to_one(jnp.zeros(3))))
