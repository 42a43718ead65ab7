"""Tasks on sentences against plain loops and scikit-learn."""

import functools

import numpy as np
import pytest
import scipy.stats
from helpers import DTYPE, EPS

from jaxmeta.evaluate import sentences as module
from jaxmeta.evaluate.readers import LabelledSentences, SentencePairs
from jaxmeta.evaluate.scores import correlation_interval, proportion_interval
from jaxmeta.evaluate.sentences import centroids, entailment, relatedness, sentiment, sts
from jaxmeta.files.vectors import Vectors

WORDS = tuple(f"w{i}" for i in range(60))


@pytest.fixture
def vectors(rng):
    return Vectors(WORDS, rng.normal(size=(60, 6)).astype(DTYPE) + DTYPE.type(0.5))


def some_sentences(rng, count, longest=6):
    """Words of WORDS and, now and then, one without a vector."""
    vocabulary = (*WORDS, "zzz", "zzzz")
    return tuple(
        tuple(vocabulary[i] for i in rng.integers(len(vocabulary), size=rng.integers(1, longest)))
        for _ in range(count)
    )


def plain_centroids(vectors, sentences):
    found = np.zeros((len(sentences), vectors.matrix.shape[1]))
    for i, tokens in enumerate(sentences):
        rows = [vectors.words.index(token) for token in tokens if token in vectors.words]
        if rows:
            found[i] = vectors.matrix[rows].astype(np.float64).mean(axis=0)
    return found


def unit_variance(x):
    return x / np.sqrt(x.var(axis=0).sum())


# Centroids


@pytest.mark.one_leg
def test_centroids_are_means_over_known_tokens(rng, vectors):
    sentences = (*some_sentences(rng, 40), (), ("zzz",), ("w1", "w1", "w2"))
    matrix, known = centroids(vectors, sentences)
    assert matrix.dtype == DTYPE
    np.testing.assert_allclose(matrix, plain_centroids(vectors, sentences), atol=16 * EPS)
    expected = [any(token in WORDS for token in tokens) for tokens in sentences]
    np.testing.assert_array_equal(known, expected)
    assert not known[40:42].any()
    np.testing.assert_array_equal(matrix[40:42], 0)
    same = (2 * vectors.matrix[1] + vectors.matrix[2]) / 3
    np.testing.assert_allclose(matrix[-1], same, atol=16 * EPS)


@pytest.mark.one_leg
def test_the_order_of_tokens_does_not_matter(rng, vectors):
    tokens = some_sentences(rng, 1, longest=30)[0] * 2
    matrix, _ = centroids(vectors, [tokens, tokens[::-1], tuple(rng.permutation(tokens))])
    np.testing.assert_array_equal(matrix, matrix[[0, 0, 0]])


@pytest.mark.one_leg
def test_centroids_of_cased_words_and_a_vocabulary():
    vectors = Vectors(("us", "US", "paris"), np.array([[1.0], [2.0], [4.0]]))
    sentences = [("US",), ("Us",), ("Paris", "us")]
    np.testing.assert_array_equal(centroids(vectors, sentences)[0][:, 0], [2, 1, 2.5])
    matrix, known = centroids(vectors, sentences, vocabulary={"us", "other"})
    np.testing.assert_array_equal(matrix[:, 0], [1, 1, 1])
    matrix, known = centroids(vectors, sentences, vocabulary={"US"})
    np.testing.assert_array_equal(known, [True, False, False])


@pytest.mark.one_leg
def test_the_dtype_of_centroids():
    for given in (np.float16, np.float32, np.float64):
        matrix, _ = centroids({"a": np.array([1, 2], given)}, [("a",)])
        assert matrix.dtype == (np.float64 if given == np.float64 else np.float32)


@pytest.mark.one_leg
def test_vectors_with_nan():
    vectors = {"a": np.array([np.nan]), "b": np.array([1.0])}
    assert centroids(vectors, [("b",)])[0] == 1
    with pytest.raises(ValueError, match="vectors: got NaN or infinity, expected finite numbers"):
        centroids(vectors, [("a", "b")])


# Sentiment


@pytest.mark.one_leg
@pytest.mark.parametrize("folds", [2, 5])
def test_nested_folds(rng, folds):
    labels = rng.permutation(np.repeat([0, 1, 2], [50, 31, 7]))
    outer, masks = module._nested_folds(labels, folds, np.random.default_rng(3))
    for label in range(3):
        sizes = np.bincount(outer[labels == label], minlength=folds)
        assert np.ptp(sizes) <= 1
    assert np.ptp(np.bincount(outer)) <= 1
    for fold in range(folds):
        rest = outer != fold
        np.testing.assert_array_equal(masks[fold, -1], rest)
        assert not masks[fold][:, ~rest].any()  # a test item is in no mask of its own fold
        held = rest & ~masks[fold, :-1]
        np.testing.assert_array_equal(held.sum(axis=0), rest)  # each is held out once
        for label in range(3):
            assert np.ptp((held & (labels == label)).sum(axis=1)) <= 1


