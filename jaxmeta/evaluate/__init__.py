"""Word vectors are evaluated here: `evaluate(vectors, tasks)` gives a score for each task.

`datasets` reads the data sets; `word_similarity`, `analogies`, `sentences` and `taggers` score
vectors on them; `scores` says whether two scores differ; `tuning` chooses weights by a score.
Embeddings are comparable on the same
items alone: pass `vocabulary=common_words(first, second, ...)`.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
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
from jaxmeta.evaluate.readers import (
    LabelledSentences,
    Questions,
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
from jaxmeta.evaluate.sentences import centroids, entailment, relatedness, sentiment, sts
from jaxmeta.evaluate.taggers import tagging
from jaxmeta.evaluate.tuning import TunedWeights, tuned_weights
from jaxmeta.evaluate.word_similarity import common_words, similarity
from jaxmeta.files import as_vectors
from jaxmeta.progress import Progress, silent

__all__ = [
    "DATASETS",
    "SIMILARITY",
    "TASKS",
    "Comparison",
    "LabelledSentences",
    "MissingData",
    "OtherEdition",
    "Questions",
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
    "evaluate",
    "fetch",
    "fisher_test",
    "load",
    "outside_interval",
    "paired_bootstrap",
    "paper_cos_add",
    "proportion_interval",
    "relatedness",
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


_SENTIMENT = _task(sentiment, lambda seed: {"seed": seed})
_TAGGING = _task(tagging, lambda seed: {"key": jax.random.key(seed)})

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
}
"""Name of a task to that of its data set and a function that scores vectors on it."""


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
