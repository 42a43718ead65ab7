"""The generated corpus is what it says: by enumeration, and by draws within their errors."""

import itertools

import numpy as np
import pytest
from scipy import stats

from jaxmeta.text.synthetic import (
    LatentModel,
    expected_counts,
    latent_model,
    sample_tokens,
    write_corpus,
)

pytestmark = pytest.mark.one_leg

LEAST_PROBABILITY = 1e-4  # of a test with the right distribution; all seeds are fixed
HARMONIC = (1.0, 1 / 2, 1 / 3)


@pytest.fixture(scope="module")
def model():
    return latent_model(6, rank=2, strength=0.6, seed=1)


def window_counts(documents, n, window, weights=None):
    """Symmetric counts of each document, one pair of places after another."""
    weights = [1] * window if weights is None else weights
    counts = np.zeros((len(documents), n, n))
    index, length = np.arange(len(documents)), documents.shape[1]
    for i, j in itertools.combinations(range(length), 2):
        if j - i <= window:
            for a, b in ((i, j), (j, i)):
                counts[index, documents[:, a], documents[:, b]] += weights[j - i - 1]
    return counts


def paths(model, length):
    """All texts of a length, and their probabilities."""
    n = len(model.words)
    texts = np.array(list(itertools.product(range(n), repeat=length)))
    probabilities = model.frequencies[texts[:, 0]]
    for a, b in itertools.pairwise(texts.T):
        probabilities = probabilities * model.joint[a, b] / model.frequencies[a]
    return texts, probabilities


# The model.


@pytest.mark.parametrize(("n", "rank", "strength"), [(2, 1, 0.0), (2, 2, 3.0), (200, 7, 0.5)])
def test_joint(n, rank, strength):
    words, frequencies, joint = latent_model(n, rank=rank, strength=strength, seed=3)
    assert len(words) == n
    np.testing.assert_array_equal(joint, joint.T)
    assert (joint > 0).all()
    np.testing.assert_allclose(joint.sum(), 1, rtol=1e-13)
    np.testing.assert_array_equal(frequencies, joint.sum(axis=1))


def test_without_vectors_words_are_independent_and_zipfian():
    model = latent_model(50, rank=3, strength=0.0, seed=0)
    rates = 1 / (np.arange(1, 51) + 2.7)
    np.testing.assert_allclose(model.frequencies, rates / rates.sum(), rtol=1e-13)
    independent = np.outer(model.frequencies, model.frequencies)
    np.testing.assert_allclose(model.joint, independent, rtol=1e-13)


@pytest.mark.parametrize("rank", [1, 4])
def test_pmi_is_of_low_rank(rank):
    """Products of vectors and a term for each word; without these, the products alone."""
    n, strength = 300, 0.7
    _, frequencies, joint = latent_model(n, rank=rank, strength=strength, seed=5)
    pmi = np.log(joint / np.outer(frequencies, frequencies))
    values = np.linalg.svd(pmi, compute_uv=False)
    assert values[rank + 2] < 1e-12 * values[0] < values[rank + 1]
    centre = np.eye(n) - 1 / n
    products = centre @ pmi @ centre
    values = np.linalg.eigvalsh(products)[::-1]
    assert values[rank - 1] > 1
    assert np.abs(values[rank:]).max() < 1e-12 * values[0]
    # Their standard deviation is the strength, up to the error of n * rank random numbers.
    apart = products[~np.eye(n, dtype=bool)]
    assert abs(apart.std() / strength - 1) < 4 / np.sqrt(n * rank)
    assert abs(np.diag(products).mean() / (strength * np.sqrt(rank)) - 1) < 4 / np.sqrt(n * rank)


def test_words():
    words = latent_model(1000, rank=1, strength=0.1, seed=0).words
    assert len(set(words)) == 1000
    assert all(word.isalpha() and word.islower() and word.isascii() for word in words)
    assert words[:80] == latent_model(80, rank=2, strength=0.5, seed=7).words


