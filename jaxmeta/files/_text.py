"""Text of word2vec, fastText and GloVe: a word and its numbers on each line."""

import collections
import decimal
import itertools
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jaxmeta._checks import fail
from jaxmeta.files import _blocks, _decimal

__all__ = ["NUMBER", "read", "text_lines"]

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"

UNFIT = rf"\n|\A[ \t]|[ \t]\Z|[ \t]{NUMBER}\Z"


def read(path: Path, format: str | None, limit: int, dtype: np.dtype) -> _blocks.Blocks:
    with _blocks.unpacked(path) as (file, done):
        blocks = _blocks.line_blocks(path, file)
        start = next(blocks, b"")
        while start.count(b"\n") < 2 and (more := next(blocks, b"")):
            start += more
        rows, columns, offset = _header(path, start, format)
        row, line = 0, 2 if offset else 1
        for block in filter(None, itertools.chain([start[offset:]], blocks)):
            lines = _Lines(path, block, columns, line + row, offset, limit - row, dtype)
            yield _blocks.Block(lines.words, lines.rows, lines.where, done())
            row, offset = row + len(lines.words), offset + len(block)
            if row >= limit:
                return
        if rows not in (-1, row):
            remedy = "it is cut short or was joined: fetch it again, or mend the header"
            fail(f"{path}: line {line + row}", f"{row} rows", f"{rows}, as line 1 says", remedy)


def _header(path: Path, start: bytes, format: str | None) -> tuple[int, int, int]:
    """Rows, columns and length of the header of text; without one rows are -1, its length 0."""
    lines = [
        line.rstrip(b" \r").split(b" ") for line in start.split(b"\n", 20)[:20] if line.strip()
    ]
    if not lines:
        fail(str(path), "an empty file", "vectors", "fetch or write it again")
    header = None if format == "glove" else _blocks.HEADER.match(start)
    if header:
        rows, columns = int(header[1]), int(header[2])
        # Two integers and then again two fields are two rows of one column.
        if format == "word2vec" or columns == 1 or len(lines) < 2 or len(lines[1]) != 2:
            if not rows or not columns:
                fail(f"{path}: line 1", f"{rows} {columns}", "rows and columns", "write it again")
            return rows, columns, header.end()
    if format == "word2vec":
        remedy = "pass format='glove' if there is no header"
        fail(f"{path}: line 1", repr(start[:40]), "a header of rows and columns", remedy)
    counts: collections.Counter[int] = collections.Counter()
    for _, *fields in lines:
        numbers = itertools.takewhile(_is_number, reversed(fields))
        counts[sum(1 for _ in numbers)] += 1
    columns = counts.most_common(1)[0][0]
    if not columns:
        expected = "a word and numbers, between spaces"
        fail(f"{path}: line 1", repr(start[:40]), expected, "pass format= if this is not text")
    return -1, columns, 0


def _is_number(field: bytes) -> bool:
    return re.fullmatch(NUMBER, field.decode("latin-1"), re.ASCII) is not None


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
            fail(self.where(i), f"{fields[i]} numbers", f"{columns}", "remove or repair that line")
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
            if re.search(UNFIT, self.words[i].decode("latin-1"), re.ASCII):
                got = f"more than {columns} numbers or spaces after {self.words[i][:40]!r}"
                expected = f"a word and {columns} numbers, between single spaces"
                fail(self.where(i), got, expected, "remove or repair that line")

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
                            fail(place, repr(field), "a finite number", remedy)
                raise error
        if self._dtype.itemsize < 8:
            for row, column in _decimal.halfway(numbers, self._dtype):
                text = self._text[marks[row, column] + 1 : marks[row, column + 1]].decode()
                near = float(numbers[row, column])
                side = decimal.Decimal(text).compare(decimal.Decimal(near))
                if side:
                    numbers[row, column] = np.nextafter(near, float(side) * np.inf)
        return numbers


def text_lines(words: Sequence[str], matrix: np.ndarray) -> bytes:
    if matrix.dtype == np.float64:
        rows = [str(row)[1:-1].replace(", ", " ") for row in matrix.tolist()]
    else:
        form = " ".join(["%.9g"] * matrix.shape[1])
        rows = [form % tuple(row) for row in _decimal.shortest(matrix).tolist()]
    return "".join(f"{word} {row}\n" for word, row in zip(words, rows, strict=True)).encode()
