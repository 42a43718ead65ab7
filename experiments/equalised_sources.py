r"""What the rule "equalised" does to a corpus: its noise, k and weights by all rules, and a check.

    python -m experiments.equalised_sources             three signals of the wiki corpus
    python -m experiments.equalised_sources --smoke     of generated text, in seconds

* *Bulk.* The laws that shrinkage goes by want noise whose eigenvalues fill a semicircle. Noise is
  here the difference of two halves of the corpus, as it is and with words scaled so that all rows
  are alike (`jaxmeta.nested`). It stays sparse: its spectrum is known by its density. Scales are
  from the same halves; they are as many as words, where the difference has all pairs of words.
* *k and weights.* By every rule and weighting for one source, with sigma from halves as the paper
  has it, and from nested parts; and by the estimated ideal. A rule's own prediction of the loss
  stands beside that by the estimated ideal, which is the smallest for the rule "equalised" by
  definition.
* *Cross-validation.* Directions of one half, strengths in the other, needs neither sigma nor an
  ideal. It is about a half: so rules have k and weights of a half, from its own halves and
  quarters, and stand where they do on the curve of loss of its leading directions. Two levels make
  sigma too large, and with it the loss that is predicted too small; k is where that is smallest.
"""

import dataclasses
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta
from experiments import _equalised, _record, corpus_to_sources
from experiments._equalised_figures import EQUALISED, FIGURES, LAWS, summary
from experiments._labels import RULES, label_of
from jaxmeta.crossvalidation import CrossValidated, cross_validated, shared_square
from jaxmeta.dimension import paper_curve, predicted_curve
from jaxmeta.eigen import eigenvalue_density, leading_eigenpairs, multiply_by
from jaxmeta.equalise import equalise, estimate_ideal
from jaxmeta.nested import nested_noise, semicircle_distance
from jaxmeta.noise import spiked_strengths
from jaxmeta.pip import strengths_against
from jaxmeta.shrinkage import rie_strengths
from jaxmeta.spectral import Spectrum
from jaxmeta.text import Counts, symmetric_window
from jaxmeta.weightings import Observed, weigh

ALPHA = 0.5
PARTS = 8  # halves, their halves and quarters
OF_SEVERAL = "SW-blocks", "DW-blocks", "aligned"
"""Weightings that are SW, DW and spiked, if there is one source."""
OWN: dict[str, Callable[..., Any]] = {
    "spiked": lambda values, sigma: spiked_strengths(
        jnp.abs(values), sigma=sigma, n=len(values), alpha=ALPHA
    ),
    "rie": lambda values, sigma: rie_strengths(values, sigma=sigma),
    "ideal": lambda values, sigma: jaxmeta.ideal_strengths(values, sigma=sigma, alpha=ALPHA).values,
}
"""Strengths that rules go by."""


@dataclass(frozen=True)
class Config:
    """Sources, and how much of their halves is looked at."""

    sources: corpus_to_sources.Config
    rank: int = 600
    """Leading directions of each half."""


FULL = Config(corpus_to_sources.Config(corpora=("corpora/wiki.zip",) * 3, size=10_000))
SMOKE = Config(corpus_to_sources.SMOKE, rank=100)


@dataclass(frozen=True)
class Noise:
    """The noise of one signal."""

    signal: str
    halves: float
    nested: float
    error: float
    """Sigma as the paper estimates it, and from nested parts with its standard error."""
    growth: float
    """Variance of the whole over that of a half."""
    least: float
    most: float
    """Scale of a word."""
    law: float
    law_equalised: float
    """Distance to the semicircle."""
    ideal: int
    """Directions of the estimated ideal."""
    first: int
    second: int
    best: float
    """k of each half with the smallest cross-validated loss, and that loss."""


@dataclass(frozen=True)
class Bulk:
    """Eigenvalues of noise over the radius of the semicircle."""

    signal: str
    noise: str
    point: float
    count: float


@dataclass(frozen=True)
class K:
    """How many dimensions a rule keeps."""

    signal: str
    rule: str
    sigma: str
    k: int
    own: float
    """PIP loss as the rule predicts it."""
    predicted: float
    """The same by the estimated ideal; NaN beyond the directions that were computed."""
    first: int
    second: int
    """Of the two halves."""
    crossed: float
    """Cross-validated loss of halves over that at the best k of each; NaN if that is not known."""


