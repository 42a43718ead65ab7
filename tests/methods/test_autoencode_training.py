"""The rules by which autoencoders are trained, each against NumPy or its expectation."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import EPS, assert_close, cast, exactly
from hypothesis import given, settings
from jax import export
from jax.test_util import check_grads
from networks import (
    BATCH,
    KEY,
    MASKED,
    METHODS,
    NOISE,
    SIZES,
    USUAL,
    WORDS,
    concatenated,
    decoupled,
    draw,
    methods,
    oracle_codes,
    oracle_loss,
    oracle_meta,
    present_at_random,
    random_parameters,
    same,
    unit,
    wiring,
)
from strategies import seeds

from jaxmeta.methods import autoencode
from jaxmeta.methods.autoencode import autoencoded_rows

pytestmark = pytest.mark.slow


@pytest.mark.one_leg
@methods
@pytest.mark.parametrize("missing", [False, True])
def test_first_epoch(rng, method, missing):
    """Its loss, given the same weights, batches and masks: at rate 0 the weights stay."""
    sources = draw(rng)
    present = present_at_random(rng) if missing else np.ones((WORDS, 3), bool)
    held = tuple(np.where(present[:, [j]], x, np.nan if j else 1e30) for j, x in enumerate(sources))
    at = jnp.asarray(present) if missing else None
    found = METHODS[method](cast(held), present=at, epochs=2, rate=0.0, **USUAL)
    inputs = [unit(np.where(present[:, j : j + 1], x, 0)) for j, x in enumerate(sources)]
    for epoch in (1, 2):
        order_key, mask_key = jax.random.split(jax.random.fold_in(KEY, epoch))
        order = np.asarray(autoencode._batches(order_key, WORDS, BATCH))
        masks = np.asarray(autoencode._masks(mask_key, (2, BATCH), SIZES, MASKED))
        assert order.shape == (2, BATCH)
        losses = []
        for rows, columns in zip(order, masks, strict=True):
            noisy = np.hstack(inputs)[rows]
            for row, zeros in zip(noisy, columns, strict=True):
                row[zeros] = 0
            noisy = np.split(noisy, np.cumsum(SIZES)[:-1], axis=1)
            clean = [x[rows] for x in inputs]
            losses.append(
                oracle_loss(method, found.parameters, noisy, clean, present=present[rows])
            )
        assert_close(found.loss_history[epoch - 1], np.mean(losses), scale=10)
    for w in range(WORDS):
        codes = oracle_codes(found.parameters, inputs, w, "relu")
        assert_close(found.embedding[w], oracle_meta(method, codes, True), scale=10)


@pytest.mark.one_leg
@methods
def test_first_weights(method):
    """Kernels uniform up to Glorot's limit, each drawn anew; no bias."""
    sources, made = cast((np.ones((1, 60)), np.ones((1, 60)))), wiring(method)
    _, state = autoencode._start(KEY, sources, None, wiring=made)
    layers = state.parameters.encoders + state.parameters.decoders
    assert [layer.kernel.shape for layer in layers] == made.shapes((60, 60))
    for layer in layers:
        uniform = np.ravel(exactly(layer.kernel)) / np.sqrt(6 / sum(layer.kernel.shape))
        assert np.all(np.abs(uniform) <= 1 + EPS)
        few = 5 / np.sqrt(uniform.size)  # five standard deviations, or more
        assert abs(uniform.mean()) < few
        assert abs((uniform**2).mean() - 1 / 3) < few
        assert not np.any(layer.bias)
    for one, other in itertools.combinations([layer.kernel for layer in layers], 2):
        assert one.shape != other.shape or not np.any(exactly(one) == exactly(other))


