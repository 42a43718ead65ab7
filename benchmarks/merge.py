"""Time and memory of merging two vector files, beside reading and writing as many bytes.

    python -m benchmarks.merge                                      binary formats: some minutes
    python -m benchmarks.merge --rows 40000 --formats txt bin       a minute

Two files of 400,000 words and 300 columns of normal float32 numbers, the words of the second in
another order, become one of 600 columns, with a weight for each dimension. Rows of the table:

* bytes: both files are read and as many bytes written as the result has, a megabyte at a time;
* merge_files: the same from files to a file by the library;
* arrays: by `read_vectors`, `align`, `concatenate` and `write_vectors`, one after the other.

Every measurement has a process of its own, one after the other, and the least of `--repeats` runs
counts; the ratio is that of wall times to those of the bytes. Before each run the files are dropped
from the system's cache, and what is written counts when it is on the disk; with `--warm` they are
read beforehand, and writing is left to the system. Memory is the peak of the process.
"""

import argparse
import json
import os
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

import jaxmeta
from benchmarks._measure import apart, now, peak, since

WAYS = ("bytes", "merge_files", "arrays")


def generate(paths: list[Path], rows: int, columns: int) -> None:
    """Write files, the words of each in another order."""
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(rows)]
    for path in paths:
        jaxmeta.write_vectors(path, (words, rng.standard_normal((rows, columns), np.float32)))
        rng.shuffle(words)


def sync(path: Path, *, drop: bool) -> None:
    """Wait until a file is on the disk, and forget what is cached of it."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    if drop:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def copy(paths: list[Path], out: Path, size: int) -> None:
    """Read some files, and write `size` bytes."""
    block = bytearray(1 << 20)
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while file.readinto(block):
                pass
    with out.open("wb", buffering=0) as file:
        for start in range(0, size, len(block)):
            file.write(block[: size - start])


def measure(way: str, paths: list[Path], out: Path, columns: int, warm: bool) -> dict[str, float]:
    """Merge files in this process."""
    weights = (0.7, np.linspace(1, 2, columns, dtype=np.float32))
    size = sum(path.stat().st_size for path in paths)
    for path in paths:
        sync(path, drop=not warm)
        if warm:
            path.read_bytes()
    start = now()
    if way == "bytes":
        copy(paths, out, size)
    elif way == "merge_files":
        jaxmeta.merge_files(paths, out, weights=weights)
    else:
        found = jaxmeta.align([jaxmeta.read_vectors(path) for path in paths])
        jaxmeta.write_vectors(out, (found.words, jaxmeta.concatenate(found.sources, weights)))
    if not warm:
        sync(out, drop=False)
    return {**since(start), "memory": peak() / 1024}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--columns", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--formats", nargs="+", default=["npy", "bin", "safetensors", "npz"])
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--only", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only:
        way, first, second, out = asked.only
        paths = [Path(first), Path(second)]
        if way == "generate":
            generate(paths, asked.rows, asked.columns)
            return
        print(json.dumps(measure(way, paths, Path(out), asked.columns, asked.warm)))
        return
    cached = "files in the cache" if asked.warm else "files not in the cache"
    print(f"{asked.rows:,} x ({asked.columns} + {asked.columns}) float32, {cached}")
    print(f"{'':<25}{'wall':>10}{'processor':>11}{'memory':>12}{'ratio':>9}")
    for suffix in asked.formats:
        with tempfile.TemporaryDirectory() as folder:
            names = ("first", "second", "out")
            compare(suffix, [str(Path(folder) / f"{name}.{suffix}") for name in names], asked)


def compare(suffix: str, files: list[str], asked: argparse.Namespace) -> None:
    """Print a row for each way. They take turns, so that a busy moment flatters nobody."""
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    size = ["--rows", str(asked.rows), "--columns", str(asked.columns)]
    run = partial(apart, "merge", *size, *["--warm"] * asked.warm, "--only")
    # Not in this process: others would start with its peak of memory.
    run("generate", *files)
    for _ in range(asked.repeats):
        for way in WAYS:
            runs[way].append(run(way, *files))
    least = {
        way: {name: min(run[name] for run in found) for name in found[0]}
        for way, found in runs.items()
    }
    for way, row in least.items():
        ratio = row["wall"] / least["bytes"]["wall"]
        print(
            f"{suffix:<13}{way:<12}{row['wall']:>8.2f} s{row['processor']:>9.2f} s"
            f"{row['memory']:>8.2f} GiB{ratio:>7.1f} x",
            flush=True,
        )


if __name__ == "__main__":
    main()
