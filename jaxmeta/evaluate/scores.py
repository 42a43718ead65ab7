r"""Scores are made here, with how certain they are, and tested for whether two of them differ.

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
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.special
import scipy.stats
from jaxtyping import Bool, Float, Int, Real

from jaxmeta import _checks

__all__ = [
    "MORE_WORDS",
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
MORE_WORDS = "use vectors with more of its words, or a larger vocabulary"
CHUNK = 1 << 18  # items times draws at a time: what is made of them stays in the cache

_Counts: TypeAlias = Float[np.ndarray, "n draws"]
_Drawn: TypeAlias = Int[np.ndarray, " draws"]
_Centred: TypeAlias = Callable[[_Counts, _Drawn], np.ndarray]
"""Centred numbers of draws, from how often each has each item, and one item that each has."""


class Score(NamedTuple):
    """A score says how an embedding did in one task."""

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
    """What the embedding says of each covered item, for comparisons with others on the same items:
    a prediction, or for accuracy whether it is right."""
    gold: np.ndarray | None = None
    """What people say of them; None for accuracy."""
    parts: np.ndarray | None = None
    """The subset of each item, if the value is the mean of those of subsets by their sizes."""


# Words


def index_words(words: Sequence[str], vocabulary: Collection[str] | None = None) -> dict[str, int]:
    """Return the row of each word, only of those in `vocabulary` if it is given.

    >>> index_words(("the", "of", "and"), {"and", "or"})
    {'and': 2}
    """
    kept = None if vocabulary is None else frozenset(vocabulary)
    return {word: row for row, word in enumerate(words) if kept is None or word in kept}


def lookup(index: Mapping[str, int], word: str) -> int:
    """Return the row of `word` as it stands, else of it in lower case, else -1.

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
    """Score predictions by their correlation with what people say, "spearman" or "pearson".

    Spearman's correlation is that of ranks, and equal numbers share the mean of theirs. Numbers
    that are all the same have none: they are refused, and so are fewer than three items.
    Cost: O(n log n).

    >>> score = correlation_score(np.array([1, 2, 9, 4]), np.array([1, 2, 3, 4]), task="x", total=5)
    >>> print(f"{score.value:.2f} from {score.low:.2f} to {score.high:.2f}")
    0.80 from -0.70 to 1.00
    """
    _checks.one_of("metric", metric, ("spearman", "pearson"))
    if len(items) < 3:
        do = f"{MORE_WORDS}, or leave it out"
        _checks.fail(task, f"{len(items)} covered items", f"3 or more of the {total}", do)
    for name, numbers in (("predictions", items), ("gold scores", gold)):
        if not np.isfinite(numbers).all():
            got = f"{name} with NaN or infinity"
            _checks.fail(task, got, "finite numbers", "drop such vectors")
        if (numbers == numbers[0]).all():
            got = f"{name} that are all {numbers[0]}"
            do = "a correlation needs them: leave this data set out"
            _checks.fail(task, got, "different ones", do)
    function = scipy.stats.spearmanr if metric == "spearman" else scipy.stats.pearsonr
    value = float(np.clip(function(items, gold).statistic, -1, 1))
    low, high = correlation_interval(value, len(items))
    return Score(task, metric, value, low, high, len(items), total, items, gold)


def accuracy_score(right: Bool[np.ndarray, " n"], *, task: str, total: int) -> Score:
    """Score an embedding by the share of items that it has right.

    >>> accuracy_score(np.array([True, True, False, True]), task="x", total=5).value
    0.75
    """
    if not len(right):
        _checks.fail(task, "0 covered items", f"1 or more of the {total}", MORE_WORDS)
    hits, n = int(right.sum()), len(right)
    return Score(task, "accuracy", hits / n, *proportion_interval(hits, n), n, total, right)