@dataclass(frozen=True)
class Weights:
    """Weights of all directions that were computed."""

    signal: str
    weighting: str
    sigma: str
    least: float
    most: float
    predicted: float
    crossed: float
    """The same for weights."""


@dataclass(frozen=True)
class Point:
    """Loss of the k leading directions of a half, as root mean square of both."""

    signal: str
    k: int
    crossed: float
    predicted: float
    """By the estimated ideal of each."""


class Look(NamedTuple):
    """A signal of a corpus or of a part of it, and what is known without another part."""

    eigenvalues: Any
    spectrum: Spectrum
    ideal: Spectrum
    sigmas: dict[str, float]

    @property
    def strengths(self) -> Any:
        """Of the directions, against the estimated ideal."""
        return strengths_against(self.ideal, self.spectrum.vectors, alpha=ALPHA)

    @property
    def total(self) -> Any:
        """The squared loss of no dimensions: what the signal has, less its noise."""
        values = np.asarray(self.eigenvalues, np.float64)
        return float(np.sum(values**2) - (len(values) * self.sigmas["nested"]) ** 2)


def dimensions(look: Look) -> dict[tuple[str, str], int]:
    """k by each rule with each sigma."""
    values = jnp.asarray(look.eigenvalues, look.spectrum.values.dtype)
    found = {
        (rule, name): max(1, int(choose(values, sigma, ALPHA)))
        for name, sigma in look.sigmas.items()
        for rule, choose in RULES.items()
    }
    best = jaxmeta.best_dimension(look.spectrum.values, look.strengths, alpha=ALPHA)
    return found | {(EQUALISED, "nested"): int(best)}


def weights(look: Look) -> dict[tuple[str, str], Any]:
    """By each weighting that needs no ideal, with each sigma if it needs one."""
    found, n = {}, len(look.eigenvalues)
    eigenvalues = jnp.asarray(look.eigenvalues, look.spectrum.values.dtype)
    for name, weighting in jaxmeta.WEIGHTINGS.items():
        if weighting.needs == "ideal" or name in OF_SEVERAL:
            continue
        needed = weighting.needs in ("sigma", "eigenvalues")
        for which, sigma in look.sigmas.items() if needed else (("", None),):
            source = Observed(
                look.spectrum.values, n, ALPHA, sigma, eigenvalues, strengths=look.strengths
            )
            own = jnp.asarray(weigh(name, [source])[0])
            found[label_of(name), which] = jnp.broadcast_to(own, source.values.shape)
    return found


def own_losses(look: Look, ks: dict[tuple[str, str], int]) -> dict[tuple[str, str], float]:
    """PIP loss as rules predict it, of those that do."""
    values = jnp.asarray(look.eigenvalues, look.spectrum.values.dtype)
    n, magnitudes = len(values), jnp.abs(values)
    found: dict[tuple[str, str], Any] = {}
    for which, sigma in look.sigmas.items():
        curve = paper_curve(magnitudes, sigma=sigma, n=n, alpha=ALPHA)
        found |= {(rule, which): curve[ks[rule, which] - 1] for rule in ("paper", "released")}
        total = jnp.maximum(jnp.sum(values**2) - n**2 * sigma**2, 0)
        for rule, strengths in OWN.items():
            known = {"alpha": ALPHA, "total": total}
            curve = predicted_curve(magnitudes, strengths(values, sigma), **known)
            found[rule, which] = curve[ks[rule, which] - 1]
    return {way: float(loss) for way, loss in found.items()}


def loss(look: Look, c: Any) -> float:
    """PIP loss with a weight for each direction, by the estimated ideal."""
    values = c**2 * look.spectrum.values
    return float(jnp.sqrt(look.total + jnp.sum(values**2 - 2 * values * look.strengths)))