def opinions(rng, vectors, count=200, classes=2):
    """Sentences whose class their centroids tell, with noise; the last has no known word."""
    sentences = (*some_sentences(rng, count - 1), ("zzz",))
    scores = plain_centroids(vectors, sentences) @ rng.normal(size=(6, classes))
    scores += 0.5 * rng.normal(size=scores.shape)
    labels = np.argmax(scores - scores.mean(axis=0), axis=1)
    return LabelledSentences("opinions", sentences, labels)


@pytest.mark.one_leg
@pytest.mark.parametrize("classes", [2, 3])
def test_sentiment_is_nested_cross_validation(rng, vectors, classes):
    linear_model = pytest.importorskip("sklearn.linear_model", exc_type=ImportError)
    data = opinions(rng, vectors, classes=classes)
    x = unit_variance(plain_centroids(vectors, data.sentences))

    def right(train, held, strength):
        model = linear_model.LogisticRegression(C=1 / (strength * train.sum()), max_iter=10_000)
        return model.fit(x[train], data.labels[train]).predict(x[held]) == data.labels[held]

    _, masks = module._nested_folds(data.labels, 3, np.random.default_rng(5))
    expected = np.zeros(200, bool)
    for fold in range(3):
        rest = masks[fold, -1]
        hits = [
            sum(right(mask, rest & ~mask, strength).sum() for mask in masks[fold, :-1])
            for strength in module.STRENGTHS
        ]
        best = max(range(4), key=lambda i: (hits[i], i))
        expected[~rest] = right(rest, ~rest, module.STRENGTHS[best])
    score = sentiment(vectors, data, folds=3, seed=5)
    assert np.sum(score.items != expected) <= 2  # some are all but undecided
    assert score.value == score.items.mean() > 1.3 / classes
    assert (score.task, score.metric, score.gold) == ("opinions", "accuracy", None)
    assert (score.low, score.high) == proportion_interval(int(score.items.sum()), 200)
    unknown = sum(not any(token in WORDS for token in tokens) for tokens in data.sentences)
    assert (score.covered, score.total) == (200 - unknown, 200)
    assert unknown > 0


@pytest.mark.one_leg
def test_sentiment_neither_size_nor_basis_matters(rng, vectors):
    data = opinions(rng, vectors)
    score = sentiment(vectors, data, seed=0)
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0].astype(DTYPE)
    for factor in (1e-12, 1e12):
        changed = Vectors(WORDS, vectors.matrix @ turn * DTYPE.type(factor))
        other = sentiment(changed, data, seed=0)
        assert np.sum(other.items != score.items) <= 2
    seen = []
    again = sentiment(vectors, data, seed=0, progress=lambda *report: seen.append(report))
    stages, fractions = zip(*seen, strict=True)
    assert set(stages) == {"opinions"}
    assert [0, *fractions[1:-1], 1] == sorted(fractions)
    np.testing.assert_array_equal(score.items, again.items)
    assert (sentiment(vectors, data, seed=1).items != score.items).any()


@pytest.mark.one_leg
def test_sentiment_does_not_look_at_what_it_predicts(rng, vectors):
    """Labels that nothing tells are guessed no better than by chance, and often worse."""
    data = opinions(rng, vectors, count=300)
    data = data._replace(labels=rng.permutation(np.arange(300) % 2))
    assert sentiment(vectors, data, seed=0).value < 0.57


@pytest.mark.one_leg
def test_sentiment_of_one_dimension_that_says_nothing(rng):
    """Every sentence has the same vector, so the more frequent class is all there is to say."""
    data = LabelledSentences("equal", (("a",),) * 40, rng.permutation(np.arange(40) % 4 > 0) * 1)
    score = sentiment({"a": np.array([2.0], DTYPE)}, data, seed=0)
    np.testing.assert_array_equal(score.items, data.labels == 1)


@pytest.mark.one_leg
def test_unfinished_fits_are_reported(rng, vectors, monkeypatch):
    few = functools.partial(module.logistic_regression, steps=1)
    monkeypatch.setattr(module, "logistic_regression", few)
    with pytest.warns(RuntimeWarning, match="opinions: got a gradient of .* after 1 steps"):
        sentiment(vectors, opinions(rng, vectors), seed=0)
    with pytest.warns(RuntimeWarning, match="pairs-E: got a gradient of .* after 1 steps"):
        entailment(vectors, judgements(rng, vectors))


# Pairs


