"""Word vectors are evaluated here: `evaluate(vectors, tasks)` gives a score for each task.

`datasets` reads the data sets; `word_similarity`, `analogies`, `sentences` and `taggers` score
vectors on them; `scores` says whether two scores differ; `tuning` chooses weights by a score.
Embeddings are comparable on the same
items alone: pass `vocabulary=common_words(first, second, ...)`.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxmeta import _checks
from jaxmeta.evaluate.analogies import analogy, paper_cos_add, three_cos_add, three_cos_mul
from jaxmeta.evaluate.datasets import (
    DATASETS,
    MissingData,
    OtherEdition,
    fetch,
    load,
    status,
)
from jaxmeta.evaluate.networks import FittedNetwork, Network, fit_network, network_scores
from jaxmeta.evaluate.readers import (
    LabelledSentences,
    Questions,
    RatedWords,
    SentencePairs,
    TaggedText,
    WordPairs,
)
from jaxmeta.evaluate.scores import (
    Comparison,
    Score,
    correlation_interval,
    fisher_test,
    outside_interval,
    paired_bootstrap,
    proportion_interval,
)
from jaxmeta.evaluate.sentences import (
    centroids,
    entailment,
    entailment_network,
    relatedness,
    sentiment,
    sts,
)
from jaxmeta.evaluate.taggers import released_tagging, tagging
from jaxmeta.evaluate.tuning import TunedWeights, tuned_weights
from jaxmeta.evaluate.word_similarity import common_words, similarity
from jaxmeta.files import as_vectors
from jaxmeta.progress import Progress, silent

__all__ = [
    "DATASETS",
    "SIMILARITY",
    "TASKS",
    "Comparison",
    "FittedNetwork",
    "LabelledSentences",
    "MissingData",
    "Network",
    "OtherEdition",
    "Questions",
    "RatedWords",
    "Score",
    "SentencePairs",
    "TaggedText",
    "Task",
    "TunedWeights",
    "WordPairs",
    "analogy",
    "centroids",
    "common_words",
    "correlation_interval",
    "entailment",
    "entailment_network",
    "evaluate",
    "fetch",
    "fisher_test",
    "fit_network",
    "load",
    "network_scores",
    "outside_interval",
    "paired_bootstrap",
    "paper_cos_add",
    "proportion_interval",
    "relatedness",
    "released_tagging",
    "sentiment",
    "similarity",
    "status",
    "sts",
    "tagging",
    "three_cos_add",
    "three_cos_mul",
    "tuned_weights",
]

Task = Callable[..., Iterable[Score]]
"""Scores from vectors, data, a vocabulary or None, and a seed."""


def _task(score: Callable[..., Any], seeded: Callable[[int], dict[str, Any]] | None = None) -> Task:
    """Make a task of a function that scores; `seeded` says what it makes of a seed."""

    def scores(vectors: Any, data: Any, vocabulary: Any, seed: int) -> Iterable[Score]:
        found = score(vectors, data, vocabulary=vocabulary, **(seeded(seed) if seeded else {}))
        return [found] if isinstance(found, Score) else found

    return scores


def _named(name: str, task: Task) -> Task:
    """The task under another name than that of its data."""
    return lambda vectors, data, *given: task(vectors, data._replace(name=name), *given)


def _key(seed: int) -> dict[str, Any]:
    return {"key": jax.random.key(seed)}


_SENTIMENT = _task(sentiment, lambda seed: {"seed": seed})
_SPLIT = _task(sentiment, lambda seed: {"seed": seed, "predicted": 1})
_RAW = _task(partial(analogy, method=paper_cos_add))
_TAGGING, _RELEASED_TAGGING = _task(tagging, _key), _task(released_tagging, _key)
_NETWORK = _task(entailment_network, _key)

SIMILARITY = ("RG-65", "WS-353", "RW", "MEN", "MTurk-771", "SimLex-999", "SimVerb-3500")
"""The seven sets of word similarity."""

TASKS: dict[str, tuple[str, Task]] = {
    **{name: (name, _task(similarity)) for name in SIMILARITY},
    **{name: (name, _task(analogy)) for name in ("Google", "MSR")},
    **{name: (name, _SENTIMENT) for name in ("MR", "CR", "MPQA")},
    "SICK-E": ("SICK", _task(entailment)),
    "SICK-R": ("SICK", _task(relatedness)),
    **{name: (name, _task(sts)) for name in ("STS13", "STS14", "STS15", "STS16", "STS-B")},
    "STS-B supervised": ("STS-B", _task(relatedness)),
    **{name: (name, _TAGGING) for name in ("CoNLL-2000", "CoNLL-2003")},
    "SICK-E network": ("SICK", _NETWORK),
    "SNLI-E": ("SNLI", _task(entailment)),
    "SNLI-E network": ("SNLI", _NETWORK),
    **{f"{name} raw": (name, _named(f"{name} raw", _RAW)) for name in ("Google", "MSR")},
    **{f"{name} split": (name, _named(f"{name} split", _SPLIT)) for name in ("MR", "CR", "MPQA")},
    **{f"{name} released": (name, _RELEASED_TAGGING) for name in ("CoNLL-2000", "CoNLL-2003")},
}
"""Name of a task to that of its data set and a function that scores vectors on it.

Where the paper's text and the tools that it uses differ, both are here. The text has networks
("SICK-E network"), analogies on vectors of any length ("Google raw"), a train and test split ("MR
split") and cosines of sentences ("STS-B"); the tools have softmax regression ("SICK-E"), nested
cross-validation ("MR") and regression ("STS-B supervised"), and PoS taggers of their own
("CoNLL-2003 released"). "Google" and "MSR" are on vectors of length 1.
"""


def evaluate(
    vectors: Any,
    tasks: Sequence[str] = SIMILARITY,
    *,
    vocabulary: Collection[str] | None = None,
    folder: str | Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Score, ...]:
    """Score vectors, anything `as_vectors` takes, in some of `TASKS`; some have several scores.

    Only the words in `vocabulary` are used, if it is given. The data sets are in `folder`, or where
    JAXMETA_DATA says. `seed` is that of folds and of training, and fixes the scores.
    """
    if isinstance(tasks, str) or not tasks or any(task not in TASKS for task in tasks):
        expected = f"some of {', '.join(map(repr, TASKS))}"
        _checks.fail("tasks", repr(tasks), expected, "choose some")
    given = as_vectors(vectors)
    wrong = ~np.isfinite(given.matrix).all(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        got = f"a value that is not finite in row {row} ({given.words[row]!r})"
        _checks.fail("vectors", got, "numbers", "drop the word")
    found: list[Score] = []
    for done, task in enumerate(tasks, start=1):
        name, score = TASKS[task]
        found.extend(score(given, load(name, folder), vocabulary, seed))
        (progress or silent)("evaluate", done / len(tasks))
    return tuple(found)
