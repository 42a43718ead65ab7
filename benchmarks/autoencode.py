"""Seconds of an epoch of each autoencoder, and its rate beside that of matrix products.

    python -m benchmarks.autoencode                   20,000 words: a minute or two
    python -m benchmarks.autoencode --words 2000      a few seconds

Random sources of 736, 121 and 119 dimensions, in float32; batches of 128, AAEME of 300 dimensions.
Time does not depend on what the sources hold. The first epoch compiles; of the others the fastest
counts. Flops are those of the products: 4n for each weight of an encoder, whose input needs no
gradient, and 6n for each of a decoder. Plain products are timed before and after every method, and
the fastest of all counts, so that a busy moment flatters nobody.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta

SIZES = (736, 121, 119)
BATCH = 128
METHODS = {
    "DAEME": jaxmeta.methods.decoupled_autoencoder,
    "CAEME": jaxmeta.methods.concatenated_autoencoder,
    "AAEME": jaxmeta.methods.averaged_autoencoder,
}


SHAPES = ((2048, 2048, 2048), (BATCH, 736, 736))


def gemm_rate(m: int, k: int, n: int) -> float:
    """Flops a second of a float32 product of m x k and k x n, the best in a second."""
    a, b = jnp.ones((m, k), jnp.float32), jnp.ones((k, n), jnp.float32)
    multiply(a, b).block_until_ready()
    seconds, end = [], time.perf_counter() + 1
    while time.perf_counter() < end:
        start = time.perf_counter()
        multiply(a, b).block_until_ready()
        seconds.append(time.perf_counter() - start)
    return 2 * m * k * n / min(seconds)


@jax.jit
def multiply(a, b):
    """A product in full precision."""
    return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)


def measure(train, sources, epochs: int) -> tuple[float, float, int]:
    """Seconds of the first epoch and of the fastest of the others, and the flops of each."""
    times = [time.perf_counter()]
    found = train(
        sources,
        key=jax.random.key(0),
        epochs=epochs,
        training=jaxmeta.methods.Training(batch=BATCH),
        progress=lambda *_: times.append(time.perf_counter()),
    )
    first, *others = np.diff(times)
    encoders, decoders = (
        sum(layer.kernel.size for layer in layers)
        for layers in (found.parameters.encoders, found.parameters.decoders)
    )
    seen = sources[0].shape[0] // BATCH * BATCH
    return float(first), float(min(others)), seen * (4 * encoders + 6 * decoders)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--words", type=int, default=20_000)
    parser.add_argument("--epochs", type=int, default=6)
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    sources = tuple(jnp.asarray(rng.standard_normal((asked.words, k)), jnp.float32) for k in SIZES)
    rates, rows = [[gemm_rate(*shape) for shape in SHAPES]], {}
    for name, train in METHODS.items():
        rows[name] = measure(train, sources, asked.epochs)
        rates.append([gemm_rate(*shape) for shape in SHAPES])
    print(f"{asked.words:,} words, k = {SIZES}, float32, batches of {BATCH}")
    best = np.max(rates, axis=0)
    names = [" x ".join(map(str, shape)) for shape in SHAPES]
    for name, rate, lowest in zip(names, best, np.min(rates, axis=0), strict=True):
        print(f"GEMM {name}: {rate / 1e9:.0f} Gflop/s (at the busiest {lowest / 1e9:.0f})")
    print(f"{'':<7}{'first':>9}{'epoch':>9}{'200 epochs':>13}{'flops':>10}{'Gflop/s':>9}", end="")
    print("   share of " + ", of ".join(names))
    for name, (first, seconds, flops) in rows.items():
        shares = ", ".join(f"{flops / seconds / rate:.0%}" for rate in best)
        print(
            f"{name:<7}{first:>7.1f} s{seconds:>7.2f} s{200 * seconds:>11.0f} s{flops:>10.1e}"
            f"{flops / seconds / 1e9:>9.0f}   {shares}"
        )


if __name__ == "__main__":
    main()
