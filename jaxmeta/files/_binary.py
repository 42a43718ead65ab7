"""The binary format of word2vec: each word, a space, and its numbers as float32."""

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jaxmeta._checks import fail
from jaxmeta._files import intact
from jaxmeta.files import _blocks

__all__ = ["binary_lines", "read"]


def read(path: Path, limit: int) -> _blocks.Blocks:
    with _blocks.unpacked(path) as (file, done):

        def read(size: int) -> bytes:
            with intact(path):
                return file.read(size)

        buffer = read(_blocks.BLOCK)
        header = _blocks.HEADER.match(buffer)
        if not header:
            got = f"{buffer[:20]!r} at its start" if buffer else "an empty file"
            remedy = "pass format= if it is another; of fastText's models take the .vec file"
            fail(str(path), got, "word2vec's binary format: rows and columns first", remedy)
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
                yield _blocks.Block(words, take, where, done())
                row += len(words)
            else:
                more = read(max(_blocks.BLOCK, 4 * columns))
                if not more or len(buffer) - at > _blocks.LONGEST + 4 * columns:
                    got = f"{row} rows, and then its end or no word"
                    remedy = "it is truncated or damaged: fetch it again"
                    fail(f"{path}: offset {offset + at}", got, f"{rows}, as it says", remedy)
                buffer, offset, at = buffer[at:] + more, offset + at, 0
        if row == rows and (buffer[at:] + read(_blocks.BLOCK)).strip(b"\n"):
            remedy = "the header is wrong or the file is damaged: fetch it again"
            fail(f"{path}: offset {offset + at}", "more data", f"{rows} rows, as it says", remedy)


def _float32s(buffer: bytes, places: list[int], columns: int, chosen: np.ndarray) -> np.ndarray:
    size = 4 * columns
    every = np.ndarray((len(buffer) - size + 1,), f"V{size}", buffer, strides=(1,))
    return every[np.array(places)[chosen]].view("<f4").reshape(-1, columns)


def _at_offset(path: Path, offset: int, places: list[int], i: int) -> str:
    return f"{path}: numbers at offset {offset + places[i]}"


def binary_lines(words: Sequence[str], matrix: np.ndarray) -> bytes:
    rows = (row.tobytes() for row in matrix.astype("<f4"))
    return b"".join(b"%b %b\n" % pair for pair in zip(map(str.encode, words), rows, strict=True))
