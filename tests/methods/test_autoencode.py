"""Losses and rows of autoencoders against NumPy, and closed forms of the linear ones."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import DTYPE, EPS, IN_64_BIT, assert_close, cast, exactly, rounded
from hypothesis import given
from hypothesis import strategies as st
from networks import (
    KEY,
    METHODS,
    SIZES,
    USUAL,
    WORDS,
    K,
    averaged,
    concatenated,
    decoupled,
    draw,
    flat,
    identity,
    methods,
    oracle_loss,
    present_at_random,
    random_parameters,
    same,
)
from strategies import seeds

from jaxmeta.methods import autoencode
from jaxmeta.methods.autoencode import (
    autoencoded_rows,
    averaged_autoencoder,
    squared_cosine_proximity,
)

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
@given(seed=seeds, kind=st.sampled_from(tuple(KINDS)))
def test_loss_by_angles(method, seed, kind):
    """Lengths of rows do not count, rows of zeros cost 1, and gradients are finite."""
    rng = np.random.default_rng(seed)
    clean = KINDS[kind](rng)
    parameters = random_parameters(rng, method, cost=squared_cosine_proximity)
    present, numbers = present_at_random(rng), ((1.0, 1.0, 1.0), 1.0)
    expected = oracle_loss(method, parameters, clean, clean, present=present, angles=True)
    arguments = cast(parameters), cast(clean), cast(clean), jnp.asarray(present), *numbers
    found, gradient = VALUE_AND_GRADIENT(*arguments)
    size = max(np.linalg.norm(x) for x in clean) + 30
    assert_close(found, expected, scale=size**2)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(gradient))
    longer = tuple(3 * x for x in arguments[2])
    np.testing.assert_allclose(LOSS(*arguments[:2], longer, *arguments[3:]), found, rtol=64 * EPS)


@pytest.mark.one_leg
def test_training_by_angles_brings_angles_down():
    sources = cast(draw(np.random.default_rng(1)))
    settings = {"key": KEY, "epochs": 30, "rate": 0.02, "cost": squared_cosine_proximity}
    history = concatenated(sources, **settings).loss_history
    assert history[-1] < 0.5 * history[0]
    assert history[0] < 3 * 4  # three sources, each at most 4 off


@pytest.mark.one_leg
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


@pytest.mark.one_leg
@methods
def test_one_source_of_one_dimension_and_one_word(rng, method):
    result = METHODS[method](cast(draw(rng, (1,), n=1)), key=KEY, epochs=2)
    assert result.embedding.shape == (1, K if method == "averaged" else 1)
    lengths = np.linalg.norm(exactly(result.embedding), axis=1)
    assert np.all((np.abs(lengths - 1) < 16 * EPS) | (lengths == 0))
    assert np.all(exactly(result.embedding) >= 0)


@pytest.mark.one_leg
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


# Without activation, lengths and noise the optimum is known.

LINEAR = {"key": KEY, "activation": identity, "normalise": False, "batch": 40}


@pytest.mark.one_leg
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


@pytest.mark.one_leg
@pytest.mark.parametrize("method", ["concatenated", "decoupled"])
def test_linear_square_codes_lose_nothing(rng, method):
    sources = draw(rng, n=40)
    extra = {"coupling": 0.0} if method == "decoupled" else {}
    found = METHODS[method](cast(sources), epochs=1500, rate=0.02, noise=0.0, **LINEAR, **extra)
    assert found.loss_history[0] > 0.1
    assert float(jnp.min(found.loss_history)) < 1e-5


@pytest.mark.one_leg
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
    with pytest.raises(ValueError, match=r"^sources: got widths \(4, 3\), expected \(4, 3, 2\)"):
        autoencoded_rows(parameters, (a, b))
    with pytest.raises(ValueError, match=r"^sources: got widths \(3, 4, 2\), expected \(4, 3, 2\)"):
        autoencoded_rows(parameters, (b, a, c))
