"""Progress is shown by any function of the name of a stage and the fraction of it that is done."""

import sys
import time
from collections.abc import Callable
from typing import TextIO, TypeAlias

__all__ = ["Progress", "ProgressBar", "silent"]

Progress: TypeAlias = Callable[[str, float], None]
"""A function of the name of a stage and of the fraction of it that is done."""


def silent(stage: str, fraction: float) -> None:
    """Show nothing."""
    del stage, fraction


class ProgressBar:
    """A line for each stage, written when it is done and moving on a terminal, tells its time."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Write to `stream`, or to stderr if None."""
        self._stream = sys.stderr if stream is None else stream
        self._started: dict[str, float] = {}

    def __call__(self, stage: str, fraction: float) -> None:
        """Say that `fraction` of `stage` is done."""
        now = time.monotonic()
        seconds = now - self._started.setdefault(stage, now)
        moves, done = self._stream.isatty(), fraction >= 1
        if moves or done:
            bar = ("█" * round(24 * min(fraction, 1))).ljust(24, "·")
            line = f"{stage:<28}{bar}{fraction:>5.0%}{seconds:>7.1f} s"
            print("\r" * moves + line, end="\n" * done, file=self._stream, flush=True)
        if done:
            del self._started[stage]
