r"""Scores, how certain they are, and whether two of them differ.

A `Score` carries what an embedding says of every item, so that two embeddings can be compared on
the same items:

* `paired_bootstrap` draws items, for both embeddings the same, and looks how often the better one
  stays ahead. It is the one to trust.
* `fisher_test` and `outside_interval` are what the paper does, for correlations and for analogies.
  Both take the two scores for independent. Scores on the same items are not: they rise and fall
  together, and so real differences may go unseen.

Words of data sets are found by one rule, `lookup`: as they stand, else in lower case. Everything
here runs on the host, in NumPy.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, NoReturn, TypeAlias

import numpy as np
import scipy.special
import scipy.stats
from jaxtyping import Bool, Float, Int, Real

from jaxmeta import _checks

__all__ = [
    "Comparison",
    "Score",
    "accuracy_score",
    "correlation_interval",
    "correlation_score",
    "fisher_test",
    "index_words",
    "lookup",
    "outside_interval",
    "paired_bootstrap",
    "proportion_interval",
]

LEVEL = 0.95
CHUNK = 1 << 18  # items times draws at a time: what is made of them stays in the cache

_Counts: TypeAlias = Float[np.ndarray, "n draws"]
_Drawn: TypeAlias = Int[np.ndarray, " draws"]
_Centred: TypeAlias = Callable[[_Counts, _Drawn], np.ndarray]


class Score(NamedTuple):
    """How an embedding did in one task."""

    task: str
    """Such as "MEN", "Google", "MR", "STS14"."""
    metric: str
    """ "spearman", "pearson" or "accuracy"."""
    value: float
    """From -1 to 1, or from 0 to 1."""
    low: float
    high: float
    """The 95 % confidence interval."""
    covered: int
    """Items that could be scored."""
    total: int
    """Items of the data set."""
    items: np.ndarray
    """What the embedding says of each covered item: a prediction, or for accuracy whether it is
    right. For comparisons with others on the same items."""
    gold: np.ndarray | None = None
    """What people say of them; None for accuracy."""
    parts: np.ndarray | None = None
    """The subset of each item, if the value is the mean of those of subsets by their sizes."""


# Words


def index_words(words: Sequence[str], vocabulary: Collection[str] | None = None) -> dict[str, int]:
    """The row of each word, of those in `vocabulary` alone if it is given.

    >>> index_words(("the", "of", "and"), {"and", "or"})
    {'and': 2}
    """
    kept = None if vocabulary is None else frozenset(vocabulary)
    return {word: row for row, word in enumerate(words) if kept is None or word in kept}


def lookup(index: Mapping[str, int], word: str) -> int:
    """The row of `word` as it stands, else of it in lower case, else -1.

    One rule for all tasks: "Paris" finds itself among cased words, and "paris" among others.

    >>> [lookup({"us": 0, "US": 1, "paris": 2}, word) for word in ("US", "Us", "Paris", "Rome")]
    [1, 0, 2, -1]
    """
    row = index.get(word, -1)
    return index.get(word.lower(), -1) if row < 0 else row


# Scores and their intervals


def correlation_score(
    items: Real[np.ndarray, " n"],
    gold: Real[np.ndarray, " n"],
    *,
    task: str,
    total: int,
    metric: str = "spearman",
) -> Score:
    """Correlation of predictions with what people say, "spearman" or "pearson".

    Spearman's is that of ranks, where equal ones share their mean. Numbers that are all the same
    have no correlation: they are refused, and so are fewer than three items. Cost: O(n log n).

    >>> score = correlation_score(np.array([1, 2, 9, 4]), np.array([1, 2, 3, 4]), task="x", total=5)
    >>> print(f"{score.value:.2f} from {score.low:.2f} to {score.high:.2f}")
    0.80 from -0.70 to 1.00
    """
    if metric not in ("spearman", "pearson"):
        _fail("metric", repr(metric), '"spearman" or "pearson"', "pass one of them")
    if len(items) < 3:
        expected = f"3 or more of the {total}"
        remedy = "use vectors with more of its words, a larger vocabulary, or leave it out"
        _fail(task, f"{len(items)} covered items", expected, remedy)
    for name, numbers in (("predictions", items), ("gold scores", gold)):
        if not np.isfinite(numbers).all():
            _fail(task, f"{name} with NaN or infinity", "finite numbers", "drop such vectors")
        if (numbers == numbers[0]).all():
            got = f"{name} that are all {numbers[0]}"
            _fail(task, got, "different ones", "a correlation needs them: leave this data set out")
    function = scipy.stats.spearmanr if metric == "spearman" else scipy.stats.pearsonr
    value = float(np.clip(function(items, gold).statistic, -1, 1))
    low, high = correlation_interval(value, len(items))
    return Score(task, metric, value, low, high, len(items), total, items, gold)


def accuracy_score(right: Bool[np.ndarray, " n"], *, task: str, total: int) -> Score:
    """The share of items that are `right`.

    >>> accuracy_score(np.array([True, True, False, True]), task="x", total=5).value
    0.75
    """
    if not len(right):
        remedy = "use vectors with more of its words, or a larger vocabulary"
        _fail(task, "0 covered items", f"1 or more of the {total}", remedy)
    hits, n = int(right.sum()), len(right)
    return Score(task, "accuracy", hits / n, *proportion_interval(hits, n), n, total, right)


def correlation_interval(r: float, n: int) -> tuple[float, float]:
    r"""The 95 % interval of a correlation of n items, $\tanh(\tanh^{-1} r \pm 1.96/\sqrt{n-3})$.

    Three items or fewer say nothing: all from -1 to 1. At $|r| = 1$ the interval is its limit, $r$
    alone. For Spearman's it is an approximation, some 3 % too narrow. References: `fisher21`,
    `fieller57`.

    >>> print("{:.3f} {:.3f}".format(*correlation_interval(0.5, 103)))
    0.339 0.632
    """
    _checks.integer("n", n, least=0)
    if not -1 <= r <= 1:
        _fail("r", str(r), "a correlation, -1 to 1", "pass that of finite numbers")
    if n <= 3:
        return -1.0, 1.0
    if abs(r) == 1:
        return float(r), float(r)
    half = scipy.special.ndtri((1 + LEVEL) / 2) / math.sqrt(n - 3)
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


def proportion_interval(right: int, n: int) -> tuple[float, float]:
    r"""The exact 95 % interval of a proportion, by Clopper and Pearson.

    From $B^{-1}(.025;\, x, n - x + 1)$ to $B^{-1}(.975;\, x + 1, n - x)$, quantiles of beta
    distributions, for $x$ right of $n$. Reference: `clopper34`.

    >>> print("{:.3f} {:.3f}".format(*proportion_interval(5, 10)))
    0.187 0.813
    """
    _checks.integer("n", n, least=1)
    _checks.integer("right", right, least=0, most=n, of="n")
    low, high = scipy.stats.binomtest(right, n).proportion_ci(LEVEL, "exact")
    return float(low), float(high)


# Comparisons


def fisher_test(first: Score, second: Score) -> float:
    r"""Two-sided p of two correlations, as if of independent samples: the test of the paper.

    $$z = \frac{\tanh^{-1} r_1 - \tanh^{-1} r_2}{\sqrt{1/(n_1 - 3) + 1/(n_2 - 3)}}$$

    is normal if they do not differ. The paper calls $p < .01$ significant. References: `fisher21`,
    `bollegala22`.

    >>> x = np.arange(9.0)
    >>> first, second = (
    ...     correlation_score(y, x, task="x", total=9, metric="pearson") for y in (x**2, x % 4)
    ... )
    >>> print(f"{first.value:.2f} {second.value:.2f} {fisher_test(first, second):.4f}")
    0.96 0.15 0.0016
    """
    _same_items(first, second)
    if first.metric == "accuracy":
        _fail("metric", '"accuracy"', "a correlation", "see outside_interval or paired_bootstrap")
    if first.value == second.value or first.covered <= 3:
        return 1.0
    if 1 in (abs(first.value), abs(second.value)):
        return 0.0
    far = math.atanh(first.value) - math.atanh(second.value)
    return math.erfc(abs(far) * math.sqrt(first.covered - 3) / 2)


def outside_interval(best: Score, second: Score) -> bool:
    """Whether the second best accuracy is outside the interval of the best: the paper's rule.

    Reference: `bollegala22`.

    >>> best, second = (
    ...     accuracy_score(np.arange(1000) < hits, task="x", total=1000) for hits in (600, 560)
    ... )
    >>> outside_interval(best, second)
    True
    """
    _same_items(best, second)
    if best.metric != "accuracy":
        got = f'"{best.metric}"'
        _fail("metric", got, '"accuracy"', "see fisher_test or paired_bootstrap")
    if second.value > best.value:
        expected = f"at least that of the second, {second.value}"
        _fail("best", f"value {best.value}", expected, "swap the two")
    return second.value < best.low


class Comparison(NamedTuple):
    """How far one score is above another, on the same items."""

    difference: float
    """Of the first and the second."""
    low: float
    high: float
    """The 95 % interval of the difference."""
    p: float
    """Two-sided, that there is none: at least 2 / (draws + 1)."""


def paired_bootstrap(first: Score, second: Score, *, seed: int, draws: int = 10_000) -> Comparison:
    r"""Compare two embeddings on the same items, drawn with replacement `draws` times.

    A draw takes the items jointly for both, and computes both scores anew; for Spearman's from the
    ranks *within* the draw, equal ones sharing their mean. The interval has the .025 and .975
    quantiles of the differences, and
    $p = 2\,(1 + \min(\#\{d \le 0\}, \#\{d \ge 0\})) / (1 + \mathrm{draws})$, at most 1. Draws in
    which all predictions or all gold scores are the same have no correlation, and are left out.
    The mean over subsets is drawn subset by subset.

    Cost: O(n draws), as items are sorted once and a draw is how often it has each of them: ranks
    are then cumulative sums. For accuracy O(n + draws). References: `efron93`, `koehn04`.

    >>> rng = np.random.default_rng(0)
    >>> gold = rng.normal(size=200)
    >>> first, second = (
    ...     correlation_score(gold + noise * rng.normal(size=200), gold, task="x", total=200)
    ...     for noise in (1, 2)
    ... )
    >>> found = paired_bootstrap(first, second, seed=0, draws=1000)
    >>> print(f"{found.difference:.2f} from {found.low:.2f} to {found.high:.2f}, p = {found.p:.3f}")
    0.20 from 0.08 to 0.32, p = 0.004
    """
    _same_items(first, second)
    _checks.integer("draws", draws, least=1)
    rng = np.random.default_rng(seed)
    if first.gold is None:
        differences = _accuracy_differences(first.items, second.items, draws, rng)
    else:
        centre = _centred_ranks if first.metric == "spearman" else _centred_values
        differences = np.zeros(draws)
        for own in _subsets(first):
            parts = [centre(np.asarray(x)[own]) for x in (first.items, second.items, first.gold)]
            apart = _correlation_differences(parts, len(own), draws, rng)
            differences += len(own) / first.covered * apart
        # Numbers that are proportional have one correlation, but for rounding.
        differences = np.round(differences[np.isfinite(differences)], 12)
    if not len(differences):
        got = f"{draws} draws of equal numbers"
        _fail(first.task, got, "one with a correlation", "pass more draws, or more items")
    low, high = np.quantile(differences, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    rarer = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    p = min(1.0, 2 * (1 + rarer) / (1 + len(differences)))
    return Comparison(first.value - second.value, float(low), float(high), p)


def _accuracy_differences(
    first: np.ndarray, second: np.ndarray, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """A draw of items is one of how many of them only the first, or only the second, has right."""
    n = len(first)
    apart = np.asarray(first, np.int64) - np.asarray(second, np.int64)
    behind, _, ahead = rng.multinomial(n, np.bincount(apart + 1, minlength=3) / n, draws).T
    return (ahead - behind) / n


def _subsets(score: Score) -> list[np.ndarray]:
    """The items of each subset, or all of them."""
    if score.parts is None:
        return [np.arange(score.covered)]
    return [np.flatnonzero(score.parts == part) for part in dict.fromkeys(score.parts.tolist())]


def _correlation_differences(
    parts: Sequence[_Centred], n: int, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Of the first and the second with the gold scores, which are the third; NaN for none."""
    first, second, gold = parts
    chunks = []
    for counts, one in _resamples(n, draws, rng):
        x, y, truth = (part(counts, one) for part in (first, second, gold))
        chunks.append(_correlations(counts, x, truth) - _correlations(counts, y, truth))
    return np.concatenate(chunks)


def _resamples(n: int, draws: int, rng: np.random.Generator) -> Iterator[tuple[_Counts, _Drawn]]:
    """Chunks of draws: how often each has each item, and one item that each has."""
    step = max(1, CHUNK // n)
    for start in range(0, draws, step):
        width = min(step, draws - start)
        drawn = rng.integers(n, size=(width, n))
        place = drawn * width + np.arange(width)[:, None]
        counts = np.bincount(place.ravel(), minlength=n * width).reshape(n, width)
        yield counts.astype(np.float64), drawn[:, 0]


def _centred_ranks(x: np.ndarray) -> _Centred:
    """Twice the ranks of x within a draw, less their mean: whole numbers."""
    _, group = np.unique(x, return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))

    def ranks(counts: _Counts, _: _Drawn) -> np.ndarray:
        sizes = np.add.reduceat(counts[order], starts, axis=0)
        return (2 * np.cumsum(sizes, axis=0) - sizes - len(x))[group]

    return ranks


def _centred_values(x: np.ndarray) -> _Centred:
    """Numbers x less their mean in a draw: exactly 0 if they are all the same in it."""

    def values(counts: _Counts, one: _Drawn) -> np.ndarray:
        far = x[:, None] - x[one]
        return far - np.einsum("id,id->d", counts, far) / len(x)

    return values


def _correlations(counts: _Counts, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """That of each draw from centred numbers; NaN if some are all the same."""
    weighted = counts * x
    squares = np.einsum("id,id->d", weighted, x) * np.einsum("id,id,id->d", counts, y, y)
    with np.errstate(invalid="ignore"):
        return np.einsum("id,id->d", weighted, y) / np.sqrt(squares)


def _same_items(first: Score, second: Score) -> None:
    """Both scores are of one metric, on the same items of one data set."""
    for name in ("task", "metric", "covered", "total"):
        one, other = getattr(first, name), getattr(second, name)
        if one != other:
            remedy = "compare on the same items: pass vocabulary=common_words(...) for both"
            _fail("first and second", f"{name} {one!r} and {other!r}", "the same", remedy)
    for name, one, other in (
        ("gold scores", first.gold, second.gold),
        ("subsets", first.parts, second.parts),
    ):
        if (one is None) != (other is None) or not np.array_equal(
            np.asarray(one), np.asarray(other)
        ):
            remedy = "pass scores on the same items, in the same order"
            _fail("first and second", f"different {name}", "the same", remedy)


def _fail(name: str, got: str, expected: str, remedy: str) -> NoReturn:
    raise ValueError(f"{name}: got {got}, expected {expected}; {remedy}.")
