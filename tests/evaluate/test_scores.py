"""Intervals and tests against SciPy and plain loops, and what cannot be compared is refused."""

import time
from functools import partial

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings

from jaxmeta.evaluate import Questions, WordPairs, analogy, similarity
from jaxmeta.evaluate import scores as module
from jaxmeta.evaluate.scores import (
    Score,
    accuracy_score,
    correlation_interval,
    correlation_score,
    fisher_test,
    index_words,
    lookup,
    outside_interval,
    paired_bootstrap,
    proportion_interval,
)

pytestmark = pytest.mark.one_leg  # nothing here depends on the dtype of JAX


def correlation(items, gold, metric="spearman", task="x", total=None):
    items, gold = np.asarray(items, float), np.asarray(gold, float)
    return correlation_score(items, gold, task=task, total=total or len(items), metric=metric)


def accuracy(right, task="x", total=None):
    return accuracy_score(np.asarray(right, bool), task=task, total=total or len(right))


# Words


def test_lookup_prefers_the_word_as_it_stands():
    index = index_words(("us", "US", "paris", "Rome"))
    assert index == {"us": 0, "US": 1, "paris": 2, "Rome": 3}
    words = ("us", "US", "Us", "uS", "Paris", "PARIS", "Rome", "rome", "")
    assert [lookup(index, word) for word in words] == [0, 1, 0, 0, 2, 2, 3, -1, -1]


def test_vocabulary_decides_what_is_found():
    words = ("us", "US", "paris")
    assert index_words(words, ["paris", "us", "rome"]) == {"us": 0, "paris": 2}
    # So embeddings with and without the cased word find the same one.
    assert lookup(index_words(words, {"us"}), "US") == 0
    assert index_words(words, ()) == {}


# Intervals


@given(r=st.floats(-0.999, 0.999), n=st.integers(4, 5000))
def test_correlation_interval_is_scipy_s(r, n):
    # SciPy gives the interval of Pearson's: find data with just this correlation.
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=(2, n))
    x = x - x.mean()
    y = y - y.mean()
    y = y - x * (x @ y) / (x @ x)
    z = r * x / np.linalg.norm(x) + np.sqrt(1 - r**2) * y / np.linalg.norm(y)
    expected = scipy.stats.pearsonr(x, z).confidence_interval(0.95)
    np.testing.assert_allclose(correlation_interval(r, n), expected, atol=1e-8)


@pytest.mark.parametrize("r", [-1.0, -0.3, 0.0, 1.0])
def test_correlation_interval_at_its_limits(r):
    for n in range(4):
        assert correlation_interval(r, n) == (-1, 1)
    low, high = correlation_interval(r, 4)
    assert -1 <= low <= r <= high <= 1
    if abs(r) == 1:
        assert (low, high) == (r, r)


@pytest.mark.parametrize(
    ("right", "n"), [(0, 1), (1, 1), (0, 40), (40, 40), (7, 40), (9000, 19544)]
)
def test_proportion_interval_is_of_beta_quantiles(right, n):
    low, high = proportion_interval(right, n)
    expected_low = scipy.stats.beta.ppf(0.025, right, n - right + 1) if right else 0
    expected_high = scipy.stats.beta.ppf(0.975, right + 1, n - right) if right < n else 1
    np.testing.assert_allclose((low, high), (expected_low, expected_high), rtol=1e-9)


def test_scores_hold_what_they_are_made_of():
    items, gold = np.array([0.1, 0.5, 0.4, 0.9]), np.array([1.0, 2.0, 2.0, 7.0])
    found = correlation(items, gold, task="MEN", total=6)
    value = scipy.stats.spearmanr(items, gold).statistic
    assert found[:7] == ("MEN", "spearman", value, *correlation_interval(value, 4), 4, 6)
    np.testing.assert_array_equal(found.items, items)
    np.testing.assert_array_equal(found.gold, gold)
    found = correlation(items, gold, metric="pearson")
    assert found.metric == "pearson"
    assert found.value == pytest.approx(np.corrcoef(items, gold)[0, 1])
    found = accuracy([True, False, True], total=5)
    assert found[:7] == ("x", "accuracy", 2 / 3, *proportion_interval(2, 3), 3, 5)
    assert found.gold is None


