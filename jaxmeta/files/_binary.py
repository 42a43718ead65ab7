"""The binary format of word2vec: each word, a space, and its numbers as float32."""

import functools
from typing import Any

import numpy as np

from jaxmeta._checks import fail
from jaxmeta._files import intact
from jaxmeta.files import _blocks

__all__ = ["read", "write"]


def read(asked: _blocks.Asked) -> _blocks.Blocks:
    """Read blocks of a file in this format."""
    path = asked.path
    with _blocks.unpacked(path) as (file, done):

        def more(size: int) -> bytes:
            with intact(path):
                return file.read(size)

        buffer = more(_blocks.BLOCK)
        header = _blocks.HEADER.match(buffer)
        if not header:
            got = f"{buffer[:20]!r} at its start" if buffer else "an empty file"
            do = "pass format= if it is another; of fastText's models take the .vec file"
            fail(str(path), got, "word2vec's binary format: rows and columns first", do)
        rows, columns = int(header[1]), int(header[2])
        row, at, offset, stop = 0, header.end(), 0, min(rows, asked.limit)
        while row < stop:
            words: list[bytes | str] = []
            places: list[int] = []
            while row + len(words) < stop:
                space = buffer.find(b" ", at)
                if space < 0 or len(buffer) <= space + 4 * columns:
                    break
                words.append(buffer[at:space].lstrip(b"\n"))  # word2vec ends vectors so
                places.append(space + 1)
                at = space + 1 + 4 * columns
            if words:
                take = functools.partial(_float32s, buffer, places, columns)
                where = lambda i, at=offset, places=places: f"{path}: offset {at + places[i]}"  # noqa: E731
                yield _blocks.Block(words, take, where, done())
                row += len(words)
                continue
            block = more(max(_blocks.BLOCK, 4 * columns))
            if not block or len(buffer) - at > _blocks.LONGEST + 4 * columns:
                got = f"{row} rows, and then its end or no word"
                do = "it is truncated or damaged: fetch it again"
                fail(f"{path}: offset {offset + at}", got, f"{rows}, as it says", do)
            buffer, offset, at = buffer[at:] + block, offset + at, 0
        if row == rows and (buffer[at:] + more(_blocks.BLOCK)).strip(b"\n"):
            do = "the header is wrong or the file is damaged: fetch it again"
            fail(f"{path}: offset {offset + at}", "more data", f"{rows} rows, as it says", do)


def _float32s(buffer: bytes, places: list[int], columns: int, chosen: np.ndarray) -> np.ndarray:
    """Take the numbers at some of the places in a buffer."""
    size = 4 * columns
    every = np.ndarray((len(buffer) - size + 1,), f"V{size}", buffer, strides=(1,))
    return every[np.array(places)[chosen]].view("<f4").reshape(-1, columns)


def write(file: Any, given: _blocks.Given) -> None:
    """Write words and vectors in this format."""
    file.write(b"%d %d\n" % given.shape)
    for words, rows in given.blocks:
        numbers = (row.tobytes() for row in rows.astype("<f4", copy=False))
        lines = zip(map(str.encode, words), numbers, strict=True)
        file.write(b"".join(b"%b %b\n" % line for line in lines))
