"""What is said of one file of vectors, against float64 NumPy."""

import numpy as np
import pytest
from helpers import EPS

from jaxmeta.files import Vectors, describe


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_describe(rng, dtype):
    axes = np.linalg.qr(rng.normal(size=(30, 4)))[0]
    matrix = (axes * [4.0, 2.0, 1.0, 0.5]).astype(dtype)
    matrix[3] = 0
    matrix[7] = matrix[4]
    found = describe(Vectors(tuple(map(str, range(30))), matrix), share=0.1)
    assert (found.words, found.dimensions, found.dtype) == (30, 4, np.dtype(dtype).name)
    assert (found.zero_rows, found.repeated_rows, found.share) == (1, 1, 0.1)
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1)
    assert found.mean_length == pytest.approx(lengths.mean())
    squares = np.linalg.svd(matrix.astype(np.float64), compute_uv=False) ** 2
    rank = squares.sum() ** 2 / np.sum(squares**2)
    assert found.effective_rank == pytest.approx(rank, rel=max(64 * EPS, 1e-5))
    lost = [np.linalg.norm(squares[k:]) / np.linalg.norm(squares) for k in range(5)]
    assert lost[found.needed] <= 0.1 < lost[found.needed - 1]


def test_describe_zeros():
    found = describe(Vectors(("a", "b"), np.zeros((2, 3), np.float32)))
    assert (found.zero_rows, found.repeated_rows, found.effective_rank) == (2, 1, 0)