def judgements(rng, vectors, scale=(1, 5), count=300):
    """Pairs with scores by the cosine and noise, classes by the score, and the three parts."""
    first, second = some_sentences(rng, count), some_sentences(rng, count)
    second = tuple(f if i % 3 == 0 else s for i, (f, s) in enumerate(zip(first, second)))  # noqa: B905
    cosines = plain_cosines(vectors, first, second)
    noisy = cosines + 0.1 * rng.normal(size=count)
    ranks = scipy.stats.rankdata(noisy) - 1
    scores = np.round(scale[0] + (scale[1] - scale[0]) * ranks / (count - 1), 2)
    parts = tuple(rng.permutation(np.repeat(["train", "dev", "test"], [150, 50, 100])).tolist())
    labels = np.digitize(ranks, [count / 3, 2 * count / 3])
    return SentencePairs("pairs", first, second, scores, parts, labels)


def plain_cosines(vectors, first, second):
    found = []
    for u, v in zip(plain_centroids(vectors, first), plain_centroids(vectors, second), strict=True):
        size = np.sqrt((u @ u) * (v @ v))  # equal sentences have cosine 1 exactly
        found.append(u @ v / size if size else 0.0)
    return np.array(found)


def plain_features(vectors, data):
    u, v = (plain_centroids(vectors, side) for side in (data.first, data.second))
    size = np.sqrt((np.mean(u**2) + np.mean(v**2)) / 2)
    return unit_variance(np.concatenate([np.abs(u - v) / size, u * v / size**2], axis=1))


def members(data):
    return [np.array(data.parts) == part for part in ("train", "dev", "test")]


@pytest.mark.one_leg
def test_entailment_is_softmax_regression(rng, vectors):
    linear_model = pytest.importorskip("sklearn.linear_model", exc_type=ImportError)
    data = judgements(rng, vectors)
    x, (train, dev, test) = plain_features(vectors, data), members(data)
    models = [
        linear_model.LogisticRegression(C=1 / (150 * strength), max_iter=100_000).fit(
            x[train], data.labels[train]
        )
        for strength in module.STRENGTHS
    ]
    hits = [np.sum(model.predict(x[dev]) == data.labels[dev]) for model in models]
    best = max(range(4), key=lambda i: (hits[i], i))
    expected = models[best].predict(x[test]) == data.labels[test]
    score = entailment(vectors, data)
    assert np.sum(score.items != expected) <= 2
    assert score.value == score.items.mean() > 0.5
    assert (score.task, score.metric, score.total) == ("pairs-E", "accuracy", 100)
    known = [
        all(any(token in WORDS for token in side[i]) for side in (data.first, data.second))
        for i in np.flatnonzero(test)
    ]
    assert score.covered == sum(known) < 100


@pytest.mark.one_leg
@pytest.mark.parametrize("scale", [(1, 5), (0, 5), (0, 1)])
def test_relatedness_is_softmax_regression_on_two_classes_in_part(rng, vectors, scale):
    """A row that is two classes in part is two rows of one class each, with these weights."""
    linear_model = pytest.importorskip("sklearn.linear_model", exc_type=ImportError)
    data = judgements(rng, vectors, scale)
    x, (train, dev, test) = plain_features(vectors, data), members(data)
    below = np.floor(data.scores)
    rows = np.concatenate([x[train], x[train]])
    classes = np.concatenate([below[train], np.minimum(below[train] + 1, scale[1])])
    upper = (data.scores - below)[train]
    guesses = []
    for strength in module.STRENGTHS:
        model = linear_model.LogisticRegression(C=1 / (150 * strength), max_iter=100_000)
        model.fit(rows, classes, sample_weight=np.concatenate([1 - upper, upper]))
        guesses.append(model.predict_proba(x) @ model.classes_)
    dev_scores = [scipy.stats.pearsonr(guess[dev], data.scores[dev])[0] for guess in guesses]
    guess = guesses[int(np.argmax(dev_scores))][test]
    unlabelled = data._replace(labels=None)
    pearson, spearman = relatedness(vectors, unlabelled)
    np.testing.assert_allclose(pearson.items, guess, atol=0.02 * (scale[1] - scale[0]))
    np.testing.assert_array_equal(pearson.gold, data.scores[test])
    both = (pearson, scipy.stats.pearsonr), (spearman, scipy.stats.spearmanr)
    for score, function in both:
        assert score.value == pytest.approx(function(score.items, score.gold).statistic)
        assert (score.covered, score.total, score.task) == (100, 100, "pairs supervised")
    assert (pearson.metric, spearman.metric) == ("pearson", "spearman")
    assert pearson.value > 0.5
    assert relatedness(vectors, data)[0].task == "pairs-R"