def test_perfect_scores_are_within_bounds():
    x = np.array([0.1, 0.2, 0.3, 0.7])
    for metric in ("spearman", "pearson"):
        assert correlation(3 * x, x, metric).value <= 1
        assert correlation(-3 * x, x, metric).value >= -1


# Tests of the paper


@pytest.mark.parametrize("metric", ["spearman", "pearson"])
def test_fisher_test(rng, metric):
    gold = rng.normal(size=500)
    first, second = (correlation(gold + s * rng.normal(size=500), gold, metric) for s in (1, 1.4))
    z = (np.arctanh(first.value) - np.arctanh(second.value)) / np.sqrt(2 / 497)
    assert fisher_test(first, second) == pytest.approx(2 * scipy.stats.norm.sf(abs(z)), rel=1e-9)
    assert fisher_test(second, first) == fisher_test(first, second)
    assert fisher_test(first, first) == 1


def test_fisher_test_at_its_limits():
    x = np.arange(6.0)
    same, other = correlation(x, x), correlation([0, 1, 2, 3, 5, 4], x)
    assert same.value == 1
    assert fisher_test(same, same) == 1
    assert fisher_test(same, other) == 0
    three = correlation(x[:3], x[:3]), correlation([1, 0, 2], x[:3])
    assert fisher_test(*three) == 1


def test_outside_interval():
    best = accuracy(np.arange(1000) < 600)
    for hits in range(500, 601):
        second = accuracy(np.arange(1000) < hits)
        assert outside_interval(best, second) == (hits / 1000 < best.low)
    assert 500 < 1000 * best.low < 600
    assert not outside_interval(best, best)


# The bootstrap


def plain_differences(first, second, seed, draws):
    """Draw items and compute everything anew, one draw after the other."""
    function = {"spearman": scipy.stats.spearmanr, "pearson": scipy.stats.pearsonr}[first.metric]
    rng, n = np.random.default_rng(seed), first.covered
    for at in rng.integers(n, size=(draws, n)):
        x, y, gold = first.items[at], second.items[at], first.gold[at]
        if min(np.ptp(x), np.ptp(y), np.ptp(gold)) > 0:
            yield function(x, gold).statistic - function(y, gold).statistic


@settings(max_examples=25)
@given(
    n=st.sampled_from([4, 5, 9, 40]),
    levels=st.sampled_from([2, 3, 100]),
    seed=st.integers(0, 2**32 - 1),
    metric=st.sampled_from(["spearman", "pearson"]),
)
def test_bootstrap_is_that_of_a_plain_loop(n, levels, seed, metric):
    """With few levels there are many ties, and draws in which all numbers are the same."""
    rng = np.random.default_rng(seed)
    items = rng.integers(levels, size=(3, n)) * 0.1
    items[:, :2] = 0, 0.1  # not all the same
    first, second = (correlation(x, items[2], metric) for x in items[:2])
    expected = np.array(list(plain_differences(first, second, seed, 60)))
    found = paired_bootstrap(first, second, seed=seed, draws=60)
    assert found.difference == first.value - second.value
    low, high = np.quantile(expected, [0.025, 0.975])
    np.testing.assert_allclose((found.low, found.high), (low, high), atol=1e-9)
    ahead, behind = (expected > -1e-9).sum(), (expected < 1e-9).sum()
    assert found.p == pytest.approx(min(1, 2 * (1 + min(ahead, behind)) / (1 + len(expected))))


def test_chunks_do_not_matter(rng, monkeypatch):
    gold, x, y = rng.normal(size=(3, 50))
    pair = correlation(x, gold), correlation(y, gold)
    whole = paired_bootstrap(*pair, seed=3, draws=101)
    for size in (1, 700):
        monkeypatch.setattr(module, "CHUNK", size)
        np.testing.assert_allclose(paired_bootstrap(*pair, seed=3, draws=101), whole, atol=1e-12)