@pytest.mark.one_leg
def test_training_is_adam_with_a_falling_rate(rng):
    """120 steps against Adam in NumPy, whose gradients are differences of the oracle."""
    sizes, epochs, rate = (2, 1), 120, 0.02
    sources = draw(rng, sizes, n=3)
    settings = {"key": KEY, "batch": 3, "noise": 0.0, "activation": jnp.tanh, "factors": (1.0, 0.5)}
    start = decoupled(cast(sources), rate=0.0, epochs=1, **settings).parameters
    found = decoupled(cast(sources), rate=rate, epochs=epochs, **settings)
    leaves, tree = jax.tree.flatten(start)
    splits = np.cumsum([x.size for x in leaves])[:-1]
    inputs = [unit(x) for x in sources]

    def loss(flat):
        parts = [x.reshape(y.shape) for x, y in zip(np.split(flat, splits), leaves, strict=True)]
        parameters = jax.tree.unflatten(tree, parts)
        return oracle_loss(
            "decoupled", parameters, inputs, inputs, factors=(1.0, 0.5), activation="tanh"
        )

    x = np.concatenate([np.ravel(leaf) for leaf in leaves])
    first, second, losses = np.zeros_like(x), np.zeros_like(x), []
    for t in range(epochs):
        losses.append(loss(x))
        gradient = np.array([(loss(x + e) - loss(x - e)) / 2e-5 for e in 1e-5 * np.eye(len(x))])
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        corrected = first / (1 - 0.9 ** (t + 1)), second / (1 - 0.999 ** (t + 1))
        x = x - rate * 0.99 ** (t / 50) * corrected[0] / (np.sqrt(corrected[1]) + 1e-8)
    np.testing.assert_allclose(found.loss_history, losses, rtol=1e-4)
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.one_leg
def test_rate_falls_by_one_per_cent_in_fifty_steps():
    """Of a constant gradient Adam takes steps as long as the rate."""
    adam = autoencode._adam(jnp.array(0.25))
    state = adam.init(jnp.zeros(()))
    with jax.numpy_dtype_promotion("standard"):
        update = jax.jit(adam.update)
        for t in range(151):
            change, state = update(jnp.ones(()), state)
            # The corrections of Adam's moments cancel, but for their rounding.
            assert_close(change, -0.25 * 0.99 ** (t / 50) / (1 + 1e-8), scale=0.25, terms=4e3)


@methods
def test_gradient_of_the_loss(rng, method):
    parameters = cast(random_parameters(rng, method, activation=jnp.tanh))
    clean, noisy = cast(draw(rng)), cast(draw(rng))
    present = jnp.asarray(present_at_random(rng))

    @jax.jit
    def loss(parameters):
        return autoencode._loss(parameters, noisy, clean, present, (1.0, 0.5, 2.0), 0.7)

    check_grads(loss, (parameters,), order=1)


@pytest.mark.one_leg
@settings(max_examples=10)
@given(seed=seeds)
def test_masks(seed):
    sizes, masked, shape = (10, 7, 3, 1), (4, 7, 0, 1), (3, 2)
    keys = jax.random.split(jax.random.key(seed), 2)
    masks, others = (np.asarray(autoencode._masks(key, shape, sizes, masked)) for key in keys)
    assert masks.shape == (3, 2, 12)
    owner = np.searchsorted(np.cumsum(sizes), masks, side="right")
    np.testing.assert_array_equal(owner, np.broadcast_to([0] * 4 + [1] * 7 + [3], masks.shape))
    assert not np.array_equal(masks, others)
    flat = masks.reshape(6, 12)
    assert len(np.unique(flat, axis=0)) == 6  # no two rows, nor batches, have the same


@pytest.mark.one_leg
def test_masks_are_drawn_with_replacement():
    """An entry is kept with probability (1 - 1/k)^c, two of them with (1 - 2/k)^c."""
    rows, k, count = 4000, 6, 4
    masks = np.asarray(autoencode._masks(KEY, (1, rows), (k,), (count,)))[0]
    kept = np.ones((rows, k))
    kept[np.arange(rows)[:, None], masks] = 0
    hidden = k - kept.sum(axis=1)
    assert hidden.min() >= 1
    assert hidden.max() == count
    both = kept.T @ kept / rows
    expected = np.full((k, k), (1 - 2 / k) ** count) + np.eye(k) * (
        (1 - 1 / k) ** count - (1 - 2 / k) ** count
    )
    assert np.max(np.abs(both - expected)) < 5 * 0.5 / np.sqrt(rows)  # five standard deviations