class Parts:
    """Signals of parts of a corpus, at the number of tokens of the whole."""

    def __init__(self, counts: Counts, signal: Callable[..., Any]) -> None:
        """Counts are in `PARTS` parts."""
        self.signal, self.counts = signal, counts
        self.total = float(symmetric_window(counts.whole).sum())

    def __call__(self, number: int, index: int, factor: float | None = None) -> Any:
        """Signal of one of `number` parts, with counts times a factor if that is given."""
        near = symmetric_window(self.counts.part(number, index))
        factor = self.total / float(near.sum()) if factor is None else factor
        return self.signal(near * factor).astype(jnp.result_type(float))

    def of_half(self, half: int, number: int) -> Iterator[Any]:
        """Signals of `number` parts of a half."""
        return (self(2 * number, half * number + i) for i in range(number))


def look_at_half(parts: Parts, half: int, signal: Any, rank: int) -> tuple[Look, Any]:
    """A half of the corpus with its noise from its own halves and quarters, and its signs."""
    noise = nested_noise([parts.of_half(half, 2), parts.of_half(half, 4)])
    factor = parts.total / float(symmetric_window(parts.counts.part(2, half)).sum())
    # The paper takes counts of halves as they are.
    halves = jaxmeta.noise_std(*(parts(4, 2 * half + i, factor) for i in range(2)))
    n = signal.shape[0]
    solve = partial(leading_eigenpairs, n=n, rank=min(rank, n), key=jax.random.key(1))
    pairs = solve(multiply_by(signal))
    equalised = solve(multiply_by(equalise(signal, noise.scales)))
    ideal = estimate_ideal(equalised, sigma=noise.sigma, scales=noise.scales).spectrum
    sigmas = {"halves": float(halves), "nested": float(noise.sigma)}
    spectrum = Spectrum(pairs.vectors, jnp.abs(pairs.values))
    return Look(pairs.spectrum, spectrum, ideal, sigmas), jnp.sign(pairs.values)


def law(matrix: Any) -> tuple[float, Any, Any]:
    """Distance of noise to the semicircle; its eigenvalues over the radius, and their counts."""
    n = matrix.shape[0]
    sigma = float(np.sqrt((matrix.data.astype(np.float64) ** 2).sum()) / n)
    found = eigenvalue_density(multiply_by(matrix), n=n, key=jax.random.key(0))
    distance = semicircle_distance(found.points, sigma=sigma, counts=found.counts)
    return distance, np.asarray(found.points) / (2 * sigma * n**0.5), np.asarray(found.counts)


Tables = tuple[list[Noise], list[K], list[Weights], list[Point], list[Bulk]]


