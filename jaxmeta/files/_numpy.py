"""The formats of NumPy: `.npz` with words and vectors, and `.npy` with words beside it."""

import math
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from jaxmeta._checks import fail
from jaxmeta._files import intact
from jaxmeta.files import _blocks

__all__ = ["read_npy", "read_npz"]


def read_npz(path: Path, limit: int) -> _blocks.Blocks:
    with path.open("rb") as raw, intact(path):
        archive = zipfile.ZipFile(raw)
        names = archive.namelist()
        if not {"words.npy", "vectors.npy"} <= set(names):
            got = f"arrays {', '.join(name.removesuffix('.npy') for name in names) or 'none'}"
            fail(str(path), got, "words and vectors", "save them under these names")
        with archive.open("words.npy") as listed, archive.open("vectors.npy") as file:
            (count, *_), _, kind = _npy_header(listed)
            if kind.kind not in "US":
                remedy = "save them as np.array(words, dtype=str)"
                fail(f"{path}: words", f"dtype {kind}", "strings", remedy)
            shape, by_columns, dtype = _npy_header(file)
            words = (
                word
                for start in range(0, count, 1000)
                for word in _items(listed, kind, min(1000, count - start)).tolist()
            )
            if by_columns:
                whole = np.lib.format.read_array(archive.open("vectors.npy"), allow_pickle=False)
                take = lambda i, j: whole[i:j]  # noqa: E731
            else:
                take = lambda i, j: _items(file, dtype, (j - i) * shape[1]).reshape(j - i, -1)  # noqa: E731
            yield from _blocks.by_rows(path, words, shape, dtype, take, limit)


def read_npy(path: Path, limit: int, words: Any) -> _blocks.Blocks:
    with path.open("rb") as file:
        try:
            shape, by_columns, dtype = _npy_header(file)
            left = path.stat().st_size - file.tell()
            if left < math.prod(shape) * dtype.itemsize:
                raise ValueError(f"{left} bytes of numbers for shape {shape}")
        except (ValueError, EOFError) as error:
            fail(str(path), f"no whole .npy file ({error})", "one", "fetch or save it again")
        if by_columns:
            whole = np.load(path, mmap_mode="r", allow_pickle=False)
            take = lambda i, j: whole[i:j]  # noqa: E731
        else:
            take = lambda i, j: _items(file, dtype, (j - i) * shape[1]).reshape(j - i, -1)  # noqa: E731
        with closing(_blocks.listed(path, words)) as listed:
            yield from _blocks.by_rows(path, listed, shape, dtype, take, limit)


def _npy_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)


def _items(file: Any, dtype: np.dtype, count: int) -> np.ndarray:
    return np.frombuffer(file.read(count * dtype.itemsize), dtype, count)
