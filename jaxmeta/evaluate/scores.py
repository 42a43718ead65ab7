"""Scores are made here, with how certain they are, and tested for whether two of them differ.

The test to trust is `paired_bootstrap`. `fisher_test` and `outside_interval` are what the paper
does; both take scores for independent, and so may miss real differences on the same items.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.special
import scipy.stats
from jaxtyping import Bool, Float, Int, Real

from jaxmeta import _checks
from jaxmeta._brief import brief
from jaxmeta._checks import fail

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
"""What to do where vectors have too few words of a data set: the end of such errors."""
CHUNK = 1 << 18  # items times draws at a time: what is made of them stays in the cache

_Counts: TypeAlias = Float[np.ndarray, "n draws"]
_Drawn: TypeAlias = Int[np.ndarray, " draws"]
_Centred: TypeAlias = Callable[[_Counts, _Drawn], np.ndarray]
"""Centred numbers of draws, from how often each has each item, and one item that each has."""


class Score(NamedTuple):
    """A score says how an embedding did in one task."""

    task: str
    metric: str
    """ "spearman", "pearson" or "accuracy"."""
    value: float
    low: float
    high: float
    """The 95 % confidence interval."""
    covered: int
    """Items that could be scored."""
    total: int
    """Items of the data set."""
    items: np.ndarray
    """A prediction for each covered item, or for accuracy whether it is right."""
    gold: np.ndarray | None = None
    """What people say of them; None for accuracy."""
    parts: np.ndarray | None = None
    """The subset of each item, if the value is the mean of those of subsets by their sizes."""
    places: np.ndarray | None = None
    """The place of each covered item in the data set, where not all are."""

    def __repr__(self) -> str:
        return brief(self)


def index_words(words: Sequence[str], vocabulary: Collection[str] | None = None) -> dict[str, int]:
    """Return the row of each word, only of those in `vocabulary` if it is given."""
    kept = None if vocabulary is None else frozenset(vocabulary)
    return {word: row for row, word in enumerate(words) if kept is None or word in kept}


def lookup(index: Mapping[str, int], word: str) -> int:
    """Return the row of `word` as it stands, else of it in lower case, else -1."""
    row = index.get(word, -1)
    return index.get(word.lower(), -1) if row < 0 else row


def correlation_score(
    items: Real[np.ndarray, " n"],
    gold: Real[np.ndarray, " n"],
    *,
    task: str,
    total: int,
    metric: str = "spearman",
    places: Int[np.ndarray, " n"] | None = None,
) -> Score:
    """Score predictions by their correlation with what people say, "spearman" or "pearson".

    `places` are those of the items in the data set; None if all are there, in order. Numbers that
    are all the same have no correlation: they are refused, and so are fewer than three items.
    """
    _checks.one_of("metric", metric, ("spearman", "pearson"))
    if len(items) < 3:
        do = f"{MORE_WORDS}, or leave it out"
        fail(task, f"{len(items)} covered items", f"3 or more of the {total}", do)
    for name, numbers in (("predictions", items), ("gold scores", gold)):
        if not np.isfinite(numbers).all():
            fail(task, f"{name} with NaN or infinity", "finite numbers", "drop such vectors")
        if (numbers == numbers[0]).all():
            got = f"{name} that are all {numbers[0]}"
            fail(task, got, "different ones", "a correlation needs them: leave this data set out")
    function = scipy.stats.spearmanr if metric == "spearman" else scipy.stats.pearsonr
    value = float(np.clip(function(items, gold).statistic, -1, 1))
    low, high = correlation_interval(value, len(items))
    size = len(items), total
    return Score(task, metric, value, low, high, *size, items, gold, places=places)


def accuracy_score(
    right: Bool[np.ndarray, " n"],
    *,
    task: str,
    total: int,
    places: Int[np.ndarray, " n"] | None = None,
) -> Score:
    """Score an embedding by the share of items that it has right, at `places` of the data set."""
    if not len(right):
        fail(task, "0 covered items", f"1 or more of the {total}", MORE_WORDS)
    hits, n = int(right.sum()), len(right)
    low, high = proportion_interval(hits, n)
    return Score(task, "accuracy", hits / n, low, high, n, total, right, places=places)


def correlation_interval(r: float, n: int) -> tuple[float, float]:
    r"""The 95 % interval of a correlation of n items is $\tanh(\tanh^{-1}r \pm 1.96/\sqrt{n-3})$.

    It is from -1 to 1 for three items or fewer, and $r$ alone for $|r| = 1$. For Spearman's it is
    an approximation, some 3 % too narrow. References: `fisher21`, `fieller57`.
    """
    _checks.integer("n", n, least=0)
    if not -1 <= r <= 1:
        fail("r", str(r), "a correlation, -1 to 1", "pass that of finite numbers")
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
    """
    _checks.integer("n", n, least=1)
    _checks.integer("right", right, least=0, most=n, of="n")
    low, high = scipy.stats.binomtest(right, n).proportion_ci(LEVEL, "exact")
    return float(low), float(high)