@pytest.mark.one_leg
def test_the_size_of_vectors_does_not_matter_to_pairs(rng, vectors):
    data = judgements(rng, vectors)
    scores = entailment(vectors, data), *relatedness(vectors, data), *sts(vectors, data)
    for factor in (1e-12, 1e12):
        scaled = Vectors(WORDS, vectors.matrix * DTYPE.type(factor))
        others = entailment(scaled, data), *relatedness(scaled, data), *sts(scaled, data)
        for score, other in zip(scores, others, strict=True):
            assert other.value == pytest.approx(score.value, abs=0.011)


@pytest.mark.one_leg
def test_sts_is_the_cosine_in_each_subset(rng, vectors):
    data = judgements(rng, vectors, (0, 5))
    names = np.repeat(["news", "forum", "images"], [50, 150, 100])
    data = data._replace(parts=tuple(names.tolist()), first=(("zzz",), *data.first[1:]))
    cosines = plain_cosines(vectors, data.first, data.second)
    assert cosines[0] == 0
    found = sts(vectors, data)
    tasks = ["pairs", "pairs news", "pairs forum", "pairs images"]
    assert [score.task for score in found[::2]] == tasks
    functions = {"pearson": scipy.stats.pearsonr, "spearman": scipy.stats.spearmanr}
    for start, (metric, function) in enumerate(functions.items()):
        whole, *subsets = found[start::2]
        values = [
            function(cosines[names == name], data.scores[names == name]).statistic
            for name in ("news", "forum", "images")
        ]
        np.testing.assert_allclose([score.value for score in subsets], values, atol=1e-5)
        mean = (50 * values[0] + 150 * values[1] + 100 * values[2]) / 300
        assert whole.value == pytest.approx(mean, abs=1e-5)
        assert (whole.low, whole.high) == correlation_interval(whole.value, 300)
        assert (whole.metric, whole.covered, whole.total) == (metric, 300, 300)
        np.testing.assert_allclose(whole.items, cosines, atol=64 * EPS)
        np.testing.assert_array_equal(whole.gold, data.scores)
        assert [score.total for score in subsets] == [50, 150, 100]


@pytest.mark.one_leg
def test_sts_uses_the_test_part_alone(rng, vectors):
    data = judgements(rng, vectors, (0, 5))
    *_, test = members(data)
    pearson, spearman = sts(vectors, data)
    cosines = plain_cosines(vectors, data.first, data.second)[test]
    np.testing.assert_allclose(pearson.items, cosines, atol=64 * EPS)
    assert (pearson.task, pearson.total, spearman.total) == ("pairs", 100, 100)
    one = data._replace(parts=("all",) * 300)
    assert len(sts(vectors, one)) == 2
    assert sts(vectors, one, vocabulary=WORDS[:30])[0].value != sts(vectors, one)[0].value


# Errors


@pytest.mark.one_leg
@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        (lambda x: x, {"vocabulary": {"other"}}, "opinions: got no sentence with a known word"),
        (lambda x: 0 * x, {}, "opinions: got 1 class, expected two or more; there is nothing"),
        (
            lambda x: x - 1,
            {},
            "opinions: got labels of dtype int64 from -1, expected integers",
        ),
        (
            lambda x: x / 2,
            {},
            "opinions: got labels of dtype float64 from 0.0, expected",
        ),
        (lambda x: x, {"folds": 1}, "folds: got 1, expected 2 to 200; opinions has 200"),
    ],
)
def test_errors_of_sentiment(rng, vectors, change, settings, message):
    data = opinions(rng, vectors)
    with pytest.raises(ValueError, match=message):
        sentiment(vectors, data._replace(labels=change(data.labels)), seed=0, **settings)


UNKNOWN = {"first": (("zzz",),) * 300}
EQUAL = {"first": (("w1",),) * 300, "second": (("w1",),) * 300}


@pytest.mark.one_leg
@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        (entailment, {"labels": None}, "pairs-E: got pairs without classes"),
        (entailment, {"parts": ("train",) * 300}, 'pairs-E: got no pair in the part "dev"'),
        (relatedness, {"parts": ("all",) * 300}, 'pairs-R: got no pair in the part "train"'),
        (entailment, UNKNOWN, "pairs-E: got no sentence with a known word, .*; use vectors"),
        (relatedness, UNKNOWN, "pairs-R: got no sentence with a known word"),
        (sts, UNKNOWN, "pairs: got no sentence with a known word"),
        (
            relatedness,
            {"scores": np.full(300, 3.0)},
            "pairs-R: got training scores that are all 3.0",
        ),
        (sts, {"scores": np.zeros(300)}, "pairs: got gold scores that are all 0.0"),
        (sts, {"scores": np.full(300, np.nan)}, "pairs: got scores with NaN or infinity"),
        (sts, EQUAL, "pairs: got predictions that are all 1.0"),
    ],
)
def test_errors_of_pairs(rng, vectors, task, changes, message):
    with pytest.raises(ValueError, match=message):
        task(vectors, judgements(rng, vectors)._replace(**changes))
