"""Autoencoders word by word, in float64 NumPy, and what their tests share."""

import itertools

import jax
import numpy as np
import pytest
from helpers import exactly, rounded

from jaxmeta.methods import autoencode
from jaxmeta.methods.autoencode import (
    Training,
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
    angles=False,
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
            if present[w, j] and angles:
                lengths = np.linalg.norm(clean[j][w]) * np.linalg.norm(decoded)
                errors[j].append((1 - clean[j][w] @ decoded / (lengths or 1)) ** 2)
            elif present[w, j]:
                errors[j].extend((clean[j][w] - decoded) ** 2)
        for (i, j), differences in couplings.items():
            if present[w, i] and present[w, j]:
                differences.extend((a - b) ** 2 for a, b in zip(codes[i], codes[j], strict=False))
    loss = sum(f * np.mean(e) for f, e in zip(factors, errors, strict=True) if e)
    if method == "decoupled":
        loss += coupling * sum(np.mean(d) for d in couplings.values() if d)
    return loss


def wiring(method, activation=jax.nn.relu, *, normalise=True, cost=autoencode.squared_error):
    return autoencode._Wiring(
        activation,
        normalise,
        cost=cost,
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


def same(tree, other):
    jax.tree.map(np.testing.assert_array_equal, tree, other)
