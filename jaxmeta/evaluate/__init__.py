"""Evaluation of word vectors: `evaluate(vectors, tasks)` gives a score for each task.

`datasets` reads the data sets. `word_similarity`, `analogies`, `sentences` and `taggers` score
vectors on them, and `scores` says how certain a score is and whether two differ. Vectors are what
`jaxmeta.files.as_vectors` takes. Methods are comparable on the same items alone, and each score
says how many it is of: pass `vocabulary=common_words(first, second, ...)`.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxmeta.evaluate.analogies import analogy as analogy
from jaxmeta.evaluate.analogies import paper_cos_add as paper_cos_add
from jaxmeta.evaluate.analogies import three_cos_add as three_cos_add
from jaxmeta.evaluate.analogies import three_cos_mul as three_cos_mul
from jaxmeta.evaluate.datasets import DATASETS as DATASETS
from jaxmeta.evaluate.datasets import LabelledSentences as LabelledSentences
from jaxmeta.evaluate.datasets import MissingData as MissingData
from jaxmeta.evaluate.datasets import OtherEdition as OtherEdition
from jaxmeta.evaluate.datasets import Questions as Questions
from jaxmeta.evaluate.datasets import SentencePairs as SentencePairs
from jaxmeta.evaluate.datasets import TaggedText as TaggedText
from jaxmeta.evaluate.datasets import WordPairs as WordPairs
from jaxmeta.evaluate.datasets import fetch as fetch
from jaxmeta.evaluate.datasets import load as load
from jaxmeta.evaluate.scores import Comparison as Comparison
from jaxmeta.evaluate.scores import Score as Score
from jaxmeta.evaluate.scores import correlation_interval as correlation_interval
from jaxmeta.evaluate.scores import fisher_test as fisher_test
from jaxmeta.evaluate.scores import outside_interval as outside_interval
from jaxmeta.evaluate.scores import paired_bootstrap as paired_bootstrap
from jaxmeta.evaluate.scores import proportion_interval as proportion_interval
from jaxmeta.evaluate.sentences import centroids as centroids
from jaxmeta.evaluate.sentences import entailment as entailment
from jaxmeta.evaluate.sentences import relatedness as relatedness
from jaxmeta.evaluate.sentences import sentiment as sentiment
from jaxmeta.evaluate.sentences import sts as sts
from jaxmeta.evaluate.taggers import tagging as tagging
from jaxmeta.evaluate.word_similarity import common_words as common_words
from jaxmeta.evaluate.word_similarity import similarity as similarity
from jaxmeta.files.vectors import as_vectors
from jaxmeta.progress import Progress, silent

Task = Callable[..., Iterable[Score]]


def _similarity(vectors: Any, data: Any, vocabulary: Any, _seed: int) -> Iterable[Score]:
    return [similarity(vectors, data, vocabulary=vocabulary)]


def _analogy(vectors: Any, data: Any, vocabulary: Any, _seed: int) -> Iterable[Score]:
    return analogy(vectors, data, vocabulary=vocabulary)


def _sentiment(vectors: Any, data: Any, vocabulary: Any, seed: int) -> Iterable[Score]:
    return [sentiment(vectors, data, vocabulary=vocabulary, seed=seed)]


def _entailment(vectors: Any, data: Any, vocabulary: Any, _seed: int) -> Iterable[Score]:
    return [entailment(vectors, data, vocabulary=vocabulary)]


def _pairs(score: Callable[..., Any], vectors: Any, data: Any, vocabulary: Any, _seed: int) -> Any:
    return score(vectors, data, vocabulary=vocabulary)


def _tagging(vectors: Any, data: Any, vocabulary: Any, seed: int) -> Iterable[Score]:
    return [tagging(vectors, data, key=jax.random.key(seed), vocabulary=vocabulary)]


SIMILARITY = ("RG-65", "WS-353", "RW", "MEN", "MTurk-771", "SimLex-999", "SimVerb-3500")
"""The seven sets of word similarity."""

TASKS: dict[str, tuple[str, Task]] = {
    **{name: (name, _similarity) for name in SIMILARITY},
    "Google": ("Google", _analogy),
    "MSR": ("MSR", _analogy),
    **{name: (name, _sentiment) for name in ("MR", "CR", "MPQA")},
    "SICK-E": ("SICK", _entailment),
    "SICK-R": ("SICK", partial(_pairs, relatedness)),
    **{name: (name, partial(_pairs, sts)) for name in ("STS13", "STS14", "STS15", "STS16")},
    "STS-B": ("STS-B", partial(_pairs, sts)),
    "STS-B supervised": ("STS-B", partial(_pairs, relatedness)),
    "CoNLL-2000": ("CoNLL-2000", _tagging),
    "CoNLL-2003": ("CoNLL-2003", _tagging),
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
    """Scores of vectors in some of `TASKS`, in their order; some tasks have several.

    Parameters
    ----------
    vectors
        What `jaxmeta.as_vectors` takes.
    tasks
        Names from `TASKS`; the seven sets of word similarity unless said otherwise.
    vocabulary
        Use these words alone: see `common_words`.
    folder
        Where the data sets are; None is the folder that JAXMETA_DATA names.
    seed
        Of folds and of training. The same seed gives the same scores.
    progress
        Called with "evaluate" and the fraction of the tasks that are done.
    """
    if isinstance(tasks, str) or not tasks or any(task not in TASKS for task in tasks):
        raise ValueError(f"tasks: got {tasks!r}, expected some of {', '.join(TASKS)}; choose some.")
    given = as_vectors(vectors)
    if not np.isfinite(given.matrix).all():
        row = int(np.argmax(~np.isfinite(given.matrix).all(axis=1)))
        raise ValueError(
            f"vectors: got a value that is not finite in row {row} ({given.words[row]!r}), "
            "expected numbers; drop the word."
        )
    found: list[Score] = []
    for done, task in enumerate(tasks, start=1):
        name, score = TASKS[task]
        found.extend(score(given, load(name, folder), vocabulary, seed))
        (progress or silent)("evaluate", done / len(tasks))
    return tuple(found)
