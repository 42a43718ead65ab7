"""Accuracy, memory and time of the PIP loss, ours and its peers, in one run.

    python -m benchmarks.pip_loss               errors in float32 against a dense float64 oracle
    python -m benchmarks.pip_loss --large       also 400,000 x 300: time and peak memory (Linux)

Peers: the trace form |E'E|^2 + |F'F|^2 - 2|E'F|^2, and |R S R'| with R from a thin QR of [E F].
"""

import argparse
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks._measure import best, peak
from jaxmeta import pip_loss

matmul = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)


@jax.jit
def trace_form(e, f):
    """Expand the square: three Gram matrices."""
    ee, ff, ef = (jnp.sum(matmul(x.T, y) ** 2) for x, y in ((e, e), (f, f), (e, f)))
    return jnp.sqrt(jnp.maximum(ee + ff - 2 * ef, 0))


@jax.jit
def qr_form(e, f):
    """Factor both together, and take the norm of the small signed product."""
    r = jnp.linalg.qr(jnp.concatenate([e, f], axis=1), mode="r")
    signs = jnp.repeat(jnp.array([1.0, -1.0], e.dtype), e.shape[1])
    return jnp.linalg.norm(matmul(r * signs, r.T))


# Multiples of n k^2 that each takes, counting a product of n x k and n x k as 2 n k^2.
FORMS: dict[str, tuple[Callable, int]] = {
    "jaxmeta": (pip_loss, 14),
    "trace": (trace_form, 6),
    "QR": (qr_form, 8),
}


def oracle(e, f) -> float:
    """The n x n truth in float64."""
    e, f = np.asarray(e, np.float64), np.asarray(f, np.float64)
    return float(np.linalg.norm(e @ e.T - f @ f.T))


def accuracy() -> None:
    """Worst relative error over seeds, for shrinking perturbations."""
    print("float32, relative error against dense float64, worst of 5 seeds")
    print(f"{'n':>6}{'k':>5}  {'columns':<10}{'rotated':<9}{'perturbation':>12}", end="")
    print("".join(f"{name:>10}" for name in FORMS))
    for n, k in ((2000, 50), (2000, 300)):
        for columns in ("equal", "power law"):
            for rotated in (False, True):
                for size in (1e-1, 1e-3, 1e-5):
                    worst = dict.fromkeys(FORMS, 0.0)
                    for seed in range(5):
                        e, f = pair(seed, n, k, columns, size, rotated=rotated)
                        truth = oracle(e, f)
                        for name, (form, _) in FORMS.items():
                            error = abs(float(form(e, f)) / truth - 1)
                            worst[name] = max(worst[name], error)
                    turn = "yes" if rotated else "no"
                    print(f"{n:>6}{k:>5}  {columns:<10}{turn:<9}{size:>12.0e}", end="")
                    print("".join(f"{error:>10.0e}" for error in worst.values()), flush=True)


def pair(seed: int, n: int, k: int, columns: str, size: float, *, rotated: bool):
    """An embedding and a perturbed, perhaps rotated, copy of it, in float32."""
    rng = np.random.default_rng(seed)
    e = rng.standard_normal((n, k))
    if columns == "power law":
        e /= np.arange(1, k + 1)
    f = e + size * np.linalg.norm(e) / np.sqrt(n * k) * rng.standard_normal((n, k))
    if rotated:
        f = f @ np.linalg.qr(rng.standard_normal((k, k)))[0]
    return e.astype(np.float32), f.astype(np.float32)


def large(name: str, n: int = 400_000, k: int = 300) -> None:
    """Time one form on large embeddings, and report the peak memory of this process."""
    form, multiple = FORMS[name]
    e = jax.random.normal(jax.random.key(0), (n, k), jnp.float32)
    f = e + 1e-3 * jax.random.normal(jax.random.key(1), (n, k), jnp.float32)
    form(e, f).block_until_ready()
    seconds, _ = best(3, lambda: form(e, f).block_until_ready())
    rate, memory = multiple * n * k**2 / seconds / 1e9, peak() / 1024
    print(f"{name:<10}{seconds:>8.2f} s{rate:>8.0f} Gflop/s{memory:>8.2f} GiB peak", flush=True)


def gemm_rate(size: int = 4096) -> float:
    """Gflop/s of a square float32 product, the ceiling for the above."""
    a = jnp.ones((size, size), jnp.float32)
    matmul(a, a).block_until_ready()
    return 2 * size**3 / best(1, lambda: matmul(a, a).block_until_ready())[0] / 1e9


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--large", action="store_true", help="also time 400,000 x 300")
    parser.add_argument("--only", choices=FORMS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        return large(arguments.only)
    accuracy()
    if arguments.large:
        print(f"\n400,000 x 300 against 400,000 x 300, float32 (GEMM: {gemm_rate():.0f} Gflop/s)")
        for name in FORMS:  # a process each, so that peaks do not add up
            subprocess.run(
                [sys.executable, "-m", "benchmarks.pip_loss", "--only", name], check=True
            )


if __name__ == "__main__":
    main()
