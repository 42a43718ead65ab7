"""Rows of a file are taken in any order, whatever its format, and none of them is kept in memory.

A file is read through once, for its words and for a look at all numbers. Numbers that stand in it
as they are can be found again; others are put into a file without a name, which is gone when it is
closed, and if the process is killed. There are no memory maps: one of a file that shrinks ends the
process.
"""

import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jaxmeta._checks import fail
from jaxmeta.files import _blocks
from jaxmeta.files._formats import FORMATS, format_of
from jaxmeta.files._words import Kept

__all__ = ["Table", "opened_table"]


class Table:
    """The words of a file, and its rows."""

    def __init__(
        self,
        path: Path,
        words: tuple[str, ...],
        stored: _blocks.Stored,
        file: Any,
        mean: np.ndarray | None,
    ) -> None:
        self.words, self.mean = words, mean
        self._path, self._stored, self._file = path, stored, file
        first = self.rows(np.zeros(1, int))
        self.columns, self.dtype = first.shape[1], first.dtype

    def rows(self, chosen: np.ndarray) -> np.ndarray:
        """Take rows at these places."""
        offsets, size, decode = self._stored
        offsets = offsets[chosen]
        items = np.empty(len(offsets), f"V{size}")
        content = items.view(np.uint8).data
        # Rows that follow one another are read at once.
        first = np.flatnonzero(np.diff(offsets, prepend=offsets[:1]) != size)
        places = [*(first * size).tolist(), len(content)]
        for i, offset in enumerate(offsets[first].tolist()):
            start, end = places[i : i + 2]
            self._file.seek(offset)
            if (found := self._file.readinto(content[start:end])) != end - start:
                do = "leave it alone while it is read"
                got = f"{found} bytes at offset {offset}"
                fail(str(self._path), got, f"{end - start}, as there were before", do)
        return decode(items)


def opened_table(
    path: Path, stack: ExitStack, folder: Path, *, mean: bool, shown: Callable[[float], None]
) -> Table:
    """Read a file through, and leave it open for as long as `stack` is.

    `mean` asks for the mean of its rows; numbers that have to be unpacked are put in `folder`.
    """
    kind = FORMATS[format_of(path)]
    dtype = None if kind.dtype is None else np.dtype(kind.dtype)
    file: Any = stack.enter_context(path.open("rb", buffering=0))
    kept, found, offsets = Kept(None, "strict"), None, []
    total: Any = 0.0
    with closing(kind.read(_blocks.Asked(path, None, sys.maxsize, None, dtype))) as blocks:
        for block in blocks:
            before, chosen = len(kept.words), kept.choose(block)
            if chosen.size:
                where = lambda i, block=block, chosen=chosen: block.where(int(chosen[i]))  # noqa: E731
                rows = _blocks.cast(block.rows(chosen), dtype, where)
                if mean:
                    total = total + rows.sum(axis=0, dtype=np.float64)
                stored = block.stored
                if stored is not None:
                    offsets.append(stored.offsets[chosen])
                else:
                    if found is None:
                        unpacked = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
                        file = stack.enter_context(unpacked)
                    _put(file, rows, path, folder)
                    decode = partial(_decode, rows.dtype, rows.shape[1])
                    stored = _blocks.Stored(chosen, rows[0].nbytes, decode)
                    offsets.append(np.arange(before, len(kept.words)) * stored.size)
                found = stored
            shown(min(block.done, 1.0))
    assert found is not None  # a reader refuses files without rows
    file.flush()
    kept.warn(path, 4)
    average = total / len(kept.words) if mean else None
    stored = found._replace(offsets=np.concatenate(offsets))
    return Table(path, tuple(kept.words), stored, file, average)


def _put(file: Any, rows: np.ndarray, path: Path, folder: Path) -> None:
    try:
        file.write(np.ascontiguousarray(rows).data)
    except OSError as error:
        message = f"{folder}: the numbers of {path} could not be kept there for the time of merging"
        do = "free some space, or write the result to another folder"
        raise OSError(error.errno, f"{message} ({error.strerror}); {do}") from error


def _decode(dtype: np.dtype, columns: int, items: np.ndarray) -> np.ndarray:
    return items.view(dtype).reshape(-1, columns)
