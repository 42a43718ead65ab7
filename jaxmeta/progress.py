"""Progress of what takes longer than a moment.

Functions that may take long have an argument `progress`: None, or any function of the name of a
stage and the fraction of it that is done. `ProgressBar` is one that shows both on stderr.
"""

import sys
import time
from collections.abc import Callable
from typing import TextIO, TypeAlias

__all__ = ["Progress", "ProgressBar", "silent"]

Progress: TypeAlias = Callable[[str, float], None]


def silent(stage: str, fraction: float) -> None:
    """Show nothing."""
    del stage, fraction


class ProgressBar:
    """One line for each stage: what it is, how far it is, and how long it has taken.

    On a terminal the line moves; into a file it is written once, when the stage is done.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        """Write to `stream`, or to stderr if None."""
        self._stream = sys.stderr if stream is None else stream
        self._started: dict[str, float] = {}

    def __call__(self, stage: str, fraction: float) -> None:
        """Say that `fraction` of `stage` is done."""
        now = time.monotonic()
        seconds = now - self._started.setdefault(stage, now)
        done = fraction >= 1
        filled = round(24 * min(fraction, 1))
        line = f"{stage:<28}{'█' * filled}{'·' * (24 - filled)}{fraction:>5.0%}{seconds:>7.1f} s"
        if done:
            print(f"\r{line}" if self._stream.isatty() else line, file=self._stream, flush=True)
            del self._started[stage]
        elif self._stream.isatty():
            print(f"\r{line}", end="", file=self._stream, flush=True)