def test_the_seed_decides(model):
    again = latent_model(6, rank=2, strength=0.6, seed=1)
    np.testing.assert_array_equal(model.joint, again.joint)
    other = latent_model(6, rank=2, strength=0.6, seed=2)
    assert not np.allclose(model.joint, other.joint)


# Expected counts.


@pytest.mark.parametrize("weights", [None, HARMONIC, np.array([0.0, 0.0, 1.0])])
def test_expected_counts_by_enumeration(weights):
    """All 81 texts of 4 words out of 3."""
    model = latent_model(3, rank=2, strength=1.0, seed=0)
    texts, probabilities = paths(model, 4)
    np.testing.assert_allclose(probabilities.sum(), 1, rtol=1e-13)
    by_hand = np.einsum("t,tab->ab", probabilities, window_counts(texts, 3, 3, weights))
    found = expected_counts(model, tokens=20, documents=5, window=3, weights=weights)
    np.testing.assert_allclose(found, 5 * by_hand, rtol=1e-12)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("weights", [None, HARMONIC])
def test_expected_counts_by_draws(model, weights):
    """The mean over documents, which are independent, within its standard error."""
    documents, length = 20_000, 7
    tokens = documents * length + 5  # five are left over
    text = sample_tokens(model, tokens=tokens, documents=documents, seed=0)
    counts = window_counts(text, 6, 3, weights)
    settings = {"tokens": tokens, "documents": documents, "window": 3, "weights": weights}
    expected = expected_counts(model, **settings) / documents
    errors = counts.std(axis=0) / np.sqrt(documents)
    assert (np.abs(counts.mean(axis=0) - expected) < 4.5 * errors).all()
    assert (errors < 0.03 * expected).all()  # small enough to tell a wrong count


def test_expected_counts_of_one_distance_have_the_pmi_of_neighbours(model):
    counts = expected_counts(model, tokens=1000, documents=10, window=1)
    np.testing.assert_allclose(counts / counts.sum(), model.joint, rtol=1e-13)


# Text.


def test_text(model):
    text = sample_tokens(model, tokens=1007, documents=50, seed=0)
    assert text.shape == (50, 20)
    assert text.dtype == np.int32
    assert text.flags.c_contiguous
    np.testing.assert_array_equal(text, sample_tokens(model, tokens=1007, documents=50, seed=0))
    assert (text != sample_tokens(model, tokens=1007, documents=50, seed=1)).any()


def test_text_has_the_frequencies_and_neighbours_of_the_model(model):
    """At the beginning and at the end, over documents, which are independent."""
    n, documents, length = 6, 50_000, 8
    text = sample_tokens(model, tokens=documents * length, documents=documents, seed=4)
    for place in (0, 3, length - 1):
        found = np.bincount(text[:, place], minlength=n)
        fit = stats.chisquare(found, documents * model.frequencies)
        assert fit.pvalue > LEAST_PROBABILITY
    for place in (0, length - 2):
        pairs = text[:, place] * n + text[:, place + 1]
        found = np.bincount(pairs, minlength=n * n)
        fit = stats.chisquare(found, documents * model.joint.ravel() / model.joint.sum())
        assert fit.pvalue > LEAST_PROBABILITY


def test_many_words():
    """Far along the table, where the numbers of its rows take up digits."""
    n, documents = 2000, 100_000
    model = latent_model(n, rank=3, strength=0.5, seed=0)
    text = sample_tokens(model, tokens=2 * documents, documents=documents, seed=0)
    first, second = text.T
    late = first >= n - 200
    assert late.sum() > 1000
    # Second words after a late first one, in about ten groups of about equal probability.
    expected = (model.joint / model.frequencies[:, None])[first[late]].sum(axis=0)
    groups = (9.99 * np.cumsum(expected) / expected.sum()).astype(int)
    fit = stats.chisquare(np.bincount(groups[second[late]]), np.bincount(groups, expected))
    assert fit.pvalue > LEAST_PROBABILITY


