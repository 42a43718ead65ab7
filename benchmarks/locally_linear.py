"""Time and memory of the locally linear meta-embedding, step by step, in one run.

    python -m benchmarks.locally_linear           5,000 and 10,000 words: some minutes
    python -m benchmarks.locally_linear --full    20,000 words with 200 and with 2,000 neighbours

Sources are generated: a mixture of topics in 50 dimensions of falling strength, seen by each source
through a map and noise of its own, rows of unit length, in float32. Two sources of 300 and 100
dimensions; with `--full` also three of 976 in all, the paper's number. Every row has a process of
its own. Programs of the first two steps are compiled beforehand; the last step compiles as it goes.
Flops of the weights are those of `reconstruction_weights`, and their rate is set against that of a
float32 product of 4,096 x 4,096 matrices in the same process. Residuals are relative to the last
eigenvalue, and to the largest.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta

TWO, THREE = (300, 100), (326, 325, 325)
# Words, neighbours, dimensions of the result, widths of the sources.
SHORT = [(5_000, 50, 50, TWO), (5_000, 200, 50, TWO), (10_000, 50, 50, TWO), (10_000, 200, 50, TWO)]
FULL = [(20_000, 200, 200, TWO), (20_000, 2_000, 200, THREE)]


def generate(words: int, widths: Sequence[int]) -> tuple[jax.Array, ...]:
    """Sources that see the same topics."""
    rng = np.random.default_rng(0)
    strength = np.arange(1, 51) ** -0.5
    topics = rng.normal(size=(words // 50, 50))
    latent = (
        topics[rng.integers(len(topics), size=words)] + rng.normal(size=(words, 50))
    ) * strength
    sources = []
    for width in widths:
        source = latent @ rng.normal(size=(50, width)) + rng.normal(size=(words, width))
        source /= np.linalg.norm(source, axis=1, keepdims=True)
        sources.append(jnp.asarray(source, jnp.float32))
    return tuple(sources)


def flops_per_word(neighbours: int, widths: Sequence[int]) -> float:
    """Multiplications and additions of the weights of one word."""
    slots, width = neighbours * len(widths), sum(widths)
    if slots < width:
        return 2 * slots**2 * width + slots**3 / 3
    return neighbours * (width**2 + sum(k**2 for k in widths)) + width**3 / 3


def timed(call: Callable[..., Any], *arguments: Any, **settings: Any) -> tuple[Any, float]:
    """What the call returns, and how many seconds it took."""
    start = time.perf_counter()
    result = jax.block_until_ready(call(*arguments, **settings))
    return result, time.perf_counter() - start


def gemm_rate(n: int = 4096) -> float:
    """Flops a second of a float32 product, the best of three."""
    multiply, x = jax.jit(jnp.matmul), jnp.ones((n, n), jnp.float32)
    return 2 * n**3 / min(timed(multiply, x, x)[1] for _ in range(4))


def measure(words: int, neighbours: int, k: int, widths: Sequence[int]) -> dict[str, float]:
    """Seconds of each step, the rate of the weights, residuals and peak memory."""
    rate = gemm_rate()
    sources = generate(words, widths)
    lists, near = [], 0.0
    for source in sources:
        find = jaxmeta.methods.nearest_neighbours.lower(source, neighbours=neighbours).compile()
        found, seconds = timed(find, source)
        lists.append(found)
        near += seconds
    weigh = jaxmeta.methods.reconstruction_weights.lower(sources, tuple(lists)).compile()
    weights, weighing = timed(weigh, sources, tuple(lists))
    matrix, joining = timed(jaxmeta.methods.reconstruction_matrix, lists, weights)
    del lists, weights
    best, solving = timed(jaxmeta.methods.best_reconstructed, matrix, k=k, key=jax.random.key(0))
    reached = words * flops_per_word(neighbours, widths) / weighing
    worst = float(jnp.max(best.residuals))
    return {
        "neighbours": near,
        "weights": weighing,
        "matrix": joining,
        "eigenvectors": solving,
        "rate": reached,
        "share": reached / rate,
        "stored": matrix.nnz,
        "relative": worst / float(best.eigenvalues[-1]),
        "to largest": worst / best.largest,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", type=json.loads, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only:
        print(json.dumps(measure(*asked.only)))
        return
    steps = ("neighbours", "weights", "matrix", "eigenvectors")
    heads = ("words", "near", "k", "K", *steps, "Gflop/s", "of GEMM", "entries", "memory")
    print("".join(f"{head:>13}" for head in heads) + "   residual / last, / largest")
    for row in FULL if asked.full else SHORT:
        command = [sys.executable, "-m", "benchmarks.locally_linear", "--only", json.dumps(row)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found = json.loads(done.stdout)
        words, neighbours, k, widths = row
        sizes = "".join(f"{x:>13,}" for x in (words, neighbours, k, sum(widths)))
        seconds = "".join(f"{found[step]:>11.1f} s" for step in steps)
        rates = f"{found['rate'] / 1e9:>13.0f}{found['share']:>13.0%}{found['stored']:>13,}"
        memory = f"{found['memory']:>10.1f} GB"
        residuals = f"{found['relative']:>11.0e}, {found['to largest']:.0e}"
        print(sizes + seconds + rates + memory + residuals, flush=True)


if __name__ == "__main__":
    main()
