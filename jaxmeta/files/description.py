"""`describe` says what there is to know of one file of vectors before it is combined."""

from typing import NamedTuple

import numpy as np

from jaxmeta.covariance import moments
from jaxmeta.files.vectors import Vectors
from jaxmeta.noise import effective_rank
from jaxmeta.plans import Settings, plan_of

__all__ = ["Description", "describe"]


class Description(NamedTuple):
    """Vectors of words, in numbers."""

    words: int
    dimensions: int
    dtype: str
    zero_rows: int
    repeated_rows: int
    """Rows that are the same, to the last bit, as one before."""
    mean_length: float
    """Of rows."""
    effective_rank: float
    """(sum of squared singular values)^2 / sum of their fourth powers; 0 if all are zeros."""
    needed: int
    """The fewest dimensions that change inner products by no more than `share` of their norm."""
    share: float


def describe(vectors: Vectors, *, share: float = 0.05) -> Description:
    """Describe vectors: size, rows that stand out, and spectrum. Cost: $O(nk^2)$.

    >>> describe(Vectors(("a", "b", "c"), np.array([[3.0, 4.0], [3.0, 4.0], [0.0, 0.0]]))).needed
    1
    """
    matrix = np.ascontiguousarray(vectors.matrix)
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1)
    wide = matrix.astype(np.result_type(matrix.dtype, np.float32), copy=False)
    plan = plan_of("UW", moments((wide,), parts=("raw",)), Settings(k=share))
    values = plan.values
    assert values is not None
    return Description(
        len(matrix),
        matrix.shape[1],
        str(matrix.dtype),
        int(np.sum(lengths == 0)),
        len(matrix) - len({row.tobytes() for row in matrix}),
        float(lengths.mean()),
        float(effective_rank(values)) if lengths.any() else 0.0,
        plan.width,
        share,
    )