def fisher_test(first: Score, second: Score) -> float:
    r"""Return the two-sided p of two correlations as if of independent samples, as the paper does.

    $$z = \frac{\tanh^{-1} r_1 - \tanh^{-1} r_2}{\sqrt{1/(n_1 - 3) + 1/(n_2 - 3)}}$$

    is normal if they do not differ. The paper calls $p < .01$ significant. References: `fisher21`,
    `bollegala22`.
    """
    _same_items(first, second)
    if first.metric == "accuracy":
        fail("metric", '"accuracy"', "a correlation", "see outside_interval or paired_bootstrap")
    if first.value == second.value or first.covered <= 3:
        return 1.0
    if 1 in (abs(first.value), abs(second.value)):
        return 0.0
    far = math.atanh(first.value) - math.atanh(second.value)
    return math.erfc(abs(far) * math.sqrt(first.covered - 3) / 2)


def outside_interval(best: Score, second: Score) -> bool:
    """Tell whether the second best accuracy is outside the interval of the best (`bollegala22`)."""
    _same_items(best, second)
    if best.metric != "accuracy":
        fail("metric", f'"{best.metric}"', '"accuracy"', "see fisher_test or paired_bootstrap")
    if second.value > best.value:
        expected = f"at least that of the second, {second.value}"
        fail("best", f"value {best.value}", expected, "swap the two")
    return second.value < best.low


class Comparison(NamedTuple):
    """A comparison says how far one score is above another, on the same items."""

    difference: float
    low: float
    high: float
    """The 95 % interval of the difference."""
    p: float
    """Two-sided, of no difference."""


def paired_bootstrap(first: Score, second: Score, *, seed: int, draws: int = 10_000) -> Comparison:
    r"""Compare two embeddings on the same items, drawn with replacement `draws` times.

    A draw takes the items jointly for both; ranks are those *within* the draw, and a mean over
    subsets is drawn subset by subset. The interval ends at the .025 and .975 quantiles of the
    differences $d$, and $p = 2\,(1 + \min(\#\{d \le 0\}, \#\{d \ge 0\})) / (1 + \mathrm{draws})$,
    at most 1. Draws of equal numbers alone have no correlation, and are left out.

    Cost: O(n draws); for accuracy O(n + draws). References: `efron93`, `koehn04`.

    >>> right = np.arange(100) < 60
    >>> first, second = (accuracy_score(x, task="x", total=100) for x in (right, ~right))
    >>> round(paired_bootstrap(first, second, seed=0).difference, 2)
    0.2
    """
    _same_items(first, second)
    _checks.integer("draws", draws, least=1)
    rng = np.random.default_rng(seed)
    if first.gold is None:
        # How many items the first alone, or the second alone, has right in a draw is multinomial.
        apart = np.asarray(first.items, np.int64) - np.asarray(second.items, np.int64)
        shares = np.bincount(apart + 1, minlength=3) / len(apart)
        behind, _, ahead = rng.multinomial(len(apart), shares, draws).T
        differences = (ahead - behind) / len(apart)
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
        fail(first.task, got, "one with a correlation", "pass more draws, or more items")
    low, high = np.quantile(differences, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    rarer = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    p = min(1.0, 2 * (1 + rarer) / (1 + len(differences)))
    return Comparison(first.value - second.value, float(low), float(high), p)


def _correlation_differences(
    parts: Sequence[_Centred], n: int, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw n items `draws` times, and subtract the second correlation from the first: maybe NaN.

    `parts` are the first predictions, the second, and the gold scores.
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
            fail(both, f"{name} {one!r} and {other!r}", "the same", do)
    if not np.array_equal(_places(first), _places(second)):
        do = "compare on the same items: pass vocabulary=common_words(...) for both"
        fail(both, f"{first.covered} covered items, but not of the same words", "the same", do)
    for name in ("gold", "parts"):
        one, other = (np.asarray(getattr(score, name)) for score in (first, second))
        if not np.array_equal(one, other):  # None is equal to None alone
            got = f"different {'gold scores' if name == 'gold' else 'subsets'}"
            fail(both, got, "the same", "pass scores on the same items, in the same order")


def _places(score: Score) -> np.ndarray:
    return np.arange(len(score.items)) if score.places is None else score.places
