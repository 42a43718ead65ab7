"""The library on a GPU or TPU, beside this machine's processor, in one run.

    python -m benchmarks.accelerator              400,000 rows of 300 dimensions, 8,000 words
    python -m benchmarks.accelerator --quick      sizes that a laptop does in a minute
    python -m benchmarks.accelerator --json FILE  also what was measured, as JSON

All numbers are float32, and all times the median of some calls after the first, with the fastest
and the slowest, once arguments are on the device. The first call compiles as well. Flops are those
that the docstrings of functions count, three times as many for a gradient, and their rate is a
share of that of a square product. The difference is that of results on the device and on the
processor, relative to the largest number of these: of lengths, where axes have no sign.

More, on whatever JAX's first device is: `python -m benchmarks.pip_loss --large`, and others here.
"""

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxmeta
from benchmarks._measure import best
from jaxmeta.linalg import column_norms, matmul
from jaxmeta.similarity import cka

RANK = 100
HEADS = ("first", "median", "fastest", "slowest", "Gflop/s", "of GEMM", "speed-up", "difference")


class Row(NamedTuple):
    """What is measured, of two sources and an ideal, or of a signal."""

    call: Callable[..., Any]
    flops: Callable[[int, int], float]
    """From n and k, the rows and the width of each source."""


def _default(e, f, _):
    return jaxmeta.apply(jaxmeta.fit("default", (e, f)), (e, f))


def _exact(e, f, g):
    return jaxmeta.exact_weights(jaxmeta.pip_quadratic(g, (e, f))).weights


def _eigenvalues(signal):
    """Those of largest magnitude, by products with the whole signal."""
    multiply, key = jaxmeta.eigen.multiply_by(signal), jax.random.key(0)
    return jaxmeta.eigen.leading_eigenpairs(multiply, n=len(signal), rank=RANK, key=key).values


ROWS = {
    "pip_loss": Row(lambda e, f, _: jaxmeta.pip_loss(e, f), lambda n, k: 14 * n * k**2),
    "its gradient": Row(
        lambda e, f, _: jax.grad(jaxmeta.pip_loss)(e, f), lambda n, k: 14 * 3 * n * k**2
    ),
    "cka": Row(lambda e, f, _: cka(e, f), lambda n, k: 6 * n * k**2),
    "svd_reduce": Row(
        lambda e, f, _: column_norms(jaxmeta.svd_reduce((e, f), k=e.shape[1])),
        lambda n, k: 16 * n * k**2,
    ),
    "exact weights": Row(_exact, lambda n, k: 14 * n * k**2),
    "fit, apply: default": Row(_default, lambda n, k: 28 * n * k**2),
}


def arguments(n: int, k: int) -> tuple[np.ndarray, ...]:
    """Two sources that see one ideal through noise, and that."""
    rng = np.random.default_rng(0)
    ideal = rng.standard_normal((n, k), np.float32) * np.arange(1, k + 1, dtype=np.float32) ** -0.5
    noise = (0.1 * rng.standard_normal((n, k), np.float32) for _ in range(2))
    first, second = (ideal + z for z in noise)
    return first, second, ideal


def signal(n: int) -> np.ndarray:
    """A symmetric matrix with a spectrum that falls as those of words do."""
    rng = np.random.default_rng(0)
    left = rng.standard_normal((n, 4 * RANK), np.float32)
    left *= np.arange(1, 4 * RANK + 1, dtype=np.float32) ** -0.25
    noise = rng.standard_normal((n, n), np.float32)
    return left @ left.T / n + (noise + noise.T) / (8 * n**0.5)


def measured(call: Callable[..., Any], given: Any, repeats: int) -> tuple[dict[str, float], Any]:
    """Seconds of the first call and of others, and what it returns."""
    start = time.perf_counter()
    out = jax.block_until_ready(call(*given))
    first, seconds = time.perf_counter() - start, []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(call(*given))
        seconds.append(time.perf_counter() - start)
    found = {"first": first, "median": statistics.median(seconds)}
    return found | {"fastest": min(seconds), "slowest": max(seconds)}, np.asarray(out)


def gemm_rate(device: jax.Device, size: int) -> float:
    """Gflop/s of a square product in full float32 precision."""
    a = jax.device_put(np.ones((size, size), np.float32), device)
    jax.block_until_ready(matmul(a, a))
    seconds, _ = best(3, lambda: jax.block_until_ready(matmul(a, a)))
    return 2 * size**3 / seconds / 1e9


def table(devices: list[jax.Device], n: int, k: int, words: int, repeats: int) -> list[dict]:
    """All rows on all devices, the processor first; each is printed as soon as it is there."""
    rates = {device: gemm_rate(device, 2048 if n < 10**5 else 8192) for device in devices}
    for device, rate in rates.items():
        print(f"{device.device_kind} ({device.platform}): GEMM {rate:,.0f} Gflop/s")
    print(f"{'':<22}{'device':<8}" + "".join(f"{head:>11}" for head in HEADS))
    sources, square = arguments(n, k), (signal(words),)
    work = {name: (row.call, sources, row.flops(n, k)) for name, row in ROWS.items()}
    work["eigenvalues"] = (_eigenvalues, square, 0)
    found = []
    for name, (call, given, flops) in work.items():
        expected, before = None, 0.0
        for device in devices:
            with jax.default_device(device):
                row, out = measured(call, jax.device_put(given, device), repeats)
            if expected is None:
                expected, before = out, row["median"]
            row["speed-up"] = before / row["median"]
            row["difference"] = float(np.abs(out - expected).max() / np.abs(expected).max())
            if flops:
                row["Gflop/s"] = flops / row["median"] / 1e9
                row["of GEMM"] = row["Gflop/s"] / rates[device]
            found.append({"row": name, "device": device.device_kind, **row})
            shown = "".join(f"{row[h]:>11.3g}" if h in row else f"{'':>11}" for h in HEADS)
            print(f"{name:<22}{device.platform:<8}{shown}", flush=True)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="20,000 rows of 100, 4,500 words")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    devices = [*jax.devices("cpu")[:1]]
    if jax.default_backend() == "cpu":
        print("JAX sees no accelerator here: the processor alone. See its page on installation.")
    else:
        devices.append(jax.devices()[0])
    n, k, words = (20_000, 100, 4_500) if asked.quick else (400_000, 300, 8_000)
    found = table(devices, n, k, words, asked.repeats)
    if asked.json:
        about = {"jax": jax.__version__, "python": platform.python_version(), "n": n, "k": k}
        asked.json.write_text(json.dumps(about | {"words": words, "rows": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
