r"""Scores, how certain they are, and whether two of them differ."""

from typing import NamedTuple

import numpy as np

__all__ = ["Score"]


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
