"""Time and memory of reading and writing text vectors, ours and gensim's, in one run.

    python -m benchmarks.vectors

The file has 100,000 words and 100 columns of normal float32 numbers, below a header. Where
`JAXMETA_DATA` is set, GloVe's packed text below it is read too. Every measurement has a process of
its own, one after the other: the least of `--repeats` runs. Memory is the peak of the process
beyond what its imports take. What both read must be equal to the last bit.
"""

import argparse
import hashlib
import importlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import apart, now, peak, since


def generate(path: Path, rows: int, columns: int) -> None:
    """Write a file, without either library: each number in the fewest digits."""
    rng = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        file.write(f"{rows} {columns}\n")
        for i in range(rows):
            numbers = " ".join(map(str, rng.standard_normal(columns, np.float32)))
            file.write(f"word{i} {numbers}\n")


def measure(who: str, what: str, path: Path) -> dict[str, Any]:
    """Read a file, or read it and write it again, in this process."""
    headless = path.suffix == ".gz"
    if who == "gensim":
        peer = importlib.import_module("gensim.models").KeyedVectors

        def read() -> Any:
            return peer.load_word2vec_format(str(path), no_header=headless)

        def write(found: Any, out: Path) -> None:
            found.save_word2vec_format(str(out))
    else:
        from jaxmeta import read_vectors, write_vectors

        def read() -> Any:
            return read_vectors(path)

        def write(found: Any, out: Path) -> None:
            write_vectors(out, found)

    imports, start = peak(), now()
    found = read()
    seconds = since(start)
    if what == "write":
        with tempfile.TemporaryDirectory() as folder:
            start = now()
            write(found, Path(folder) / "out.txt")
            seconds = since(start)
    memory = peak() - imports
    matrix = found.vectors if who == "gensim" else found.matrix
    words = list(found.index_to_key if who == "gensim" else found.words)
    content = hashlib.sha256(json.dumps(words).encode() + matrix.tobytes()).hexdigest()
    return {**seconds, "memory": memory, "content": content}


def compare(title: str, what: str, path: Path, repeats: int) -> None:
    """Print a row for each, and how many times faster ours is."""
    least: dict[str, dict[str, Any]] = {}
    for who in ("gensim", "ours"):
        runs = [apart("vectors", "--only", who, what, str(path)) for _ in range(repeats)]
        row = least[who] = {
            name: min(run[name] for run in runs) for name in ("wall", "processor", "memory")
        }
        least[who]["content"] = runs[0]["content"]
        print(
            f"{title:<28}{who:<8}{row['wall']:>8.2f} s{row['processor']:>8.2f} s"
            f"{row['memory']:>8.0f} MB",
            flush=True,
        )
    theirs, own = least["gensim"], least["ours"]
    assert theirs["content"] == own["content"], "the two have read different vectors"
    ratios = (f"{name} {theirs[name] / own[name]:.1f} x" for name in ("wall", "processor"))
    print(f"{'':<28}faster by {', '.join(ratios)}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only:
        who, what, path = asked.only
        print(json.dumps(measure(who, what, Path(path))))
        return
    print(f"{'':<36}{'wall':>10}{'processor':>10}{'memory':>11}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.txt"
        generate(path, asked.rows, asked.columns)
        shape = f"{asked.rows:,} x {asked.columns}"
        compare(f"read {shape}", "read", path, asked.repeats)
        compare(f"write {shape}", "write", path, asked.repeats)
    if "JAXMETA_DATA" in os.environ:
        glove = Path(os.environ["JAXMETA_DATA"]) / "vectors" / "glove-100d-56k.txt.gz"
        compare("read GloVe, .txt.gz", "read", glove, asked.repeats)
    else:
        print("JAXMETA_DATA is not set: GloVe's file was left out")


if __name__ == "__main__":
    main()
