"""The formats of a matrix, `.npz`, `.npy` and `.safetensors`, with words inside or beside it."""

import itertools
import json
import math
import zipfile
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxmeta._checks import fail
from jaxmeta._files import intact
from jaxmeta.files import _blocks, _safetensors, _tokenizer

__all__ = ["read_npy", "read_npz", "read_tensors", "write_npy", "write_npz", "write_tensors"]

SHOWN = 6  # tensors in a message


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
            given: Any = None
            if header[1]:
                given = np.lib.format.read_array(archive.open("vectors.npy"), allow_pickle=False)
            start = None
            info = archive.getinfo("vectors.npy")
            if info.compress_type == zipfile.ZIP_STORED and not header[1]:
                start = _content(path, info) + file.tell()
            yield from _array_blocks(asked, words, header, file, given, start)


def _content(path: Path, info: zipfile.ZipInfo) -> int:
    """Find where what an archive holds under a name begins, by the lengths that stand before it."""
    with path.open("rb") as file:
        file.seek(info.header_offset + 26)
        lengths = file.read(4)
        name, extra = (int.from_bytes(each, "little") for each in (lengths[:2], lengths[2:]))
        return file.tell() + name + extra


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
        given = np.load(path, mmap_mode="r", allow_pickle=False) if by_columns else None
        start = None if by_columns else file.tell()
        yield from _array_blocks(asked, asked.words, header, file, given, start)


def read_tensors(asked: _blocks.Asked) -> _blocks.Blocks:
    """Read blocks of the one matrix in a file, or of the one that is asked for."""
    path, words = asked.path, asked.words
    with path.open("rb") as file:
        metadata, tensors = _safetensors.read_header(path, file)
        tensor = tensors[_chosen(asked, tensors)]
        if tensor.kind not in _safetensors.SIZES:
            expected = "float16, bfloat16, float32 or float64"
            fail(str(path), f"dtype {tensor.kind}", expected, "cast to one of these")
        if words is None and "words" in metadata:
            words = json.loads(metadata["words"])
        elif words is None and not _list_beside(path).is_file():
            beside = path.with_name(_tokenizer.NAME)
            words = beside if beside.is_file() else None
        file.seek(tensor.start)
        if tensor.kind == "BF16":
            numbers = _Numbers(np.dtype("<u2"), np.dtype(np.float32))
        else:
            numbers = _Numbers(np.dtype(_blocks.DTYPES[tensor.kind]).newbyteorder("<"))
        take = partial(_read_rows, file, numbers, tensor.shape)
        yield from _by_rows(asked, words, tensor.shape, numbers, take, tensor.start)


def _chosen(asked: _blocks.Asked, tensors: dict[str, _safetensors.Tensor]) -> str:
    """Name the matrix that is asked for, or the only one."""
    path, name = asked.path, asked.tensor
    matrices = [name for name, each in tensors.items() if len(each.shape) == 2]
    if name is None and len(matrices) == 1:
        return matrices[0]
    if name in matrices:
        return name
    some = {name: tensors[name].shape for name in [*matrices, *tensors][:SHOWN]}
    rest = f" and {len(tensors) - len(some)} more" if len(tensors) > len(some) else ""
    if name is None:
        do = "pass tensor=, the name of the one that is wanted"
        fail(str(path), f"tensors {some}{rest}", "one matrix", do)
    fail(str(path), f"tensors {some}{rest}", f"a matrix {name!r}", "choose one of these")


class _Numbers(NamedTuple):
    """Numbers of a file, as they are stored, and as what they are read."""

    stored: np.dtype
    wide: np.dtype | None = None
    """Of this dtype they are the first half."""

    @property
    def dtype(self) -> np.dtype:
        return self.wide or self.stored

    def decode(self, columns: int, items: np.ndarray) -> np.ndarray:
        """Make rows of the bytes of some."""
        rows = items.view(self.stored).reshape(-1, columns)
        if self.wide is None:
            return rows
        return (rows.astype("<u4") << 16).view("<f4").astype(self.wide, copy=False)


