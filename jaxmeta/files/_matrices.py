"""The formats of a matrix, `.npz`, `.npy` and `.safetensors`, with words inside or beside it."""

import itertools
import json
import math
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxmeta._checks import fail
from jaxmeta._files import Unpacked, intact
from jaxmeta.files import _blocks, _lists, _safetensors, _tokenizer

__all__ = ["read_npy", "read_npz", "read_tensors", "write_npy", "write_npz", "write_tensors"]

SHOWN = 6  # tensors in a message


def read_npz(asked: _blocks.Asked) -> _blocks.Blocks:
    """Read blocks of an archive with arrays `words` and `vectors`."""
    path = asked.path
    with path.open("rb") as raw:
        with intact(path):
            archive = zipfile.ZipFile(raw)
            members = {info.filename: info for info in archive.infolist()}
        if not {"words.npy", "vectors.npy"} <= set(members):
            names = [name.removesuffix(".npy") for name in members][:SHOWN]
            got = f"arrays {', '.join(names) or 'none'}"
            fail(str(path), got, "words and vectors", "save them under these names")
        listed, first = _array_in(path, archive, members["words.npy"])
        words = _words_in(path, listed, first)
        info = members["vectors.npy"]
        file, header = _array_in(path, archive, info)
        start = None
        if info.compress_type == zipfile.ZIP_STORED and not header.by_columns:
            start = _content(path, info) + file.tell()
        yield from _array_blocks(asked, words, header, file, start)


