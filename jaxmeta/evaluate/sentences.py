r"""Tasks on sentences ask what the mean of their words' vectors tells.

Features and folds are those of SentEval (`conneau18`), which stops early; here the regressions are
solved to the minimum, and the strength of the penalty is chosen among `STRENGTHS`, per mean loss.
Features are not standardised, but divided by one number, so that the size of an embedding does not
matter. A sentence without known words stays in every score, with a vector of zeros.
"""

import warnings
from collections.abc import Collection, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array, Bool, Float, Int, Key

from jaxmeta import _checks
from jaxmeta.evaluate.classifier import logistic_regression, probabilities
from jaxmeta.evaluate.networks import fit_network, network_scores
from jaxmeta.evaluate.readers import LabelledSentences, SentencePairs
from jaxmeta.evaluate.scores import (
    MORE_WORDS,
    Score,
    accuracy_score,
    correlation_interval,
    correlation_score,
    index_words,
    lookup,
)
from jaxmeta.files import as_vectors
from jaxmeta.files.vectors import cosines
from jaxmeta.progress import Progress, silent

__all__ = ["centroids", "entailment", "entailment_network", "relatedness", "sentiment", "sts"]

STRENGTHS = (1e-6, 1e-5, 1e-4, 1e-3)
TOLERANCE = 1e-3  # of gradients; the mean loss is then within about 10^-6 of its minimum


def centroids(
    vectors: Any, sentences: Sequence[Sequence[str]], *, vocabulary: Collection[str] | None = None
) -> tuple[Float[np.ndarray, "m k"], Bool[np.ndarray, " m"]]:
    r"""Return the mean of the vectors of each sentence's tokens, and whether it has any.

    $$c_i = \frac{1}{|T_i|}\sum_{t \in T_i} e_t$$

    is over the tokens $T_i$ with a vector, looked up as they stand, else in lower case; 0 if there
    are none. float64 stays so; others become float32. Cost: $O(Tk)$ for $T$ tokens.

    >>> centroids({"a": [1.0, 0.0], "b": [0.0, 1.0]}, [("a", "B"), ("c",)])[0].tolist()
    [[0.5, 0.5], [0.0, 0.0]]
    """
    words, matrix = as_vectors(vectors)
    matrix = matrix.astype(np.result_type(matrix.dtype, np.float32), copy=False)
    index = index_words(words, vocabulary)
    row_of = {token: lookup(index, token) for sentence in sentences for token in sentence}
    found = [(i, row_of[token]) for i, sentence in enumerate(sentences) for token in sentence]
    rows, columns = np.array(found, np.int64).reshape(-1, 2).T
    rows, columns = rows[columns >= 0], columns[columns >= 0]
    counts = np.bincount(rows, minlength=len(sentences))
    shares = (1 / np.maximum(counts, 1)).astype(matrix.dtype)[rows]
    mean = scipy.sparse.csr_array((shares, (rows, columns)), (len(sentences), len(words)))
    centres = mean @ matrix
    if not np.isfinite(centres).all():
        _checks.fail("vectors", "NaN or infinity", "finite numbers", "drop such rows")
    return centres, counts > 0


def sentiment(
    vectors: Any,
    data: LabelledSentences,
    *,
    folds: int = 5,
    predicted: int | None = None,
    seed: int,
    vocabulary: Collection[str] | None = None,
    progress: Progress | None = None,
) -> Score:
    r"""Score a logistic regression on centroids by its accuracy in nested cross-validation.

    Each of `folds` stratified folds, which `seed` decides, is predicted from the others, with the
    strength that predicts best within those, in `folds` folds again; of equals, the largest. With
    `predicted`, the first of them alone are: 1 is a split into a test part of one fold and a train
    part, in which the strength is cross-validated. `covered` counts the sentences with a known
    word. The interval takes predictions for independent, which those of one data set are not quite.

    Cost: that of `logistic_regression` with `folds` * (`folds` + 1) masks. Reference: `conneau18`.

    >>> data = LabelledSentences("toy", (("good", "film"), ("bad",)) * 10, np.array([1, 0] * 10))
    >>> sentiment({"good": [1.0], "film": [0.0], "bad": [-1.0]}, data, seed=0).value
    1.0
    """
    labels = _classes(data.name, data.labels)
    _checks.integer("folds", folds, least=2, most=len(labels), of=data.name)
    predicted = folds if predicted is None else predicted
    _checks.integer("predicted", predicted, least=1, most=folds, of="folds")
    shown = progress or silent
    shown(data.name, 0.0)
    features, known = centroids(vectors, data.sentences, vocabulary=vocabulary)
    _some_known(data.name, known)
    outer, masks = _nested_folds(labels, folds, np.random.default_rng(seed))
    masks, asked = masks[:predicted], outer < predicted
    shown(data.name, 0.1)
    features = _unit_variance(features)
    every = masks.reshape(-1, len(labels))
    chances = _chances(data.name, features, np.eye(labels.max() + 1)[labels], masks=every)
    right = (chances.argmax(axis=-1) == labels).reshape(len(STRENGTHS), *masks.shape)
    chosen = np.zeros(len(labels), bool)
    for fold in range(predicted):
        # Inner fold i is what mask i leaves out of the training part, which is the last mask.
        held = masks[fold, -1] & ~masks[fold, :-1]
        hits = np.count_nonzero(right[:, fold, :-1] & held, axis=(1, 2))
        chosen = np.where(outer == fold, right[_best(hits), fold, -1], chosen)
    shown(data.name, 1.0)
    score = _accuracy(data.name, chosen[asked], known[asked])
    return score if predicted == folds else score._replace(places=np.flatnonzero(asked))


