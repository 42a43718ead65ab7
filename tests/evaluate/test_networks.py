"""Networks with one hidden layer, against loops in NumPy and against what they must learn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import DTYPE, assert_close, assert_trees_close, cast, rounded
from jax.test_util import check_grads

from jaxmeta.evaluate import LabelledSentences, SentencePairs, entailment_network, sentiment
from jaxmeta.evaluate import networks as module
from jaxmeta.evaluate.networks import Network, fit_network, network_scores

KEY = jax.random.key(0)
N, K, MOST, CLASSES = 7, 3, 4, 3
SHAPES = (K, MOST), (MOST,), (MOST, CLASSES), (CLASSES,)


def draw(rng):
    network = Network(*(rounded(rng.normal(size=shape)) for shape in SHAPES))
    x, labels = rounded(rng.normal(size=(N, K))), rng.integers(CLASSES, size=N)
    kept = 2.0 * (rng.random((N, MOST)) < 0.5)
    return network, x, labels, kept, np.array([1.0, 1.0, 1.0, 0.0])


def plain_loss(network, x, labels, kept, there):
    losses = []
    for row, label, drop in zip(x, labels, kept, strict=True):
        hidden = np.maximum(row @ network.kernel + network.bias, 0) * drop * there
        scores = hidden @ network.output + network.output_bias
        losses.append(np.log(np.sum(np.exp(scores))) - scores[label])
    return np.mean(losses)


def test_loss_against_a_loop(rng):
    network, x, labels, kept, there = draw(rng)
    given = cast(network), cast(x), jnp.asarray(labels), cast(kept), cast(there)
    assert_close(module._loss(*given), plain_loss(network, x, labels, kept, there), scale=8)
    check_grads(lambda w: module._loss(w, *given[1:]), (given[0],), order=1, modes=["rev"])


def test_a_step_is_rmsprop(rng):
    """One batch, without dropout: weights less the rate times g / sqrt(.1 g^2 + 1e-8)."""
    _, x, labels, _, there = draw(rng)
    units, rates = cast(np.array([3.0, 4.0])), cast(np.array([0.01, 0.1]))
    state = module._start(KEY, units, shape=(K, MOST, CLASSES))
    data = cast(x), jnp.asarray(labels), cast(x), jnp.asarray(labels)
    start = jax.tree.map(np.asarray, state.networks)
    found = module._epoch(state, data, (units, rates), KEY, 1, DTYPE.type(0), batch=N)
    for i, mask in enumerate((there, np.ones(MOST))):
        own = jax.tree.map(lambda x, i=i: cast(x[i]), start)
        arguments = cast(x), jnp.asarray(labels), jnp.ones((N, MOST), DTYPE), cast(mask)
        gradient = jax.grad(module._loss)(own, *arguments)
        expected = jax.tree.map(
            lambda w, g, i=i: (
                w - rates[i] * g / jnp.sqrt(DTYPE.type(0.1) * g**2 + DTYPE.type(1e-8))
            ),
            own,
            gradient,
        )
        assert_trees_close(jax.tree.map(lambda x, i=i: x[i], found.networks), expected, scale=64)


@pytest.mark.one_leg
def test_units_beyond_those_asked_for_are_not_there(rng):
    """Trained beside wider ones, a narrow network is what it is by itself."""
    x = rng.normal(size=(80, K)).astype(np.float32)
    labels, held_out = (x[:, 0] > x[:, 1]).astype(int), np.arange(80) % 4 == 0
    how = {"key": KEY, "epochs": 3, "batch": 16, "dropout": 0.0}
    both = fit_network(x, labels, held_out, units=(5, 9), rates=(1e-2,), **how)
    assert both.right.shape == (2,)
    state = module._start(KEY, jnp.array([5.0, 9.0]), shape=(K, 9, 2))
    narrow, wide = (jax.tree.map(lambda x, i=i: x[i], state.networks) for i in range(2))
    assert not narrow.kernel[:, 5:].any()
    assert not narrow.output[5:].any()
    np.testing.assert_array_equal(narrow.kernel[:, :5], wide.kernel[:, :5])
    kept = fit_network(x, labels, held_out, units=(5, 9), rates=(1e-2,), **how).network
    assert_trees_close(kept, both.network, scale=1)
    assert kept.bias.shape == (9,)
    if both.units == 5:
        assert not kept.bias[5:].any()


@pytest.mark.one_leg
def test_what_no_line_divides_is_learnt():
    """Exclusive or: half of it is all that a regression can have right."""
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    labels = np.tile(corners[:, 0] ^ corners[:, 1], 60)
    x = (np.tile(2.0 * corners - 1, (60, 1))).astype(np.float32)
    held_out = np.arange(240) % 5 == 0
    seen = []
    found = fit_network(
        x, labels, held_out, key=KEY, units=(1, 30), rates=(1e-5, 1e-2), epochs=25, batch=16,
        progress=lambda *said: seen.append(said),
    )  # fmt: skip
    assert found.right.max() == held_out.sum()
    assert (found.units, found.rate) == (30, 1e-2)
    assert 1 <= found.epoch <= 25
    assert found.right[0] < held_out.sum()  # one unit that hardly moves
    np.testing.assert_array_equal(np.argmax(network_scores(found.network, x), axis=1), labels)
    assert seen[-1] == ("network", 1.0)


@pytest.mark.one_leg
def test_the_key_decides_all(rng):
    x = rng.normal(size=(60, K)).astype(np.float32)
    labels, held_out = rng.integers(2, size=60), np.arange(60) < 20
    one, same, other = (
        fit_network(x, labels, held_out, key=jax.random.key(s), epochs=2, batch=8)
        for s in (0, 0, 1)
    )
    for a, b in zip(one.network, same.network, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (one.network.kernel != other.network.kernel).any()


@pytest.mark.one_leg
def test_rates_and_units_compile_nothing_new(rng):
    x = rng.normal(size=(40, K)).astype(np.float32)
    labels, held_out = rng.integers(2, size=40), np.arange(40) < 10
    fit_network(x, labels, held_out, key=KEY, units=(3, 6), rates=(0.1,), epochs=1)
    before = module._epoch._cache_size()
    fit_network(x, labels, held_out, key=KEY, units=(2, 6), rates=(0.3,), epochs=3, dropout=0.1)
    assert module._epoch._cache_size() == before


@pytest.mark.one_leg
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"units": ()}, "units: got none, expected one or more"),
        ({"units": (0,)}, "units: got 0"),
        ({"rates": ()}, "rates: got none"),
        ({"rates": (0.0,)}, "rates: got 0.0"),
        ({"epochs": 0}, "epochs: got 0"),
        ({"dropout": 1.0}, "dropout: got 1.0, expected 0 or more and less than 1"),
    ],
)
def test_wrong_settings(settings, message):
    held_out = np.arange(4) < 2
    with pytest.raises(ValueError, match=message):
        fit_network(np.ones((4, 2)), np.arange(4) % 2, held_out, key=KEY, **settings)
    with pytest.raises(ValueError, match="held_out: got 4 of 4 rows, expected some and not all"):
        fit_network(np.ones((4, 2)), np.arange(4) % 2, held_out | True, key=KEY)


# Pairs of sentences

WORDS = tuple(f"w{i}" for i in range(40))


def pairs(rng, name, parts):
    """Pairs of one word each; the class is whether the words agree in sign, if they do in both."""
    vectors = rng.normal(size=(40, 2)).astype(np.float32)
    a, b = rng.integers(40, size=(2, len(parts)))
    agree = np.sum(vectors[a] * vectors[b] > 0, axis=1)
    first, second = (tuple((WORDS[i],) for i in side) for side in (a, b))
    scores = np.full(len(parts), np.nan)
    return (WORDS, vectors), SentencePairs(name, first, second, scores, parts, agree)


@pytest.mark.one_leg
def test_entailment_by_a_network(rng):
    parts = tuple(np.repeat(["train", "dev", "test"], [300, 60, 100]).tolist())
    vectors, data = pairs(rng, "pairs", parts)
    how = {"key": KEY, "units": (30,), "rates": (3e-3,), "epochs": 30}
    score = entailment_network(vectors, data, **how)
    assert (score.task, score.metric, score.total) == ("pairs-E network", "accuracy", 100)
    assert score.value > 0.75 > 1.3 * np.bincount(data.labels).max() / len(parts)
    again = entailment_network(vectors, data, **how)
    np.testing.assert_array_equal(score.items, again.items)
    unknown = data._replace(first=(("zzz",),) * 460)
    with pytest.raises(ValueError, match="pairs-E network: got no sentence with a known word"):
        entailment_network(vectors, unknown, **how)
    for given in ({"data": data._replace(labels=None)}, {"data": data, "more": data._replace(
        labels=None)}):  # fmt: skip
        with pytest.raises(ValueError, match="pairs-E network: got pairs without classes"):
            entailment_network(vectors, **given, **how)


@pytest.mark.one_leg
def test_more_pairs_join_all_but_the_test(rng):
    """Few pairs of its own teach little; of others the test part has no say."""
    vectors, whole = pairs(rng, "pairs", ("train",) * 400)
    some = tuple(np.repeat(["train", "dev", "test"], [12, 8, 380]).tolist())
    few = whole._replace(parts=some)
    _, other = pairs(np.random.default_rng(5), "others", ("train",) * 300 + ("dev",) * 60)
    other = other._replace(labels=np.sum(
        [[vectors[1][WORDS.index(a[0])] * vectors[1][WORDS.index(b[0])] > 0]
         for a, b in zip(other.first, other.second, strict=True)], axis=(1, 2)))  # fmt: skip
    how = {"key": KEY, "units": (30,), "rates": (3e-3,), "epochs": 20}
    alone = entailment_network(vectors, few, **how)
    taught = entailment_network(vectors, few, more=other, **how)
    assert (alone.total, taught.total) == (380, 380)
    assert taught.value > alone.value + 0.1
    rest = other._replace(
        first=(*other.first, ("w0",)), second=(*other.second, ("w1",)),
        scores=np.append(other.scores, np.nan), parts=(*other.parts, "test"),
        labels=np.append(other.labels, 0),
    )  # fmt: skip
    same = entailment_network(vectors, few, more=rest, **how)
    np.testing.assert_array_equal(same.items, taught.items)


# A train and a test part of sentences


@pytest.mark.one_leg
def test_a_split_is_the_first_of_the_folds(rng):
    vectors = WORDS, rng.normal(size=(40, 4)).astype(np.float32)
    sentences = tuple(tuple(WORDS[i] for i in rng.integers(40, size=5)) for _ in range(150))
    means = np.array([[vectors[1][WORDS.index(w)] for w in s] for s in sentences]).mean(axis=1)
    data = LabelledSentences("opinions", sentences, (means[:, 0] > 0).astype(int))
    whole, split, again = (
        sentiment(vectors, data, seed=seed, predicted=number)
        for seed, number in ((4, None), (4, 1), (4, 1))
    )
    assert (whole.total, split.total, split.covered) == (150, 30, 30)
    np.testing.assert_array_equal(split.places, again.places)
    # Of nested folds the first is predicted in the same way.
    assert np.sum(whole.items[split.places] != split.items) <= 1
    assert abs(np.mean(data.labels[split.places]) - np.mean(data.labels)) < 0.05
    other = sentiment(vectors, data, seed=5, predicted=1)
    assert set(other.places) != set(split.places)
    with pytest.raises(ValueError, match="predicted: got 6, expected 1 to 5"):
        sentiment(vectors, data, seed=0, predicted=6)
