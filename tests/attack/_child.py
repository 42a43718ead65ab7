"""Children that are killed: by a timer, or when they are about to do the n-th thing to a file."""

import os
import pickle
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Ended", "count_events", "run_child"]

SECONDS = 120
EVENTS = ("open", "os.rename", "os.remove", "os.chmod", "os.mkdir", "os.scandir")


class Ended(NamedTuple):
    """How a child ended."""

    killed: bool
    found: Any
    """What it returned, or the exception that it raised."""
    seconds: float


def run_child(
    work: Callable[[], Any],
    *,
    folder: Path,
    at: int | None = None,
    after: float | None = None,
    before: Callable[[], None] | None = None,
) -> Ended:
    """Run `work` in a child that is killed before its event number `at`, or `after` some seconds.

    Events are what Python does to files in `folder`. `before` is done first, and is not killed. A
    child that hangs ends by SIGALRM.
    """
    reader, writer = os.pipe()
    start = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):  # JAX has no threads yet
        child = os.fork()
    if child == 0:
        os.close(reader)
        signal.alarm(SECONDS)
        try:
            found = _in_child(work, folder, at, after, before)
            with os.fdopen(writer, "wb") as file:
                pickle.dump(found, file)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        content = file.read()
    _, status = os.waitpid(child, 0)
    took = time.perf_counter() - start
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) != signal.SIGKILL:
            raise RuntimeError(f"a child ended by signal {os.WTERMSIG(status)}")
        return Ended(True, None, took)
    return Ended(False, pickle.loads(content), took)


def _in_child(work: Any, folder: Path, at: Any, after: Any, before: Any) -> Any:
    try:
        if before is not None:
            before()
        if at is not None:
            _kill_at(folder, at)
        if after is not None:
            _kill_after(after)
        return work()
    except Exception as error:
        return error


def _kill_after(seconds: float) -> None:
    """Kill this process from another, as a timer of its own would wait for Python."""
    own = os.getpid()
    if os.fork() == 0:
        os.closerange(3, 256)
        time.sleep(seconds)
        if os.getppid() == own:
            os.kill(own, signal.SIGKILL)
        os._exit(0)


def _kill_at(folder: Path, at: int) -> None:
    left, prefix = [at], str(folder)

    def hook(event: str, arguments: tuple) -> None:
        if event in EVENTS and any(str(x).startswith(prefix) for x in arguments[:2]):
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1

    sys.addaudithook(hook)


def count_events(work: Callable[[], Any], *, folder: Path) -> tuple[int, float]:
    """How many events there are, and how long it takes."""
    counted = [0]

    def counting() -> int:
        prefix = str(folder)

        def hook(event: str, arguments: tuple) -> None:
            if event in EVENTS and any(str(x).startswith(prefix) for x in arguments[:2]):
                counted[0] += 1

        sys.addaudithook(hook)
        work()
        return counted[0]

    ended = run_child(counting, folder=folder)
    if not isinstance(ended.found, int):
        raise RuntimeError("the work does not end") from ended.found
    return ended.found, ended.seconds
