r"""Vectors of words, to and from files.

`read_vectors` reads what GloVe, word2vec, fastText, NumPy and safetensors write, and
`write_vectors` writes it. `as_vectors` takes what other libraries hold in memory, and `to_gensim`
gives it back.

| format | name ends in | holds |
|---|---|---|
| `glove` | `.glove` | text: a word and its numbers on each line, between single spaces |
| `word2vec` | `.txt` `.vec` | the same below a line with the number of rows and columns |
| `bin` | `.bin` | the same line; each word, a space, and its numbers in binary, float32 |
| `npz` | `.npz` | arrays `words` and `vectors` |
| `npy` | `.npy` | a matrix; words are in a list beside it, one on a line |
| `safetensors` | `.safetensors` | one matrix; words are in the metadata, as JSON, or in a list |

Text and `.bin` may be packed: `.gz`, `.bz2`, or `.zip` with one file in it. When text is read,
whatever it is called, its first lines tell whether it has a header and how many columns. Words
may have spaces inside, as some of GloVe's do: the last fields of a line are its numbers. So a word
in text may not end in a space and a number. A word in `.bin` has no space at all. The list for
`x.npy` and `x.safetensors` is `x.words.txt`, unless `words` says otherwise.

Files are read in blocks, so memory grows with what is kept and not with the file, unless an
`.npz` file holds its matrix by columns. Text is parsed many numbers at a time (`_decimal`), and
numbers with an exponent or many digits another way. On both, a number becomes the nearest of its
dtype, so that what is written, in the fewest digits that tell it apart, reads back exactly.

Everything here runs on the host, in NumPy.
"""

import bz2
import codecs
import collections
import decimal
import functools
import gzip
import importlib
import io
import itertools
import json
import math
import re
import sys
import warnings
import zipfile
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
from jaxtyping import Float

from jaxmeta import _checks
from jaxmeta._files import intact, opened, write_whole
from jaxmeta.files import _decimal
from jaxmeta.progress import Progress, silent

__all__ = [
    "DuplicateWords",
    "Vectors",
    "as_vectors",
    "read_vectors",
    "to_gensim",
    "write_vectors",
]

BLOCK = 1 << 18  # bytes read at a time: what is made of them stays in the processor's cache
LONGEST = 1 << 24  # bytes of a line, or of a word

_SUFFIXES = {
    ".txt": "word2vec",
    ".vec": "word2vec",
    ".glove": "glove",
    ".bin": "bin",
    ".npz": "npz",
    ".npy": "npy",
    ".safetensors": "safetensors",
}
_PACKED = (".gz", ".bz2", ".zip")
_DTYPES = {"F16": np.float16, "F32": np.float32, "F64": np.float64}

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_UNFIT = {
    "text": (rf"\n|\A[ \t]|[ \t]\Z|[ \t]{_NUMBER}\Z", "not ending in white space and a number"),
    "bin": (r"[ \n]", "without spaces"),
    "npz": (r"[\n\0]", "without NUL"),
    "npy": (r"\n|\r\Z", "not ending in a carriage return"),
}


class Vectors(NamedTuple):
    """Words and their vectors."""

    words: tuple[str, ...]
    matrix: Float[np.ndarray, "n k"]
    """A row for each word."""


class DuplicateWords(UserWarning):
    """A file names words more than once. The first row of each was kept."""


class _Block(NamedTuple):
    words: Sequence[bytes | str]
    rows: Callable[[np.ndarray], np.ndarray]  # the matrix of some of them, by place
    where: Callable[[int], str]  # file and line, offset or row of one of them
    done: float


_Blocks: TypeAlias = Generator[_Block, None, None]


