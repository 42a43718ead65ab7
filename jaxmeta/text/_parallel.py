"""Counting is shared out among processes, here or on many machines, by files in one folder.

First each group of ranges of text becomes numbers of words, in a file. Then it is known where in
its text each group starts, and so which part of a split a place is in; pairs within groups are
counted, and those that cross from one to the next. Counts are added up, some at a time, and
written node by node as `save_counts` has them.
"""

import dataclasses
import functools
import multiprocessing
import pickle
import queue
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from jaxmeta._checks import fail
from jaxmeta._files import opened
from jaxmeta.progress import Progress, silent
from jaxmeta.text import _pairs, corpus
from jaxmeta.text._stored import FIELDS, as_text
from jaxmeta.text._tasks import Task, Written, begin
from jaxmeta.text.corpus import Corpus, Range
from jaxmeta.text.splits import Split, halves_have_pairs

__all__ = ["Counting", "count_in_folder", "count_in_processes"]

GROUPS = 4  # of ranges for each worker
LARGEST = 128  # pieces of text in a group
TOGETHER = 16  # counts that are added up in one task


@dataclasses.dataclass(frozen=True)
class Counting:
    """What is counted: the arguments of `count_windows`."""

    corpus: Corpus
    words: tuple[str, ...]
    window: int
    unknown: str
    split: Split | None

    @property
    def parts(self) -> int:
        """How many parts the split has."""
        return 1 if self.split is None else self.split.parts


def count_in_folder(
    counting: Counting,
    folder: Path,
    executor: Executor,
    workers: int,
    progress: Progress | None = None,
) -> list[str]:
    """Write what `to_arrays` gives of the counts as .npy files, and list the names of the arrays.

    All that runs tasks of the executor has to see the folder, and the corpus.
    """
    groups = _groups(counting, workers)
    text = dataclasses.replace(counting.corpus, path="")
    split, parts, window = counting.split, counting.parts, counting.window
    size = len(counting.words)
    task = Task(folder, text, window, counting.unknown, split, size, parts)
    np.save(folder / "words.npy", as_text(counting.words))
    np.save(folder / "window.npy", window)
    running = _Running(executor, progress or silent, 2 * len(groups) + window)

    written = dict[int, Written]()
    for number, ranges in enumerate(groups):
        running.start(
            functools.partial(written.__setitem__, number), task.number, str(number), ranges
        )
    running.finish()
    known = [written[number] for number in range(len(groups))]
    _refuse_nothing(counting, groups, known)
    positions = _positions(known)

    ready: list[list[str]] = [[]]  # counts, by how often they were added up

    def counted(level: int, name: str, used: Iterable[Path], _: None) -> None:
        for path in used:
            path.unlink()
        if level == len(ready):
            ready.append([])
        ready[level].append(name)
        if len(ready[level]) == TOGETHER:
            names, ready[level] = ready[level], []
            into = f"{level + 1}+{secrets.token_hex(4)}"
            used = [folder / f"{x}_{d}.counts" for x in names for d in range(1, window + 1)]
            running.start(
                functools.partial(counted, level + 1, into, used), task.merge, names, into
            )

    if _count_crossing(task, known, positions):
        ready[0].append("crossing")
    for number, (one, position) in enumerate(zip(known, positions, strict=True)):
        then = functools.partial(counted, 0, str(number), [folder / f"{number}.codes"])
        running.start(then, task.count, str(number), one.runs, position)
    running.finish()

    left, by_offset = [name for names in ready for name in names], list[list[int]]()
    for d in range(1, window + 1):
        running.start(by_offset.append, task.finish, left, d)
    running.finish()
    halves_have_pairs([sum(pairs) for pairs in zip(*by_offset, strict=True)])
    running.say("counts", 1.0)
    nodes, offsets = range(2 * parts - 1), range(1, window + 1)
    names = [f"{node}_{d}_{field}" for node in nodes for d in offsets for field in FIELDS]
    return ["words", "window", *names]