def _array_in(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> "tuple[Any, _Header]":
    """Open an array in an archive, and read its header."""
    most = _blocks.most_unpacked(path)
    with intact(path):
        file = Unpacked(path, archive.open(info), most)
    return file, _header(path, file, min(info.file_size, most))


def _words_in(path: Path, file: Any, header: "_Header") -> Iterator[Any]:
    """Read words one by one, from a block of them at a time."""
    (shape, _, kind), where = header, f"{path}: words"
    if kind.kind not in "US" or not 0 < kind.itemsize <= 4 * _blocks.LONGEST:
        fail(where, f"dtype {kind}", "strings", "save them as np.array(words, dtype=str)")
    if len(shape) != 1:
        fail(where, f"shape {shape}", "a vector, with a word for each row", "reshape them")
    step = max(1, _blocks.BLOCK // kind.itemsize)
    for start in range(0, shape[0], step):
        items = _items(path, file, kind, min(step, shape[0] - start))
        with intact(path):  # not all bytes are text
            some = items.tolist()
        yield from some


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
        listed, size = _lists.tied(file), path.stat().st_size
        header = _header(path, file, size - len(_lists.tie(listed)))
        yield from _array_blocks(asked, asked.words, header, file, file.tell(), listed)


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
            with intact(path, "no words in its metadata", "a list of words"):
                words = json.loads(metadata["words"])
                if not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
                    raise TypeError(f"{type(words).__name__} that is no list of text")
        elif words is None and not _lists.beside(path).is_file():
            beside = path.with_name(_tokenizer.NAME)
            words = beside if beside.is_file() else None
        file.seek(tensor.start)
        if tensor.kind == "BF16":
            numbers = _Numbers(np.dtype("<u2"), np.dtype(np.float32))
        else:
            numbers = _Numbers(np.dtype(_blocks.DTYPES[tensor.kind]).newbyteorder("<"))
        take = partial(_read_rows, path, file, numbers, tensor.shape)
        listed = metadata.get(_lists.NAME, "")
        yield from _by_rows(asked, words, tensor.shape, numbers, take, tensor.start, listed)


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
        """Make rows of the bytes of some, in the byte order of the machine."""
        rows = items.view(self.stored).reshape(-1, columns)
        if self.wide is None:
            return rows.astype(self.stored.newbyteorder("="), copy=False)
        return (rows.astype("<u4") << 16).view("<f4").astype(self.wide, copy=False)


def _read_rows(
    path: Path, file: Any, numbers: _Numbers, shape: Sequence[int], rows: slice
) -> np.ndarray:
    """Read rows that follow in a file."""
    count = (rows.stop - rows.start) * shape[1]
    return numbers.decode(shape[1], _items(path, file, numbers.stored, count))


def _read_columns(
    path: Path, file: Any, start: int, dtype: np.dtype, shape: Sequence[int], rows: slice
) -> np.ndarray:
    """Read a piece of each column of a file that has one column after the other."""
    found = np.empty((rows.stop - rows.start, shape[1]), dtype.newbyteorder("="))
    for j in range(shape[1]):
        file.seek(start + (j * shape[0] + rows.start) * dtype.itemsize)
        found[:, j] = _items(path, file, dtype, len(found))
    return found


class _Header(NamedTuple):
    """An array follows, of this kind."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype


_VERSIONS: dict[tuple[int, int], Callable[[Any], tuple]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def _header(path: Path, file: Any, size: int) -> _Header:
    """Read the header of an array that ends where its file of so many bytes does."""
    with (
        intact(path, "no whole .npy file", "one", "fetch or save it again"),
        warnings.catch_warnings(action="ignore"),
    ):
        header = _Header(*_VERSIONS[np.lib.format.read_magic(file)](file))
        if not all(type(length) is int and length >= 0 for length in header.shape):
            raise ValueError(f"shape {header.shape}")
        left, needed = size - file.tell(), math.prod(header.shape) * header.dtype.itemsize
        if left != needed and not header.dtype.hasobject:  # which is refused for that
            raise ValueError(f"{left} bytes, and not {needed}, for shape {header.shape}")
    return header


def _items(path: Path, file: Any, dtype: np.dtype, count: int) -> np.ndarray:
    """Read so many numbers, or words."""
    found = file.read(count * dtype.itemsize)
    if len(found) != count * dtype.itemsize:
        do = "leave it alone while it is read, or fetch it again"
        fail(str(path), f"{len(found)} bytes", f"{count * dtype.itemsize} more", do)
    return np.frombuffer(found, dtype)


def _array_blocks(
    asked: _blocks.Asked,
    words: Any,
    header: _Header,
    file: Any,
    start: int | None,
    listed: str = "",
) -> _blocks.Blocks:
    """Read blocks of rows that follow a header in a file, from its offset `start` if it has one."""
    path, (shape, by_columns, dtype) = asked.path, header
    numbers = _Numbers(dtype)
    take: Callable[[slice], np.ndarray] = partial(_read_rows, path, file, numbers, shape)
    if by_columns and start is not None:
        take, start = partial(_read_columns, path, file, start, dtype, shape), None
    elif by_columns and len(shape) == 2:
        # What is in an archive is not read twice.
        _blocks.float_dtype(str(path), dtype)
        whole = _items(path, file, dtype, math.prod(shape))
        take = whole.reshape(shape, order="F").__getitem__
    return _by_rows(asked, words, shape, numbers, take, start, listed)


def _by_rows(
    asked: _blocks.Asked,
    words: Any,
    shape: Sequence[int],
    numbers: _Numbers,
    take: Callable[[slice], np.ndarray],
    start: int | None,
    digest: str,
) -> _blocks.Blocks:
    """Cut a matrix, of which `take` gives a slice of rows, and its words into blocks.

    Rows stand in the file from offset `start` on, one after the other, unless that is None. A list
    of words that is a file has the `digest`, if there is any.
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
    with closing(_lists.listed(path, words, rows, digest)) as listed:
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
    file.write(_lists.tie(given.listed))


def write_tensors(file: Any, given: _blocks.Given) -> None:
    """Write a matrix, with its words in the metadata unless they are in a list."""
    name = next(name for name, kind in _blocks.DTYPES.items() if kind == given.dtype)
    metadata = {}
    if given.words is not None:
        metadata["words"] = json.dumps(given.words, ensure_ascii=False)
    else:
        metadata[_lists.NAME] = given.listed
    _safetensors.write_header(file, {"vectors": (name, given.shape)}, metadata)
    _write_rows(file, given)


def _write_rows(file: Any, given: _blocks.Given) -> None:
    for _, rows in given.blocks:
        file.write(rows.astype(given.dtype.newbyteorder("<"), "C", copy=False).data)
