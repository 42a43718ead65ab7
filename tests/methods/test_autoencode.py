"""Autoencoders against NumPy, closed forms of the linear ones, and the rules of the training."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import DTYPE, EPS, IN_64_BIT, assert_close, cast, exactly, rounded
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import export
from jax.test_util import check_grads
from strategies import seeds

from jaxmeta.methods import autoencode
from jaxmeta.methods.autoencode import (
    Training,
    autoencoded_rows,
    averaged_autoencoder,
    concatenated_autoencoder,
    decoupled_autoencoder,
)

WORDS, SIZES, K = 12, (4, 3, 2), 5
KEY = jax.random.key(7)
# The same for most tests, since every other batch and share of noise compiles.
BATCH, NOISE, MASKED = 5, 0.5, (2, 1, 1)
USUAL = {"key": KEY, "batch": BATCH, "noise": NOISE}


def flat(train, **fixed):
    """The method with the fields of `Training` beside its other arguments."""

    def call(sources, **settings):
        chosen = {name: settings.pop(name) for name in Training._fields if name in settings}
        return train(sources, training=Training(**chosen), **fixed, **settings)

    return call


decoupled = flat(decoupled_autoencoder)
concatenated = flat(concatenated_autoencoder)
averaged = flat(averaged_autoencoder, k=K)
METHODS = {"decoupled": decoupled, "concatenated": concatenated, "averaged": averaged}
methods = pytest.mark.parametrize("method", METHODS)


def identity(x):
    return x


def draw(rng, sizes=SIZES, n=WORDS):
    return tuple(rounded(rng.normal(size=(n, k))) for k in sizes)


def unit(x):
    """Rows of length 1, and zeros as they are."""
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    return np.divide(x, lengths, out=np.zeros_like(x), where=lengths > 0)


# The oracle: word by word, in float64.


def oracle_codes(parameters, inputs, w, activation):
    function = {"relu": lambda x: np.maximum(x, 0), "tanh": np.tanh, "linear": identity}[activation]
    return [
        function(np.einsum("i,ij->j", x[w], exactly(layer.kernel)) + exactly(layer.bias))
        for layer, x in zip(parameters.encoders, inputs, strict=True)
    ]


def oracle_meta(method, codes, normalise):
    meta = sum(codes) if method == "averaged" else np.hstack(codes)
    return meta / np.sqrt(max(meta @ meta, 1e-12)) if normalise else meta


def oracle_loss(
    method,
    parameters,
    noisy,
    clean,
    *,
    present=None,
    factors=(1.0, 1.0, 1.0),
    coupling=1.0,
    activation="relu",
    normalise=True,
):
    n, sources = len(clean[0]), range(len(clean))
    present = np.ones((n, len(clean)), bool) if present is None else present
    errors = [[] for _ in sources]
    couplings = {pair: [] for pair in itertools.combinations(sources, 2)}
    for w in range(n):
        codes = oracle_codes(parameters, noisy, w, activation)
        meta = oracle_meta(method, codes, normalise)
        for j in sources:
            layer = parameters.decoders[j]
            read = codes[j] if method == "decoupled" else meta
            decoded = read @ exactly(layer.kernel) + exactly(layer.bias)
            if present[w, j]:
                errors[j].extend((clean[j][w] - decoded) ** 2)
        for (i, j), differences in couplings.items():
            if present[w, i] and present[w, j]:
                differences.extend((a - b) ** 2 for a, b in zip(codes[i], codes[j], strict=False))
    loss = sum(f * np.mean(e) for f, e in zip(factors, errors, strict=True) if e)
    if method == "decoupled":
        loss += coupling * sum(np.mean(d) for d in couplings.values() if d)
    return loss


def wiring(method, activation=jax.nn.relu, *, normalise=True):
    return autoencode._Wiring(
        activation,
        normalise,
        decoupled=method == "decoupled",
        k=K if method == "averaged" else None,
    )


def random_parameters(rng, method, sizes=SIZES, **settings):
    made = wiring(method, **settings)
    layers = [
        autoencode.Layer(rounded(rng.normal(size=shape)), rounded(rng.normal(size=shape[1])))
        for shape in made.shapes(sizes)
    ]
    parts = tuple(layers[: len(sizes)]), tuple(layers[len(sizes) :])
    return autoencode.Autoencoder(*parts, made)


def present_at_random(rng, n=WORDS, sources=3):
    """Some words everywhere, some nowhere, and a source that has no word."""
    present = rng.uniform(size=(n, sources)) < 0.6
    present[0], present[1] = True, False
    if rng.uniform() < 0.3:
        present[:, rng.integers(sources)] = False
    return present


LOSS = jax.jit(autoencode._loss)
VALUE_AND_GRADIENT = jax.jit(jax.value_and_grad(autoencode._loss))
KINDS = {
    "random": draw,
    "zero": lambda rng: (np.zeros((WORDS, 4)), *draw(rng)[1:]),
    "same": lambda rng: (lambda x: (x, x[:, :3], x[:, :2]))(draw(rng)[0]),
    "rank 1": lambda rng: tuple(rounded(np.outer(x[:, 0], x[0])) for x in draw(rng)),
    "wide": lambda rng: tuple(
        rounded(x * s) for x, s in zip(draw(rng), (1, 1e3, 1e-3), strict=True)
    ),
}


@methods
@pytest.mark.parametrize("normalise", [True, False])
@given(seed=seeds, kind=st.sampled_from(tuple(KINDS)), all_present=st.booleans())
def test_loss(method, normalise, seed, kind, all_present):
    rng = np.random.default_rng(seed)
    clean = KINDS[kind](rng)
    noisy = tuple(x * (rng.uniform(size=x.shape) < 0.7) for x in clean)
    parameters = random_parameters(rng, method, normalise=normalise)
    present = np.ones((WORDS, 3), bool) if all_present else present_at_random(rng)
    factors, coupling = tuple(rounded(rng.uniform(0, 2, 3))), float(rounded(rng.uniform(0, 2)))
    settings = {"present": present, "factors": factors, "coupling": coupling}
    expected = oracle_loss(method, parameters, noisy, clean, normalise=normalise, **settings)
    found = LOSS(
        cast(parameters), cast(noisy), cast(clean), jnp.asarray(present), factors, coupling
    )
    size = max(np.linalg.norm(x) for x in clean) * (1 if normalise else 30) + 30
    assert_close(found, expected, scale=size**2)
    assert found.dtype == DTYPE


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


@pytest.mark.skipif(not IN_64_BIT, reason="differences of losses need the digits")
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


@pytest.mark.skipif(not IN_64_BIT, reason="differences of losses need the digits")
@methods
def test_gradient_of_the_loss(rng, method):
    parameters = cast(random_parameters(rng, method, activation=jnp.tanh))
    clean, noisy = cast(draw(rng)), cast(draw(rng))
    present = jnp.asarray(present_at_random(rng))

    @jax.jit
    def loss(parameters):
        return autoencode._loss(parameters, noisy, clean, present, (1.0, 0.5, 2.0), 0.7)

    check_grads(loss, (parameters,), order=1)


@methods
def test_rows_without_active_unit(method):
    """They are zeros, not NaN, and so are gradients: with and without words that are missing."""
    dead = random_parameters(np.random.default_rng(0), method)
    dead = cast(jax.tree.map(np.zeros_like, dead))
    layers = tuple(layer._replace(bias=layer.bias - 1) for layer in dead.encoders)
    sources = cast(tuple(np.zeros((WORDS, k)) for k in SIZES))
    for parameters in (dead, dataclasses.replace(dead, encoders=layers)):
        np.testing.assert_array_equal(autoencoded_rows(parameters, sources), 0)
        for present in (jnp.ones((WORDS, 3), bool), jnp.zeros((WORDS, 3), bool)):
            value, gradient = VALUE_AND_GRADIENT(
                parameters, sources, sources, present, (1.0,) * 3, 1.0
            )
            assert value == 0
            assert not any(np.any(g) for g in jax.tree.leaves(gradient))
    towards = jax.jit(jax.grad(lambda x: jnp.sum(autoencoded_rows(dead, x))))(sources)
    assert all(np.isfinite(g).all() for g in towards)


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


def same(tree, other):
    jax.tree.map(np.testing.assert_array_equal, tree, other)


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


@pytest.mark.skipif(not IN_64_BIT, reason="needs a dtype that is not the default")
def test_dtype_follows_the_sources(rng):
    sources = cast(draw(rng), jnp.float32)
    result = decoupled(sources, epochs=2, factors=jnp.ones(3), rate=jnp.array(0.1), **USUAL)
    assert {x.dtype for x in jax.tree.leaves(result)} == {jnp.dtype("float32")}


@pytest.mark.one_leg
@methods
def test_what_missing_rows_hold_does_not_matter(rng, method):
    sources, present = draw(rng), present_at_random(rng)
    present[:, 2] = False  # a source without words
    settings = {"epochs": 3, "present": jnp.asarray(present), **USUAL}
    results = []
    for held in (0.0, np.nan, np.inf, 3.0):
        filled = cast(tuple(np.where(present[:, [j]], x, held) for j, x in enumerate(sources)))
        results.append(METHODS[method](filled, **settings))
        same(
            autoencoded_rows(results[0].parameters, filled, present=settings["present"]),
            results[0][0],
        )
    for result in results[1:]:
        same(result, results[0])
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(results[0]))


@pytest.mark.one_leg
@methods
def test_nan_shows(rng, method):
    sources = cast(draw(rng))
    spoilt = (sources[0].at[2, 1].set(jnp.nan), *sources[1:])
    result = METHODS[method](spoilt, epochs=2, **USUAL)
    assert np.isnan(result.embedding).all()
    assert np.isnan(result.loss_history).all()


@methods
def test_one_source_of_one_dimension_and_one_word(rng, method):
    result = METHODS[method](cast(draw(rng, (1,), n=1)), key=KEY, epochs=2)
    assert result.embedding.shape == (1, K if method == "averaged" else 1)
    lengths = np.linalg.norm(exactly(result.embedding), axis=1)
    assert np.all((np.abs(lengths - 1) < 16 * EPS) | (lengths == 0))
    assert np.all(exactly(result.embedding) >= 0)


@pytest.mark.one_leg
def test_a_batch_larger_than_the_vocabulary_is_all_of_it(rng):
    sources = cast(draw(rng))
    whole, more = (
        concatenated(sources, key=KEY, epochs=2, batch=batch, noise=0.0) for batch in (WORDS, 128)
    )
    same(whole, more)


@methods
def test_encode_by_rows(rng, method):
    """Each row by itself, whatever the length of its vectors."""
    parameters = cast(random_parameters(rng, method))
    sources = draw(rng)
    together = autoencoded_rows(parameters, cast(sources))
    apart = jax.vmap(lambda *rows: autoencoded_rows(parameters, tuple(x[None] for x in rows))[0])
    assert_close(apart(*cast(sources)), together, scale=10)
    lengths = [2.0 ** rng.integers(-60, 60, size=(WORDS, 1)) for _ in sources]
    scaled = tuple(x * s for x, s in zip(sources, lengths, strict=True))
    assert_close(autoencoded_rows(parameters, cast(scaled)), together, scale=0)


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


# Without activation, lengths and noise the optimum is known.

LINEAR = {"key": KEY, "activation": identity, "normalise": False, "batch": 40}


def test_linear_average_is_principal_components(rng):
    """Of [s_j / sqrt(k_j)], centred because of the biases; reached from above."""
    sources = tuple(
        rounded(x @ np.diag(1.5 ** -np.arange(x.shape[1])) + 1) for x in draw(rng, n=40)
    )
    joint = np.hstack([x / np.sqrt(x.shape[1]) for x in sources])
    values = np.linalg.svd(joint - joint.mean(axis=0), compute_uv=False)
    optimum = np.sum(values[K:] ** 2) / len(joint)
    found = averaged(cast(sources), epochs=1500, rate=0.03, noise=0.0, **LINEAR)
    history = exactly(found.loss_history)
    assert np.all(history >= optimum * (1 - 16 * EPS))
    assert history[0] > 10 * optimum
    assert history.min() < optimum * 1.001
    direct = oracle_loss(
        "averaged", found.parameters, sources, sources, activation="linear", normalise=False
    )
    assert optimum * (1 - 16 * EPS) <= direct < optimum * 1.001


@pytest.mark.parametrize("method", ["concatenated", "decoupled"])
def test_linear_square_codes_lose_nothing(rng, method):
    sources = draw(rng, n=40)
    extra = {"coupling": 0.0} if method == "decoupled" else {}
    found = METHODS[method](cast(sources), epochs=1500, rate=0.02, noise=0.0, **LINEAR, **extra)
    assert found.loss_history[0] > 0.1
    assert float(jnp.min(found.loss_history)) < 1e-5


def test_linear_denoising(rng):
    """The expected loss of the trained map comes close to that of the best linear one."""
    n, k, count = 40, 4, 2
    x = rounded(rng.normal(size=(n, k)) @ np.diag([2, 1.5, 1, 0.5]) @ rng.normal(size=(k, k)) + 0.5)
    one, two = (1 - 1 / k) ** count, (1 - 2 / k) ** count
    extended = np.hstack([x, np.ones((n, 1))])  # the bias is never masked
    kept = np.full((k + 1, k + 1), two) + np.eye(k + 1) * (one - two)
    kept[-1], kept[:, -1] = one, one
    kept[-1, -1] = 1
    second = kept * (extended.T @ extended) / n
    cross = np.append(np.full(k, one), 1)[:, None] * (extended.T @ x) / n

    def expected_loss(w):
        return np.trace(w.T @ second @ w - 2 * w.T @ cross + x.T @ x / n) / k

    optimum = expected_loss(np.linalg.solve(second, cross))
    found = concatenated((cast(x),), epochs=3000, rate=0.01, noise=0.5, **LINEAR)
    (encoder,), (decoder,) = found.parameters.encoders, found.parameters.decoders
    v = exactly(decoder.kernel)
    w = np.vstack([exactly(encoder.kernel) @ v, exactly(encoder.bias) @ v + exactly(decoder.bias)])
    assert optimum * (1 - 1e-5) <= expected_loss(w) < 1.03 * optimum
    # Copying what is there is worse: the noise has been learnt.
    assert optimum < 0.8 * expected_loss(np.eye(k + 1)[:, :k])
    settled = exactly(found.loss_history)[-1000:].mean()
    assert abs(settled / optimum - 1) < 0.05


def test_bad_calls(rng, hooked):
    if hooked:
        pytest.skip("jaxtyping checks the annotations, and objects before the library can")
    a, b, c = cast(draw(rng))

    def fails(message, sources=(a, b), error=ValueError, train=concatenated, **settings):
        with pytest.raises(error, match=f"^{message}"):
            train(sources, key=KEY, **settings)

    fails("sources: got an array of shape", a, TypeError)
    fails("sources: got no source", ())
    fails("sources.0. and sources.1.: got 12 rows", (a, b[1:]))
    fails("sources.1.: got dtype int32", (a, b.astype(jnp.int32)), TypeError)
    fails("epochs: got 0, expected at least 1", epochs=0)
    fails("batch: got 0, expected at least 1", batch=0)
    fails("k: got 0, expected at least 1", train=flat(averaged_autoencoder), k=0)
    fails("noise: got 5, expected 0 to 1; pass the share", noise=5)
    fails("rate: got -1, expected a number that is not negative", rate=-1)
    fails("factors: got 3 entries, expected 2, one per source", factors=(1.0, 1.0, 1.0))
    fails("factors.1.: got an array of shape", factors=(1.0, jnp.ones(2)))
    fails("coupling: got a str", error=TypeError, train=decoupled, coupling="1")
    fails(
        r"present: got shape \(12,\), expected \(12, 2\); pass present\[w, j\], whether source j",
        present=jnp.ones(12, bool),
    )
    if IN_64_BIT:
        mixed = (a, b.astype(jnp.float32))
        fails("sources.1.: got dtype float32, expected float64, as of sources", mixed, TypeError)
    parameters = cast(random_parameters(rng, "concatenated"))
    with pytest.raises(ValueError, match=r"^sources: got 2 entries, expected 3, one per source"):
        autoencoded_rows(parameters, (a, b))
    with pytest.raises(
        ValueError, match=r"^sources.0.: got 3 columns, expected 4; pass the sources"
    ):
        autoencoded_rows(parameters, (b, a, c))
