"""Text of word2vec, fastText and GloVe: a word and its numbers on each line."""

import collections
import decimal
import functools
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jaxmeta._checks import fail
from jaxmeta.files import _blocks, _decimal

__all__ = ["read", "unfit", "write"]

# Possessive: no digit is looked at twice.
_NUMBER = r"[+-]?+(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?+\d++)?+"
_is_number = re.compile(_NUMBER, re.ASCII).fullmatch
_begins = re.compile(_NUMBER, re.ASCII).match
_READ = rf"(?:{_NUMBER}|[+-]?(?:nan|inf(?:inity)?))"
_are_numbers = re.compile(rf"{_READ}(?: {_READ})*+", re.ASCII | re.IGNORECASE).fullmatch
# Where a word ends could not be told, or others would take a part of it for a line.
_ends_in_doubt = re.compile(rf"[\n\r]|\A[ \t]|[ \t]\Z|[ \t]{_NUMBER}\Z", re.ASCII).search


def unfit(columns: int) -> Callable[[str], bool]:
    """Make a test for words that cannot be told from numbers, or from two lines made one.

    Where a new line is lost, a word has as many numbers inside as a row, to the last of which
    another word is joined.
    """

    def test(word: str) -> bool:
        inside = map(_begins, re.split("[ \t]", word)[1:])
        return bool(_ends_in_doubt(word)) or sum(map(bool, inside)) >= columns

    return test


def read(asked: _blocks.Asked) -> _blocks.Blocks:
    """Read blocks of text, whose first lines tell whether it has a header."""
    path = asked.path
    with _blocks.unpacked(path) as (file, done):
        blocks = _blocks.line_blocks(path, file)
        start = next(blocks, b"")
        while start.count(b"\n") < 3 and (more := next(blocks, b"")):
            start += more
        rows, columns, offset = _header(path, start, asked.format)
        doubtful = unfit(columns)
        row, line = 0, 1 if rows == -1 else 2
        for block in filter(None, itertools.chain([start[offset:]], blocks)):
            where = functools.partial(_where, path, block, line + row, offset)
            words, text, marks = _fields(block, columns, asked.limit - row, doubtful, where)
            if row == 0 and rows == -1 and _joins_header(words[0].decode("latin-1"), columns):
                do = "put the header on a line of its own"
                fail(where(0), f"{words[0][:40]!r}", "a word, or a header", do)
            numbers = functools.partial(_numbers, text, marks, asked.dtype, where)
            yield _blocks.Block(words, numbers, where, done())
            row, offset = row + len(words), offset + len(block)
            if row >= asked.limit:
                return
        if rows not in (-1, row):
            do = "it is cut short or was joined: fetch it again, or mend the header"
            fail(f"{path}: line {line + row}", f"{row} rows", f"{rows}, as line 1 says", do)


def _header(path: Path, start: bytes, format: str | None) -> tuple[int, int, int]:
    """Find rows, columns and where the first row begins; without a header rows are -1."""
    lines = start.split(b"\n", 20)[:20]
    rows_of_fields = [line.rstrip(b" \r").split(b" ") for line in lines if line.strip()]
    if not rows_of_fields:
        fail(str(path), "an empty file", "vectors", "fetch or write it again")
    first, shown = f"{path}: line 1", repr(start[:40])
    header = None if format == "glove" else _blocks.HEADER.match(start)
    if header:
        rows, columns = int(header[1]), int(header[2])
        # Two integers and then again two fields are two rows of one column.
        alone = len(rows_of_fields) < 2 or len(rows_of_fields[1]) != 2
        if not (format or alone or columns == 1) and len(rows_of_fields) == 2:
            do = "it is cut short: fetch it again, or pass format='glove' for rows of one column"
            fail(first, f"{shown} and no more", "a header and rows, or rows", do)
        if format == "word2vec" or columns == 1 or alone:
            if not rows or not columns:
                fail(first, f"{rows} {columns}", "rows and columns", "write it again")
            return rows, columns, header.end()
    if format == "word2vec":
        do = "pass format='glove' if there is no header"
        fail(first, shown, "a header of rows and columns", do)
    columns = collections.Counter(
        sum(1 for _ in itertools.takewhile(_is_number, (x.decode("latin-1") for x in fields[::-1])))
        for _, *fields in rows_of_fields
    ).most_common(1)[0][0]
    if not columns:
        do = "pass format= if this is not text"
        fail(first, shown, "a word and numbers, between spaces", do)
    mark = _blocks.MARK.encode()
    return -1, columns, len(mark) if start.startswith(mark) else 0


def _joins_header(word: str, columns: int) -> bool:
    """Whether a first word is a header and a word: a new line is lost."""
    return re.match(rf"\d+ {columns}.", word, re.ASCII) is not None


