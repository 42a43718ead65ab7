"""The PIP loss against dense matrices, as a metric, and in single precision."""

import itertools

import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from helpers import EPS, assert_close, cast, exactly, rotation, rounded
from hypothesis import given
from hypothesis import strategies as st
from strategies import WORDS, embeddings, seeds

from jaxmeta import concatenate, pip_loss
from jaxmeta.pip import pip_matrix

WIDTHS = [(1, 1), (4, 4), (3, 7), (7, 3)]


def scale_of(*es):
    """Sum of the norms of the inner products: what a PIP loss is rounded relative to."""
    return sum(np.linalg.norm(e) ** 2 for e in es)


def test_pip_matrix_holds_all_inner_products(rng):
    e = rounded(rng.normal(size=(6, 3)))
    expected = [[sum(x * y) for y in e] for x in e]
    assert_close(pip_matrix(cast(e)), expected, scale=np.linalg.norm(e) ** 2)


@pytest.mark.parametrize(("k", "m"), WIDTHS)
@given(data=st.data())
def test_loss_against_dense_matrices(k, m, data):
    e, f = data.draw(embeddings(k)), data.draw(embeddings(m))
    assert_close(pip_loss(cast(e), cast(f)), oracles.pip_loss(e, f), scale=scale_of(e, f))


@pytest.mark.parametrize("k", [1, 20])
def test_more_dimensions_than_words(rng, k):
    e, f = rounded(rng.normal(size=(5, k))), rounded(rng.normal(size=(5, 9)))
    assert_close(pip_loss(cast(e), cast(f)), oracles.pip_loss(e, f), scale=scale_of(e, f))


@given(e=embeddings(4), f=embeddings(3), g=embeddings(7))
def test_loss_is_a_metric_on_inner_products(e, f, g):
    sides = [float(pip_loss(cast(x), cast(y))) for x, y in [(e, f), (f, g), (e, g)]]
    back = [float(pip_loss(cast(y), cast(x))) for x, y in [(e, f), (f, g), (e, g)]]
    rounding = 16 * EPS * scale_of(e, f, g)
    assert_close(sides, back, scale=scale_of(e, f, g))
    for x, y, z in itertools.permutations(sides):
        assert x <= y + z + rounding


@pytest.mark.parametrize(("k", "m"), [(4, 4), (4, 7)])
@given(data=st.data(), seed=seeds, size=st.sampled_from([0.0, 1e-6, 1e-4, 1e-2, 1.0]))
def test_loss_is_zero_for_equal_inner_products_alone(k, m, data, seed, size):
    rng = np.random.default_rng(seed)
    e = data.draw(embeddings(k))
    turned = np.pad(e, ((0, 0), (0, m - k))) @ rotation(rng, m)
    f = rounded(turned + size * np.linalg.norm(e) * rng.normal(size=(WORDS, m)))
    loss, expected = pip_loss(cast(e), cast(f)), oracles.exact_pip_loss(e, f)
    # The digits of a small loss are right too, until `residual` has no more of them.
    assert_close(loss, expected, scale=expected + np.sqrt(EPS) * scale_of(e, f))
    if size == 0:
        assert_close(loss, 0, scale=scale_of(e, f), terms=4)


@given(e=embeddings(4), f=embeddings(3), seed=seeds)
def test_rotations_and_the_order_of_words_change_nothing(e, f, seed):
    rng = np.random.default_rng(seed)
    expected, scale = pip_loss(cast(e), cast(f)), scale_of(e, f)
    turned = pip_loss(cast(e @ rotation(rng, 4)), cast(f @ rotation(rng, 3)))
    assert_close(turned, expected, scale=scale)
    words = rng.permutation(WORDS)
    assert_close(pip_loss(cast(e[words]), cast(f[words])), expected, scale=scale)


