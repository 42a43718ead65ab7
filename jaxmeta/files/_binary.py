"""The binary format of word2vec: each word, a space, and its numbers as float32."""

import functools
import re
from typing import Any

import numpy as np

from jaxmeta._checks import fail
from jaxmeta.files import _blocks

__all__ = ["read", "write"]


def read(asked: _blocks.Asked) -> _blocks.Blocks:
    """Read blocks of a file in this format."""
    path = asked.path
    with _blocks.unpacked(path) as (file, done):
        buffer = file.read(_blocks.BLOCK)
        header = _blocks.HEADER.match(buffer)
        if not header or not 0 < int(header[2]) < _blocks.LONGEST:
            got = f"{buffer[:20]!r} at its start" if buffer else "an empty file"
            do = "pass format= if it is another; of fastText's models take the .vec file"
            fail(str(path), got, "word2vec's binary format: rows and columns first", do)
        rows, columns = int(header[1]), int(header[2])
        row, at, offset, stop = 0, header.end(), 0, min(rows, asked.limit)
        # What a word is followed by: all of its numbers, or the end of the buffer.
        split = re.compile(rb"([^ ]*+)(?: .{%d}|.*)" % (4 * columns), re.DOTALL).findall
        while row < stop:
            words = split(buffer, at)[: stop - row]
            ends = at + np.cumsum(np.fromiter(map(len, words), int, len(words)) + 1 + 4 * columns)
            count = int(np.searchsorted(ends, len(buffer), "right"))
            if count:
                # word2vec puts a new line after each vector.
                words = [word.lstrip(b"\n") for word in words[:count]]
                places = ends[:count] - 4 * columns
                decode = functools.partial(_decode, columns)
                take = functools.partial(_taken, buffer, places, columns)
                where = lambda i, at=offset, places=places: f"{path}: offset {at + places[i]}"  # noqa: E731
                stored = None
                if path.suffix.lower() not in _blocks.PACKED:
                    stored = _blocks.Stored(offset + places, 4 * columns, decode)
                yield _blocks.Block(words, take, where, done(), stored)
                row, at = row + count, int(ends[count - 1])
                continue
            block = file.read(max(_blocks.BLOCK, 4 * columns))
            if not block or len(buffer) - at > _blocks.LONGEST + 4 * columns:
                got = f"{row} rows, and then its end or no word"
                do = "it is truncated or damaged: fetch it again"
                fail(f"{path}: offset {offset + at}", got, f"{rows}, as it says", do)
            buffer, offset, at = buffer[at:] + block, offset + at, 0
        if row == rows and (buffer[at:] + file.read(_blocks.BLOCK)).strip(b"\n"):
            do = "the header is wrong or the file is damaged: fetch it again"
            fail(f"{path}: offset {offset + at}", "more data", f"{rows} rows, as it says", do)


def _taken(buffer: bytes, places: np.ndarray, columns: int, chosen: np.ndarray) -> np.ndarray:
    """Take the numbers at some of the places in a buffer."""
    return _decode(columns, _blocks.at_each_byte(buffer, 4 * columns)[places[chosen]])


def _decode(columns: int, items: np.ndarray) -> np.ndarray:
    return items.view("<f4").reshape(-1, columns).astype(np.float32, copy=False)


def write(file: Any, given: _blocks.Given) -> None:
    """Write words and vectors in this format."""
    file.write(b"%d %d\n" % given.shape)
    size = 4 * given.shape[1]
    for words, rows in given.blocks:
        text = np.frombuffer(" ".join([*words, ""]).encode(), np.uint8)
        ends = np.flatnonzero(text == ord(" ")) + 1
        shifts = (size + 1) * np.arange(len(words))
        places = ends + shifts
        block = np.empty(int(places[-1]) + size + 1, np.uint8)
        block[np.arange(len(text)) + shifts.repeat(np.diff(ends, prepend=0))] = text
        numbers = np.ascontiguousarray(rows, "<f4").view(f"V{size}")
        _blocks.at_each_byte(block, size)[places] = numbers[:, 0]
        block[places + size] = ord("\n")
        file.write(block.data)
