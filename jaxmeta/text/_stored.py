"""Counts that come from a file are looked at before SciPy trusts them."""

import json
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

__all__ = ["FIELDS", "as_text", "csr_of", "words_of"]

FIELDS = ("data", "indices", "indptr")  # of a sparse matrix


def as_text(words: Sequence[str]) -> np.ndarray:
    """Give a list of words as bytes."""
    return np.frombuffer(json.dumps(words).encode(), np.uint8)


def words_of(text: np.ndarray) -> tuple[str, ...]:
    """Read a list of words from its bytes."""
    words = json.loads(text.tobytes())
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("words that are no list of text")
    return tuple(words)


def csr_of(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, *, size: int) -> csr_array:
    """Make a square matrix of counts, or raise: SciPy reads and writes wherever indices say."""
    for name, array in {"data": data, "indices": indices, "indptr": indptr}.items():
        if array.ndim != 1 or array.dtype.kind != "i":
            raise ValueError(f"{name} of dtype {array.dtype} and shape {array.shape}")
    if len(indptr) != size + 1 or indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise ValueError("ends of rows that do not ascend")
    if not len(data) == len(indices) == indptr[-1]:
        raise ValueError(f"{len(data)} counts and {len(indices)} columns, not {indptr[-1]}")
    if ((indices < 0) | (indices >= size)).any() or (data < 0).any():
        raise ValueError(f"columns beyond {size}, or counts below 0")
    return csr_array((data, indices, indptr), shape=(size, size))
