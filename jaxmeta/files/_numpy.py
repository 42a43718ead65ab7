"""The formats of NumPy: `.npz` with words and vectors, and `.npy` with words beside it."""

import math
import zipfile
from typing import Any

import numpy as np

from jaxmeta._checks import fail
from jaxmeta._files import intact
from jaxmeta.files import _blocks

__all__ = ["read_npy", "read_npz", "write_npy", "write_npz"]


def read_npz(asked: _blocks.Asked) -> _blocks.Blocks:
    """Read blocks of an archive with arrays `words` and `vectors`."""
    path = asked.path
    with path.open("rb") as raw, intact(path):
        archive = zipfile.ZipFile(raw)
        names = archive.namelist()
        if not {"words.npy", "vectors.npy"} <= set(names):
            got = f"arrays {', '.join(name.removesuffix('.npy') for name in names) or 'none'}"
            fail(str(path), got, "words and vectors", "save them under these names")
        with archive.open("words.npy") as listed, archive.open("vectors.npy") as file:
            (count, *_), _, kind = _header(listed)
            if kind.kind not in "US":
                do = "save them as np.array(words, dtype=str)"
                fail(f"{path}: words", f"dtype {kind}", "strings", do)
            words = (
                word
                for start in range(0, count, 1000)
                for word in _items(listed, kind, min(1000, count - start)).tolist()
            )
            header = _header(file)
            given: Any = file
            if header[1]:
                given = np.lib.format.read_array(archive.open("vectors.npy"), allow_pickle=False)
            yield from _matrix(asked, words, header, given)


def read_npy(asked: _blocks.Asked) -> _blocks.Blocks:
    """Read blocks of an array."""
    path = asked.path
    with path.open("rb") as file:
        try:
            header = shape, _, dtype = _header(file)
            left = path.stat().st_size - file.tell()
            if left < math.prod(shape) * dtype.itemsize:
                raise ValueError(f"{left} bytes of numbers for shape {shape}")
        except (ValueError, EOFError) as error:
            fail(str(path), f"no whole .npy file ({error})", "one", "fetch or save it again")
        given = np.load(path, mmap_mode="r", allow_pickle=False) if header[1] else file
        yield from _matrix(asked, asked.words, header, given)


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read shape, order (whether it is by columns) and dtype of the array that follows."""
    if np.lib.format.read_magic(file) == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)


def _items(file: Any, dtype: np.dtype, count: int) -> np.ndarray:
    """Read the next items of a file."""
    return np.frombuffer(file.read(count * dtype.itemsize), dtype, count)


def _matrix(asked: _blocks.Asked, words: Any, header: tuple, given: Any) -> _blocks.Blocks:
    """Read blocks of rows that follow a header in a file, or take them from an array by columns."""
    shape, by_columns, dtype = header

    def take(rows: slice) -> np.ndarray:
        if by_columns:
            return given[rows]
        return _items(given, dtype, (rows.stop - rows.start) * shape[1]).reshape(-1, shape[1])

    yield from _blocks.by_rows(asked, words, shape, dtype, take)


def write_npz(file: Any, given: _blocks.Given) -> None:
    """Write an archive with arrays `words` and `vectors`."""
    with zipfile.ZipFile(file, "w") as archive:
        first, second = map(zipfile.ZipInfo, ("words.npy", "vectors.npy"))  # without a date
        with archive.open(first, "w", force_zip64=True) as member:
            np.lib.format.write_array(member, np.array(given.words))
        with archive.open(second, "w", force_zip64=True) as member:
            write_npy(member, given)


def write_npy(file: Any, given: _blocks.Given) -> None:
    """Write an array of vectors, without their words."""
    descr = given.dtype.newbyteorder("<").str
    header = {"descr": descr, "fortran_order": False, "shape": given.shape}
    np.lib.format.write_array_header_1_0(file, header)
    _blocks.write_matrix(file, given)