def _where(path: Path, block: bytes, line: int, offset: int, i: int) -> str:
    """Name the place of line i of a block that begins at a line and offset of a file."""
    start = sum(len(each) + 1 for each in block.split(b"\n", i)[:i])
    return f"{path}: line {line + i} (offset {offset + start})"


def _fields(
    block: bytes,
    columns: int,
    limit: int,
    doubtful: Callable[[str], bool],
    where: Callable[[int], str],
) -> tuple[list[bytes], bytes, np.ndarray]:
    """Give the words of some lines, a text, and the places in it around all of their numbers."""
    do = "remove or repair that line"
    if b"\r\n" in block:
        block = block.replace(b"\r\n", b"\n")
    if b"\r" in block:
        i = block[: block.index(b"\r")].count(b"\n")
        if i < limit:
            fail(where(i), "a carriage return inside", "lines that end in a new line", do)
    block = block.replace(b" \n", b"\n")  # word2vec and fastText end lines so
    if b" \n" in block:
        block = re.sub(rb"(?<! ) ++\n", b"\n", block)
    text = bytes(16) + block  # numbers are read 16 bytes at a time, up to their ends
    codes = np.frombuffer(text, np.uint8)
    marks = np.flatnonzero((codes == ord(" ")) | (codes == ord("\n")))
    ends = np.flatnonzero(codes[marks] == ord("\n"))[:limit]
    fields = np.diff(ends, prepend=-1) - 1
    if (fields < columns).any():
        i = int(np.argmax(fields < columns))
        fail(where(i), f"{fields[i]} numbers", f"{columns}", do)
    starts = [16, *(marks[ends[:-1]] + 1).tolist()]
    if (fields == columns).all():
        around = marks[: ends[-1] + 1].reshape(len(ends), -1)
    else:
        around = marks[ends[:, None] + np.arange(-columns, 1)]
    words = [text[i:j] for i, j in zip(starts, around[:, 0].tolist(), strict=True)]
    longer = range(len(words)) if b"\t" in block else np.flatnonzero(fields > columns)
    for i in map(int, longer):
        if doubtful(words[i].decode("latin-1")):
            got = f"more than {columns} numbers or spaces after {words[i][:40]!r}"
            fail(where(i), got, f"a word and {columns} numbers, between single spaces", do)
    return words, text, around


def _numbers(
    text: bytes, marks: np.ndarray, dtype: Any, where: Callable[[int], str], chosen: np.ndarray
) -> np.ndarray:
    """Parse the chosen lines to float64 numbers that, cast to `dtype`, are nearest to the text."""
    marks = marks[chosen]
    numbers, sure = _decimal.parse(text, marks[:, :-1] + 1, marks[:, 1:].copy())
    others = np.flatnonzero(~sure.all(axis=1))
    if others.size:
        lines = [text[i + 1 : j].decode("latin-1") for i, j in marks[others][:, [0, -1]]]
        for i, line in zip(chosen[others].tolist(), lines, strict=True):
            if not _are_numbers(line):
                wrong = next(field for field in line.split(" ") if not _are_numbers(field))
                fail(where(i), repr(wrong[:40]), "a finite number", "remove or repair that line")
        numbers[others] = np.loadtxt(lines, delimiter=" ", comments=None, ndmin=2)
    if dtype is not None and dtype.itemsize < 8:
        # A middle of two neighbours in `dtype` goes to the side on which the text is.
        for row, column in _decimal.halfway(numbers, dtype):
            exact = decimal.Decimal(text[marks[row, column] + 1 : marks[row, column + 1]].decode())
            near = float(numbers[row, column])
            if side := exact.compare(decimal.Decimal(near)):
                numbers[row, column] = np.nextafter(near, float(side) * np.inf)
    return numbers


def write(file: Any, given: _blocks.Given, *, header: bool = True) -> None:
    """Write words and vectors as text, each number in the fewest digits."""
    if header:
        file.write(b"%d %d\n" % given.shape)
    elif given.words and (
        _joins_header(given.words[0], given.shape[1]) or given.words[0].startswith(_blocks.MARK)
    ):
        expected = "one that is no header and has no mark of the byte order"
        fail("words[0]", repr(given.words[0]), expected, "put another first, or use another format")
    form = " ".join(["%.9g"] * given.shape[1])
    for words, rows in given.blocks:
        if rows.dtype == np.float64:
            numbers = [str(row)[1:-1].replace(", ", " ") for row in rows.tolist()]
        else:
            numbers = [form % tuple(row) for row in _decimal.shortest(rows).tolist()]
        lines = zip(words, numbers, strict=True)
        file.write("".join(f"{word} {row}\n" for word, row in lines).encode())
