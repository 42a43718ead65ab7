"""Time, optimality and loss of exact weights, ours and its peers, in one run.

    python -m benchmarks.exact_weights                 K = 1,000 weights in float64
    python -m benchmarks.exact_weights --width 400     fewer

Peers: scipy.optimize.nnls (active sets) and optax.nnls (accelerated gradients). They take A and b
of |Ax - b|, so their time includes a root of the quadratic; all get columns of unit length. The
KKT residual is computed here, from its definition. Times are the best of two, without compilation.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.optimize

from benchmarks._measure import best
from jaxmeta import exact_weights, pip_quadratic
from jaxmeta.quadratic import PipQuadratic

SOURCES = 4


def problems(width: int, words: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Names, ideals and columns of all sources."""
    rng = np.random.default_rng(0)
    k = width // SOURCES
    vectors = np.linalg.qr(rng.standard_normal((words, words)))[0]
    values = 40 * np.arange(1, words + 1) ** -0.7
    noisy = []
    for j in range(SOURCES):
        noise = rng.standard_normal((words, words))
        strength, q = np.linalg.eigh(
            (vectors * values) @ vectors.T + (0.05 + 0.05 * j) * (noise + noise.T) / 2**0.5
        )
        order = np.argsort(-np.abs(strength))[:k]
        noisy.append((q[:, order], np.abs(strength[order])))
    for kind in ("plain", "alpha1", "duplicated", "steep"):
        alpha = 1.0 if kind == "alpha1" else 0.5
        z = [q * strength**alpha for q, strength in noisy]
        if kind == "duplicated":
            z[1], z[3] = z[0], 2 * z[2]
        if kind == "steep":
            z = [source * np.logspace(0, -6, k) for source in z]
        yield kind, vectors * values**alpha, np.concatenate(z, axis=1)
    ideal = rng.standard_normal((words, 200)) * np.arange(1, 201) ** -0.5
    base = rng.standard_normal((words, k)) * np.arange(1, k + 1) ** -0.7
    near = [base + 10.0**-p * rng.standard_normal(base.shape) for p in (1, 3, 5, 7)]
    yield "near copies", ideal, np.concatenate(near, axis=1)
    noise = rng.standard_normal((words, width))
    yield "one common", ideal, 0.05 * noise + rng.standard_normal((words, 1))
    yield "low rank", ideal, ideal[:, :20] @ rng.standard_normal((20, width)) + 1e-6 * noise


def root(gram: np.ndarray, linear: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A and b with |Ax - b|^2 = x'Gx - 2h'x + constant in units of the columns, and the units."""
    length = np.sqrt(np.diag(gram))
    values, vectors = np.linalg.eigh(gram / length / length[:, None])
    keep = values > 1e-14 * values[-1]
    values, vectors = values[keep] ** 0.5, vectors[:, keep]
    return (vectors * values).T, (vectors / values).T @ (linear / length), length


def ours(quadratic: PipQuadratic) -> np.ndarray:
    """Squared weights by interior points."""
    return np.asarray(exact_weights(quadratic).weights, np.float64) ** 2


def by_scipy(quadratic: PipQuadratic) -> np.ndarray:
    """Squared weights by active sets."""
    a, b, length = root(np.asarray(quadratic.gram), np.asarray(quadratic.linear))
    return scipy.optimize.nnls(a, b, maxiter=50_000)[0] / length


solve_optax = jax.jit(optax.nnls, static_argnums=2)


def by_optax(quadratic: PipQuadratic, iterations: int) -> np.ndarray:
    """Squared weights by accelerated projected gradients."""
    a, b, length = root(np.asarray(quadratic.gram), np.asarray(quadratic.linear))
    return np.asarray(solve_optax(jnp.asarray(a), jnp.asarray(b), iterations)) / length


SOLVERS: dict[str, Callable[[PipQuadratic], np.ndarray]] = {
    "jaxmeta": ours,
    "scipy": by_scipy,
    "optax 2,000": partial(by_optax, iterations=2_000),
    "optax 20,000": partial(by_optax, iterations=20_000),
}


def violation(quadratic: PipQuadratic, squares: np.ndarray) -> float:
    """Largest of |min(x, gradient)| with columns of unit length, relative to the linear term."""
    gram, linear = np.asarray(quadratic.gram), np.asarray(quadratic.linear)
    length = np.sqrt(np.diag(gram))
    x, slope = squares * length, (gram @ squares - linear) / length
    return float(np.abs(np.minimum(x, slope)).max() / (linear / length).max())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--width", type=int, default=1000, help="number of weights")
    parser.add_argument("--words", type=int, default=1500)
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"{arguments.width} weights, {arguments.words} words, float64")
    print(f"{'sources':<13}{'solver':<14}{'seconds':>8}{'KKT':>10}{'loss':>18}{'non-zero':>10}")
    for kind, ideal, columns in problems(arguments.width, arguments.words):
        quadratic = pip_quadratic(jnp.asarray(ideal), (jnp.asarray(columns),))
        gram, linear, constant = (np.asarray(x) for x in quadratic)
        for name, solve in SOLVERS.items():
            solve(quadratic)
            seconds, squares = best(2, partial(solve, quadratic))
            loss = np.sqrt(squares @ gram @ squares - 2 * linear @ squares + constant)
            print(
                f"{kind:<13}{name:<14}{seconds:>8.2f}{violation(quadratic, squares):>10.0e}"
                f"{loss:>18.9f}{np.count_nonzero(squares):>10}",
                flush=True,
            )


if __name__ == "__main__":
    main()