@pytest.mark.one_leg
def test_share_of_noise(rng):
    """int(noise * k) entries of each source, so none where that is below 1."""
    sources, settings = cast(draw(rng)), {"key": KEY, "batch": WORDS, "epochs": 2, "rate": 0.0}
    clean, little = (
        concatenated(sources, noise=noise, **settings).loss_history for noise in (0.0, 0.24)
    )
    same(clean, little)
    assert_close(clean[0], clean[1], scale=1)  # in another order
    other = concatenated(sources, epochs=2, rate=0.0, **USUAL).loss_history
    assert abs(float(other[0] - other[1])) > 1e-3


@pytest.mark.one_leg
@settings(max_examples=10)
@given(seed=seeds)
def test_batches(seed):
    keys = jax.random.split(jax.random.key(seed), 2)
    first, second = (np.asarray(autoencode._batches(key, 23, 5)) for key in keys)
    for order in (first, second):
        assert order.shape == (4, 5)
        assert len(np.unique(order)) == 20
        assert order.min() >= 0
        assert order.max() < 23
    assert not np.array_equal(first, second)


@pytest.mark.one_leg
def test_the_best_epoch_is_kept(rng):
    sources = cast(draw(rng))
    settings = {"rate": 0.3, **USUAL}
    long = concatenated(sources, epochs=60, **settings)
    best = int(np.argmin(exactly(long.loss_history)))
    assert long.best_epoch == best
    assert 0 < best < 59  # or this would show nothing
    short = concatenated(sources, epochs=best + 1, **settings)
    same(short.parameters, long.parameters)
    same(short.loss_history, long.loss_history[: best + 1])
    same(short.embedding, long.embedding)
    same(autoencoded_rows(long.parameters, sources), long.embedding)


@pytest.mark.one_leg
@methods
def test_key_decides(rng, method, compilations):
    """The same key, the same result; and one program for all epochs, values, rates and factors."""
    train, settings = METHODS[method], {"batch": BATCH, "noise": NOISE}
    sources = cast(draw(rng))
    others = cast(tuple(x + 1 for x in draw(rng)))
    keys = jax.random.split(KEY, 2)
    first = train(sources, key=keys[0], epochs=3, factors=(1.0, 1.0, 1.0), **settings)
    autoencoded_rows(first.parameters, sources)
    del compilations[:]
    again = train(sources, key=keys[0], epochs=3, **settings)
    longer = train(sources, key=keys[0], epochs=5, **settings)
    other_key = train(sources, key=keys[1], epochs=3, **settings)
    other_rate = train(others, key=keys[0], epochs=3, rate=0.1, factors=(1.0, 2.0, 0.5), **settings)
    autoencoded_rows(first.parameters, others)
    assert not compilations
    same(first, again)
    same(longer.loss_history[:3], first.loss_history)
    for other in (other_key, other_rate):
        assert not np.any(exactly(other.loss_history) == exactly(first.loss_history))


@pytest.mark.one_leg
def test_dtype_follows_the_sources(rng):
    sources = cast(draw(rng), jnp.float32)
    result = decoupled(sources, epochs=2, factors=jnp.ones(3), rate=jnp.array(0.1), **USUAL)
    assert {x.dtype for x in jax.tree.leaves(result)} == {jnp.dtype("float32")}


@pytest.mark.one_leg
def test_a_batch_larger_than_the_vocabulary_is_all_of_it(rng):
    sources = cast(draw(rng))
    whole, more = (
        concatenated(sources, key=KEY, epochs=2, batch=batch, noise=0.0) for batch in (WORDS, 128)
    )
    same(whole, more)


@pytest.mark.one_leg
def test_training_lowers_for_cuda(rng):
    made = wiring("decoupled")
    data, state = autoencode._start(KEY, cast(draw(rng)), None, wiring=made)
    numbers = ((1.0, 1.0, 1.0), 1.0, 1e-3)

    def epoch(state, data, key):
        return autoencode._epoch(state, data, numbers, key, 1, batch=4, masked=(1, 1, 0))

    exported = export.export(jax.jit(epoch), platforms=["cuda"])(state, data, KEY)
    assert exported.platforms == ("cuda",)


@pytest.mark.one_leg
def test_progress(rng):
    calls = []
    concatenated(cast(draw(rng)), epochs=4, progress=lambda *call: calls.append(call), **USUAL)
    assert calls == [("autoencoder", f) for f in (0.25, 0.5, 0.75, 1.0)]
