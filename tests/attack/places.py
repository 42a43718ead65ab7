"""Disks that are full, folders that are read only, and a cache with several users and damage."""

import os
import random
import resource
import shutil
import subprocess
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from jaxmeta.files import Cache, Vectors, write_vectors

from ._child import run_child
from .kills import WRITERS, corpus, pipeline
from .mutations import mutated

__all__ = ["run"]

NOBODY = 65534


def _vectors(seed: int) -> Vectors:
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(400, 20)).astype(np.float32)
    return Vectors(tuple(f"w{i}" for i in rng.permutation(400)), matrix)


def _held(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _limited(size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@contextmanager
def _small_disk(kilobytes: int) -> Iterator[Path | None]:
    """A disk in memory, if this process may make one."""
    with tempfile.TemporaryDirectory() as place:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", place]
        made = shutil.which("mount") and subprocess.run(mount, capture_output=True).returncode == 0
        try:
            yield Path(place) if made else None
        finally:
            if made:
                subprocess.run(["umount", place], check=True)


def _refused(work: Callable[[], Any], folder: Path, name: str, **how: Any) -> tuple[str, str]:
    """What a writer that must fail does, and whether the folder is as it was."""
    before = _held(folder)
    found = run_child(work, folder=folder, **how).found
    if _held(folder) != before:
        return "another folder", repr(found)
    if found is None:
        return "written", ""
    text = str(found)
    right = isinstance(found, OSError) and name in text and "could not be written" in text
    return ("refused", "") if right else ("unclear", repr(found))


def _full(number: int, seed: int) -> Iterator[dict[str, Any]]:
    """Writers on a disk that has no room left, at each of several sizes."""
    old, new = _vectors(1), _vectors(2)
    for name, settings in WRITERS:
        rng, found, faults = random.Random(f"{seed} {name}"), Counter(), []
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place).resolve()
            given = {key: folder / value for key, value in settings.items()}
            write_vectors(folder / name, old, **given)
            size = max(path.stat().st_size for path in folder.iterdir())
            work = lambda: write_vectors(folder / name, new, **given)  # noqa: B023, E731
            for _ in range(number):
                limit = rng.randrange(size * 9 // 10)
                verdict, what = _refused(work, folder, str(folder), before=_limited(limit))
                found[verdict] += 1
                if verdict != "refused":
                    faults.append(f"files of {limit} bytes at most: {verdict}: {what}")
        yield {"what": f"write_vectors to {name}, no file larger than a limit", "tried": number,
               "refused": found["refused"], "faults": faults}  # fmt: skip
    with _small_disk(100) as folder:
        found, faults = Counter(), []
        if folder is not None:
            write_vectors(folder / "old.bin", old)
            for name, settings in WRITERS:
                given = {key: folder / value for key, value in settings.items()}
                large = Vectors(tuple(map(str, range(3000))), np.tile(new.matrix, (8, 1))[:3000])
                work = lambda: write_vectors(folder / name, large, **given)  # noqa: B023, E731
                verdict, what = _refused(work, folder, str(folder))
                found[verdict] += 1
                if verdict != "refused":
                    faults.append(f"{name}: {verdict}: {what}")
        yield {"what": "write_vectors, each format, on a disk of 100 KB", "tried": found.total(),
               "refused": found["refused"], "faults": faults}  # fmt: skip


def _read_only(number: int) -> dict[str, Any]:
    """Writers and a cache in a folder that may be read alone; root becomes nobody."""
    found, faults = Counter(), []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        write_vectors(folder / "v.txt", _vectors(1))
        kept = Cache(folder).arrays("stage", {}, lambda: {"x": np.arange(3)})
        Cache(folder).find("stage", {})  # nobody may not import what this needs
        folder.chmod(0o555)

        def nobody() -> None:
            if os.getuid() == 0:
                os.setuid(NOBODY)

        def cached() -> bool:
            there = Cache(folder).arrays("stage", {}, lambda: {"x": np.zeros(1)})
            return np.array_equal(there["x"], kept["x"])

        try:
            for i in range(number):
                name, _ = WRITERS[i % len(WRITERS)]
                work = lambda: write_vectors(folder / name, _vectors(2))  # noqa: B023, E731
                if i % 2:
                    work = lambda: Cache(folder).arrays("stage", {"i": 1}, lambda: kept)  # noqa: E731
                verdict, what = _refused(work, folder, str(folder), before=nobody)
                found[verdict] += 1
                if verdict != "refused":
                    faults.append(f"{name}: {verdict}: {what}")
            ended = run_child(cached, folder=folder, before=nobody)
            if ended.found is not True:
                faults.append(f"what is in the cache: {ended.found!r}")
        finally:
            folder.chmod(0o755)
    return {"what": "write_vectors and a cache, in a folder that is read only", "tried": number,
            "refused": found["refused"], "faults": faults}  # fmt: skip


def _entries(number: int, seed: int) -> dict[str, Any]:
    """Damaged entries of a cache are made again."""
    rng, found, faults = random.Random(f"{seed} entries"), Counter(), []
    kept = {
        "x": np.arange(60.0).reshape(3, 20),
        "y": np.asfortranarray(np.eye(4, 3)),
        "z": np.eye(0),
    }
    with tempfile.TemporaryDirectory() as place:
        cache = Cache(Path(place))
        cache.arrays("stage", {}, lambda: kept)
        (path,) = Path(place).iterdir()
        content = path.read_bytes()
        for i in range(number):
            path.write_bytes(mutated(rng, content))
            try:
                there = cache.find("stage", {})
            except Exception as error:
                faults.append(f"{i}: {error!r}")
                continue
            if there is None:
                found["refused"] += 1
            elif list(there) == list(kept) and all(
                there[name].dtype == x.dtype and np.array_equal(there[name], x)
                for name, x in kept.items()
            ):
                found["the same"] += 1
            else:
                faults.append(f"{i}: other arrays")
    return {"what": "damaged cache entries", "tried": number, "refused": found["refused"],
            "the same": found["the same"], "faults": faults}  # fmt: skip


def _together(number: int, seed: int) -> dict[str, Any]:
    """Two processes that run one pipeline with one cache, one of which may be killed."""
    rng, found, faults = random.Random(f"{seed} together"), Counter(), []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        cache = folder / "cache"
        run_child(lambda: corpus(folder), folder=folder)
        plain = run_child(lambda: pipeline(folder, None), folder=folder)

        def both(at: int | None) -> Any:
            """The second of them is a child of the first."""
            other = os.fork()
            if other == 0:
                run_child(lambda: pipeline(folder, cache), folder=folder, at=at)
                os._exit(0)
            result = pipeline(folder, cache)
            os.waitpid(other, 0)
            return result

        for i in range(number):
            at = rng.randrange(60) if i % 2 else None
            for result in (
                run_child(lambda at=at: both(at), folder=folder).found,
                run_child(lambda: pipeline(folder, cache), folder=folder).found,
            ):
                found["the same"] += result == plain.found
                if result != plain.found:
                    faults.append(f"{i}: {result!r}")
            if left := [path.name for path in cache.glob("*.part*")]:
                faults.append(f"{i}: {left} left")
            shutil.rmtree(cache)
    what = "build_sources twice at once with one cache, and once more"
    return {"what": what, "tried": 2 * number, "the same": found["the same"], "faults": faults}


def run(number: int, seed: int) -> dict[str, Any]:
    """Try each place; damaged entries a hundred times as often, two processes a fifth as often."""
    with warnings.catch_warnings(action="ignore"):
        rows = [*_full(number, seed), _read_only(number), _entries(100 * number, seed)]
        rows.append(_together(max(number // 5, 1), seed))
    read = [f"{row['what']}: {fault}" for row in rows for fault in row.pop("faults")]
    return {"rows": rows, "faults": read}