@pytest.mark.parametrize("metric", ["spearman", "pearson"])
def test_means_over_subsets_are_drawn_subset_by_subset(rng, metric):
    sizes = (40, 25)
    parts = np.repeat(["a", "b"], sizes)
    gold = rng.normal(size=65) + 5 * (parts == "b")  # which pooled correlations would see
    pair = [
        correlation_score(gold + rng.normal(size=65), gold, task="x", total=65, metric=metric)
        for _ in range(2)
    ]
    whole, single = [score._replace(parts=parts) for score in pair], []
    for part, n in zip("ab", sizes, strict=True):
        own = parts == part
        single.append(
            [
                correlation_score(s.items[own], gold[own], task="x", total=n, metric=metric)
                for s in pair
            ]
        )
    found = paired_bootstrap(*whole, seed=0, draws=4000)
    alone = [paired_bootstrap(*own, seed=1, draws=4000) for own in single]
    # Subsets are independent: variances of weighted differences add up.
    half = np.sqrt(sum((n / 65 * (c.high - c.low)) ** 2 for n, c in zip(sizes, alone, strict=True)))
    assert found.high - found.low == pytest.approx(half, rel=0.1)
    middle = sum(n / 65 * c.difference for n, c in zip(sizes, alone, strict=True))
    assert (found.high + found.low) / 2 == pytest.approx(middle, abs=half / 5)
    with pytest.raises(ValueError, match="different subsets"):
        paired_bootstrap(whole[0], pair[1], seed=0, draws=10)


def test_bootstrap_of_accuracies(rng):
    n = 400
    right = rng.uniform(size=(2, n)) < [[0.6], [0.5]]
    first, second = accuracy(right[0]), accuracy(right[1])
    found = paired_bootstrap(first, second, seed=0, draws=20_000)
    at = np.random.default_rng(1).integers(n, size=(20_000, n))
    differences = (right[0].astype(int) - right[1])[at].mean(axis=1)
    assert found.difference == pytest.approx(right[0].mean() - right[1].mean())
    # Two samples of one distribution, whose quantiles are in steps of 1 / n.
    np.testing.assert_allclose(
        (found.low, found.high), np.quantile(differences, [0.025, 0.975]), atol=2 / n
    )
    assert found.p == pytest.approx(2 * (differences <= 0).mean(), abs=0.02)


@pytest.mark.parametrize("metric", ["spearman", "pearson", "accuracy"])
def test_who_is_first_does_not_matter(rng, metric):
    if metric == "accuracy":
        first, second = (accuracy(rng.uniform(size=100) < p) for p in (0.6, 0.4))
    else:
        gold = rng.normal(size=100)
        first, second = (correlation(gold + s * rng.normal(size=100), gold, metric) for s in (1, 2))
    one = paired_bootstrap(first, second, seed=0, draws=999)
    other = paired_bootstrap(second, first, seed=0, draws=999)
    assert one == paired_bootstrap(first, second, seed=0, draws=999)
    assert one != paired_bootstrap(first, second, seed=1, draws=999)
    # Accuracies draw other items when they are swapped.
    loose = 0.05 if metric == "accuracy" else 1e-12
    np.testing.assert_allclose((other.low, other.high), (-one.high, -one.low), atol=loose)
    assert one.low < one.difference < one.high
    assert other.p == pytest.approx(one.p, abs=loose)


@pytest.mark.parametrize("metric", ["spearman", "pearson"])
def test_what_ranks_alike_does_not_differ(rng, metric):
    """Proportional predictions have one correlation, and it may differ by rounding alone."""
    gold, x = rng.normal(size=(2, 60))
    found = paired_bootstrap(
        correlation(x, gold, metric), correlation(0.3 * x, gold, metric), seed=0, draws=500
    )
    assert found.p == 1
    assert found.low == found.high == 0
    right = accuracy(x > 0)
    assert paired_bootstrap(right, right, seed=0, draws=500) == (0, 0, 0, 1)


def test_p_is_uniform_where_nothing_differs():
    """Two embeddings that are equally good: the test must not cry wolf."""
    found = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        gold = rng.normal(size=80)
        pair = (correlation(gold + rng.normal(size=80), gold) for _ in range(2))
        found.append(paired_bootstrap(*pair, seed=seed, draws=400).p)
    assert 2 <= np.sum(np.array(found) < 0.05) <= 22  # 10 are expected
    assert scipy.stats.kstest(found, "uniform").pvalue > 1e-3


def test_a_paired_test_sees_more_than_that_of_the_paper(rng):
    """Where two embeddings make mostly the same mistakes."""
    gold = rng.normal(size=1000)
    shared = gold + rng.normal(size=1000)
    first, second = (correlation(shared + s * rng.normal(size=1000), gold) for s in (0.1, 0.5))
    assert fisher_test(first, second) > 0.05
    assert paired_bootstrap(first, second, seed=0, draws=1000).p < 0.01