def read_vectors(
    path: str | Path,
    *,
    format: str | None = None,
    limit: int | None = None,
    vocabulary: Collection[str] | None = None,
    words: str | Path | Sequence[str] | None = None,
    dtype: Any = None,
    errors: str = "strict",
    progress: Progress | None = None,
) -> Vectors:
    r"""Words and vectors of a file, in its order.

    Parameters
    ----------
    path
        A file. Its name tells the format, see above, if `format` does not. "glove" says that text
        has no header, "word2vec" that it has one.
    limit
        Read so many rows of the file, from its start. Later ones are not looked at.
    vocabulary
        Keep these words alone, of those within `limit`. Reading ends when all are found.
    words
        For .npy and .safetensors: the words, or a file with one on each line.
    dtype
        float16, float32 or float64. None is that of the file, and float32 for text.
    errors
        What to do with words that are not UTF-8, as in `bytes.decode`. "strict" refuses them,
        "backslashreplace" shows their bytes and keeps different words different.
    progress
        Called now and then with "vectors" and the fraction that is read.

    Words that come again are dropped, and counted in a `DuplicateWords` warning. Numbers that are
    not finite in `dtype` are refused.

    Cost: one pass; memory for what is kept, a quarter more while reading.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "vectors.txt"
    ...     _ = file.write_text("the 0.5 -1.25\n. . . 3 1e-3\n")
    ...     print(read_vectors(file).words, read_vectors(file, vocabulary=["the"]).matrix)
    ('the', '. . .') [[ 0.5  -1.25]]
    """
    path, kind = Path(path), format_of(path, format)
    if limit is not None:
        _checks.integer("limit", limit, least=1)
    most = sys.maxsize if limit is None else limit
    if isinstance(vocabulary, str) or (vocabulary is not None and not vocabulary):
        _fail("vocabulary", repr(vocabulary), "a collection of words", "pass at least one")
    if words is not None and kind not in ("npy", "safetensors"):
        _fail("words", f"some for {path}", "None", "this format has words of its own")
    try:
        codecs.lookup_error(errors)
    except LookupError:
        _fail("errors", repr(errors), "'strict', 'replace' or the like", "see bytes.decode")
    target = None if dtype is None else _float("dtype", dtype)
    if kind in ("word2vec", "glove"):
        target = np.dtype(np.float32) if target is None else target
        blocks = _read_text(path, format, most, target)
    elif kind == "bin":
        blocks = _read_binary(path, most)
    elif kind == "npz":
        blocks = _read_npz(path, most)
    elif kind == "npy":
        blocks = _read_npy(path, most, words)
    else:
        blocks = _read_safetensors(path, most, words)
    wanted = None if vocabulary is None else frozenset(vocabulary)
    with closing(blocks):
        found, repeated = _collect(blocks, wanted, most, target, errors, progress or silent)
    if not found.words:
        got = f"{len(wanted or ())} words of which none is in {path}"
        within = "" if limit is None else f" or raise limit, which is {limit}"
        _fail("vocabulary", got, "at least one", f"check case and spelling{within}")
    if repeated:
        message = f"{path}: {repeated} rows repeat a word and were dropped; the first was kept."
        warnings.warn(message, DuplicateWords, stacklevel=2)
    return found


def _fail(where: str, got: str, expected: str, remedy: str) -> NoReturn:
    raise ValueError(f"{where}: got {got}, expected {expected}; {remedy}.")


def _float(name: str, dtype: Any) -> np.dtype:
    found = np.dtype(dtype)
    if found.newbyteorder("=") not in map(np.dtype, _DTYPES.values()):
        _fail(name, f"dtype {found}", "float16, float32 or float64", "cast to one of these")
    return found.newbyteorder("=")


