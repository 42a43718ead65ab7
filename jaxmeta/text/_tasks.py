"""Tasks of a counting that is shared out: each reads and writes files in one folder.

A task gives back little, and can be run again.
"""

import dataclasses
import functools
import multiprocessing
import os
import secrets
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from jaxmeta._checks import fail
from jaxmeta.text import _pairs, corpus
from jaxmeta.text._stored import FIELDS, words_of
from jaxmeta.text.corpus import Corpus, Range
from jaxmeta.text.splits import Split

__all__ = ["Run", "Task", "Written", "begin"]

_stop: Any = None  # an event that tells a process to leave its task, if `begin` has set it


class Run(NamedTuple):
    """A text, or part of one, in a group."""

    name: str
    opening: bool
    """Whether the text starts here."""
    codes: int
    places: int
    """Those of the codes that have a position in the text."""


class Written(NamedTuple):
    """What is known of a group once its words are numbers."""

    runs: list[Run]
    some: list[bool]
    """Whether there is a word in each range."""
    known: bool
    """Whether there is a word of the vocabulary."""


@dataclasses.dataclass(frozen=True)
class Task:
    """What all tasks need to know; words stand in the folder."""

    folder: Path
    corpus: Corpus
    window: int
    unknown: str
    split: Split | None
    size: int
    """Of the vocabulary."""
    parts: int

    def number(self, group: str, ranges: Sequence[Range]) -> Written:
        """Write the numbers of words in a group."""
        index, runs, some, known = _index(self.folder), list[Run](), list[bool](), False
        with _whole(self.folder / f"{group}.codes") as file:
            for place in ranges:
                some.append(False)
                texts = corpus.read_range(self.corpus, place, self.window)
                for name, opening, tokens, _ in texts:
                    _go_on()
                    codes = _pairs.numbers_of(tokens, index, self.unknown)
                    file.write(codes.data)
                    some[-1] = some[-1] or corpus.has_word(tokens)
                    known = known or bool((codes >= 0).any())
                    if opening or not runs:
                        runs.append(Run(name, opening, 0, 0))
                    places = runs[-1].places + int(np.count_nonzero(codes != _pairs.NOTHING))
                    runs[-1] = runs[-1]._replace(codes=runs[-1].codes + len(codes), places=places)
        return Written(runs, some, known)

    def count(self, group: str, runs: Sequence[Run], position: int) -> None:
        """Count the pairs of a group, whose first place has this position."""

        def numbered() -> Iterator[_pairs.Numbered]:
            with (self.folder / f"{group}.codes").open("rb") as file:
                for name, opening, left, _ in runs:
                    while opening or left:
                        _go_on()
                        codes = np.fromfile(file, np.int32, min(left, corpus.PLACES))
                        if left and not codes.size:
                            got = f"{left} numbers less than were written"
                            fail(file.name, got, "all of them", "count again", OSError)
                        yield name, opening, codes
                        opening, left = False, left - codes.size

        self.save(group, self.summed(numbered(), position))

    def summed(self, pieces: Iterable[_pairs.Numbered], position: int = 0) -> Iterator[csr_array]:
        """Count pairs at each offset."""
        codes = _pairs.labelled(pieces, self.size, self.split, position)
        return _pairs.summed(codes, self.size, self.parts, self.window)

    def save(self, name: str, offsets: Iterable[csr_array]) -> None:
        """Write counts by offset."""
        for d, x in enumerate(offsets, start=1):
            with _whole(self.folder / f"{name}_{d}.counts") as file:
                for field in FIELDS:
                    np.save(file, getattr(x, field))

    def added(self, names: Sequence[str], d: int) -> csr_array:
        """Add up counts at an offset, read one after the other."""
        rows, terms = (2 * self.parts - 1) * self.size, list[csr_array]()
        for name in names:
            _go_on()
            with (self.folder / f"{name}_{d}.counts").open("rb") as file:
                arrays = tuple(np.load(file) for _ in FIELDS)
            x = csr_array(arrays, shape=(rows, self.size))
            x.has_canonical_format = True  # saves a look at every entry
            _pairs.add_to(terms, x)
        return _pairs.total(reversed(terms))

    def merge(self, names: Sequence[str], into: str) -> None:
        """Add up counts by offset."""
        self.save(into, (self.added(names, d) for d in range(1, self.window + 1)))

    def finish(self, names: Sequence[str], d: int) -> list[int]:
        """Add up what is left at an offset, write it node by node, and tell the pairs of each."""
        x, pairs = self.added(names, d), []
        for node in range(2 * self.parts - 1):
            own = x[node * self.size : (node + 1) * self.size]
            pairs.append(own.nnz)
            for field in FIELDS:
                with _whole(self.folder / f"{node}_{d}_{field}.npy") as file:
                    np.save(file, getattr(own, field))
        return pairs


@functools.lru_cache(maxsize=1)
def _index(folder: Path) -> dict[str, int]:
    return _pairs.index_of(words_of(np.load(folder / "words.npy")))


@contextmanager
def _whole(path: Path) -> Iterator[BinaryIO]:
    """Give a file that takes its name when it is whole: a task may be run twice, even at a time."""
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    with part.open("wb") as file:
        yield file
    part.replace(path)


def begin(stop: Any) -> None:
    """Leave Ctrl-C to the process that counts, and end when it is no more."""
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _go_on() -> None:
    if _stop is not None and _stop.is_set():
        raise CancelledError
