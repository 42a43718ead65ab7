"""The tagger against a loop over tokens in NumPy, and what it can and cannot learn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import DTYPE, EPS, assert_close, assert_trees_close, cast, exactly, rounded
from hypothesis import given
from hypothesis import strategies as st
from jax.test_util import check_grads

from jaxmeta.evaluate import taggers as module
from jaxmeta.evaluate.readers import TaggedText
from jaxmeta.evaluate.scores import proportion_interval
from jaxmeta.evaluate.taggers import tagging
from jaxmeta.files.vectors import Vectors
from jaxmeta.progress import silent

pytestmark = pytest.mark.slow

KEY = jax.random.key(0)
K, UNITS, TAGS, WORDS = 3, 2, 4, 6
WEIGHTS = ("unknown", "kernel", "recurrent", "bias", "output", "output_bias")

loss_and_gradient = jax.jit(jax.value_and_grad(module._loss))
lstm, scores_of = jax.jit(module._lstm), jax.jit(module._scores)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def oracle_states(inputs, recurrent):
    """States of one sentence: gate by gate, token by token."""
    units = len(recurrent)
    h, c, states = np.zeros(units), np.zeros(units), []
    for x in inputs:
        gates = x + h @ recurrent
        parts = [gates[j * units : (j + 1) * units] for j in range(4)]
        c = sigmoid(parts[1]) * c + sigmoid(parts[0]) * np.tanh(parts[2])
        h = sigmoid(parts[3]) * np.tanh(c)
        states.append(h)
    return np.array(states)


def oracle_losses(tagger, table, sentences):
    """The cross entropy of every token; sentences are pairs of rows (-1: unknown) and tags."""
    losses = []
    for rows, tags in sentences:
        x = np.array([tagger["unknown"] if row < 0 else table[row] for row in rows])
        h = oracle_states(x @ tagger["kernel"] + tagger["bias"], tagger["recurrent"])
        scores = h @ tagger["output"] + tagger["output_bias"]
        losses += [np.log(np.exp(s).sum()) - s[tag] for s, tag in zip(scores, tags, strict=True)]
    return np.array(losses)


def random_tagger(rng):
    sizes = ((K,), (K, 4 * UNITS), (UNITS, 4 * UNITS), (4 * UNITS,), (UNITS, TAGS), (TAGS,))
    return {name: rounded(rng.normal(size=s)) for name, s in zip(WEIGHTS, sizes, strict=True)}


def random_sentences(rng, lengths):
    return [(rng.integers(-1, WORDS, n), rng.integers(0, TAGS, n)) for n in lengths]


def packed(sentences, *, width, batch):
    rows, tags = (np.concatenate(x) for x in zip(*sentences, strict=True))
    lengths = [len(s) for s, _ in sentences]
    return module._batches(lengths, rows, tags, width=width, batch=batch)


def of_one_batch(sentences, table, *, width):
    """Arguments of a loss, after the tagger: all sentences in one batch, and vectors frozen."""
    batches, _ = packed(sentences, width=width, batch=len(sentences))
    words, starts, tags, used = (x[0] for x in batches)
    return module._rows(cast(table), used), words, starts, tags


# The LSTM and its loss


@pytest.mark.one_leg
def test_states_against_a_loop(rng):
    """Sentences side by side, one after another, and with rests of rows behind them."""
    recurrent = rounded(rng.normal(size=(UNITS, 4 * UNITS)))
    first, second, third = (rounded(rng.normal(size=(n, 4 * UNITS))) for n in (3, 2, 4))
    rest = rounded(rng.normal(size=(1, 4 * UNITS)))
    inputs = np.stack([np.concatenate([first, second]), np.concatenate([third, rest])], axis=1)
    starts = np.zeros((5, 2), bool)
    starts[[0, 3, 0], [0, 0, 1]] = True
    found = lstm(cast(inputs), cast(recurrent), jnp.asarray(starts))
    for states, sentence in ((found[:3, 0], first), (found[3:, 0], second), (found[:4, 1], third)):
        assert_close(states, oracle_states(sentence, recurrent), scale=4)
    alone = lstm(cast(second[:, None]), cast(recurrent), jnp.asarray([[True], [False]]))
    assert_close(alone[:, 0], found[3:, 0], scale=4)


@pytest.mark.one_leg
@pytest.mark.parametrize("width", [4, 30])
def test_loss_against_a_loop(rng, width):
    """Also with most of a row empty: the mean is over tokens."""
    weights, table = random_tagger(rng), rounded(rng.normal(size=(WORDS, K)))
    sentences = random_sentences(rng, (4, 1, 3, 2, 2))
    expected = oracle_losses(weights, table, sentences).mean()
    tagger = module._Tagger(None, **cast(weights))
    arguments = of_one_batch(sentences, table, width=width)
    assert_close(loss_and_gradient(tagger, *arguments)[0], expected, scale=10)


@pytest.mark.one_leg
def test_padding_has_no_influence(rng):
    weights, table = random_tagger(rng), rng.normal(size=(WORDS, K))
    tagger = module._Tagger(None, **cast(weights))
    sentences = random_sentences(rng, (4, 3, 4))
    tight, loose = (of_one_batch(sentences, table, width=width) for width in (4, 9))
    assert [arguments[1].shape for arguments in (tight, loose)] == [(4, 3), (9, 2)]
    assert_trees_close(
        loss_and_gradient(tagger, *tight), loss_and_gradient(tagger, *loose), scale=10
    )
    # What stands beyond the end of sentences, or among the words of a batch, does not matter.
    rows, words, starts, tags = loose
    rubbish = jnp.where(tags < 0, 0, words)
    more = jnp.concatenate([rows, cast(rng.normal(size=(2, K)))])
    shifted = jnp.where(words == len(rows), len(more), words)
    for other in ((rows, rubbish, starts, tags), (more, shifted, starts, tags)):
        found = loss_and_gradient(tagger, *other)
        assert_trees_close(found, loss_and_gradient(tagger, *loose), scale=10)


def test_gradient_of_the_loss(rng):
    table = cast(rng.normal(size=(WORDS, K)))
    tagger = module._Tagger(None, **cast(random_tagger(rng)))
    rows, *rest = of_one_batch(random_sentences(rng, (4, 1, 3)), table, width=4)

    @jax.jit
    def loss(tagger):
        return module._loss(tagger, None, *rest)

    check_grads(loss, (tagger._replace(table=rows),), order=1)


@pytest.mark.one_leg
def test_unknown_words_share_a_vector(rng):
    """A word with that very vector is told nothing more."""
    weights, table = random_tagger(rng), rounded(rng.normal(size=(WORDS, K)))
    tagger = module._Tagger(None, **cast(weights))
    both = np.vstack([table, weights["unknown"]])
    rows, tags = np.array([0, -1, 2, -1]), np.array([0, 1, 2, 3])
    unknown = of_one_batch([(rows, tags)], both, width=4)
    known = of_one_batch([(np.where(rows < 0, WORDS, rows), tags)], both, width=4)
    found = [scores_of(tagger, *arguments[:3]) for arguments in (unknown, known)]
    assert_close(*found, scale=10)
    gradient = loss_and_gradient(tagger, *unknown)[1]
    assert np.any(gradient.unknown)
    assert not np.any(loss_and_gradient(tagger, *known)[1].unknown)


# Batches


@pytest.mark.one_leg
@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.integers(0, 5), st.integers(1, 6))
def test_batches_hold_every_token_once(lengths, more, batch):
    width, tokens = max(lengths) + more, sum(lengths)
    rng = np.random.default_rng(tokens)
    rows, tags = rng.integers(-1, WORDS, tokens), rng.integers(-1, TAGS, tokens)
    found, places = module._batches(lengths, rows, tags, width=width, batch=batch)
    words, starts, held, used = map(np.asarray, found)
    assert words.shape == starts.shape == held.shape
    assert words.shape[2] <= batch
    assert len(np.unique(places)) == tokens
    flat = {"words": words, "starts": starts, "tags": held}
    flat = {name: x.transpose(2, 0, 1).ravel() for name, x in flat.items()}
    np.testing.assert_array_equal(flat["tags"][places], tags)
    first = np.cumsum(lengths) - lengths
    np.testing.assert_array_equal(np.flatnonzero(flat["starts"]), np.sort(places[first]))
    for start, length in zip(first, lengths, strict=True):  # in one row, without a gap
        own = places[start : start + length]
        np.testing.assert_array_equal(own, own[0] + np.arange(length))
        assert own[0] // width == own[-1] // width
    empty = np.setdiff1d(np.arange(words.size), places)
    assert np.all(flat["tags"][empty] == -1)
    extended = np.hstack([used, np.full((len(used), 1), -1)])
    back = np.stack([row[own] for row, own in zip(extended, words, strict=True)])
    np.testing.assert_array_equal(back.transpose(2, 0, 1).ravel()[places], rows)
    for row in used:
        real = row[row < WORDS]
        assert len(np.unique(real)) == len(real)


@pytest.mark.one_leg
def test_rows_are_full():
    starts, count = module._pack([3, 5, 2, 4, 1], 5)
    assert count == 3
    np.testing.assert_array_equal(starts, [10, 0, 13, 5, 9])


# Training


def toy_text(rng, sentences=200, test=20):
    """A tag is whether the word *before* is one of the even ones; nothing is before the first."""
    words = [f"w{i}" for i in range(WORDS)]

    def sentence():
        drawn = rng.integers(0, WORDS, rng.integers(1, 9))
        tags = ["first", *("even" if i % 2 == 0 else "odd" for i in drawn[:-1])]
        return tuple((words[i], tag) for i, tag in zip(drawn, tags, strict=True))

    parts = (tuple(sentence() for _ in range(n)) for n in (sentences, test))
    return TaggedText("toy", *parts), Vectors(tuple(words), np.eye(WORDS, dtype=DTYPE))


SMALL = {"units": 8, "batch": 2}


@pytest.mark.one_leg
def test_a_toy_language_is_learnt(rng):
    text, vectors = toy_text(rng)
    calls = []
    settings = {"progress": lambda *call: calls.append(call), **SMALL}
    score = tagging(vectors, text, key=KEY, epochs=10, rate=0.02, **settings)
    assert calls == [("tagging", epoch / 10) for epoch in range(1, 11)]
    tokens = sum(map(len, text.test))
    assert (score.task, score.metric, score.value) == ("toy", "accuracy", 1.0)
    assert (score.low, score.high) == proportion_interval(tokens, tokens)
    assert score.covered == score.total == len(score.items) == tokens
    assert score.items.dtype == bool


@pytest.mark.one_leg
def test_items_are_in_the_order_of_the_text(rng):
    """Tags that training lacks are wrong, wherever they come, and no others are."""
    text, vectors = toy_text(rng)
    spoilt = rng.random(sum(map(len, text.test))) < 0.2
    tokens = iter(spoilt)
    test = tuple(tuple((w, "new" if next(tokens) else t) for w, t in s) for s in text.test)
    score = tagging(vectors, text._replace(test=test), key=KEY, epochs=10, rate=0.02, **SMALL)
    np.testing.assert_array_equal(score.items, ~spoilt)
    assert score.value == np.mean(~spoilt)


@pytest.mark.one_leg
def test_words_without_a_vector(rng):
    """They are scored and not covered; `vocabulary` makes more of them; case falls back.

    Empty sentences do not matter.
    """
    text, (words, matrix) = toy_text(rng)
    shouted = tuple(tuple((w.upper(), t) for w, t in s) for s in text.test)
    some = Vectors(words[:4], matrix[:4])
    tokens = [w for s in text.test for w, _ in s]
    settings = {"key": KEY, "epochs": 2, **SMALL}
    fewer = tagging(some, text._replace(test=shouted), **settings)
    assert fewer.covered == sum(w in words[:4] for w in tokens) < fewer.total == len(tokens)
    gaps = text._replace(train=((), *text.train, ()), test=(text.test[0], (), *text.test[1:]))
    same(tagging(Vectors(words, matrix), gaps, vocabulary=set(words[:4]), **settings), fewer)


def same(score, other):
    np.testing.assert_array_equal(score.items, other.items)
    assert score[:7] == other[:7]


@pytest.mark.one_leg
def test_key_decides(rng, compilations):
    """One program for all keys, values, rates and numbers of epochs."""
    text, (words, matrix) = toy_text(rng)
    keys = jax.random.split(KEY, 2)
    first = tagging(Vectors(words, matrix), text, key=keys[0], epochs=1, **SMALL)
    del compilations[:]
    again = tagging(Vectors(words, matrix), text, key=keys[0], epochs=1, **SMALL)
    other = tagging(Vectors(words, matrix), text, key=keys[1], epochs=1, **SMALL)
    tagging(Vectors(words, matrix + 1), text, key=keys[0], epochs=3, rate=0.1, **SMALL)
    assert not compilations
    same(first, again)
    assert np.any(first.items != other.items)


@pytest.mark.one_leg
@pytest.mark.parametrize("tune", [False, True])
def test_scale_is_no_advantage(rng, tune):
    text, (words, matrix) = toy_text(rng)
    matrix = matrix + rng.normal(size=matrix.shape).astype(DTYPE)
    settings = {"key": KEY, "epochs": 1, "tune": tune, **SMALL}
    first, second = (
        tagging(Vectors(words, matrix * DTYPE.type(s)), text, **settings) for s in (1, 2.0**100)
    )
    same(first, second)


@pytest.mark.one_leg
def test_scaled_rows_are_sqrt_k_long(rng):
    for dtype in (np.float16, np.float32, np.float64):
        given = (7 * rng.normal(size=(20, 5))).astype(dtype)
        kept = given.copy()
        found = module._scaled(given, [])
        assert found.dtype == (DTYPE if dtype == np.float64 else jnp.float32)
        lengths = np.sum(exactly(found) ** 2, axis=1)
        assert np.mean(lengths) == pytest.approx(5, rel=1e-6)
        ratios = exactly(found) / exactly(found[0, 0])
        np.testing.assert_allclose(ratios, kept / kept[0, 0], rtol=2e-3)
        np.testing.assert_array_equal(given, kept)


def train(table, batches, **settings):
    how = module._How(**{"units": UNITS, "epochs": 2, "rate": 0.1, **settings})
    return module._train(table, batches, KEY, TAGS, how, silent)


@pytest.mark.one_leg
def test_frozen_vectors_stay_and_tuned_ones_move(rng):
    """Of the tuned ones, those that are in the training part."""
    sentences = [(np.array([0, 1, -1]), np.array([0, 1, 2])), (np.array([3, 1]), np.array([1, 3]))]
    batches, _ = packed(sentences, width=3, batch=1)
    table = cast(rng.normal(size=(WORDS, K)))
    before = np.array(table)
    frozen, _ = train(table, batches, tune=False)
    assert frozen.table is None
    np.testing.assert_array_equal(table, before)
    tuned, _ = train(table, batches, tune=True)
    np.testing.assert_array_equal(table, before)  # not even its memory is taken
    moved = np.any(np.asarray(tuned.table) != before, axis=1)
    np.testing.assert_array_equal(moved, [True, True, False, True, False, False])
    for tagger in (frozen, tuned):
        assert np.any(tagger.unknown)
        assert {x.dtype for x in jax.tree.leaves(tagger)} == {DTYPE}


@pytest.mark.one_leg
@pytest.mark.parametrize("tune", [False, True])
def test_two_steps_of_adam(rng, tune):
    """One batch with all words, so that all vectors move: Adam on all of it, written out."""
    sentences = [(np.arange(-1, WORDS), rng.integers(0, TAGS, WORDS + 1))]
    batches, _ = packed(sentences, width=WORDS + 1, batch=1)
    table, rate = cast(rng.normal(size=(WORDS, K))), 0.125
    words, starts, tags, used = (x[0] for x in batches)
    np.testing.assert_array_equal(used, np.arange(WORDS))
    tagger, _ = module._start(KEY, table, tags=TAGS, units=UNITS, tune=tune)
    moments = [jax.tree.map(np.zeros_like, tagger) for _ in range(2)]
    losses = []
    for t in (1, 2):
        loss, gradient = loss_and_gradient(tagger, None if tune else table, words, starts, tags)
        losses.append(float(loss))
        first, second = moments
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * np.asarray(g), first, gradient)
        second = jax.tree.map(lambda m, g: 0.999 * m + 0.001 * np.asarray(g) ** 2, second, gradient)
        moments = [first, second]
        step = rate * (1 - (t - 1) / 2)
        tagger = jax.tree.map(
            lambda p, m, v: cast(
                np.asarray(p) - step * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)  # noqa: B023
            ),
            tagger,
            *moments,
        )
    found, loss = train(table, batches, tune=tune, rate=rate)
    assert loss == pytest.approx(losses[1], rel=1e3 * EPS)
    assert_trees_close(found, tagger, scale=1, terms=1e4)


@pytest.mark.one_leg
def test_tuning_helps_where_vectors_say_nothing(rng):
    """Words that look the same, frozen, cannot be told apart."""
    text, (words, matrix) = toy_text(rng)
    blank = Vectors(words, np.ones_like(matrix))
    frozen, tuned = (
        tagging(blank, text, key=KEY, tune=tune, epochs=10, rate=0.02, **SMALL)
        for tune in (False, True)
    )
    assert frozen.value < 0.8
    assert tuned.value > 0.95


@pytest.mark.one_leg
def test_bad_calls(rng, hooked):
    text, (words, matrix) = toy_text(rng)

    def fails(message, vectors=(words, matrix), text=text, error=ValueError, **settings):
        with pytest.raises(error, match=f"^{message}"):
            tagging(vectors, text, key=KEY, **{**SMALL, **settings})

    fails("toy.train: got no tokens, expected sentences; pass", text=text._replace(train=()))
    fails("toy.test: got no tokens, expected sentences; pass", text=text._replace(test=((),)))
    strange = (tuple(f"{word}x" for word in words), matrix)
    fails("vectors: got no word of the training part of toy, expected some", strange)
    fails("vectors: got no word of the training part of toy", vocabulary={"x"})
    spoilt = matrix.copy()
    spoilt[2, 1] = np.nan
    fails("vectors: got NaN or infinity for 'w2', expected finite numbers; drop", (words, spoilt))
    fails("vectors: got zeros for all words of the text, expected other", (words, 0 * matrix))
    fails("rate: got 0.0, expected a number above 0; try 1e-2", rate=0.0)
    fails("rate: got inf, with which the loss became nan, expected one that", rate=np.inf)
    fails("units: got 0, expected at least 1", units=0)
    fails("epochs: got 0, expected at least 1", epochs=0)
    if not hooked:
        fails("batch: got a float", batch=1.5, error=TypeError)
