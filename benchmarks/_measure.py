"""What benchmarks share: time, memory, and a process of its own for a measurement."""

import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def best(repeats: int, function: Callable[[], T]) -> tuple[float, T]:
    """The least time of some calls by the clock, and what the last of them returned."""
    least = math.inf
    for _ in range(repeats):
        result = None  # so that two results never share the memory
        start = time.perf_counter()
        result = function()
        least = min(least, time.perf_counter() - start)
    assert result is not None
    return least, result


def now() -> tuple[float, float]:
    """The clock, and the time that processors have spent on this process."""
    return time.perf_counter(), time.process_time()


def since(start: tuple[float, float]) -> dict[str, float]:
    """Seconds by the clock and of processors since `now` said `start`."""
    wall, processor = (b - a for a, b in zip(start, now(), strict=True))
    return {"wall": wall, "processor": processor}


def peak() -> float:
    """The most memory this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def apart(benchmark: str, *arguments: str) -> Any:
    """What `python -m benchmarks.<benchmark>` with these arguments prints as JSON, if it does."""
    command = [sys.executable, "-m", f"benchmarks.{benchmark}", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout or "null")