def _read_rows(file: Any, numbers: _Numbers, shape: Sequence[int], rows: slice) -> np.ndarray:
    """Read rows that follow in a file."""
    count = (rows.stop - rows.start) * shape[1]
    return numbers.decode(shape[1], _items(file, numbers.stored, count))


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read shape, order (whether it is by columns) and dtype of the array that follows."""
    if np.lib.format.read_magic(file) == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)


def _items(file: Any, dtype: np.dtype, count: int) -> np.ndarray:
    return np.frombuffer(file.read(count * dtype.itemsize), dtype, count)


def _array_blocks(
    asked: _blocks.Asked, words: Any, header: tuple, file: Any, given: Any, start: int | None
) -> _blocks.Blocks:
    """Read blocks of rows that follow a header in a file, or take them from an array by columns."""
    shape, by_columns, dtype = header
    numbers = _Numbers(dtype)
    take = given.__getitem__ if by_columns else partial(_read_rows, file, numbers, shape)
    return _by_rows(asked, words, shape, numbers, take, start)


def _by_rows(
    asked: _blocks.Asked,
    words: Any,
    shape: Sequence[int],
    numbers: _Numbers,
    take: Callable[[slice], np.ndarray],
    start: int | None,
) -> _blocks.Blocks:
    """Cut a matrix, of which `take` gives a slice of rows, and its words into blocks.

    Rows stand in the file from offset `start` on, one after the other, unless that is None.
    """
    path = asked.path
    if len(shape) != 2 or 0 in shape:
        fail(str(path), f"shape {tuple(shape)}", "a matrix", "save one with a row for each word")
    rows, columns = shape
    _blocks.float_dtype(str(path), numbers.dtype)
    size = columns * numbers.stored.itemsize
    step, stop = max(1, _blocks.BLOCK // size), min(rows, asked.limit)
    expected, do = f"{rows}, one for each row", "words and rows must go together: save both again"
    decode = partial(numbers.decode, columns)
    with closing(_listed(path, words, rows)) as listed:
        for i in range(0, stop, step):
            j = min(i + step, stop)
            some = list(itertools.islice(listed, j - i))
            if len(some) < j - i:
                fail(str(path), f"{i + len(some)} words", expected, do)
            found, places = take(slice(i, j)), np.arange(i, j)
            if None in some:  # rows of no word
                named = np.flatnonzero([word is not None for word in some])
                some, found, places = [some[place] for place in named], found[named], places[named]
            where = lambda i, places=places: f"{path}: row {places[i]}, from 0"  # noqa: E731
            stored = None
            if start is not None:
                stored = _blocks.Stored(start + places * size, size, decode)
            yield _blocks.Block(some, found.__getitem__, where, j / stop, stored)
        if stop == rows and (more := sum(1 for _ in listed)):
            fail(str(path), f"{rows + more} words", expected, do)


def _list_beside(path: Path) -> Path:
    return path.with_suffix(".words.txt")


def _listed(path: Path, words: Any, rows: int) -> Generator[Any, None, None]:
    """Take words from a list, or from the file that is given or stands beside another."""
    if words is not None and not isinstance(words, str | Path):
        yield from words
        return
    place = _list_beside(path) if words is None else Path(words)
    if not place.is_file():
        do = f"pass words=, a list, a file with one word on each line, or a {_tokenizer.NAME}"
        fail(str(path), f"no word list {place}", "one beside it", do)
    if place.suffix.lower() == ".json":
        yield from _tokenizer.tokens_of(place, rows, path)
        return
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
    """Write a matrix, with its words in the metadata unless they are in a list."""
    name = next(name for name, kind in _blocks.DTYPES.items() if kind == given.dtype)
    metadata = {}
    if given.words is not None:
        metadata["words"] = json.dumps(given.words, ensure_ascii=False)
    _safetensors.write_header(file, {"vectors": (name, given.shape)}, metadata)
    _write_rows(file, given)


def _write_rows(file: Any, given: _blocks.Given) -> None:
    for _, rows in given.blocks:
        file.write(rows.astype(given.dtype.newbyteorder("<"), "C", copy=False).data)
