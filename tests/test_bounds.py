"""Lemma 1 and the terms of the bound against dense matrices, and the chain that they form."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from helpers import EPS, assert_close, assert_trees_close, cast, exactly, rotation, rounded
from hypothesis import given
from hypothesis import strategies as st
from strategies import LAYOUTS, WORDS, Layout, frames, problems, seeds

from jaxmeta import Spectrum, bound_terms
from jaxmeta.bounds import BoundTerms, best_order, lemma1

pytestmark = pytest.mark.slow

layouts = pytest.mark.parametrize("layout", LAYOUTS, ids=str)


def terms_of(problem):
    return bound_terms(
        cast(problem.ideal),
        cast(problem.sources),
        cast(problem.weights),
        alpha=problem.alpha,
        source_alphas=problem.source_alphas,
    )


def assert_a_chain(terms, loss, scale):
    rounding = 16 * EPS * scale
    assert terms.telescoped >= terms.split - rounding
    assert terms.split >= terms.tight - rounding
    assert terms.tight >= loss - rounding


@pytest.mark.parametrize("k", [1, 5, WORDS])
@given(data=st.data())
def test_lemma1(k, data):
    x, y = data.draw(frames(k)), data.draw(frames(k))
    sides = lemma1(cast(x), cast(y))
    left, right = oracles.lemma1(x, y)
    assert_close(sides.left, left, scale=np.sqrt(2 * k))
    assert_close(sides.right, right, scale=np.sqrt(2 * k))
    assert_close(sides.left, sides.right, scale=np.sqrt(2 * k))


@layouts
@given(data=st.data())
def test_terms_against_dense_matrices(layout, data):
    problem = data.draw(problems(layout))
    terms, expected = terms_of(problem), oracles.bound(*problem)
    for name in BoundTerms._fields:
        assert_close(getattr(terms, name), getattr(expected, name), scale=expected.scale)
    assert_a_chain(terms, expected.loss, expected.scale)


@pytest.mark.parametrize("layout", [Layout((5,), 8), Layout((2, 3), 5)], ids=str)
@given(data=st.data())
def test_unsorted_ideals_are_bounded_too(layout, data):
    problem = data.draw(problems(layout, ordered=False))
    terms, expected = terms_of(problem), oracles.bound(*problem)
    for name in BoundTerms._fields:
        # The values go up and down, and each step counts: as often as there are dimensions.
        assert_close(getattr(terms, name), getattr(expected, name), scale=2 * expected.scale)
    assert_a_chain(terms, expected.loss, expected.scale)


@pytest.mark.parametrize("layout", [Layout((3, 3), 4), Layout((2, 1, 3), 5)], ids=str)
@given(data=st.data())
def test_short_ideals_are_padded_with_zeros(layout, data):
    problem = data.draw(problems(layout))
    missing = sum(layout.sizes) - layout.d
    vectors, values = problem.ideal
    longer = Spectrum(
        rounded(np.append(vectors, oracles.complement(vectors)[:, :missing], axis=1)),
        np.pad(values, (0, missing)),
    )
    terms, padded = terms_of(problem), terms_of(problem._replace(ideal=longer))
    assert_trees_close(padded, terms, scale=oracles.bound(*problem).scale)
    assert terms.bias == 0


@layouts
@given(data=st.data(), seed=seeds)
def test_aligned_sources_have_no_direction(layout, data, seed):
    """Zero up to a few eps. The square root of an eps would be 1e-8, and is what cosines give."""
    _, sizes, d = layout
    problem = data.draw(problems(layout))
    rng = np.random.default_rng(seed)
    frame = rounded(np.linalg.qr(rng.normal(size=(WORDS, max(sum(sizes), d))))[0])
    ends = np.cumsum(sizes)
    sources = tuple(
        Spectrum(frame[:, end - k : end], source.values)
        for k, end, source in zip(sizes, ends, problem.sources, strict=True)
    )
    problem = problem._replace(ideal=Spectrum(frame[:, :d], problem.ideal.values), sources=sources)
    terms, strength = terms_of(problem), oracles.power(problem.ideal.values, 2 * problem.alpha)
    zeros = np.zeros(len(sizes))
    assert_close(terms.direction, zeros, scale=strength.sum(), terms=12)
    assert_close(terms.direction_exact, zeros, scale=strength.sum(), terms=12)
    scale = oracles.bound(*problem).scale
    assert_close(terms.block, terms.magnitude, scale=scale)


@given(data=st.data(), seed=seeds, value=st.sampled_from([0.0, 1e-3, 1.0, 1e3]))
def test_a_source_may_turn_inside_equal_values(data, seed, value):
    problem = data.draw(problems(Layout((2, 3), 5)))
    first, second = problem.sources
    flat = Spectrum(second.vectors, np.full(3, value))
    turned = Spectrum(
        rounded(second.vectors @ rotation(np.random.default_rng(seed), 3)), np.full(3, value)
    )
    weights = (problem.weights[0], np.full(3, problem.weights[1][0]))
    before = problem._replace(sources=(first, flat), weights=weights)
    after = problem._replace(sources=(first, turned), weights=weights)
    expected, scale = oracles.bound(*before), oracles.bound(*before).scale
    assert_close(oracles.bound(*after).loss, expected.loss, scale=scale)
    assert_close(terms_of(after).block, terms_of(before).block, scale=scale)
    assert_close(terms_of(after).magnitude, terms_of(before).magnitude, scale=scale)


@pytest.mark.parametrize("weights", [None, (1.0, 1.0), (1, 1), [1.0, np.ones(3)], "an array"])
def test_ways_to_write_weights(rng, weights):
    ideal = cast(Spectrum(rotation(rng, 8)[:, :6], np.arange(6.0, 0, -1)))
    sources = tuple(
        cast(Spectrum(rotation(rng, 8)[:, :k], np.arange(float(k), 0, -1))) for k in (2, 3)
    )
    if weights == "an array":
        weights = jnp.ones(2)
    elif weights is not None:
        weights = type(weights)(cast(c) if isinstance(c, np.ndarray) else c for c in weights)
    given_ones = bound_terms(ideal, sources, (jnp.ones(2), jnp.ones(3)), alpha=0.5)
    terms = bound_terms(ideal, list(sources), weights, alpha=0.5, source_alphas=jnp.full(2, 0.5))
    assert_trees_close(terms, given_ones, scale=6)


@layouts
@given(data=st.data())
def test_best_order_against_all_orders(layout, data):
    problem = data.draw(problems(layout))
    count = len(layout.sizes)
    found = best_order(
        cast(problem.ideal),
        cast(problem.sources),
        cast(problem.weights),
        alpha=problem.alpha,
        source_alphas=problem.source_alphas,
    )
    bounds = {
        order: oracles.tight(*problem, order) for order in itertools.permutations(range(count))
    }
    order, scale = tuple(found.order.tolist()), oracles.bound(*problem).scale
    # Orders may tie, so the one that was found is held against the best by its bound.
    assert_close(found.tight, min(bounds.values()), scale=scale)
    assert_close(bounds[order], min(bounds.values()), scale=scale)
    assert found.tight <= terms_of(problem).tight + 16 * EPS * scale


def test_best_order_finds_the_only_one(rng):
    q = rotation(rng, 9)
    values = np.arange(9.0, 0, -1)
    pieces = [slice(3, 5), slice(5, 9), slice(0, 3)]
    sources = tuple(Spectrum(q[:, piece], values[piece]) for piece in pieces)
    found = best_order(cast(Spectrum(q, values)), cast(sources), alpha=0.5)
    assert found.order.tolist() == [2, 0, 1]
    assert_close(found.tight, 0, scale=values.sum())


def test_properties_of_a_batch(rng):
    """Totals add up over sources, and leave the axis of a batch alone."""

    def draw():
        ideal = Spectrum(rotation(rng, 8)[:, :6], np.sort(rng.uniform(0, 1, 6))[::-1])
        sources = [Spectrum(rotation(rng, 8)[:, :k], rng.uniform(0, 1, k)) for k in (2, 3)]
        return cast((ideal, tuple(sources)))

    instances = [draw() for _ in range(4)]
    batch = jax.tree.map(lambda *xs: jnp.stack(xs), *instances)
    terms = jax.vmap(lambda ideal, sources: bound_terms(ideal, sources, alpha=0.5))(*batch)
    for name in ("telescoped", "split", "tight"):
        one_by_one = [getattr(bound_terms(*instance, alpha=0.5), name) for instance in instances]
        assert getattr(terms, name).shape == (4,)
        assert_close(getattr(terms, name), exactly(jnp.stack(one_by_one)), scale=10)