@pytest.mark.parametrize("number", [0.0, np.nextafter(1.0, 0.0)])
def test_the_ends_of_a_row(model, monkeypatch, number):
    """The largest number below 1 is rounded up when a row's number is added."""

    class Generator:
        def random(self, size):
            return np.full(size, number)

    assert 3 + np.nextafter(1.0, 0.0) == 4
    monkeypatch.setattr(np.random, "default_rng", lambda seed: Generator())  # noqa: ARG005
    text = sample_tokens(model, tokens=12, documents=3, seed=0)
    assert (text == (0 if number == 0 else 5)).all()


def test_words_of_probability_zero_are_not_drawn():
    joint = np.zeros((4, 4))
    joint[1:3, 1:3] = 0.25
    joint[[0, 0], [0, 3]] = joint[3, 0] = 1e-300  # so that each row adds up to something
    model = LatentModel(("a", "b", "c", "d"), joint.sum(axis=1), joint)
    text = sample_tokens(model, tokens=10_000, documents=100, seed=0)
    assert set(np.unique(text)) == {1, 2}


# Files.


def test_write_corpus(model, tmp_path):
    text = sample_tokens(model, tokens=120, documents=8, seed=0)
    path = tmp_path / "corpus.txt"
    write_corpus(path, model, text)
    numbers = {word: a for a, word in enumerate(model.words)}
    lines = path.read_bytes().decode("utf-8").split("\n")
    assert lines.pop() == ""
    np.testing.assert_array_equal([[numbers[w] for w in line.split(" ")] for line in lines], text)
    assert [p.name for p in tmp_path.iterdir()] == ["corpus.txt"]


@pytest.mark.parametrize("wrong", [-1, 6])
def test_a_text_of_another_model_leaves_the_file_alone(model, tmp_path, wrong):
    path = tmp_path / "corpus.txt"
    path.write_text("before")
    with pytest.raises(ValueError, match=r"text: got numbers from .* expected 0 to 5.*same model"):
        write_corpus(path, model, np.array([[0, 1], [2, wrong]]))
    assert path.read_text() == "before"


# Errors.


def make(n=5, rank=2, strength=0.5, seed=0):
    return latent_model(n, rank=rank, strength=strength, seed=seed)


def expect(tokens=20, documents=4, window=2, weights=None):
    settings = {"tokens": tokens, "documents": documents, "window": window, "weights": weights}
    return expected_counts(make(), **settings)


def draw(tokens=20, documents=4, seed=0):
    return sample_tokens(make(), tokens=tokens, documents=documents, seed=seed)


ERRORS = [
    ("n: got 1, expected at least 2", lambda: make(n=1)),
    ("n: got a float, expected an int", lambda: make(n=2.5)),
    ("rank: got 0, expected 1 to 5", lambda: make(rank=0)),
    ("rank: got 6, expected 1 to 5; the vocabulary has 5", lambda: make(rank=6)),
    ("strength: got a str", lambda: make(strength="much")),
    ("strength: got 500.0, .* a probability above 0", lambda: make(n=50, strength=500.0)),
    ("strength: got -0.5, expected a finite number", lambda: make(strength=-0.5)),
    ("strength: got nan, .* that is not negative", lambda: make(strength=np.nan)),
    ("strength: got inf, expected a finite number", lambda: make(strength=np.inf)),
    ("seed: got a NoneType, expected an int", lambda: make(seed=None)),
    ("seed: got a NoneType, expected an int", lambda: draw(seed=None)),
    ("window: got 0, expected at least 1", lambda: expect(window=0)),
    ("window: got 5, expected less than the 5 tokens of a doc", lambda: expect(window=5)),
    ("weights: got 1, expected 2; pass one for each distance", lambda: expect(weights=(1.0,))),
    (r"text: .* shape \(3,\), .*text\[None\]", lambda: write_corpus("x", make(), np.arange(3))),
    *(
        (message, lambda f=function, s=settings: f(**s))
        for function in (expect, draw)
        for message, settings in (
            ("tokens: got 0, expected at least 1", {"tokens": 0}),
            ("documents: got 0, expected 1 to 20", {"documents": 0}),
            ("documents: got 21, .*the text has 20", {"documents": 21}),
        )
    ),
]


@pytest.mark.parametrize(("message", "call"), ERRORS)
def test_bad_calls(message, call):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