def entailment(
    vectors: Any, data: SentencePairs, *, vocabulary: Collection[str] | None = None
) -> Score:
    r"""Score a softmax regression on $[|u - v|, u \odot v]$ by its accuracy in classes of pairs.

    It is fitted to the part "train", with the strength that is best on "dev", and scored on "test".
    All pairs count; `covered` says in how many both sentences have a known word. The task is called
    "SICK-E", after the data. Reference: `conneau18`.
    """
    name = f"{data.name}-E"
    if data.labels is None:
        _checks.fail(name, "pairs without classes", "labels", "see relatedness or sts")
    labels = _classes(name, data.labels)
    features, known, (train, dev, test) = _pair_features(name, vectors, data, vocabulary)
    _classes(name, labels[train])
    chances = _chances(name, features, np.eye(labels.max() + 1)[labels], train=train)
    right = chances[:, 0].argmax(axis=-1) == labels
    best = _best(np.count_nonzero(right & dev, axis=1))
    return _accuracy(name, right[best][test], known[test])


def entailment_network(
    vectors: Any,
    data: SentencePairs,
    *,
    key: Key[Array, ""],
    more: SentencePairs | None = None,
    vocabulary: Collection[str] | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Score:
    r"""Score a network on $[|u - v|, u \odot v]$ by its accuracy in classes of pairs, as the paper.

    It has one hidden layer with ReLU, dropout of .5 and RMSProp: `fit_network`, to which `settings`
    go, trains it on the part "train", and chooses units, rate and epoch by the part "dev". These
    two parts of `more`, such as SNLI, join those of `data`, on whose part "test" it is scored.
    Features are multiplied by one number, to a mean variance of 1. All pairs count; `covered` says
    in how many both sentences have a known word. The task is called "SICK-E network", after the
    data. References: `bollegala22`, `conneau18`.
    """
    name = f"{data.name}-E network"
    if data.labels is None or (more is not None and more.labels is None):
        _checks.fail(name, "pairs without classes", "labels", "see relatedness or sts")
    data = data if more is None else _joined(data, more)
    labels = _classes(name, np.asarray(data.labels))
    features, known, (train, dev, test) = _pair_features(name, vectors, data, vocabulary)
    features = features * features.dtype.type(np.sqrt(features.shape[1]))
    _classes(name, labels[train])
    tried = train | dev
    fitted = fit_network(
        features[tried], labels[tried], dev[tried], key=key, progress=progress, **settings
    )
    right = np.asarray(network_scores(fitted.network, features[test])).argmax(axis=1)
    return _accuracy(name, right == labels[test], known[test])


def relatedness(
    vectors: Any, data: SentencePairs, *, vocabulary: Collection[str] | None = None
) -> tuple[Score, Score]:
    r"""Correlate learnt scores of pairs with people's, by Pearson's and Spearman's correlation.

    Scores are classes $r$, the whole numbers from the lowest to the highest in the part "train". A
    score between two of them is both in part, $y = \sum_r r\,t_r$. A softmax regression on
    $[|u - v|, u \odot v]$ is fitted to "train", with the strength that has the highest Pearson's
    correlation on "dev", and predicts $\sum_r r\,p_r$ on "test". The loss is the cross entropy of
    `tai15`; that of SentEval, the mean square of $t - p$, is not convex.

    All pairs are `covered`. The task is "SICK-R" if the data has classes too, else "STS-B
    supervised", after the data. References: `tai15`, `conneau18`.
    """
    name = f"{data.name} supervised" if data.labels is None else f"{data.name}-R"
    features, _, (train, dev, test) = _pair_features(name, vectors, data, vocabulary)
    gold = _gold(name, data.scores)
    if np.ptp(gold[train]) == 0:
        got, do = f"training scores that are all {gold[train][0]}", "leave this data set out"
        _checks.fail(name, got, "different ones", f"there is nothing to learn: {do}")
    levels = np.arange(np.floor(gold[train].min()), np.ceil(gold[train].max()) + 1)
    targets = np.maximum(1 - np.abs(gold[:, None] - levels), 0)
    guesses = _chances(name, features, targets, train=train)[:, 0] @ levels
    values = [
        np.corrcoef(x[dev], gold[dev])[0, 1] if np.ptp(x[dev]) and np.ptp(gold[dev]) else -1.0
        for x in guesses
    ]
    return _correlations(name, guesses[_best(np.array(values))][test], gold[test])


def sts(
    vectors: Any, data: SentencePairs, *, vocabulary: Collection[str] | None = None
) -> tuple[Score, ...]:
    r"""Correlate $\cos(u, v)$ with people's scores, by Pearson's and Spearman's correlation.

    Of data with the parts "train", "dev" and "test", "test" alone is used. Else the first two
    scores are means of those of the parts, weighted by their pairs, with the interval of one
    correlation of as many pairs; if there are several parts, their scores follow, as "STS14
    images". A sentence without known words has cosine 0: all pairs are `covered`.

    Cost: $O(Tk)$ for $T$ tokens. References: `agirre16`, `conneau18`.
    """
    gold, parts = _gold(data.name, data.scores), np.array(data.parts)
    used = parts == "test" if "test" in data.parts else np.ones(len(parts), bool)
    u, v, known = _pair_centroids(data, vectors, vocabulary)
    _some_known(data.name, known[used])
    guess, gold, parts = cosines(u[used], v[used]), gold[used], parts[used]
    names = dict.fromkeys(parts.tolist())
    if len(names) == 1:
        return _correlations(data.name, guess, gold)
    subsets = [
        _correlations(f"{data.name} {name}", guess[parts == name], gold[parts == name])
        for name in names
    ]
    whole = []
    for scores in zip(*subsets, strict=True):
        value = float(np.average([s.value for s in scores], weights=[s.total for s in scores]))
        n, metric = len(gold), scores[0].metric
        low, high = correlation_interval(value, n)
        whole.append(Score(data.name, metric, value, low, high, n, n, guess, gold, parts))
    return *whole, *(score for scores in subsets for score in scores)


def _pair_centroids(
    data: SentencePairs, vectors: Any, vocabulary: Collection[str] | None
) -> tuple[Float[np.ndarray, "m k"], Float[np.ndarray, "m k"], Bool[np.ndarray, " m"]]:
    """Return centroids of first and of second sentences, and whether both have a known word."""
    both, known = centroids(vectors, (*data.first, *data.second), vocabulary=vocabulary)
    half = len(data.first)
    return both[:half], both[half:], known[:half] & known[half:]


def _joined(data: SentencePairs, more: SentencePairs) -> SentencePairs:
    """Return the pairs of `data`, and behind them those of `more` that are not for testing."""
    kept = [i for i, part in enumerate(more.parts) if part != "test"]
    return data._replace(
        first=(*data.first, *(more.first[i] for i in kept)),
        second=(*data.second, *(more.second[i] for i in kept)),
        parts=(*data.parts, *(more.parts[i] for i in kept)),
        scores=np.append(data.scores, more.scores[kept]),
        labels=np.append(np.asarray(data.labels), np.asarray(more.labels)[kept]),
    )


def _pair_features(
    name: str, vectors: Any, data: SentencePairs, vocabulary: Collection[str] | None
) -> tuple[Float[np.ndarray, "m f"], Bool[np.ndarray, " m"], Bool[np.ndarray, "parts m"]]:
    """Return features of pairs, whether both sentences have a known word, and who is in a part."""
    names = "train", "dev", "test"
    parts = np.array(data.parts) == np.array(names)[:, None]
    u, v, known = _pair_centroids(data, vectors, vocabulary)
    for part, members in zip(names, parts, strict=True):
        if not members.any():
            do = 'use data with the parts "train", "dev" and "test", or see sts'
            _checks.fail(name, f'no pair in the part "{part}"', "one or more", do)
        _some_known(name, known[members])
    square = (np.mean(np.square(x, dtype=np.float64)) for x in (u, v))
    size = u.dtype.type(np.sqrt(sum(square) / 2)) or 1
    u, v = u / size, v / size
    return _unit_variance(np.concatenate([np.abs(u - v), u * v], axis=1)), known, parts


def _nested_folds(
    labels: Int[np.ndarray, " n"], folds: int, rng: np.random.Generator
) -> tuple[Int[np.ndarray, " n"], Bool[np.ndarray, "folds inner n"]]:
    """Return each item's outer fold, and training parts: less each inner fold, and then whole."""
    outer = _stratified(labels, folds, rng)
    masks = np.zeros((folds, folds + 1, len(labels)), bool)
    for fold in range(folds):
        rest = outer != fold
        inner = np.full(len(labels), -1)
        inner[rest] = _stratified(labels[rest], folds, rng)
        # No inner fold has the last number, so that the last mask is all of the training part.
        masks[fold] = rest & (inner != np.arange(folds + 1)[:, None])
    return outer, masks


def _stratified(
    labels: Int[np.ndarray, " n"], folds: int, rng: np.random.Generator
) -> Int[np.ndarray, " n"]:
    """Draw a fold for each item: sizes differ by 1 at most, and so do those of each class."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    found = np.empty(len(labels), np.int64)
    found[order] = np.arange(len(labels)) % folds
    return found


def _chances(
    name: str,
    features: Float[np.ndarray, "n f"],
    targets: Float[np.ndarray, "n c"],
    *,
    train: Bool[np.ndarray, " n"] | slice = slice(None),
    masks: Bool[np.ndarray, "M m"] | None = None,
) -> Float[np.ndarray, "L M n c"]:
    """Fit the regressions to `train`, or masks of it, and return what they say of all rows."""
    x = jnp.asarray(features[train])
    wanted = (targets if targets.shape[1] > 2 else targets[:, 1:])[train]
    masks = np.ones((1, len(x)), bool) if masks is None else masks
    y, strengths = (jnp.asarray(given, x.dtype) for given in (wanted, STRENGTHS))
    fits = logistic_regression(x, y, jnp.asarray(masks), strengths, tolerance=TOLERANCE)
    worst = float(jnp.max(fits.gradient_norms))
    if not worst <= TOLERANCE:
        warnings.warn(
            f"{name}: got a gradient of {worst:.1e} after {int(fits.steps)} steps, expected at "
            f"most {TOLERANCE}; the score may be off: check the vectors for extreme entries.",
            RuntimeWarning,
            stacklevel=3,
        )
    return np.asarray(probabilities(fits, jnp.asarray(features)))


def _unit_variance(features: Float[np.ndarray, "n f"]) -> Float[np.ndarray, "n f"]:
    """Divide all by one number, so that strengths mean the same for all embeddings."""
    size = np.sqrt(np.sum(np.var(features, axis=0, dtype=np.float64)))
    return features / (features.dtype.type(size) or 1)


def _best(values: np.ndarray) -> int:
    """Return which strength has the highest value, of equals the largest strength."""
    return int(len(values) - 1 - np.argmax(values[::-1]))


def _accuracy(name: str, right: Bool[np.ndarray, " n"], known: Bool[np.ndarray, " n"]) -> Score:
    return accuracy_score(right, task=name, total=len(right))._replace(covered=int(known.sum()))


def _correlations(
    name: str, guess: Float[np.ndarray, " n"], gold: Float[np.ndarray, " n"]
) -> tuple[Score, Score]:
    pearson, spearman = (
        correlation_score(guess, gold, task=name, total=len(gold), metric=metric)
        for metric in ("pearson", "spearman")
    )
    return pearson, spearman


def _classes(name: str, labels: np.ndarray) -> Int[np.ndarray, " n"]:
    labels = np.asarray(labels)
    if labels.dtype.kind not in "iu" or labels.min(initial=0) < 0:
        got = f"labels of dtype {labels.dtype} from {labels.min(initial=0)}"
        _checks.fail(name, got, "integers from 0", "number the classes")
    if len(np.unique(labels)) < 2:
        do = "there is nothing to learn: check the file, or leave this data set out"
        _checks.fail(name, f"{len(np.unique(labels))} class", "two or more", do)
    return labels.astype(np.int64)


def _gold(name: str, scores: np.ndarray) -> Float[np.ndarray, " n"]:
    gold = np.asarray(scores, np.float64)
    if not np.isfinite(gold).all():
        do = "drop pairs without a score"
        _checks.fail(name, "scores with NaN or infinity", "finite numbers", do)
    return gold


def _some_known(name: str, known: Bool[np.ndarray, " n"]) -> None:
    if not known.any():
        _checks.fail(name, "no sentence with a known word", "one or more", MORE_WORDS)