def correlation_interval(r: float, n: int) -> tuple[float, float]:
    r"""The 95 % interval of a correlation of n items is $\tanh(\tanh^{-1}r \pm 1.96/\sqrt{n-3})$.

    It is from -1 to 1 for three items or fewer, which say nothing, and $r$ alone, its limit, for
    $|r| = 1$. For Spearman's it is an approximation, some 3 % too narrow. References: `fisher21`,
    `fieller57`.

    >>> print("{:.3f} {:.3f}".format(*correlation_interval(0.5, 103)))
    0.339 0.632
    """
    _checks.integer("n", n, least=0)
    if not -1 <= r <= 1:
        _checks.fail("r", str(r), "a correlation, -1 to 1", "pass that of finite numbers")
    if n <= 3:
        return -1.0, 1.0
    if abs(r) == 1:
        return float(r), float(r)
    half = scipy.special.ndtri((1 + LEVEL) / 2) / math.sqrt(n - 3)
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


def proportion_interval(right: int, n: int) -> tuple[float, float]:
    r"""Return the exact 95 % interval of a proportion, by Clopper and Pearson.

    For $x$ right of $n$ it goes from $B^{-1}(.025;\, x, n - x + 1)$ to
    $B^{-1}(.975;\, x + 1, n - x)$, quantiles of beta distributions. Reference: `clopper34`.

    >>> print("{:.3f} {:.3f}".format(*proportion_interval(5, 10)))
    0.187 0.813
    """
    _checks.integer("n", n, least=1)
    _checks.integer("right", right, least=0, most=n, of="n")
    low, high = scipy.stats.binomtest(right, n).proportion_ci(LEVEL, "exact")
    return float(low), float(high)


# Comparisons