def format_of(path: str | Path, format: str | None = None) -> str:
    """The format that a name tells, or that is given, after checks."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    packed = suffixes.pop() if suffixes and suffixes[-1] in _PACKED else ""
    kind = format or _SUFFIXES.get("".join(suffixes[-1:]), "")
    if kind not in _SUFFIXES.values():
        known, formats = ", ".join(_SUFFIXES), ", ".join(sorted(set(_SUFFIXES.values())))
        got, expected = (
            (f"a name ending in {suffixes[-1:] or ['nothing']}", f"one of {known}")
            if format is None
            else (f"format {format!r}", f"one of {formats}")
        )
        _fail(str(path), got, expected, f"pass format=, one of {formats}")
    if packed and kind in ("npz", "npy", "safetensors"):
        _fail(str(path), packed, f"{kind} as it is", "packing is for text and .bin: unpack it")
    return kind


def _collect(
    blocks: Iterator[_Block],
    wanted: frozenset[str] | None,
    limit: int,
    dtype: np.dtype | None,
    errors: str,
    progress: Progress,
) -> tuple[Vectors, int]:
    """What is wanted of all blocks, and how many rows repeat a word."""
    kept: dict[str, None] = {}
    most = limit if wanted is None else min(limit, len(wanted))
    matrix, repeated = np.empty((0, 0)), 0
    for block in blocks:
        words, before = _decoded(block, errors), len(kept)
        if wanted is None and kept.keys().isdisjoint(words) and len(set(words)) == len(words):
            chosen = list(range(len(words)))
            kept.update(dict.fromkeys(words))
        else:
            chosen = []
            for place, word in enumerate(words):
                if wanted is None or word in wanted:
                    if word in kept:
                        repeated += 1
                    else:
                        kept[word] = None
                        chosen.append(place)
                        if wanted is not None and len(kept) == len(wanted):
                            break
        if chosen:
            rows = _cast(block.rows(np.array(chosen)), dtype, lambda i: block.where(chosen[i]))  # noqa: B023
            if not matrix.size:
                # Room for all, if the rest is like this. What is not written to takes no memory.
                room = min(most, int(len(kept) / max(block.done, 1e-6)) + 1)
                matrix = np.empty((room, rows.shape[1]), rows.dtype)
            if len(kept) > len(matrix):
                room = max(len(kept), len(matrix) * 5 // 4)
                matrix.resize((room, rows.shape[1]), refcheck=False)
            matrix[before : len(kept)] = rows
        progress("vectors", min(block.done, 0.99))
        if wanted is not None and len(kept) == len(wanted):
            break
    progress("vectors", 1.0)
    matrix.resize((len(kept), *matrix.shape[1:]), refcheck=False)
    return Vectors(tuple(kept), matrix), repeated


def _decoded(block: _Block, errors: str) -> list[str]:
    try:
        words = [w if isinstance(w, str) else w.decode("utf-8", errors) for w in block.words]
    except UnicodeDecodeError as error:
        place = next(i for i, word in enumerate(block.words) if word == error.object)
        remedy = "pass errors='backslashreplace' to keep it, or 'replace'"
        byte = f"byte {error.object[error.start]:#04x} at place {error.start}"
        _fail(block.where(place), f"{byte} of word {error.object!r}", "UTF-8", remedy)
    if not all(words):
        place = words.index("")
        _fail(block.where(place), "an empty word", "a word in every row", "remove that row")
    return words


def _cast(rows: np.ndarray, dtype: np.dtype | None, where: Callable[[int], str]) -> np.ndarray:
    """Rows in another dtype, all of them finite."""
    with np.errstate(over="ignore"):
        cast = rows.astype(_float(where(0), rows.dtype) if dtype is None else dtype, copy=False)
    if not np.isfinite(cast).all():
        i, j = np.argwhere(~np.isfinite(cast))[0].tolist()
        remedy = "remove or repair that row"
        if np.isfinite(rows[i, j]):
            remedy = "pass dtype=np.float64, or scale the vectors"
        _fail(where(i), f"{rows[i, j]} in column {j}", f"finite numbers of {cast.dtype}", remedy)
    return cast


@contextmanager
def _unpacked(path: Path) -> Iterator[tuple[Any, Callable[[], float]]]:
    """Contents of a file, packed or not, and a function for the fraction of it that is read."""
    with path.open("rb") as raw:
        texts = list(itertools.islice(opened(path, raw), 2))
        if len(texts) != 1:
            got = "several files" if texts else "no file"
            _fail(str(path), got, "an archive with one", "unpack the one that is wanted")
        size = max(path.stat().st_size, 1)
        yield texts[0][1], lambda: raw.tell() / size


def _line_blocks(path: Path, file: Any) -> Iterator[bytes]:
    """Blocks of whole lines, each with its end."""
    rest, more = b"", b"more"
    while more:
        with intact(path):
            more = file.read(BLOCK)
        cut = more.rfind(b"\n") + 1
        if cut:
            yield rest + more[:cut]
            rest = b""
        rest += more[cut:]
        if len(rest) > LONGEST:
            _fail(str(path), f"{len(rest)} bytes without a new line", "text", "pass format=")
    if rest:
        yield rest + b"\n"


_HEADER = re.compile(rb"(?:\xef\xbb\xbf)?(\d+) (\d+)[ \r]*\n")


def _header(path: Path, start: bytes, format: str | None) -> tuple[int, int, int]:
    """Rows, columns and length of the header of text; without one rows are -1, its length 0."""
    lines = [
        line.rstrip(b" \r").split(b" ") for line in start.split(b"\n", 20)[:20] if line.strip()
    ]
    if not lines:
        _fail(str(path), "an empty file", "vectors", "fetch or write it again")
    header = None if format == "glove" else _HEADER.match(start)
    if header:
        rows, columns = int(header[1]), int(header[2])
        # Two integers and then again two fields are two rows of one column.
        if format == "word2vec" or columns == 1 or len(lines) < 2 or len(lines[1]) != 2:
            if not rows or not columns:
                _fail(f"{path}: line 1", f"{rows} {columns}", "rows and columns", "write it again")
            return rows, columns, header.end()
    if format == "word2vec":
        remedy = "pass format='glove' if there is no header"
        _fail(f"{path}: line 1", repr(start[:40]), "a header of rows and columns", remedy)
    counts: collections.Counter[int] = collections.Counter()
    for _, *fields in lines:
        numbers = itertools.takewhile(_is_number, reversed(fields))
        counts[sum(1 for _ in numbers)] += 1
    columns = counts.most_common(1)[0][0]
    if not columns:
        expected = "a word and numbers, between spaces"
        _fail(f"{path}: line 1", repr(start[:40]), expected, "pass format= if this is not text")
    return -1, columns, 0


def _is_number(field: bytes) -> bool:
    return re.fullmatch(_NUMBER, field.decode("latin-1"), re.ASCII) is not None


def _read_text(path: Path, format: str | None, limit: int, dtype: np.dtype) -> _Blocks:
    with _unpacked(path) as (file, done):
        blocks = _line_blocks(path, file)
        start = next(blocks, b"")
        while start.count(b"\n") < 2 and (more := next(blocks, b"")):
            start += more
        rows, columns, offset = _header(path, start, format)
        row, line = 0, 2 if offset else 1
        for block in filter(None, itertools.chain([start[offset:]], blocks)):
            lines = _Lines(path, block, columns, line + row, offset, limit - row, dtype)
            yield _Block(lines.words, lines.rows, lines.where, done())
            row, offset = row + len(lines.words), offset + len(block)
            if row >= limit:
                return
        if rows not in (-1, row):
            remedy = "it is cut short or was joined: fetch it again, or mend the header"
            _fail(f"{path}: line {line + row}", f"{row} rows", f"{rows}, as line 1 says", remedy)


class _Lines:
    """Some lines of text. Words are told apart at once, numbers when they are asked for."""

    def __init__(
        self,
        path: Path,
        block: bytes,
        columns: int,
        line: int,
        offset: int,
        limit: int,
        dtype: np.dtype,
    ) -> None:
        self._path, self._block, self._line, self._offset = path, block, line, offset
        self._dtype = dtype
        if b"\r\n" in block:
            block = block.replace(b"\r\n", b"\n")
        while b" \n" in block:  # word2vec and fastText end lines so
            block = block.replace(b" \n", b"\n")
        self._text = bytes(16) + block  # numbers are read 16 bytes at a time, up to their ends
        codes = np.frombuffer(self._text, np.uint8)
        marks = np.flatnonzero((codes == ord(" ")) | (codes == ord("\n")))
        ends = np.flatnonzero(codes[marks] == ord("\n"))[:limit]
        fields = np.diff(ends, prepend=-1) - 1
        if (fields < columns).any():
            i = int(np.argmax(fields < columns))
            _fail(self.where(i), f"{fields[i]} numbers", f"{columns}", "remove or repair that line")
        # Before and after each number of each line.
        if (fields == columns).all():
            self._marks = marks[: ends[-1] + 1].reshape(len(ends), -1)
        else:
            self._marks = marks[ends[:, None] + np.arange(-columns, 1)]
        starts = [16, *(marks[ends[:-1]] + 1).tolist()]
        stops = self._marks[:, 0].tolist()
        self.words = [self._text[i:j] for i, j in zip(starts, stops, strict=True)]
        doubtful = range(len(self.words)) if b"\t" in block else np.flatnonzero(fields > columns)
        for i in map(int, doubtful):
            if re.search(_UNFIT["text"][0], self.words[i].decode("latin-1"), re.ASCII):
                got = f"more than {columns} numbers or spaces after {self.words[i][:40]!r}"
                expected = f"a word and {columns} numbers, between single spaces"
                _fail(self.where(i), got, expected, "remove or repair that line")

    def where(self, i: int) -> str:
        start = sum(len(line) + 1 for line in self._block.split(b"\n", i)[:i])
        return f"{self._path}: line {self._line + i} (offset {self._offset + start})"

    def rows(self, chosen: np.ndarray) -> np.ndarray:
        """Such float64 numbers that in another dtype they are nearest to the text."""
        marks = self._marks[chosen]
        numbers, sure = _decimal.parse(self._text, marks[:, :-1] + 1, marks[:, 1:].copy())
        others = np.flatnonzero(~sure.all(axis=1))
        if others.size:
            texts = [self._text[i + 1 : j].decode("latin-1") for i, j in marks[others][:, [0, -1]]]
            try:
                numbers[others] = np.loadtxt(texts, delimiter=" ", comments=None, ndmin=2)
            except ValueError as error:
                for i, text in zip(others, texts, strict=True):
                    for field in text.split(" "):
                        if not _is_number(field.encode("latin-1")):
                            remedy = "remove or repair that line"
                            place = self.where(int(chosen[i]))
                            _fail(place, repr(field), "a finite number", remedy)
                raise error
        if self._dtype.itemsize < 8:
            for row, column in _decimal.halfway(numbers, self._dtype):
                text = self._text[marks[row, column] + 1 : marks[row, column + 1]].decode()
                near = float(numbers[row, column])
                side = decimal.Decimal(text).compare(decimal.Decimal(near))
                if side:
                    numbers[row, column] = np.nextafter(near, float(side) * np.inf)
        return numbers


def _read_binary(path: Path, limit: int) -> _Blocks:
    with _unpacked(path) as (file, done):

        def read(size: int) -> bytes:
            with intact(path):
                return file.read(size)

        buffer = read(BLOCK)
        header = _HEADER.match(buffer)
        if not header:
            got = f"{buffer[:20]!r} at its start" if buffer else "an empty file"
            remedy = "pass format= if it is another; of fastText's models take the .vec file"
            _fail(str(path), got, "word2vec's binary format: rows and columns first", remedy)
        rows, columns = int(header[1]), int(header[2])
        row, at, offset = 0, header.end(), 0
        while row < min(rows, limit):
            words: list[bytes | str] = []
            places: list[int] = []
            while row + len(words) < min(rows, limit):
                space = buffer.find(b" ", at)
                if space < 0 or len(buffer) <= space + 4 * columns:
                    break
                words.append(buffer[at:space].lstrip(b"\n"))  # word2vec ends vectors so
                places.append(space + 1)
                at = space + 1 + 4 * columns
            if words:
                take = functools.partial(_float32s, buffer, places, columns)
                where = functools.partial(_at_offset, path, offset, places)
                yield _Block(words, take, where, done())
                row += len(words)
            else:
                more = read(max(BLOCK, 4 * columns))
                if not more or len(buffer) - at > LONGEST + 4 * columns:
                    got = f"{row} rows, and then its end or no word"
                    remedy = "it is truncated or damaged: fetch it again"
                    _fail(f"{path}: offset {offset + at}", got, f"{rows}, as it says", remedy)
                buffer, offset, at = buffer[at:] + more, offset + at, 0
        if row == rows and (buffer[at:] + read(BLOCK)).strip(b"\n"):
            remedy = "the header is wrong or the file is damaged: fetch it again"
            _fail(f"{path}: offset {offset + at}", "more data", f"{rows} rows, as it says", remedy)


def _float32s(buffer: bytes, places: list[int], columns: int, chosen: np.ndarray) -> np.ndarray:
    size = 4 * columns
    every = np.ndarray((len(buffer) - size + 1,), f"V{size}", buffer, strides=(1,))
    return every[np.array(places)[chosen]].view("<f4").reshape(-1, columns)


def _at_offset(path: Path, offset: int, places: list[int], i: int) -> str:
    return f"{path}: numbers at offset {offset + places[i]}"


def _read_npz(path: Path, limit: int) -> _Blocks:
    with path.open("rb") as raw, intact(path):
        archive = zipfile.ZipFile(raw)
        names = archive.namelist()
        if not {"words.npy", "vectors.npy"} <= set(names):
            got = f"arrays {', '.join(name.removesuffix('.npy') for name in names) or 'none'}"
            _fail(str(path), got, "words and vectors", "save them under these names")
        with archive.open("words.npy") as listed, archive.open("vectors.npy") as file:
            (count, *_), _, kind = _npy_header(listed)
            if kind.kind not in "US":
                remedy = "save them as np.array(words, dtype=str)"
                _fail(f"{path}: words", f"dtype {kind}", "strings", remedy)
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
            yield from _by_rows(path, words, shape, dtype, take, limit)


def _npy_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)


def _items(file: Any, dtype: np.dtype, count: int) -> np.ndarray:
    return np.frombuffer(file.read(count * dtype.itemsize), dtype, count)


def _read_npy(path: Path, limit: int, words: Any) -> _Blocks:
    with path.open("rb") as file:
        try:
            shape, by_columns, dtype = _npy_header(file)
            left = path.stat().st_size - file.tell()
            if left < math.prod(shape) * dtype.itemsize:
                raise ValueError(f"{left} bytes of numbers for shape {shape}")
        except (ValueError, EOFError) as error:
            _fail(str(path), f"no whole .npy file ({error})", "one", "fetch or save it again")
        if by_columns:
            whole = np.load(path, mmap_mode="r", allow_pickle=False)
            take = lambda i, j: whole[i:j]  # noqa: E731
        else:
            take = lambda i, j: _items(file, dtype, (j - i) * shape[1]).reshape(j - i, -1)  # noqa: E731
        with closing(_listed(path, words)) as listed:
            yield from _by_rows(path, listed, shape, dtype, take, limit)


def _read_safetensors(path: Path, limit: int, words: Any) -> _Blocks:
    package = _package("safetensors", "io")
    try:
        opened = package.safe_open(path, framework="np")
    except package.SafetensorError as error:
        _fail(str(path), f"no whole safetensors file ({error})", "one", "fetch or save it again")
    with opened as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        matrices = [name for name, shape in shapes.items() if len(shape) == 2]
        if len(matrices) != 1:
            _fail(str(path), f"tensors {shapes}", "one matrix", "save the one that is wanted")
        part = file.get_slice(matrices[0])
        dtype = np.dtype(_DTYPES.get(part.get_dtype(), np.void))
        if dtype.kind == "V":
            expected = "float16, float32 or float64"
            _fail(str(path), f"dtype {part.get_dtype()}", expected, "cast to one of these")
        metadata = file.metadata() or {}
        if words is None and "words" in metadata:
            words = json.loads(metadata["words"])
        with closing(_listed(path, words)) as listed:
            take = lambda i, j: part[i:j]  # noqa: E731
            yield from _by_rows(path, listed, shapes[matrices[0]], dtype, take, limit)


def _package(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{name}: got no such package, expected it for this; pip install 'jaxmeta[{extra}]'."
        ) from error


def _listed(path: Path, words: Any) -> Generator[Any, None, None]:
    """Words from a list, or from the file that is given or stands beside another."""
    if words is not None and not isinstance(words, str | Path):
        yield from words
        return
    place = path.with_suffix(".words.txt") if words is None else Path(words)
    if not place.is_file():
        remedy = "pass words=, a list or a file with one word on each line"
        _fail(str(path), f"no word list {place}", "one beside it", remedy)
    with _unpacked(place) as (file, _):
        for block in _line_blocks(place, file):
            lines = block[:-1].split(b"\n")
            yield from (line.removesuffix(b"\r") for line in lines) if b"\r" in block else lines


def _by_rows(
    path: Path,
    words: Iterator[Any],
    shape: Sequence[int],
    dtype: np.dtype,
    take: Callable[[int, int], np.ndarray],
    limit: int,
) -> Iterator[_Block]:
    """Blocks of a matrix and of the words that go with it."""
    if len(shape) != 2 or 0 in shape:
        _fail(str(path), f"shape {tuple(shape)}", "a matrix", "save one with a row for each word")
    rows, columns = shape
    _float(str(path), dtype)
    step, stop = max(1, BLOCK // (columns * dtype.itemsize)), min(rows, limit)
    remedy = "words and rows must go together: save both again"
    for i in range(0, stop, step):
        j = min(i + step, stop)
        some = list(itertools.islice(words, j - i))
        if len(some) < j - i:
            _fail(str(path), f"{i + len(some)} words", f"{rows}, one for each row", remedy)
        where = lambda place, i=i: f"{path}: row {i + place}, from 0"  # noqa: E731
        yield _Block(some, take(i, j).__getitem__, where, j / stop)
    if stop == rows and (more := sum(1 for _ in words)):
        _fail(str(path), f"{rows + more} words", f"{rows}, one for each row", remedy)


def write_vectors(
    path: str | Path,
    vectors: Any,
    *,
    format: str | None = None,
    words: str | Path | None = None,
    dtype: Any = None,
    progress: Progress | None = None,
) -> None:
    """Write what `as_vectors` takes. A file takes the place of another only when it is whole.

    Parameters
    ----------
    path
        Its name tells the format and the packing, see above, if `format` does not.
    words
        For .npy and .safetensors: where to write the words, one on each line.
    dtype
        Cast to float16, float32 or float64 first. A .bin file holds float32: float64 is refused
        unless this asks for it.
    progress
        Called now and then with "vectors" and the fraction that is written.
    """
    given = as_vectors(vectors)
    dtype = given.matrix.dtype if dtype is None else dtype
    take = lambda i, j: given.matrix[i:j]  # noqa: E731
    columns = given.matrix.shape[1]
    write_rows(path, given.words, columns, take, dtype, format, words, progress)


def write_rows(
    path: str | Path,
    words: Sequence[str],
    columns: int,
    take: Callable[[int, int], np.ndarray],
    dtype: Any,
    format: str | None = None,
    listed: str | Path | None = None,
    progress: Progress | None = None,
) -> None:
    """Write words and what `take(i, j)` returns for rows i to j, block by block."""
    path, kind, dtype = Path(path), format_of(path, format), _float("dtype", dtype)
    if listed is not None and kind not in ("npy", "safetensors"):
        _fail("words", f"a file for {path}", "None", "this format has words of its own")
    if kind == "bin":
        if dtype == np.float64:
            _fail("dtype", "float64", "float32 in .bin files", "pass dtype=np.float32 to round")
        dtype = np.dtype(np.float32)
    _fit(words, {"word2vec": "text", "glove": "text", "safetensors": "npy"}.get(kind, kind))
    shape, shown = (len(words), columns), progress or silent
    step = max(1, BLOCK // (columns * dtype.itemsize))
    starts = range(0, len(words), step)

    def block(i: int) -> np.ndarray:
        shown("vectors", min(i / len(words), 0.99))
        rows = take(i, min(i + step, len(words)))
        return _cast(rows, dtype, lambda place: f"vectors: row {i + place}, from 0")

    with ExitStack() as stack:
        if kind == "npy" and listed is None:
            listed = path.with_suffix(".words.txt")
        if listed is not None:
            place = stack.enter_context(write_whole(listed))
            place.write_bytes("".join(f"{word}\n" for word in words).encode())
        file = stack.enter_context(_packing(path, stack.enter_context(write_whole(path))))
        if kind == "npz":
            archive = stack.enter_context(zipfile.ZipFile(file, "w"))
            names = map(zipfile.ZipInfo, ("words.npy", "vectors.npy"))  # without a date
            with archive.open(next(names), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.array(words))
            file = stack.enter_context(archive.open(next(names), "w", force_zip64=True))
        file.write(_start_of(kind, shape, dtype, words if listed is None else None))
        for i in starts:
            rows = block(i)
            if kind in ("word2vec", "glove"):
                file.write(_text_lines(words[i : i + step], rows))
            elif kind == "bin":
                file.write(_binary_lines(words[i : i + step], rows))
            else:
                file.write(rows.astype(dtype.newbyteorder("<"), "C", copy=False).data)
    shown("vectors", 1.0)


def _start_of(
    kind: str, shape: tuple[int, int], dtype: np.dtype, words: Sequence[str] | None
) -> bytes:
    """What stands before the first row of a matrix."""
    if kind == "glove":
        return b""
    if kind == "safetensors":
        return _safetensors_header(shape, dtype, words)
    if kind in ("word2vec", "bin"):
        return b"%d %d\n" % shape
    header = {"descr": dtype.newbyteorder("<").str, "fortran_order": False, "shape": shape}
    start = io.BytesIO()
    np.lib.format.write_array_header_1_0(start, header)
    return start.getvalue()


def _fit(words: Sequence[str], kind: str) -> None:
    """Every word can be written, and read again as it is."""
    pattern, meaning = _UNFIT[kind]
    search = re.compile(pattern, re.ASCII).search
    for i, word in enumerate(words):
        if not word or "\n" in word or search(word):
            expected = f"words in one line, not empty, {meaning}"
            _fail(f"words[{i}]", repr(word), expected, "drop or mend it, or use another format")
    try:
        "".join(words).encode()
    except UnicodeEncodeError as error:
        i = next(i for i, word in enumerate(words) if error.object[error.start] in word)
        _fail(f"words[{i}]", ascii(words[i]), "words that UTF-8 can hold", "drop or mend it")


@contextmanager
def _packing(path: Path, part: Path) -> Iterator[Any]:
    """A file to write to, packed as the name of `path` says. The same content, the same bytes."""
    with ExitStack() as stack:
        raw = stack.enter_context(part.open("wb"))
        match path.suffix.lower():
            case ".gz":
                yield stack.enter_context(gzip.GzipFile("", "wb", 6, raw, mtime=0))
            case ".bz2":
                yield stack.enter_context(bz2.BZ2File(raw, "wb"))
            case ".zip":
                archive = stack.enter_context(zipfile.ZipFile(raw, "w"))
                member = zipfile.ZipInfo(path.stem)
                member.compress_type = zipfile.ZIP_DEFLATED
                yield stack.enter_context(archive.open(member, "w", force_zip64=True))
            case _:
                yield raw


def _binary_lines(words: Sequence[str], matrix: np.ndarray) -> bytes:
    rows = (row.tobytes() for row in matrix.astype("<f4"))
    return b"".join(b"%b %b\n" % pair for pair in zip(map(str.encode, words), rows, strict=True))


def _text_lines(words: Sequence[str], matrix: np.ndarray) -> bytes:
    if matrix.dtype == np.float64:
        rows = [str(row)[1:-1].replace(", ", " ") for row in matrix.tolist()]
    else:
        form = " ".join(["%.9g"] * matrix.shape[1])
        rows = [form % tuple(row) for row in _decimal.shortest(matrix).tolist()]
    return "".join(f"{word} {row}\n" for word, row in zip(words, rows, strict=True)).encode()


def _safetensors_header(
    shape: tuple[int, int], dtype: np.dtype, words: Sequence[str] | None
) -> bytes:
    """The length of a JSON text, and that. Their own writer lets nobody else read its files."""
    name = next(name for name, kind in _DTYPES.items() if kind == dtype)
    ends = [0, math.prod(shape) * dtype.itemsize]
    header: dict[str, Any] = {"vectors": {"dtype": name, "shape": shape, "data_offsets": ends}}
    if words is not None:
        header["__metadata__"] = {"words": json.dumps(words, ensure_ascii=False)}
    text = json.dumps(header, ensure_ascii=False).encode()
    if len(text) > 90_000_000:  # the format ends at 10^8
        _fail("words", "more than 90 MB", "less in the metadata", "pass words=, a file for them")
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def as_vectors(source: Any) -> Vectors:
    """Vectors from what other libraries hold.

    Parameters
    ----------
    source
        Vectors, or a pair of words and a matrix; a pair of a dict from words to rows and a matrix,
        as `tokenizer.get_vocab()` and the input table of a transformer; a dict from words to
        vectors; gensim's KeyedVectors or a model with `wv`; model2vec's StaticModel.

    >>> as_vectors({"a": [0.0, 1.0], "b": [0.5, 0.25]})
    Vectors(words=('a', 'b'), matrix=array([[0.  , 1.  ], [0.5 , 0.25]]))
    >>> as_vectors(({"b": 2, "a": 0}, np.eye(3)[:, :2])).words
    ('a', 'b')
    """
    if hasattr(source, "wv"):
        source = source.wv
    if hasattr(source, "index_to_key") and hasattr(source, "vectors"):
        words, matrix = source.index_to_key, source.vectors
    elif hasattr(source, "embedding") and hasattr(source, "tokens"):
        words, matrix = source.tokens, np.asarray(source.embedding)
        if getattr(source, "token_mapping", None) is not None:
            matrix = matrix[np.asarray(source.token_mapping)]
        if getattr(source, "weights", None) is not None:
            matrix = matrix * np.asarray(source.weights, matrix.dtype)[:, None]
    elif isinstance(source, Mapping):
        words = tuple(source)
        lengths = sorted({np.size(vector) for vector in source.values()})
        if len(lengths) > 1:
            _fail("source", f"vectors of lengths {lengths}", "one length", "drop the others")
        matrix = [np.asarray(vector) for vector in source.values()]
    elif isinstance(source, tuple) and len(source) == 2:
        words, matrix = source
    else:
        raise TypeError(
            f"source: got a {type(source).__name__}, expected vectors of a kind that is known; "
            "pass a pair of words and a matrix."
        )
    matrix = np.asarray(matrix)
    if matrix.ndim != 2 or 0 in matrix.shape:
        _fail("matrix", f"shape {matrix.shape}", "a row for each word", "reshape it")
    _float("matrix", matrix.dtype)
    if isinstance(words, Mapping):
        words, rows = zip(*sorted(words.items(), key=lambda item: item[1]), strict=True)
        if rows[0] < 0 or rows[-1] >= len(matrix):
            got = f"rows {rows[0]} to {rows[-1]}"
            _fail("words", got, f"0 to {len(matrix) - 1}", "pass the matrix that goes with them")
        matrix = matrix[np.array(rows)]
    words = tuple(words)
    if len(words) != len(matrix):
        got = f"{len(words)} words and {len(matrix)} rows"
        _fail("words and matrix", got, "one word for each row", "pass those that go together")
    for word, times in collections.Counter(words).items():
        if not isinstance(word, str):
            _fail("words", repr(word), "strings", "decode or convert them")
        if times > 1:
            remedy = "keep one row of each"
            _fail("words", f"{word!r} {times} times", "every word once", remedy)
    return Vectors(words, matrix)


def to_gensim(vectors: Any) -> Any:
    """gensim's KeyedVectors of what `as_vectors` takes, in the same dtype."""
    package = _package("gensim.models", "gensim")
    given = as_vectors(vectors)
    found = package.KeyedVectors(given.matrix.shape[1], dtype=given.matrix.dtype)
    found.add_vectors(list(given.words), given.matrix)
    return found
