"""Words are looked up among rows on several devices, and the few that are asked for are brought."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from jaxtyping import Array

from jaxmeta import _checks
from jaxmeta._rows import mesh_of
from jaxmeta.files import Vectors, as_vectors

__all__ = ["is_spread", "rows_of", "words_and_matrix"]


def is_spread(matrix: Any) -> bool:
    """Whether rows are on several devices."""
    return isinstance(matrix, jax.Array) and mesh_of(matrix) is not None


def words_and_matrix(vectors: Any) -> tuple[Sequence[str], Any]:
    """What `as_vectors` makes of anything; rows of `jaxmeta.mesh.shard_rows` stay where they are.

    They may be filled up, to as many on every device.
    """
    pair = isinstance(vectors, Vectors) or (isinstance(vectors, tuple) and len(vectors) == 2)
    if not pair or not is_spread(tuple(vectors)[1]):
        words, matrix = as_vectors(vectors)
        return words, matrix
    words, matrix = vectors
    if matrix.ndim != 2 or not 0 <= len(matrix) - len(words) < matrix.sharding.mesh.size:
        got = f"{len(words)} words and an array of shape {matrix.shape}"
        _checks.fail("vectors", got, "a row for each word", "pass what shard_rows made of them")
    return tuple(words), matrix


def rows_of(matrix: Any, rows: np.ndarray) -> np.ndarray:
    """Some rows of a matrix, on the host."""
    if not is_spread(matrix):
        return matrix[rows]
    everywhere = NamedSharding(matrix.sharding.mesh, PartitionSpec())
    return np.asarray(jax.jit(_taken, out_shardings=everywhere)(matrix, rows))


def _taken(matrix: Array, rows: Array) -> Array:
    return matrix[rows]