@given(e=embeddings(4), f=embeddings(3), exponent=st.integers(-20, 20))
def test_scaling_both_scales_the_loss_by_the_square(e, f, exponent):
    s = 2.0**exponent  # a power of two rounds nothing, so the digits must be the same
    assert pip_loss(cast(s * e), cast(s * f)) == s**2 * pip_loss(cast(e), cast(f))


@given(e=embeddings(6), parts=st.tuples(embeddings(1), embeddings(2), embeddings(3)))
def test_order_of_sources_changes_nothing(e, parts):
    losses = [
        pip_loss(cast(e), concatenate(cast(order))) for order in itertools.permutations(parts)
    ]
    assert_close(losses, np.full(6, losses[0]), scale=scale_of(e, *parts))


COLUMNS = {
    "flat": lambda k: np.ones(k),
    "power law": lambda k: (1.0 + np.arange(k)) ** -1,
    "steep": lambda k: np.logspace(0, -4, k),
}


@pytest.mark.one_leg
@pytest.mark.parametrize("rotated", [False, True])
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("widths", [(20, 20), (100, 100), (20, 27), (27, 20)])
def test_single_precision_keeps_four_digits_of_a_small_loss(rng, widths, columns, rotated):
    """A relative error of 1e-4 for perturbations down to 1e-5."""
    k, m = widths
    shared = min(k, m)
    e = np.pad(rng.normal(size=(200, shared)) * COLUMNS[columns](shared), ((0, 0), (0, k - shared)))
    for size in [1e-1, 1e-2, 1e-3, 1e-4, 1e-5]:
        noise = rng.normal(size=(200, m))
        f = np.zeros((200, m))
        f[:, :shared] = e[:, :shared]
        f += size * np.linalg.norm(e) / np.linalg.norm(noise) * noise
        if rotated:
            f = f @ rotation(rng, m)
        e32, f32 = e.astype(np.float32), f.astype(np.float32)
        loss = pip_loss(cast(e32, jnp.float32), cast(f32, jnp.float32))
        assert loss.dtype == jnp.float32
        expected = oracles.pip_loss(exactly(e32), exactly(f32))
        assert abs(float(loss) / expected - 1) <= 1e-4, f"perturbation {size}"


@pytest.mark.one_leg
@pytest.mark.parametrize("size", [1e15, 1e-15])
def test_single_precision_neither_overflows_nor_underflows(rng, size):
    e, f = (size * rng.normal(size=(20, k)).astype(np.float32) for k in (4, 3))
    loss = float(pip_loss(cast(e, jnp.float32), cast(f, jnp.float32)))
    expected = oracles.pip_loss(exactly(e), exactly(f))
    eps = float(jnp.finfo(jnp.float32).eps)
    assert_close(loss, expected, scale=scale_of(exactly(e), exactly(f)), eps=eps)


@pytest.mark.parametrize("size", [1e15, 1.0, 1e-15])
def test_embeddings_of_different_scale(rng, size):
    e, f = rounded(size * rng.normal(size=(20, 4))), rounded(rng.normal(size=(20, 4)))
    for x, y in [(e, f), (f, e)]:
        assert_close(pip_loss(cast(x), cast(y)), oracles.pip_loss(x, y), scale=scale_of(x, y))


def test_duplicated_words_and_dimensions(rng):
    e = rounded(np.repeat(rng.normal(size=(5, 2)), 2, axis=0))
    doubled = np.concatenate([e, e], axis=1)  # twice the inner products
    assert_close(pip_loss(cast(e), cast(doubled)), np.linalg.norm(e @ e.T), scale=scale_of(e))
    assert_close(pip_loss(cast(doubled), cast(doubled)), 0, scale=2 * scale_of(e))


def test_zero_embeddings(rng):
    e, zero = rounded(rng.normal(size=(6, 3))), jnp.zeros((6, 2))
    assert_close(pip_loss(cast(e), zero), np.linalg.norm(e @ e.T), scale=scale_of(e))
    assert_close(pip_loss(zero, cast(e)), np.linalg.norm(e @ e.T), scale=scale_of(e))
    assert pip_loss(zero, zero) == 0