def test_the_default_takes_seconds(rng):
    gold = np.round(rng.normal(size=3000), 1)
    first, second = (correlation(gold + s * rng.normal(size=3000), gold) for s in (1, 1.1))
    start = time.process_time()
    paired_bootstrap(first, second, seed=0)
    assert time.process_time() - start < 15


# What is refused

GOLD = np.arange(5.0)
FIVE, RIGHT = correlation(GOLD**2, GOLD), accuracy([True, False, True])
OTHER = Score(*FIVE[:8], GOLD[::-1].copy())


@pytest.mark.parametrize("compare", [fisher_test, lambda x, y: paired_bootstrap(x, y, seed=0)])
@pytest.mark.parametrize(
    ("second", "message"),
    [
        (OTHER, "different gold scores, expected the same; pass scores on the same items"),
        (FIVE._replace(gold=None), "different gold scores"),
        (correlation(GOLD[:4], GOLD[:4], total=5), "covered 5 and 4, .* vocabulary=common_words"),
        (FIVE._replace(task="y"), "task 'x' and 'y'"),
        (FIVE._replace(metric="pearson"), "metric 'spearman' and 'pearson'"),
    ],
)
def test_different_items_are_refused(compare, second, message):
    with pytest.raises(ValueError, match=f"^first and second: got {message}"):
        compare(FIVE, second)


def test_as_many_items_of_other_words_are_refused(rng):
    """Two files that lack one pair each: not the same, though gold scores are."""
    pairs = WordPairs("x", tuple("abcde"), tuple("bcdea"), np.array([1.0, 1, 2, 3, 1]))
    words, questions = tuple("abcde"), Questions("x", tuple((x,) * 4 for x in "abcde"), ("s",) * 5)
    matrix = rng.normal(size=(5, 3))
    scores = [similarity((words, matrix), pairs, vocabulary=set(words) - {x}) for x in "be"]
    assert scores[0].covered == scores[1].covered == 3
    missing = [analogy((words, matrix), questions, vocabulary=set(words) - {x})[0] for x in "ab"]
    bootstrap = partial(paired_bootstrap, seed=0)
    for compare, two in (
        (fisher_test, scores),
        (bootstrap, scores),
        (bootstrap, missing),
        (outside_interval, missing),
    ):
        with pytest.raises(ValueError, match=r"but not of the same words.*common_words"):
            compare(*two)
        compare(two[0], two[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fisher_test(RIGHT, RIGHT), 'metric: got "accuracy", .* see outside_interval'),
        (lambda: outside_interval(FIVE, FIVE), 'metric: got "spearman", .* see fisher_test'),
        (lambda: outside_interval(RIGHT, accuracy([True] * 3)), "best: got value 0.6.* swap"),
        (lambda: outside_interval(RIGHT, accuracy([True] * 4)), "covered 3 and 4"),
        (lambda: paired_bootstrap(FIVE, FIVE, seed=0, draws=0), "draws: got 0"),
        (lambda: correlation(GOLD[:2], GOLD[:2], total=9), "x: got 2 covered items, .* of the 9"),
        (lambda: correlation(GOLD, np.ones(5)), "x: got gold scores that are all 1.0"),
        (lambda: correlation(np.zeros(5), GOLD), "x: got predictions that are all 0.0"),
        (lambda: correlation(GOLD * np.nan, GOLD), "x: got predictions with NaN"),
        (lambda: correlation(GOLD, GOLD, metric="kendall"), "metric: got 'kendall'"),
        (lambda: accuracy(np.ones(0), total=7), "x: got 0 covered items, .* of the 7"),
        (lambda: correlation_interval(1.5, 10), "r: got 1.5"),
        (lambda: correlation_interval(float("nan"), 10), "r: got nan"),
        (lambda: proportion_interval(3, 2), "right: got 3, expected 0 to 2"),
        (lambda: proportion_interval(0, 0), "n: got 0"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_bootstrap_without_a_single_correlation_is_refused():
    first = correlation([0, 0, 1], [0, 0, 1])
    draws = (np.random.default_rng(seed).integers(3, size=3) for seed in range(100))
    seed = next(seed for seed, drawn in enumerate(draws) if drawn.max() < 2)
    with pytest.raises(ValueError, match="x: got 1 draws of equal numbers"):
        paired_bootstrap(first, first, seed=seed, draws=1)
