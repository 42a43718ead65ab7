"""Noisy draws of signals whose ideal is known, kept on disk, and what their directions hold."""

import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta
from jaxmeta.files import Cache


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
class Config:
    """What is drawn."""

    n: int = 1500
    spectra: tuple[Spectrum, ...] = (Spectrum(0.4, 500), Spectrum(0.5), Spectrum(0.8))
    indefinite: tuple[bool, ...] = (False, True)
    """Whether signs are drawn at random: both without and with them."""
    sigma: float = 0.12
    alphas: tuple[float, ...] = (0.25, 0.5, 1.0)
    candidates: int = 512
    """For the density of the ideal, in `ideal_strengths`."""
    first_seed: int = 1000
    seeds: int = 20

    @property
    def signed(self) -> list[Spectrum]:
        """Each spectrum without and with signs."""
        return [
            dataclasses.replace(spectrum, indefinite=signs)
            for spectrum in self.spectra
            for signs in self.indefinite
        ]

    def draw(
        self, folder: Path, spectrum: Spectrum, seed: int, sigma: float | None = None
    ) -> "Draw":
        """A source by one eigendecomposition, or from disk; at another noise if one is given."""
        sigma = self.sigma if sigma is None else sigma

        def make() -> dict[str, np.ndarray]:
            rng = np.random.default_rng(seed)
            ideal = spectrum.values(self.n, rng)
            eigenvalues, vectors = noisy(ideal, sigma, rng)
            return vars(Draw(ideal, eigenvalues, strengths(vectors, ideal, self.alphas)))

        settings = {**vars(spectrum), "n": self.n, "sigma": sigma, "seed": seed}
        settings["alphas"] = list(self.alphas)
        return Draw(**Cache(folder).arrays("draw", settings, make))

    def estimated(self, draw: "Draw", spectrum: Spectrum, sigma: float) -> jax.Array:
        """Strengths by `ideal_strengths`, a row for each alpha."""
        given = (jnp.asarray(x) for x in (draw.eigenvalues, sigma, self.alphas))
        return _estimated(*given, positive=not spectrum.indefinite, size=self.candidates)

    @property
    def all_seeds(self) -> range:
        """They start where no one has tuned anything."""
        return range(self.first_seed, self.first_seed + self.seeds)


SMOKE = Config(
    n=150,
    spectra=(Spectrum(0.4, 50), Spectrum(0.5), Spectrum(0.8)),
    sigma=0.38,
    candidates=48,
    seeds=2,
)


@dataclasses.dataclass(frozen=True)
class Draw:
    """One source: an ideal signal, diagonal without loss of generality, plus Wigner noise."""

    ideal: np.ndarray
    """Its n eigenvalues, by magnitude."""
    eigenvalues: np.ndarray
    """Those of the noisy signal, by magnitude, with their signs."""
    strengths: np.ndarray
    """What each noisy direction holds of the ideal, a row for each alpha."""


def shared(
    folder: Path,
    spectrum: Spectrum,
    *,
    n: int,
    sigmas: Sequence[float],
    seed: int,
    alphas: Sequence[float],
) -> dict[str, np.ndarray]:
    """Sources that share an ideal: all values, and overlaps of the dimensions above the noise."""

    def make() -> dict[str, np.ndarray]:
        rng = np.random.default_rng(seed)
        ideal = spectrum.values(n, rng)
        values, vectors, owner = [], [], []
        for j, sigma in enumerate(sigmas):
            eigenvalues, u = noisy(ideal, sigma, rng)
            values.append(np.abs(eigenvalues))
            k = max(1, int(np.sum(values[-1] > 2 * sigma * n**0.5)))
            vectors.append(u[:, :k])
            owner += [j] * k
        u = np.concatenate(vectors, axis=1)
        return {
            "ideal": ideal,
            "values": np.stack(values),
            "owner": np.array(owner),
            "overlaps": (u.T @ u) ** 2,
            "strengths": strengths(u, ideal, alphas),
        }

    settings = {"spectrum": vars(spectrum), "sigmas": list(sigmas), "n": n, "seed": seed}
    return Cache(folder).arrays("shared", settings | {"alphas": list(alphas)}, make)


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


@partial(jax.jit, static_argnames=("positive", "size"))
def _estimated(eigenvalues, sigma, alphas, *, positive: bool, size: int):
    """Estimated strengths at several alphas, for which the density of the ideal is found once."""

    def at(alpha):
        return jaxmeta.ideal_strengths(
            eigenvalues, sigma=sigma, alpha=alpha, positive=positive, size=size
        )

    return jax.vmap(at)(alphas).values
