r"""Tasks for generated text, of the kinds of all data sets: smoke runs need no data.

Everything follows from one embedding of the model's words, the leading directions of
$\log J$ without the terms of single words: cosines are how similar words are, the answer to an
analogy is the nearest word, the first coordinate is the sentiment of a word, its tag, and with
others in a sentence the class of that. So a good embedding of the text does well in all of them.
"""

from typing import Any

import numpy as np

from jaxmeta.evaluate import (
    SIMILARITY,
    TASKS,
    LabelledSentences,
    Questions,
    SentencePairs,
    TaggedText,
    WordPairs,
)
from jaxmeta.text import LatentModel

PAIRS, QUESTIONS, SENTENCES, LENGTH = 400, 200, 240, 6


def truth(model: LatentModel) -> np.ndarray:
    """Vectors of length 1 for the words of a model; the first coordinate tells most."""
    values, vectors = np.linalg.eigh(products(model))
    leading = (vectors * np.sqrt(np.maximum(values, 0)))[:, ::-1][:, :8]
    return leading / np.maximum(np.linalg.norm(leading, axis=1, keepdims=True), 1e-12)


def products(model: LatentModel) -> np.ndarray:
    """Those of the vectors: log J less a term of each word, which centring takes away."""
    logarithms = np.log(model.joint)
    means = logarithms.mean(axis=0)
    return logarithms - means[None, :] - means[:, None] + means.mean()


def task(name: str, model: LatentModel) -> Any:
    """Data for a task of `TASKS`, of the kind of its data set."""
    rng = np.random.default_rng(list(TASKS).index(name))
    name = TASKS[name][0]
    vectors, words = truth(model), np.array(model.words)
    n = len(words)
    if name in SIMILARITY:
        a, b = rng.integers(n, size=(2, PAIRS))
        scores = np.einsum("ij,ij->i", vectors[a], vectors[b])
        return WordPairs(name, tuple(words[a].tolist()), tuple(words[b].tolist()), scores)
    if name in ("Google", "MSR"):
        asked = np.stack([rng.choice(n, 3, replace=False) for _ in range(QUESTIONS)])
        wanted = vectors[asked[:, 1]] - vectors[asked[:, 0]] + vectors[asked[:, 2]]
        near = wanted @ vectors.T
        np.put_along_axis(near, asked, -np.inf, axis=1)
        answered = np.column_stack([asked, near.argmax(axis=1)])
        sections = tuple("gram1" if i % 2 else "family" for i in range(QUESTIONS))
        return Questions(name, tuple(map(tuple, words[answered].tolist())), sections)
    if name.startswith("CoNLL"):
        # Words of the test part are others: what they are must come from their vectors.
        drawn = 2 * rng.integers(n // 2, size=(2, SENTENCES, LENGTH))
        drawn[1] += 1
        tagged = [[[(str(words[i]), _tag(vectors[i])) for i in s] for s in part] for part in drawn]
        train, test = (tuple(map(tuple, part)) for part in tagged)
        return TaggedText(name, train, test)
    drawn = rng.integers(n, size=(2, SENTENCES, LENGTH))
    first, second = (tuple(map(tuple, words[part].tolist())) for part in drawn)
    u, v = (vectors[part].mean(axis=1) for part in drawn)
    if name in ("MR", "CR", "MPQA"):
        return LabelledSentences(name, first, (u[:, 0] > np.median(u[:, 0])).astype(int))
    cosines = np.einsum("ij,ij->i", u, v) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
    scores = np.round(3 + 2 * cosines, 2)
    if name in ("STS13", "STS14", "STS15", "STS16"):
        subsets = tuple("even" if i % 2 else "odd" for i in range(SENTENCES))
        return SentencePairs(name, first, second, scores, subsets)
    parts = tuple(("train", "train", "dev", "test")[i % 4] for i in range(SENTENCES))
    labels = np.digitize(scores, np.quantile(scores, [1 / 3, 2 / 3]))
    return SentencePairs(name, first, second, scores, parts, None if name == "STS-B" else labels)


def _tag(vector: np.ndarray) -> str:
    return "N" if vector[0] > 0.2 else "V" if vector[0] < -0.2 else "X"
