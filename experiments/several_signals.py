r"""What to do with several signals of one ideal? Average, stack, concatenate, or take one alone.

    python -m experiments.several_signals [--smoke] [--out DIR]

`best_use` is given leading dimensions, noise and eigenvalues of two to six sources, and says what
to do. Here the ideal is known, so that every use can be carried out and its PIP loss measured:
by how much is the recommended one above the best of them all? The best includes what `best_use`
does not offer: all sources averaged or concatenated, those left out too, and the best source by the
truth. Sources that share part of their directions have $U_j = \mathrm{polar}(bU + \sqrt{1 - b^2}R)$
with a random frame $R$. Two sources of different shares cannot be told apart and are not in it.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

import jaxmeta
from experiments import _record
from experiments._draws import Spectrum, strengths
from jaxmeta import several
from jaxmeta.noise import spiked_strengths
from jaxmeta.shrinkage import rie_strengths

ALPHA = 0.5
SIGMA = 0.12


class View(NamedTuple):
    """A source: its noise, and the share of its directions that all sources have."""

    sigma: float = SIGMA
    share: float = 1.0


ALL = {
    "equal": (View(),) * 6,
    "unequal": tuple(View(0.06 * 1.4**j) for j in range(6)),
    "very unequal": tuple(View(0.03 * 1.8**j) for j in range(6)),
    "one inside its noise": (View(2.0), *(View(),) * 5),
}
NOT_OF_TWO = {
    "one unrelated": (View(share=0), *(View(),) * 5),
    "one unrelated, and sharp": (View(0.04, 0), *(View(),) * 5),
}
IN_PART = {
    "nearly all": (View(share=0.94),) * 6,
    "most": (View(share=0.8),) * 6,
    "half": (View(share=0.5),) * 6,
    "most, little noise": (View(0.02, 0.8),) * 6,
    "half, little noise": (View(0.02, 0.5),) * 6,
    "half, unequal": tuple(View(0.04 * 1.4**j, 0.5) for j in range(6)),
}
MIXED = {
    "mixed": tuple(View(share=x) for x in (1, 0.6, 0.3, 0.8, 0.45, 0.25)),
    "mixed, little noise": tuple(View(0.03, x) for x in (0.9, 0.5, 0.2, 0.7, 0.4, 0.3)),
}


@dataclass(frozen=True)
class Config:
    """What is drawn."""

    n: int = 1200
    spectra: tuple[Spectrum, ...] = (Spectrum(0.5, 100), Spectrum(0.3, 24, 20.0), Spectrum(0.7))
    """Sources share the last, which is dense, as a whole or not at all."""
    counts: tuple[int, ...] = (2, 3, 4, 6)
    scenes: tuple[str, ...] = (*ALL, *NOT_OF_TWO, *IN_PART, *MIXED)
    first_seed: int = 3000
    """Not those that constants of `jaxmeta.several` were chosen on, nor those of the tests."""
    seeds: int = 2
    example: tuple[float, ...] = (0.06, 0.12, 0.20)
    """Noise of three sources of the first spectrum, for a table of all uses and the oracle."""
    widths: int = 150
    """Leading dimensions that sources are cut to: all that stand out of the noise."""


SMOKE = Config(
    n=300, spectra=(Spectrum(0.5, 25, 20.0), Spectrum(0.3, 6, 10.0), Spectrum(0.7, scale=20.0)),
    counts=(2, 3, 5), first_seed=1000, seeds=1, widths=75,
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """What was recommended for one set of sources, and how good that is."""

    spectrum: str
    scene: str
    sources: int
    seed: int
    use: str
    """The recommended one."""
    ratio: float
    """Of its loss to that of the best."""
    embeddings_use: str
    """The recommended one without signals to average."""
    embeddings_ratio: float
    predicted: float
    """The loss of the recommended one by prediction, over the true one."""
    kept: int
    average: float
    rotation_invariant: float
    stack: float
    aligned: float
    single: float
    all_averaged: float
    all_aligned: float


@dataclass(frozen=True)
class Example:
    """All uses of three sources that share all."""

    use: str
    loss: float
    dimensions: int


@dataclass(frozen=True)
class Source:
    """A signal and its decomposition."""

    signal: np.ndarray
    eigenvalues: np.ndarray
    vectors: np.ndarray
    sigma: float

    def leading(self, k: int) -> jaxmeta.Spectrum:
        """Its leading dimensions."""
        values = np.abs(self.eigenvalues[:k])
        return jaxmeta.Spectrum(jnp.asarray(self.vectors[:, :k]), jnp.asarray(values))


def decomposed(signal: np.ndarray, sigma: float) -> Source:
    """Eigenpairs by magnitude."""
    values, vectors = np.linalg.eigh(signal)
    order = np.argsort(-np.abs(values))
    return Source(signal, values[order], vectors[:, order], sigma)


def draw(ideal: np.ndarray, view: View, rng: np.random.Generator) -> Source:
    """A source of an ideal that is diagonal, without loss of generality."""
    n, rank = len(ideal), int(np.count_nonzero(ideal))
    signal = np.diag(ideal)
    if view.share < 1:
        frame, _ = np.linalg.qr(rng.standard_normal((n, rank)))
        mixed = view.share**0.5 * np.eye(n, rank) + (1 - view.share) ** 0.5 * frame
        u, _, v = np.linalg.svd(mixed, full_matrices=False)
        signal = (u @ v * ideal[:rank]) @ (u @ v).T
    z = rng.standard_normal((n, n))
    return decomposed(signal + view.sigma / 2**0.5 * (z + z.T), view.sigma)


class Truth:
    """Losses against an ideal."""

    def __init__(self, ideal: np.ndarray) -> None:
        """Of a diagonal signal."""
        self.ideal, self.square = ideal, float(ideal @ ideal)

    def of_axes(self, vectors: np.ndarray, given: Any) -> float:
        """Of orthonormal directions that are given these strengths."""
        given = np.asarray(given)
        (truth,) = strengths(np.asarray(vectors), self.ideal, [ALPHA])
        return float(np.sqrt(max(self.square + given @ (given - 2 * truth), 0)))

    def of_concatenation(self, vectors: np.ndarray, given: np.ndarray) -> float:
        """Of directions of several sources."""
        gram = (vectors.T @ vectors) ** 2
        (truth,) = strengths(vectors, self.ideal, [ALPHA])
        return float(np.sqrt(given @ gram @ given - 2 * truth @ given + self.square))

    def averaged(self, sources: Sequence[Source]) -> tuple[float, float, int]:
        """With strengths by the spiked model and by RIE, and dimensions above the noise."""
        signals, sigmas = [jnp.asarray(x.signal) for x in sources], [x.sigma for x in sources]
        signal, sigma = several.average_signals(signals, sigmas)
        whole = decomposed(np.asarray(signal), float(sigma))
        spiked, rie = own_strengths(whole), rie_strengths(whole.eigenvalues, sigma=whole.sigma)
        first, second = (self.of_axes(whole.vectors, x) for x in (spiked, rie))
        return first, second, int(np.count_nonzero(spiked))

    def aligned(self, sources: Sequence[Source], k: int) -> float:
        """Concatenated with `aligned_weights`."""
        values = tuple(x.leading(k).values for x in sources)
        sigmas = tuple(x.sigma for x in sources)
        weights = jaxmeta.aligned_weights(values, sigmas=sigmas, n=len(self.ideal), alpha=ALPHA)
        given = np.concatenate([c**2 * v for c, v in zip(weights, values, strict=True)])
        return self.of_concatenation(np.hstack([x.vectors[:, :k] for x in sources]), given)

    def best_concatenation(self, sources: Sequence[Source]) -> tuple[float, int]:
        """With the ideal known, of all dimensions that stand out of the noise."""
        vectors = np.hstack([x.vectors[:, own_strengths(x) > 0] for x in sources])
        (truth,) = strengths(vectors, self.ideal, [ALPHA])
        root = np.linalg.cholesky((vectors.T @ vectors) ** 2)
        given, _ = scipy.optimize.nnls(root.T, np.linalg.solve(root, truth), maxiter=10**4)
        return self.of_concatenation(vectors, given), len(given)


def own_strengths(source: Source) -> np.ndarray:
    """By the spiked model."""
    values = jnp.abs(jnp.asarray(source.eigenvalues))
    return np.asarray(spiked_strengths(values, sigma=source.sigma, n=len(values), alpha=ALPHA))


def judge(truth: Truth, sources: Sequence[Source], k: int, **setting: Any) -> Row:
    """Carry out all uses, and set the recommended one against the best."""
    leading, sigmas = tuple(x.leading(k) for x in sources), tuple(x.sigma for x in sources)
    eigenvalues = tuple(jnp.asarray(x.eigenvalues) for x in sources)
    uses = several.best_use(leading, sigmas=sigmas, alpha=ALPHA, eigenvalues=eigenvalues)
    kept = [x for x, keep in zip(sources, uses.kept, strict=True) if keep]
    average, rie, _ = truth.averaged(kept)
    every = (average, rie, 0) if len(kept) == len(sources) else truth.averaged(sources)
    again = several.stack_spectra(leading, sigmas=sigmas, alpha=ALPHA, shares=uses.shares)
    singles = [truth.of_axes(x.vectors, own_strengths(x)) for x in sources]
    losses: dict[str, Any] = {
        "average": average,
        "rotation_invariant": rie,
        "stack": truth.of_axes(np.asarray(again.vectors), again.values),
        "aligned": truth.aligned(kept, k),
        "single": singles[int(uses.source)],
    }
    all_aligned = truth.aligned(sources, k)
    of_embeddings = {name: float(getattr(uses, name)) for name in ("stack", "aligned", "single")}
    other = min(of_embeddings, key=of_embeddings.__getitem__)
    best_other = min(losses["stack"], losses["aligned"], all_aligned, *singles)
    best = min(*losses.values(), *every[:2], best_other)
    return Row(
        **setting,
        sources=len(sources),
        use=uses.best,
        ratio=losses[uses.best] / best,
        embeddings_use=other,
        embeddings_ratio=losses[other] / best_other,
        predicted=float(getattr(uses, uses.best)) / losses[uses.best],
        kept=len(kept),
        **losses,
        all_averaged=min(every[:2]),
        all_aligned=all_aligned,
    )


def run(config: Config) -> tuple[list[Row], list[Example]]:
    """All sets of sources, and the example."""
    rows, drawn = [], len(config.spectra) * config.seeds
    progress = _record.Progress(drawn)
    with jax.enable_x64(True):
        for spectrum in config.spectra:
            for seed in range(config.first_seed, config.first_seed + config.seeds):
                rows += list(_of_spectrum(config, spectrum, seed))
                progress.step(f"exponent {spectrum.name}")
        examples = example(config)
    return rows, examples


def _of_spectrum(config: Config, spectrum: Spectrum, seed: int) -> Iterator[Row]:
    ideal = spectrum.values(config.n, np.random.default_rng(seed))
    truth = Truth(ideal)
    known: dict[tuple[View, int], Source] = {}
    scenes = ALL | NOT_OF_TWO | (IN_PART | MIXED if spectrum.rank else {})
    for scene, views in scenes.items():
        for count in config.counts if scene in config.scenes else ():
            if count == 2 and scene in NOT_OF_TWO | MIXED:
                continue
            for j, view in enumerate(views[:count]):
                if (view, j) not in known:
                    known[view, j] = draw(ideal, view, np.random.default_rng([seed, j]))
            sources = [known[view, j] for j, view in enumerate(views[:count])]
            setting = {"spectrum": spectrum.name, "scene": scene, "seed": seed}
            yield judge(truth, sources, config.widths, **setting)


def example(config: Config) -> list[Example]:
    """All uses of three sources of different noise, and the best there is of concatenations."""
    ideal = config.spectra[0].values(config.n, np.random.default_rng(0))
    rng = np.random.default_rng(config.first_seed)
    sources = [draw(ideal, View(sigma), rng) for sigma in config.example]
    truth, k = Truth(ideal), config.widths
    average, rie, dimensions = truth.averaged(sources)
    leading = tuple(x.leading(k) for x in sources)
    again = several.stack_spectra(leading, sigmas=config.example, alpha=ALPHA)
    above = [int(np.count_nonzero(own_strengths(x))) for x in sources]
    concatenated, all_dimensions = truth.best_concatenation(sources)
    rows = [
        ("average, rotation invariant", rie, dimensions),
        ("average, spiked", average, dimensions),
        ("stack", truth.of_axes(np.asarray(again.vectors), again.values),
         int(np.count_nonzero(again.values))),
        ("best concatenation, by the truth", concatenated, all_dimensions),
        ("aligned", truth.aligned(sources, k), sum(above)),
        ("best source", truth.of_axes(sources[0].vectors, own_strengths(sources[0])), above[0]),
    ]  # fmt: skip
    return [Example(*row) for row in rows]


def table(rows: Sequence[dict], examples: Sequence[dict]) -> str:
    """The worst ratios by scene, and the example."""
    found = []
    for spectrum, scene in _record.unique(rows, "spectrum", "scene"):
        own = [r for r in rows if (r["spectrum"], r["scene"]) == (spectrum, scene)]
        uses = ", ".join(dict.fromkeys(str(r["use"]).replace("_", " ") for r in own))
        numbers = [max(r[x] for r in own) for x in ("ratio", "embeddings_ratio")]
        worst = max((r["predicted"] for r in own), key=lambda x: abs(np.log(x)))
        found.append((spectrum, scene, uses, *(f"{x:.3f}" for x in numbers), f"{worst:.2f}"))
    heads = ("spectrum", "sources", "recommended", "worst ratio", "of embeddings", "predicted")
    one = [(e["use"], f"{e['loss']:.2f}", f"{e['dimensions']:.0f}") for e in examples]
    worst, over = max(r["ratio"] for r in rows), sum(r["ratio"] > 1.02 for r in rows)
    return "\n\n".join((
        _record.markdown(heads, found),
        f"{over} of {len(rows)} recommended uses are more than 2 % above the best; worst "
        f"{worst:.3f}.",
        _record.markdown(("three sources", "loss", "dimensions"), one),
    ))  # fmt: skip


def report(config: Config, out: Path) -> list[Row]:
    """Run, write, print."""
    started = time.time()
    rows, examples = run(config)
    tables: dict[str, Sequence[Any]] = {"rows": rows, "example": examples}
    _record.publish(out, config, tables, started=started, texts={"table": table}, dtype="float64")
    return rows


if __name__ == "__main__":
    _record.main(__doc__, report, Config(), SMOKE)