def _groups(counting: Counting, workers: int) -> list[list[Range]]:
    """Share out a corpus in groups of ranges with about as many bytes."""
    paths, encoding = corpus.paths_of(counting.corpus.path), counting.corpus.encoding
    if counting.split is not None:  # it may not have every file
        for path in paths:
            with path.open("rb") as raw:
                for name, _ in opened(path, raw):
                    counting.split.labels_of(name)
    total = sum(path.stat().st_size for path in paths)
    pieces = -(-total // (corpus.PIECE * GROUPS * workers))
    size = corpus.PIECE * min(max(1, pieces), LARGEST)
    groups, held = list[list[Range]]([[]]), 0
    for path in map(Path.absolute, paths):
        for place in corpus.ranges_of(path, size, encoding):
            if held >= size:
                groups.append([])
                held = 0
            groups[-1].append(place)
            held += (path.stat().st_size if place.stop is None else place.stop) - place.start
    return groups


def _refuse_nothing(
    counting: Counting, groups: Sequence[Sequence[Range]], written: Sequence[Written]
) -> None:
    """Refuse a file without words, and a vocabulary without one of the corpus."""
    some = dict[Path, bool]()
    for ranges, one in zip(groups, written, strict=True):
        for place, found in zip(ranges, one.some, strict=True):
            some[place.path] = some.get(place.path, False) or found
    for path, found in some.items():
        if not found:
            corpus.refuse_empty(path)
    if not any(one.known for one in written):
        _pairs.refuse_words(counting.words)


def _positions(written: Sequence[Written]) -> list[int]:
    """Find the position of the first place of each group in its text."""
    positions, position = [], 0
    for one in written:
        positions.append(position)
        for run in one.runs:
            position = run.places + (0 if run.opening else position)
    return positions


def _count_crossing(task: Task, written: Sequence[Written], positions: Sequence[int]) -> bool:
    """Count the pairs that cross from a group to a later one, if a text does.

    They are those of what is near the end and the start, joined, without those of each alone.
    """
    window = task.window
    nothing = np.full(window, _pairs.NOTHING, np.int32)
    last, joined, apart = nothing, list[np.ndarray](), list[np.ndarray]()
    for number, (one, position) in enumerate(zip(written, positions, strict=True)):
        path = task.folder / f"{number}.codes"
        if not one.runs[0].opening:
            # What is beyond places without a word is too far away, or in another text.
            before = last[1 + max(np.flatnonzero(last == _pairs.NOTHING), default=-1) :]
            after = np.fromfile(path, np.int32, window)
            after = after[: min(np.flatnonzero(after == _pairs.NOTHING), default=window)]
            piece = one.runs[0].name, False, np.concatenate([before, after])
            start = position - before.size
            (both,) = _pairs.labelled([piece], task.size, task.split, start)
            joined += [both, nothing]
            apart += [both[: before.size], nothing, both[before.size :], nothing]
        codes = path.stat().st_size // last.itemsize
        end = np.fromfile(path, np.int32, offset=max(0, codes - window) * last.itemsize)
        last = np.concatenate([last, end])[-window:]
    if joined:
        sums = (_pairs.summed(x, task.size, task.parts, window) for x in (joined, apart))
        task.save("crossing", (x - y for x, y in zip(*sums, strict=True)))
    return bool(joined)


class _Running:
    """Tasks that run; as one ends, what follows from it is done here."""

    def __init__(self, executor: Executor, say: Progress, tasks: int) -> None:
        self.say, self._executor, self._tasks, self._done = say, executor, tasks, 0
        self._ended: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._then: dict[Future[Any], Callable[[Any], None]] = {}

    def start(self, then: Callable[[Any], None], function: Callable[..., Any], *given: Any) -> None:
        """Start a task, of whose result `then` is called."""
        future = self._executor.submit(function, *given)
        self._then[future] = then
        future.add_done_callback(self._ended.put)

    def finish(self) -> None:
        """Wait for all tasks, also those that others start."""
        try:
            while self._then:
                future = self._ended.get()
                result = future.result()
                self._done += 1
                self.say("counts", min(self._done / self._tasks, 0.99))
                self._then.pop(future)(result)
        except BaseException:
            for future in self._then:
                future.cancel()
            raise


def count_in_processes(
    counting: Counting, workers: int, progress: Progress | None
) -> dict[str, np.ndarray]:
    """Give what `to_arrays` does of the counts."""
    for name, value in (("tokenise", counting.corpus.tokenise), ("split", counting.split)):
        try:
            pickle.dumps(value)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            expected = "functions that can be sent to other processes"
            fail(
                name, str(error), expected, "define them at the top of a module, or leave workers=1"
            )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        folder = Path(made)
        with _processes(workers) as executor:
            names = count_in_folder(counting, folder, executor, workers, progress)
        return {name: np.load(folder / f"{name}.npy") for name in names}


@contextmanager
def _processes(workers: int) -> Iterator[Executor]:
    """Start processes, which end with this one whatever happens."""
    context = multiprocessing.get_context("spawn")  # JAX has threads, which a fork would not have
    stop = context.Event()
    executor = ProcessPoolExecutor(workers, mp_context=context, initializer=begin, initargs=(stop,))
    try:
        yield executor
    except BrokenProcessPool:
        got, expected = "a process that was killed or could not start", "one that ends its tasks"
        do = 'count below `if __name__ == "__main__":`; with less memory, take fewer workers'
        fail("workers", got, expected, do, RuntimeError)
    finally:
        stop.set()
        executor.shutdown(cancel_futures=True)
