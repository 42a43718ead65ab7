r"""Data sets of the evaluation tasks, as they are on disk."""

from typing import NamedTuple

import numpy as np

__all__ = ["LabelledSentences", "Questions", "SentencePairs", "TaggedText", "WordPairs"]


class WordPairs(NamedTuple):
    """Pairs of words, and how similar people find them."""

    name: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    scores: np.ndarray


class Questions(NamedTuple):
    """Analogies: a is to b as c is to d."""

    name: str
    words: tuple[tuple[str, str, str, str], ...]
    sections: tuple[str, ...]
    """That of each question."""


class LabelledSentences(NamedTuple):
    """Sentences, as tokens, and the class of each."""

    name: str
    sentences: tuple[tuple[str, ...], ...]
    labels: np.ndarray
    """Integers from 0."""


class SentencePairs(NamedTuple):
    """Pairs of sentences, as tokens, and how similar people find them."""

    name: str
    first: tuple[tuple[str, ...], ...]
    second: tuple[tuple[str, ...], ...]
    scores: np.ndarray
    parts: tuple[str, ...]
    """That of each pair: "train", "dev", "test", or the name of a subset."""
    labels: np.ndarray | None = None
    """Classes of the pairs, integers from 0, if they have any: 0 to 2 for entailment."""


class TaggedText(NamedTuple):
    """Sentences with a tag for each token."""

    name: str
    train: tuple[tuple[tuple[str, str], ...], ...]
    """Sentences of pairs of a token and its tag."""
    test: tuple[tuple[tuple[str, str], ...], ...]
