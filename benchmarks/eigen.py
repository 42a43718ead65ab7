"""Time, residuals and rate of leading eigenpairs, ours and SciPy's eigsh, in one run.

    python -m benchmarks.eigen                            20,000 words, rank 1000: ten minutes
    python -m benchmarks.eigen --words 4000 --rank 500    also all eigenpairs at once

The matrix is the PPMI of the wiki corpus below `JAXMETA_DATA`, window 5, in float32; a relative
residual of 1e-3 is asked of all. Every method has a process of its own, one after the other; times
are of a first call, compilation included, and of a second. Residuals are recomputed in float64.
Flops: 2 for each stored entry (n^2 of them, if dense) and column of products; of orthogonalising a
basis that grows to m columns in blocks 4 n m^2, as each block is multiplied with it four times.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
import scipy.sparse.linalg

import jaxmeta
from experiments import _record

TOLERANCE = 1e-3
Found = tuple[Any, Any, int]


def signal(words: int) -> scipy.sparse.csr_array:
    """PPMI of the corpus, from disk if it has been made before."""
    (archive,) = _record.data("corpora/wiki.zip")

    def make() -> dict[str, np.ndarray]:
        corpus = jaxmeta.Corpus(archive)
        vocabulary = jaxmeta.text.build_vocabulary(corpus, size=words)
        counts = jaxmeta.text.count_windows(corpus, vocabulary)
        near = jaxmeta.text.symmetric_window(counts.whole)
        made = scipy.sparse.csr_array(jaxmeta.ppmi(near), dtype=np.float32)
        return {"data": made.data, "indices": made.indices, "indptr": made.indptr}

    cache = jaxmeta.files.Cache(_record.ROOT / "results" / "cache")
    stored = cache.arrays("ppmi", {"words": words}, make)
    parts = stored["data"], stored["indices"], stored["indptr"]
    return scipy.sparse.csr_array(parts, shape=(words, words))


def eigsh(matrix: scipy.sparse.csr_array, rank: int) -> Found:
    """SciPy's, on the sparse matrix."""
    products = 0

    def multiply(x: np.ndarray) -> np.ndarray:
        nonlocal products
        products += 1
        return matrix @ x

    operator = scipy.sparse.linalg.LinearOperator(matrix.shape, multiply, dtype=matrix.dtype)
    start = np.random.default_rng(0).standard_normal(matrix.shape[0]).astype(matrix.dtype)
    values, vectors = scipy.sparse.linalg.eigsh(
        operator, k=rank, which="LM", tol=TOLERANCE, v0=start
    )
    return values, vectors, products


def ours(matrix: Any, rank: int) -> Found:
    """jaxmeta's."""
    found = jaxmeta.eigen.leading_eigenpairs(
        jaxmeta.eigen.multiply_by(matrix),
        n=matrix.shape[0],
        rank=rank,
        key=jax.random.key(0),
        tolerance=TOLERANCE,
    )
    return found.values, found.vectors, found.products


def full(matrix: Any, rank: int) -> Found:
    """All eigenpairs at once, of which the leading ones are kept."""
    values, vectors = jnp.linalg.eigh(jnp.asarray(matrix))
    order = jnp.argsort(-jnp.abs(values))[:rank]
    return values[order], vectors[:, order], 0


METHODS: dict[str, tuple[Callable[[Any, int], Found], bool]] = {
    "eigsh, sparse": (eigsh, False),
    "ours, sparse": (ours, False),
    "ours, dense": (ours, True),
    "full eigh": (full, True),
}
"""By name, and whether the matrix is to be dense."""


