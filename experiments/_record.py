"""What experiments share: data, noisy draws kept on disk, tables and where they come from."""

import argparse
import csv
import dataclasses
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxmeta.files import Cache, write_whole

ROOT = Path(__file__).resolve().parent.parent

# Okabe and Ito's palette: distinct to colour-blind readers too.
GREY, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE = (
    "#999999", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
STYLE: Any = {"font.size": 11, "axes.spines.top": False, "axes.spines.right": False}


@dataclasses.dataclass(frozen=True)
class Spectrum:
    """Ideal eigenvalues scale * i^-exponent, the first `rank` of them (None: all)."""

    exponent: float
    rank: int | None = None
    scale: float = 40.0
    indefinite: bool = False
    """Whether signs are drawn at random; otherwise none is negative."""

    @property
    def name(self) -> str:
        """Exponent and rank."""
        return f"{self.exponent:g}/{'full' if self.rank is None else self.rank}"

    @property
    def signs(self) -> str:
        """In a word."""
        return "indefinite" if self.indefinite else "positive"

    def values(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """All n ideal eigenvalues, by magnitude."""
        values = self.scale * np.arange(1, n + 1.0) ** -self.exponent
        if self.rank is not None:
            values[self.rank :] = 0
        return values * rng.choice([-1, 1], n) if self.indefinite else values


@dataclasses.dataclass(frozen=True)
class Draw:
    """One source: an ideal signal, diagonal without loss of generality, plus Wigner noise."""

    ideal: np.ndarray
    """Its n eigenvalues, by magnitude."""
    eigenvalues: np.ndarray
    """Those of the noisy signal, by magnitude, with their signs."""
    strengths: np.ndarray
    """What each noisy direction holds of the ideal, a row for each alpha."""


def draw(spectrum: Spectrum, *, n: int, sigma: float, seed: int, alphas: Sequence[float]) -> Draw:
    """A source from scratch: one eigendecomposition of an n x n matrix."""
    rng = np.random.default_rng(seed)
    ideal = spectrum.values(n, rng)
    eigenvalues, vectors = noisy(ideal, sigma, rng)
    return Draw(ideal, eigenvalues, strengths(vectors, ideal, alphas))


def noisy(
    ideal: np.ndarray, sigma: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, by magnitude, and vectors of diag(ideal) plus symmetric Gaussian noise."""
    z = rng.standard_normal((len(ideal), len(ideal)))
    eigenvalues, vectors = np.linalg.eigh(np.diag(ideal) + sigma / 2**0.5 * (z + z.T))
    order = np.argsort(-np.abs(eigenvalues))
    return eigenvalues[order], vectors[:, order]


def strengths(vectors: np.ndarray, ideal: np.ndarray, alphas: Sequence[float]) -> np.ndarray:
    """The truth: u'|M|^(2 alpha)u of each column u, a row for each alpha."""
    powers = np.stack([power(np.abs(ideal), 2 * alpha) for alpha in alphas])
    return powers @ vectors**2


def power(values: np.ndarray, exponent: float) -> np.ndarray:
    """Powers with 0^x = 0 for every x."""
    return np.where(values > 0, np.where(values > 0, values, 1.0) ** exponent, 0.0)


def cached_draw(
    folder: Path,
    spectrum: Spectrum,
    *,
    n: int,
    sigma: float,
    seed: int,
    alphas: Sequence[float],
) -> Draw:
    """The same as `draw`, from disk if it has been drawn before."""
    settings = {**dataclasses.asdict(spectrum), "n": n, "sigma": sigma, "seed": seed}
    arrays = Cache(folder).arrays(
        "draw",
        {**settings, "alphas": list(alphas)},
        lambda: vars(draw(spectrum, n=n, sigma=sigma, seed=seed, alphas=alphas)),
    )
    return Draw(**arrays)


def write_table(path: Path, rows: Sequence[Any]) -> None:
    """Rows, dataclasses of one kind, as CSV."""
    with write_whole(path) as part, part.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in dataclasses.fields(rows[0])])
        writer.writeheader()
        writer.writerows(vars(row) for row in rows)


def read_table(path: Path) -> list[dict[str, Any]]:
    """Rows of a CSV, with numbers where they are numbers."""
    with path.open(newline="") as file:
        return [{name: _number(x) for name, x in row.items()} for row in csv.DictReader(file)]


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def write_provenance(path: Path, config: Any, *, started: float, dtype: str) -> None:
    """Where a table comes from: commit, versions, device, dtype, settings with seeds, time."""
    packages = ("jax", "jaxlib", "numpy", "scipy", "optax", "matplotlib", "jaxmeta")
    changes = _git("status", "--porcelain")
    record = {
        "experiment": path.parent.name,
        "command": " ".join(["python -m experiments." + Path(sys.argv[0]).stem, *sys.argv[1:]]),
        "commit": _git("rev-parse", "HEAD"),
        "uncommitted_changes": None if changes is None else bool(changes),
        "versions": {"python": platform.python_version()} | {p: _version(p) for p in packages},
        "device": [str(device.device_kind) for device in jax.devices()],
        "processors": os.cpu_count(),
        "dtype": dtype,
        "config": dataclasses.asdict(config),
        "started": datetime.datetime.fromtimestamp(started, datetime.UTC).isoformat("T", "seconds"),
        "seconds": round(time.time() - started, 1),
    }
    with write_whole(path) as part:
        part.write_text(json.dumps(record, indent=2) + "\n")


def publish(
    out: Path,
    config: Any,
    rows: Sequence[Any],
    *,
    started: float,
    table: Callable[[list[dict[str, Any]]], str],
    figures: Mapping[str, Callable[[list[dict[str, Any]], Path], None]],
) -> None:
    """Write rows, a table and figures made of what was written, and where they come from."""
    write_table(out / "rows.csv", rows)
    read = read_table(out / "rows.csv")
    write_text(out / "table.md", table(read))
    for name, plot in figures.items():
        plot(read, out / name)
    dtype = str(jax.numpy.zeros(()).dtype)
    write_provenance(out / "provenance.json", config, started=started, dtype=dtype)
    print(f"{table(read)}\n\n{time.time() - started:.0f} s; written to {out}")


def write_text(path: Path, text: str) -> None:
    """A text file, whole or not at all."""
    with write_whole(path) as part:
        part.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def data(*names: str) -> list[Path]:
    """Files below the folder that JAXMETA_DATA names, or the end of the program."""
    folder = os.environ.get("JAXMETA_DATA")
    paths = [Path(folder or "") / name for name in names]
    missing = [name for name, path in zip(names, paths, strict=True) if not path.exists()]
    if folder is None or missing:
        sys.exit(
            f"JAXMETA_DATA: got {folder or 'nothing'}, expected a folder with "
            f"{', '.join(missing or names)}; point it there."
        )
    return paths


class Progress:
    """A count on stderr of what is done; into a file it is written at every tenth."""

    def __init__(self, total: int) -> None:
        """Count up to `total`."""
        self.total, self.done, self.start = total, 0, time.monotonic()

    def step(self, what: str) -> None:
        """One more is done."""
        self.done += 1
        seconds = time.monotonic() - self.start
        text = f"{self.done}/{self.total} {seconds:.0f} s  {what:<60}"
        if not sys.stderr.isatty():
            if 10 * self.done // self.total > 10 * (self.done - 1) // self.total:
                print(text.rstrip(), file=sys.stderr, flush=True)
            return
        end = "\n" if self.done == self.total else ""
        print(f"\r{text}", end=end, file=sys.stderr, flush=True)


def verdict(mean: float, worst: float, limit: float) -> str:
    """Whether a target is met by the worst case, by the mean alone, or not at all."""
    if worst <= limit:
        return "met"
    return "met by the mean, MISSED by the worst case" if mean <= limit else "MISSED"


def parser(description: str | None) -> argparse.ArgumentParser:
    """What every experiment can be asked for on the command line."""
    made = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    made.add_argument("--smoke", action="store_true", help="small sizes, in seconds")
    made.add_argument("--out", type=Path, help="folder to write to (results/...)")
    return made


def folder(asked: argparse.Namespace, name: str) -> Path:
    """Where the results of an experiment go."""
    return asked.out or ROOT / "results" / (f"{name}_smoke" if asked.smoke else name)


def arguments(description: str | None, name: str) -> argparse.Namespace:
    """What is asked for on the command line: `smoke` and `out`."""
    asked = parser(description).parse_args()
    asked.out = folder(asked, name)
    return asked
