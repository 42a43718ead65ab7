"""What first calls cost: compilation, each function in a process of its own.

    python -m benchmarks.first_calls [--against FOLDER] [--only NAME ...] [--repeats 3]

A first call less another one, in 32 bit and with nothing on disk: seconds of processors, by the
clock, and how many programs were compiled; then what the other call takes, of processors. Beside
them stand programs that decompose and do nothing else, as a floor, and what an import costs. With
`--against` the same is done with another checkout, turn about, so that a busy machine is busy for
both. Least of the repeats.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks._measure import now, since

N, K, RANK, SIGMA = 2000, 50, 100, 0.02
COMPILED = "/jax/core/compile/backend_compile_duration"
IMPORTS = {"import jaxmeta": "jaxmeta", "import jax": "jax"}


class Inputs:
    """Two embeddings, an ideal and two noisy signals of it; nothing of it compiles a program."""

    def __init__(self) -> None:
        import jaxmeta  # of the checkout that is measured

        rng = np.random.default_rng(0)
        self.jm = jaxmeta
        u, v = (np.linalg.qr(rng.normal(size=(N, RANK)))[0] for _ in range(2))
        values = 10 * np.arange(1.0, RANK + 1) ** -0.5
        z = SIGMA * rng.normal(size=(N, N))
        signal = (u * values) @ u.T + (z + z.T) / 2**0.5
        eigenvalues = np.linalg.eigvalsh(signal)
        eigenvalues = eigenvalues[np.argsort(-np.abs(eigenvalues))]

        def single(x: np.ndarray) -> jax.Array:
            return jnp.asarray(x.astype(np.float32))

        self.eigenvalues, self.signal = single(eigenvalues), single(signal)
        self.e, self.f = (single(rng.normal(size=(N, K)) + shift) for shift in (0.1, 0.0))
        self.both = self.e, self.f
        self.ideal = jaxmeta.Spectrum(single(u), single(values))
        strong = single(values[:K] + 0.1)
        self.spectra = tuple(jaxmeta.Spectrum(single(x[:, :K]), strong) for x in (u, v))
        self.values = strong, strong
        self.weights = single(np.array([1.0, 0.5]))


def _gradient(x: Inputs) -> Any:
    def tight(weights):
        return x.jm.bound_terms(x.ideal, x.spectra, weights, alpha=0.5).tight

    return jax.grad(tight)(x.weights)


def _exact(x: Inputs) -> Any:
    return x.jm.exact_weights(x.jm.pip_quadratic(x.ideal.vectors, x.both))


def _planned(x: Inputs) -> Any:
    return x.jm.apply(x.jm.fit("default", x.jm.moments(x.both)), x.both)


def _strengths(x: Inputs) -> Any:
    return x.jm.ideal_strengths(x.eigenvalues, sigma=SIGMA, alpha=0.5)


CALLS: dict[str, Callable[[Inputs], Any]] = {
    "pip_loss": lambda x: x.jm.pip_loss(x.e, x.f),
    "pip_curve": lambda x: x.jm.pip_curve(x.ideal, x.spectra[0], alpha=0.5),
    "bound_terms": lambda x: x.jm.bound_terms(x.ideal, x.spectra, alpha=0.5),
    "bound_terms, gradient": _gradient,
    "aligned_weights": lambda x: x.jm.aligned_weights(
        x.values, sigmas=(SIGMA, SIGMA), n=N, alpha=0.5
    ),
    "pip_quadratic, exact_weights": _exact,
    "ideal_strengths": _strengths,
    "diagnose": lambda x: x.jm.diagnose(x.both),
    'meta_embedding("default")': lambda x: x.jm.meta_embedding("default", x.both),
    "moments, fit, apply": _planned,
    "cka": lambda x: x.jm.similarity.cka(x.e, x.f),
    "decompose(rank=50)": lambda x: x.jm.decompose(x.signal, rank=K),
    "decompose": lambda x: x.jm.decompose(x.signal),
}
FLOORS: dict[str, Callable[[Inputs], Any]] = {
    f"qr, {N} x {K}": lambda x: jnp.linalg.qr(x.e),
    f"svd, {K} x {K}": lambda x: jnp.linalg.svd(x.e[:K]),
    f"eigh, {K} x {K}": lambda x: jnp.linalg.eigh(x.e[:K]),
    f"cholesky, {K} x {K}": lambda x: jnp.linalg.cholesky(x.e[:K]),
    f"product, {N} x {K}": lambda x: jax.jit(lambda e: e.T @ e)(x.e),
}


def measured(name: str) -> dict[str, float]:
    """First call less second, in this process."""
    programs: list[str] = []

    def count(event: str, duration_secs: float, **_: Any) -> None:  # noqa: ARG001 - as JAX calls it
        programs.extend([event] * (event == COMPILED))

    call, x = (CALLS | FLOORS)[name], Inputs()
    (jnp.ones(3) + 1).block_until_ready()  # what any first program costs
    jax.monitoring.register_event_duration_secs_listener(count)
    times = []
    for _ in range(3):
        start = now()
        jax.block_until_ready(call(x))
        times.append(since(start))
    first, *others = times
    again = {f"{key} again": min(other[key] for other in others) for key in first}
    return {**first, **again, "programs": len(programs)}


def apart(name: str, folder: Path) -> dict[str, float]:
    """The same in a process of its own, with the library in that folder."""
    settings = {"JAX_ENABLE_X64": "0", "JAX_ENABLE_COMPILATION_CACHE": "0"}
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"} | settings
    command = [sys.executable, "-P"]
    if name in IMPORTS:
        timed = (
            f"import json, time; t = time.perf_counter(), time.process_time(); import "
            f"{IMPORTS[name]}; print(json.dumps({{'wall': time.perf_counter() - t[0], "
            "'processor': time.process_time() - t[1]}))"
        )
        command += ["-c", timed]
    else:
        command += [__file__, "--here", name]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True,
        env={**environment, "PYTHONPATH": str(folder)},
    )  # fmt: skip
    return json.loads(done.stdout)


def least(name: str, folders: Sequence[Path], repeats: int) -> list[dict[str, float]]:
    """For each folder the least of each number, of runs in turn."""
    runs = [[apart(name, folder) for folder in folders] for _ in range(repeats)]
    return [
        {key: min(run[key] for run in own) for key in own[0]} for own in zip(*runs, strict=True)
    ]


def extra(found: dict[str, float], kind: str) -> float:
    """What a first call takes beyond what another one does."""
    return found[kind] - found.get(f"{kind} again", 0.0)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [*CALLS, *FLOORS, *IMPORTS]
    parser.add_argument("--only", nargs="*", choices=names, default=names)
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--here", choices=names, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        print(json.dumps(measured(given.here)))
        return
    folders = [Path(__file__).parents[1], *([given.against.resolve()] if given.against else [])]
    print(
        f"n = {N}, k = {K}, float32; first call less another: processors, clock, programs; another"
    )
    for name in given.only:
        found = least(name, folders, given.repeats)
        cells = [
            f"{extra(r, 'processor'):8.2f} s{extra(r, 'wall'):8.2f} s{r.get('programs', 0):>5}"
            f"{r.get('processor again', 0):8.2f} s"
            for r in found
        ]
        line = f"{name:<32}" + " |".join(cells)
        if given.against:
            line += f"{extra(found[0], 'processor') / extra(found[1], 'processor'):8.2f} x"
        print(line, flush=True)


if __name__ == "__main__":
    main()