def measure(name: str, words: int, rank: int) -> dict[str, Any]:
    """One method, in this process."""
    function, dense = METHODS[name]
    sparse = signal(words)
    matrix = sparse.toarray() if dense else sparse
    times = []
    for _ in range(1 if name == "eigsh, sparse" else 2):  # SciPy compiles nothing
        wall, processor = time.perf_counter(), time.process_time()
        values, vectors, products = function(matrix, rank)
        values = np.asarray(values, np.float64)  # waits for it
        processor = time.process_time() - processor
        times.append(time.perf_counter() - wall)
    u, exact = np.asarray(vectors, np.float64), sparse.astype(np.float64)
    residual = max(
        float(np.linalg.norm(exact @ u[:, i] - values[i] * u[:, i]) / abs(values[i]))
        for i in range(rank)
    )
    magnitudes = np.sort(np.abs(values))[::-1].tolist()
    entries = words**2 if dense else int(sparse.nnz)
    return {
        "first": times[0],
        "seconds": times[-1],
        "processor": processor,
        "products": products,
        "residual": residual,
        "flops": 2 * entries * products,
        "values": magnitudes,
    }


def gemm_rate(n: int, columns: int) -> float:
    """Flops a second of a float32 product, the best of three."""
    multiply = jaxmeta.eigen.multiply_by(jnp.ones((n, n), jnp.float32))
    x = jnp.ones((n, columns), jnp.float32)
    multiply(x).block_until_ready()
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        multiply(x).block_until_ready()
        seconds.append(time.perf_counter() - start)
    return 2 * n * n * columns / min(seconds)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--words", type=int, default=20_000)
    parser.add_argument("--rank", type=int, default=1_000)
    parser.add_argument("--only", choices=METHODS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only:
        print(json.dumps(measure(asked.only, asked.words, asked.rank)))
        return
    matrix = signal(asked.words)
    share = matrix.nnz / asked.words**2
    print(f"PPMI of {asked.words:,} words, {matrix.nnz:,} entries ({share:.1%}), float32; ", end="")
    print(f"{asked.rank:,} eigenpairs to a relative residual of {TOLERANCE:g}")
    rates = {f"{n} x {n} x {b}": gemm_rate(n, b) for n, b in ((4096, 4096), (asked.words, 32))}
    for shape, rate in rates.items():
        print(f"GEMM {shape}: {rate / 1e9:.0f} Gflop/s")
    heads = ("first", "again", "processor", "products", "residual")
    print(f"{'':<15}" + "".join(f"{head:>11}" for head in heads) + "   eigsh / first, again")
    found: dict[str, dict[str, Any]] = {}
    for name in METHODS:
        if name == "full eigh" and asked.words > 8_000:
            continue
        command = [sys.executable, "-m", "benchmarks.eigen", "--only", name]
        command += ["--words", str(asked.words), "--rank", str(asked.rank)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        row = found[name] = json.loads(done.stdout)
        slow = found["eigsh, sparse"]["seconds"]
        print(
            f"{name:<15}{row['first']:>9.1f} s{row['seconds']:>9.1f} s{row['processor']:>9.1f} s"
            f"{row['products']:>11,}{row['residual']:>11.0e}"
            f"{slow / row['first']:>9.1f} x, {slow / row['seconds']:.1f} x",
            flush=True,
        )
    mine = found["ours, dense"]
    basis = (
        mine["products"] - asked.rank - 640
    ) / 3  # the survey has 640 products, and a small basis
    flops = {"products": mine["flops"], "orthogonalising": 4 * asked.words * basis**2}
    rate = sum(flops.values()) / mine["seconds"]
    parts = ", ".join(f"{name} {x:.1e}" for name, x in flops.items())
    print(f"ours, dense: flops of {parts}: {rate / 1e9:.0f} Gflop/s, or ", end="")
    print(", ".join(f"{rate / top:.0%} of GEMM {shape}" for shape, top in rates.items()))
    theirs, own = (np.array(found[name]["values"]) for name in ("eigsh, sparse", "ours, sparse"))
    print(f"magnitudes of eigsh and ours differ by up to {np.max(np.abs(theirs / own - 1)):.0e}")


if __name__ == "__main__":
    main()
