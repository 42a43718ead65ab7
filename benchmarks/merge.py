"""Time and memory of merging vector files, beside reading and writing as many bytes.

    python -m benchmarks.merge                                      safetensors and .npy: minutes
    python -m benchmarks.merge --rows 1000000                       12 GB of disk, some more minutes
    python -m benchmarks.merge --rows 40000 --formats txt bin npz   a minute

Three files of 200,000 words, of 300, 300 and 384 columns of normal float32 numbers, the words of
all but the first in another order (unless `--ordered`), become one. Rows of the table:

* bytes: the files are read and as many bytes written as the result has, a megabyte at a time;
* weights: `merge_files` with a weight for each dimension;
* default: `merge_files` by the method "default", which reads the rows twice and turns them;
* SVD: to 300 dimensions, for which all pairs of columns are multiplied;
* arrays: weights by `read_vectors`, `align`, `concatenate` and `write_vectors`, one after another.

Every measurement has a process of its own, one after the other, and the least of `--repeats` runs
counts; the ratio is that of wall times to those of the bytes. Before each run the files are dropped
from the system's cache, and what is written counts when it is on the disk; with `--warm` they are
read beforehand, and writing is left to the system. Memory is the peak of the process.
"""

import argparse
import json
import math
import os
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

import jaxmeta
from benchmarks._measure import apart, now, peak, since

WAYS = ("bytes", "weights", "default", "SVD", "arrays")


def generate(paths: list[Path], rows: int, columns: list[int], *, ordered: bool) -> None:
    """Write files, the words of each in another order unless they are `ordered`."""
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(rows)]
    for path, k in zip(paths, columns, strict=True):
        jaxmeta.write_vectors(path, (words, rng.standard_normal((rows, k), np.float32)))
        if not ordered:
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


def measure(
    way: str, paths: list[Path], out: Path, columns: list[int], warm: bool
) -> dict[str, float]:
    """Merge files in this process."""
    weights = tuple(np.linspace(1, 2, k, dtype=np.float32) for k in columns)
    size = sum(path.stat().st_size for path in paths)
    for path in paths:
        sync(path, drop=not warm)
        if warm:
            copy([path], out, 0)
    start = now()
    if way == "bytes":
        copy(paths, out, size)
    elif way == "weights":
        jaxmeta.merge_files(paths, out, weights=weights)
    elif way == "arrays":
        found = jaxmeta.align([jaxmeta.read_vectors(path) for path in paths])
        jaxmeta.write_vectors(out, (found.words, jaxmeta.concatenate(found.sources, weights)))
    else:
        jaxmeta.merge_files(paths, out, method=way, k=300 if way == "SVD" else None)
    if not warm:
        sync(out, drop=False)
    return {**since(start), "memory": peak() / 1024}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--columns", type=int, nargs="+", default=[300, 300, 384])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--formats", nargs="+", default=["safetensors", "npy"])
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--ordered", action="store_true")
    parser.add_argument("--folder", help="where the files are to be, if not where others are")
    parser.add_argument("--only", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only:
        way, *files = asked.only
        *paths, out = map(Path, files)
        if way == "generate":
            generate(paths, asked.rows, asked.columns, ordered=asked.ordered)
            return
        print(json.dumps(measure(way, paths, out, asked.columns, asked.warm)))
        return
    cached = "files in the cache" if asked.warm else "files not in the cache"
    widths = " + ".join(map(str, asked.columns))
    print(f"{asked.rows:,} x ({widths}) float32, {cached}")
    print(f"{'':<25}{'wall':>10}{'processor':>11}{'memory':>12}{'ratio':>9}")
    for suffix in asked.formats:
        with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
            names = (*map(str, range(len(asked.columns))), "out")
            compare(suffix, [str(Path(folder) / f"{name}.{suffix}") for name in names], asked)


def compare(suffix: str, files: list[str], asked: argparse.Namespace) -> None:
    """Print a row for each way. They take turns, so that a busy moment flatters nobody."""
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in asked.ways}
    size = ["--rows", str(asked.rows), "--columns", *map(str, asked.columns)]
    flags = [*["--warm"] * asked.warm, *["--ordered"] * asked.ordered]
    run = partial(apart, "merge", *size, *flags, "--only")
    # Not in this process: others would start with its peak of memory.
    run("generate", *files)
    for _ in range(asked.repeats):
        for way in asked.ways:
            runs[way].append(run(way, *files))
    least = {
        way: {name: min(run[name] for run in found) for name in found[0]}
        for way, found in runs.items()
    }
    base = least.get("bytes", {"wall": math.nan})["wall"]
    for way, row in least.items():
        print(
            f"{suffix:<13}{way:<12}{row['wall']:>8.2f} s{row['processor']:>9.2f} s"
            f"{row['memory']:>8.2f} GiB{row['wall'] / base:>7.1f} x",
            flush=True,
        )


if __name__ == "__main__":
    main()