def fisher_test(first: Score, second: Score) -> float:
    r"""Return the two-sided p of two correlations as if of independent samples, as the paper does.

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
        do = "see outside_interval or paired_bootstrap"
        _checks.fail("metric", '"accuracy"', "a correlation", do)
    if first.value == second.value or first.covered <= 3:
        return 1.0
    if 1 in (abs(first.value), abs(second.value)):
        return 0.0
    far = math.atanh(first.value) - math.atanh(second.value)
    return math.erfc(abs(far) * math.sqrt(first.covered - 3) / 2)


def outside_interval(best: Score, second: Score) -> bool:
    """Tell whether the second best accuracy is outside the interval of the best.

    This is the paper's rule. Reference: `bollegala22`.

    >>> best, second = (
    ...     accuracy_score(np.arange(1000) < hits, task="x", total=1000) for hits in (600, 560)
    ... )
    >>> outside_interval(best, second)
    True
    """
    _same_items(best, second)
    if best.metric != "accuracy":
        do = "see fisher_test or paired_bootstrap"
        _checks.fail("metric", f'"{best.metric}"', '"accuracy"', do)
    if second.value > best.value:
        expected = f"at least that of the second, {second.value}"
        _checks.fail("best", f"value {best.value}", expected, "swap the two")
    return second.value < best.low


class Comparison(NamedTuple):
    """A comparison says how far one score is above another, on the same items."""

    difference: float
    """The first score less the second."""
    low: float
    high: float
    """The 95 % interval of the difference."""
    p: float
    """The two-sided p of no difference: at least 2 / (draws + 1)."""


def paired_bootstrap(first: Score, second: Score, *, seed: int, draws: int = 10_000) -> Comparison:
    r"""Compare two embeddings on the same items, drawn with replacement `draws` times.

    A draw takes the items jointly for both, and computes both scores anew; Spearman's from the
    ranks *within* the draw, where equal numbers share theirs. The interval ends at the .025 and
    .975 quantiles of the differences, and
    $p = 2\,(1 + \min(\#\{d \le 0\}, \#\{d \ge 0\})) / (1 + \mathrm{draws})$, at most 1. Draws in
    which all predictions or all gold scores are the same have no correlation, and are left out.
    A mean over subsets is drawn subset by subset.

    Cost: O(n draws), because items are sorted once and the ranks of a draw are cumulative sums of
    how often it has each item. For accuracy O(n + draws). References: `efron93`, `koehn04`.

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
        subset = np.zeros(first.covered) if first.parts is None else first.parts
        for part in dict.fromkeys(subset.tolist()):
            own = np.flatnonzero(subset == part)
            parts = [centre(np.asarray(x)[own]) for x in (first.items, second.items, first.gold)]
            apart = _correlation_differences(parts, len(own), draws, rng)
            differences += len(own) / first.covered * apart
        # Numbers that are proportional have one correlation, but for rounding.
        differences = np.round(differences[np.isfinite(differences)], 12)
    if not len(differences):
        got = f"{draws} draws of equal numbers"
        _checks.fail(first.task, got, "one with a correlation", "pass more draws, or more items")
    low, high = np.quantile(differences, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    rarer = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    p = min(1.0, 2 * (1 + rarer) / (1 + len(differences)))
    return Comparison(first.value - second.value, float(low), float(high), p)


def _accuracy_differences(
    first: np.ndarray, second: np.ndarray, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw items `draws` times, and subtract the second accuracy from the first each time.

    All that matters is how many items the first alone, or the second alone, has right in a draw,
    and these numbers are multinomial.
    """
    n = len(first)
    apart = np.asarray(first, np.int64) - np.asarray(second, np.int64)
    behind, _, ahead = rng.multinomial(n, np.bincount(apart + 1, minlength=3) / n, draws).T
    return (ahead - behind) / n


def _correlation_differences(
    parts: Sequence[_Centred], n: int, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw n items `draws` times, and subtract the second correlation from the first each time.

    `parts` are the first predictions, the second, and the gold scores. A draw without a correlation
    gives NaN.
    """
    step = max(1, CHUNK // n)
    chunks = []
    for start in range(0, draws, step):
        width = min(step, draws - start)
        drawn = rng.integers(n, size=(width, n))
        place = drawn * width + np.arange(width)[:, None]
        counts = np.bincount(place.ravel(), minlength=n * width).reshape(n, width).astype(float)
        x, y, gold = (part(counts, drawn[:, 0]) for part in parts)
        chunks.append(_correlations(counts, x, gold) - _correlations(counts, y, gold))
    return np.concatenate(chunks)


def _centred_ranks(x: np.ndarray) -> _Centred:
    """Make a function for twice the ranks of x in draws, less their mean: whole numbers."""
    _, group = np.unique(x, return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))

    def ranks(counts: _Counts, _: _Drawn) -> np.ndarray:
        sizes = np.add.reduceat(counts[order], starts, axis=0)
        return (2 * np.cumsum(sizes, axis=0) - sizes - len(x))[group]

    return ranks


def _centred_values(x: np.ndarray) -> _Centred:
    """Make a function for x less its mean in draws: exactly 0 if all of it is the same there."""

    def values(counts: _Counts, one: _Drawn) -> np.ndarray:
        far = x[:, None] - x[one]
        return far - np.einsum("id,id->d", counts, far) / len(x)

    return values


def _correlations(counts: _Counts, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Correlate centred numbers in each draw: NaN where all of x or all of y are equal."""
    weighted = counts * x
    squares = np.einsum("id,id->d", weighted, x) * np.einsum("id,id,id->d", counts, y, y)
    with np.errstate(invalid="ignore"):
        return np.einsum("id,id->d", weighted, y) / np.sqrt(squares)


def _same_items(first: Score, second: Score) -> None:
    """Check that both scores are of one metric, on the same items of one data set."""
    both = "first and second"
    for name in ("task", "metric", "covered", "total"):
        one, other = getattr(first, name), getattr(second, name)
        if one != other:
            do = "compare on the same items: pass vocabulary=common_words(...) for both"
            _checks.fail(both, f"{name} {one!r} and {other!r}", "the same", do)
    for name in ("gold", "parts"):
        one, other = (np.asarray(getattr(score, name)) for score in (first, second))
        if not np.array_equal(one, other):  # None is equal to None alone
            got = f"different {'gold scores' if name == 'gold' else 'subsets'}"
            _checks.fail(both, got, "the same", "pass scores on the same items, in the same order")
