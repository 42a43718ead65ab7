"""Rotations and a metric that are learnt, against n x n matrices and closed forms."""

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import assert_close, cast, exactly, rotation, rounded

import jaxmeta
from jaxmeta.methods import learnt_metric

WORDS = 30


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def draw(rng, k=4):
    return rounded(rng.normal(size=(WORDS, k)) * np.arange(k, 0, -1))


def mapped(sources, found):
    return [unit(e) @ exactly(m) for e, m in zip(sources, found.maps, strict=True)]


def objective(sources, found):
    """By its definition, without a ridge and the constant, for sources of one width."""
    ways = mapped(sources, found)
    pairs = [(a, b) for i, a in enumerate(ways) for b in ways[i + 1 :]]
    return sum(np.linalg.norm(a @ b.T - np.eye(WORDS)) ** 2 - WORDS for a, b in pairs)


def test_copies_are_whitened(rng):
    """Of one source and rotated copies of it: each word is like itself as far as that goes."""
    e = draw(rng)
    sources = (e, rounded(3 * e @ rotation(rng, 4)), rounded(e @ rotation(rng, 4)))
    found = learnt_metric(cast(sources), ridge=0.0, steps=20)
    ways = mapped(sources, found)
    left = np.linalg.svd(unit(e), full_matrices=False)[0]
    for way in ways:
        inner = way @ way.T
        assert_close(inner / inner.max(), left @ left.T / (left @ left.T).max(), scale=1e3)
    assert_close(found.loss_history[-1], -3 * 4, scale=1e4)  # three pairs, four dimensions


@pytest.mark.one_leg
def test_the_loss_is_that_of_all_pairs_of_words(rng):
    sources = (draw(rng), draw(rng), draw(rng))
    found = learnt_metric(cast(sources), ridge=0.0, steps=40)
    least = float(found.loss_history.min())
    assert objective(sources, found) == pytest.approx(least, rel=1e-3)
    assert found.loss_history.min() < found.loss_history[0] - 0.1


@pytest.mark.one_leg
@pytest.mark.slow
def test_a_ridge_keeps_the_metric_small(rng):
    e = cast(draw(rng))
    sizes = [
        float(jnp.linalg.norm(learnt_metric((e, e), ridge=ridge, steps=20).maps[0]))
        for ridge in (0.0, 0.1, 10.0)
    ]
    assert sizes[0] > 1.1 * sizes[1] > 1.1**2 * sizes[2]


@pytest.mark.one_leg
def test_as_a_method(rng, tmp_path):
    """A plan that is fitted once, and kept: the mean of the mapped rows, for any rows."""
    sources = (draw(rng), draw(rng, 3))
    jaxmeta.files.save_plan(tmp_path / "plan", jaxmeta.fit("AVG-metric", cast(sources)))
    plan = jaxmeta.files.load_plan(tmp_path / "plan")
    later = (draw(rng), draw(rng, 3))
    found = exactly(jaxmeta.apply(plan, cast(later)))
    maps = [exactly(m) for m in learnt_metric(cast(sources)).maps]
    expected = sum(unit(e) @ m for e, m in zip(later, maps, strict=True)) / 2
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
