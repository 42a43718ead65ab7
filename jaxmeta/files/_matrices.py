"""The formats of a matrix, `.npz`, `.npy` and `.safetensors`, with words inside or beside it."""

import itertools
import json
import math
import zipfile
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from jaxmeta import _checks
from jaxmeta._checks import fail
from jaxmeta._files import intact
from jaxmeta.files import _blocks

__all__ = ["read_npy", "read_npz", "read_tensors", "write_npy", "write_npz", "write_tensors"]


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
            yield from _array_blocks(asked, words, header, given)


def read_npy(asked: _blocks.Asked) -> _blocks.Blocks:
    """Read blocks of an array."""
    path = asked.path
    with path.open("rb") as file:
        try:
            header = shape, by_columns, dtype = _header(file)
            left = path.stat().st_size - file.tell()
            if left < math.prod(shape) * dtype.itemsize:
                raise ValueError(f"{left} bytes of numbers for shape {shape}")
        except (ValueError, EOFError) as error:
            fail(str(path), f"no whole .npy file ({error})", "one", "fetch or save it again")
        given = np.load(path, mmap_mode="r", allow_pickle=False) if by_columns else file
        yield from _array_blocks(asked, asked.words, header, given)


def read_tensors(asked: _blocks.Asked) -> _blocks.Blocks:
    """Read blocks of the one matrix in a file."""
    path, words = asked.path, asked.words
    package = _checks.package("safetensors", "io")
    try:
        opened = package.safe_open(path, framework="np")
    except package.SafetensorError as error:
        fail(str(path), f"no whole safetensors file ({error})", "one", "fetch or save it again")
    with opened as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        matrices = [name for name, shape in shapes.items() if len(shape) == 2]
        if len(matrices) != 1:
            fail(str(path), f"tensors {shapes}", "one matrix", "save the one that is wanted")
        part = file.get_slice(matrices[0])
        kind = part.get_dtype()
        if kind not in _blocks.DTYPES:
            expected = "float16, float32 or float64"
            fail(str(path), f"dtype {kind}", expected, "cast to one of these")
        if words is None and "words" in (metadata := file.metadata() or {}):
            words = json.loads(metadata["words"])
        dtype = np.dtype(_blocks.DTYPES[kind])
        yield from _by_rows(asked, words, shapes[matrices[0]], dtype, part.__getitem__)


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read shape, order (whether it is by columns) and dtype of the array that follows."""
    if np.lib.format.read_magic(file) == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)


def _items(file: Any, dtype: np.dtype, count: int) -> np.ndarray:
    return np.frombuffer(file.read(count * dtype.itemsize), dtype, count)


def _array_blocks(asked: _blocks.Asked, words: Any, header: tuple, given: Any) -> _blocks.Blocks:
    """Read blocks of rows that follow a header in a file, or take them from an array by columns."""
    shape, by_columns, dtype = header

    def take(rows: slice) -> np.ndarray:
        if by_columns:
            return given[rows]
        return _items(given, dtype, (rows.stop - rows.start) * shape[1]).reshape(-1, shape[1])

    return _by_rows(asked, words, shape, dtype, take)


def _by_rows(
    asked: _blocks.Asked, words: Any, shape: Sequence[int], dtype: np.dtype, take: Callable
) -> _blocks.Blocks:
    """Cut a matrix, of which `take` gives a slice of rows, and its words into blocks."""
    path = asked.path
    if len(shape) != 2 or 0 in shape:
        fail(str(path), f"shape {tuple(shape)}", "a matrix", "save one with a row for each word")
    rows, columns = shape
    _blocks.float_dtype(str(path), dtype)
    step, stop = max(1, _blocks.BLOCK // (columns * dtype.itemsize)), min(rows, asked.limit)
    expected, do = f"{rows}, one for each row", "words and rows must go together: save both again"
    with closing(_listed(path, words)) as listed:
        for i in range(0, stop, step):
            j = min(i + step, stop)
            some = list(itertools.islice(listed, j - i))
            if len(some) < j - i:
                fail(str(path), f"{i + len(some)} words", expected, do)
            where = lambda place, i=i: f"{path}: row {i + place}, from 0"  # noqa: E731
            yield _blocks.Block(some, take(slice(i, j)).__getitem__, where, j / stop)
        if stop == rows and (more := sum(1 for _ in listed)):
            fail(str(path), f"{rows + more} words", expected, do)


def _listed(path: Path, words: Any) -> Generator[Any, None, None]:
    """Take words from a list, or from the file that is given or stands beside another."""
    if words is not None and not isinstance(words, str | Path):
        yield from words
        return
    place = path.with_suffix(".words.txt") if words is None else Path(words)
    if not place.is_file():
        do = "pass words=, a list or a file with one word on each line"
        fail(str(path), f"no word list {place}", "one beside it", do)
    with _blocks.unpacked(place) as (file, _):
        for block in _blocks.line_blocks(place, file):
            yield from (line.removesuffix(b"\r") for line in block[:-1].split(b"\n"))


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
    _write_rows(file, given)


def write_tensors(file: Any, given: _blocks.Given) -> None:
    """Write the length of a JSON text, that text, and the rows.

    The package's own writer wants the whole matrix, and lets nobody else read its files.
    """
    name = next(name for name, kind in _blocks.DTYPES.items() if kind == given.dtype)
    ends = [0, math.prod(given.shape) * given.dtype.itemsize]
    header: dict[str, Any] = {
        "vectors": {"dtype": name, "shape": given.shape, "data_offsets": ends}
    }
    if given.words is not None:
        header["__metadata__"] = {"words": json.dumps(given.words, ensure_ascii=False)}
    text = json.dumps(header, ensure_ascii=False).encode()
    if len(text) > 90_000_000:  # the format ends at 10^8
        fail("words", "more than 90 MB", "less in the metadata", "pass words=, a file for them")
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    _write_rows(file, given)


def _write_rows(file: Any, given: _blocks.Given) -> None:
    for _, rows in given.blocks:
        file.write(rows.astype(given.dtype.newbyteorder("<"), "C", copy=False).data)