def run(config: Config, cache: Path) -> Tables:
    """All signals."""
    made: Tables = [], [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        recipes = corpus_to_sources.recipes(config.sources, Path(folder))
        _equalised.build_time(config.sources, recipes, cache)
        signals = list(_equalised.SIGNALS)
        built = _equalised.sources(config.sources, recipes, signals, ALPHA, cache)
        words = built[signals[0]].paper.words
        counts = jaxmeta.text.count_windows(
            recipes[0].corpus,
            jaxmeta.text.given_vocabulary(words),
            window=config.sources.window,
            split=jaxmeta.text.random_blocks(config.sources.seed, parts=PARTS),
        )
    progress = _record.Progress(len(signals))
    for name, pair in built.items():
        signal = corpus_to_sources.SIGNALS[_equalised.SIGNALS[name]]
        found: Any = measure(config, name, pair, Parts(counts, signal))
        for table, rows in zip(made, found, strict=True):
            table += rows
        progress.step(name)
    return made


def measure(config: Config, name: str, pair: _equalised.Pair, parts: Parts) -> Tables:
    """One signal."""
    source, halves = pair.equalised, [parts(2, half) for half in range(2)]
    assert source.ideal is not None
    assert source.noise is not None
    sigmas = {"halves": pair.paper.sigma, "nested": source.sigma}
    whole = Look(source.eigenvalues, source.spectrum, source.ideal, sigmas)
    found = [look_at_half(parts, i, signal, config.rank) for i, signal in enumerate(halves)]
    looks, signs = zip(*found, strict=True)
    others = [multiply_by(signal) for signal in reversed(halves)]
    total = shared_square(*halves)
    crossed = cross_validated([look.spectrum for look in looks], signs, others, total=total)
    bests = [
        int(jaxmeta.best_dimension(values, strengths, alpha=ALPHA))
        for values, strengths in zip(crossed.values, crossed.strengths, strict=True)
    ]
    noise = (halves[0] - halves[1]).tocsr()
    laws = dict(zip(LAWS, (law(noise), law(equalise(noise, source.noise.scales))), strict=True))
    scales = np.asarray(source.noise.scales)
    about = Noise(
        name,
        **sigmas,
        error=float(source.noise.standard_error),
        growth=float(source.noise.growth[0]),
        least=float(scales.min()),
        most=float(scales.max()),
        law=laws[LAWS[0]][0],
        law_equalised=laws[LAWS[1]][0],
        ideal=len(source.ideal.values),
        first=bests[0],
        second=bests[1],
        best=at(crossed, bests),
    )
    bulk = [
        Bulk(name, which, float(point), float(count))
        for which, (_, points, counts) in laws.items()
        for point, count in zip(points, counts, strict=True)
    ]
    return [about], *compare(name, whole, looks, crossed, about.best), bulk


def first(k: int, like: Any) -> Any:
    """Weights that keep the k first dimensions of those that there are."""
    return (jnp.arange(len(like)) < k).astype(like.dtype)


def seen(crossed: CrossValidated, c: Sequence[Any]) -> float:
    """Cross-validated loss with weights for the directions of each half."""
    return float(crossed.loss_of(jnp.stack(c))[-1])


def at(crossed: CrossValidated, ks: Sequence[int]) -> float:
    """The same where each half has its own k."""
    return seen(crossed, [first(k, x) for k, x in zip(ks, crossed.values, strict=True)])


def compare(
    name: str, whole: Look, looks: Sequence[Look], crossed: CrossValidated, best: float
) -> tuple[list[K], list[Weights], list[Point]]:
    """Rules and weightings of the whole and of halves, with losses."""
    rank = crossed.values.shape[1]
    ks, of_halves = dimensions(whole), [dimensions(look) for look in looks]
    own = own_losses(whole, ks)
    kept = []
    for way, k in ks.items():
        one, two = (found[way] for found in of_halves)
        known = k <= len(whole.spectrum.values)
        predicted = loss(whole, first(k, whole.spectrum.values)) if known else np.nan
        own_k = at(crossed, (one, two)) / best if max(one, two) <= rank else np.nan
        kept.append(K(name, *way, k, own.get(way, np.nan), predicted, one, two, own_k))
    weighed, by_halves = weights(whole), [weights(look) for look in looks]
    ranges = [
        Weights(
            name, *way, float(jnp.min(c)), float(jnp.max(c)), loss(whole, c),
            seen(crossed, [found[way] for found in by_halves]) / best,
        )
        for way, c in weighed.items()
    ]  # fmt: skip
    curves = [
        predicted_curve(look.spectrum.values, look.strengths, alpha=ALPHA, total=look.total)
        for look in looks
    ]
    stacked = jnp.stack([curve[:rank] for curve in curves])
    expected = jnp.sqrt(jnp.mean(stacked**2, axis=0))
    points = [
        Point(name, k, float(x), float(y))
        for k, x, y in zip(itertools.count(1), crossed.curve, expected)
    ]
    return kept, ranges, points


def report(config: Config, out: Path) -> Tables:
    """Run, write tables, provenance and figures, and print."""
    started = time.time()
    found = run(config, out.parent / "cache")
    names = ("noise", "k", "weights", "curves", "bulk")
    _record.publish(
        out,
        config,
        dict(zip(names, found, strict=True)),
        started=started,
        texts={"summary": summary},
        figures=FIGURES,
    )
    return found


def main() -> None:
    """Do as the command line says."""
    parser = _record.parser(__doc__)
    parser.add_argument("--words", type=int, help="of the vocabulary, if not 10,000")
    asked = parser.parse_args()
    config, name = SMOKE if asked.smoke else FULL, "equalised_sources"
    if asked.words is not None:
        sources = dataclasses.replace(config.sources, size=asked.words)
        config, name = dataclasses.replace(config, sources=sources), f"{name}_{asked.words}"
    report(config, _record.folder(asked, name))


if __name__ == "__main__":
    main()
