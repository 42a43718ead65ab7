r"""Noise as real counts have it: sigma, k and weights against a truth from three times the text.

    python -m experiments.real_noise [--words 3000] [--seeds 2] [--corpora wiki news reviews]
    python -m experiments.real_noise --smoke

A corpus is dealt in blocks of 1,000 tokens into quarters. The signal of one quarter is *observed*;
that of the other three, brought to the same number of tokens, stands for the *truth*. Signed
strengths $t_i = \mathrm{sign}(\mu_i)\,\tilde u_i^\top M\tilde u_i$ against it give the squared loss
$\|M\|^2 + \sum(x_i^2 - 2x_it_i)$ of observed directions with values $x$; $\|M\|^2$ is the square
of the truth less its own noise, as its nested parts tell that. (The product of two halves of the
truth has no noise either, but halves have smaller logarithms: for log counts it is too small by
more than the whole squared loss. Ratios by it are in the table, too, where they are numbers.) Of
the observed quarter only its own halves, quarters and so on are used: the truth decides nothing.

* k by each rule: its loss over that of the best k.
* Weights: their loss over that of the *oracle*, the best weights of the observed directions,
  $x = \max(t, 0)$. "equalised" is the estimated ideal itself, which has directions of its own, and
  so can be below 1.
* Beside each, the same for a half of the observed text, by cross-validation: directions of one
  half, strengths and loss on the other, no truth at all.

The truth has noise and bias of its own, and is of three times the text, not of any amount: what
logarithms and cut-offs do to small counts is in all of it.
"""

import argparse
import dataclasses
import functools
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta
from experiments import _record, corpus_to_sources
from experiments._labels import RULES, name_of
from experiments._real_noise_figures import FIGURES, summary
from jaxmeta.crossvalidation import shared_square
from jaxmeta.eigen import Density, Eigenpairs
from jaxmeta.equalise import IdealEstimate, equalise, estimate_ideal
from jaxmeta.nested import NestedNoise, nested_noise, semicircle_distance
from jaxmeta.pip import strengths_against
from jaxmeta.text import Counts, Vocabulary, symmetric_window
from jaxmeta.weightings import Observed, weigh

SIGNALS: dict[str, Callable[..., Any]] = {
    "PPMI": jaxmeta.ppmi,
    "log counts": jaxmeta.log_count,
    "PMI - log 3": functools.partial(jaxmeta.shifted_pmi, shift=3.0),
}
CORPORA = {
    "wiki": "corpora/wiki.zip", "news": "corpora/news.txt.gz", "reviews": "corpora/reviews.txt.gz",
}  # fmt: skip
PARTS = 64  # a quarter and its halves, quarters, eighths and sixteenths
ALPHA = 0.5


@dataclass(frozen=True)
class Config:
    """What is dealt."""

    corpora: tuple[str, ...] = tuple(CORPORA)
    words: int = 3000
    signals: tuple[str, ...] = tuple(SIGNALS)
    seeds: tuple[int, ...] = (0, 1)
    window: int = 5
    block: int = 1000
    crossed: bool = True
    """Whether halves are cross-validated, of the first seed."""
    tokens: int | None = None
    """Of generated text; None means that corpora are read."""


SMOKE = Config(("generated",), 60, ("PPMI", "log counts"), (0,), block=50, tokens=400_000)


@dataclass(frozen=True)
class Noise:
    """Sigma of one signal."""

    corpus: str
    words: int
    signal: str
    seed: int
    halves: float
    """As the paper estimates it."""
    nested: float
    """From nested parts, and its standard error."""
    error: float
    other: float
    """As two quarters of the corpus differ: what the others estimate."""
    growth: float
    """Variance of the whole over that of a half."""
    square: float
    product: float
    """Squared norm of the truth, less its noise; and the product of its halves."""
    law: float
    law_equalised: float
    """Distance of the noise of a half to the semicircle, as it is and equalised."""


@dataclass(frozen=True)
class Row:
    """One way to choose k, or weights."""

    corpus: str
    words: int
    signal: str
    seed: int
    kind: str
    """"k" or "weights"."""
    name: str
    k: int
    """Dimensions that are used."""
    loss: float
    """Over that at the best k, or over that of the oracle."""
    product: float
    """The same with the product of halves of the truth for its square; NaN if that is negative."""
    crossed: float
    """The same of a half, cross-validated; NaN if it was not."""


@dataclass(frozen=True)
class Look:
    """A signal, decomposed, and what is known of its noise."""

    values: np.ndarray
    vectors: np.ndarray
    halves: float
    noise: NestedNoise
    estimate: IdealEstimate
    """With all directions."""
    few: IdealEstimate
    """With those above the edge of the noise."""


def run(config: Config) -> tuple[list[Noise], list[Row]]:
    """All corpora, signals and seeds."""
    noises: list[Noise] = []
    rows: list[Row] = []
    progress = _record.Progress(len(config.corpora) * len(config.seeds) * len(config.signals))
    for corpus in config.corpora:
        for seed in config.seeds:
            counts = count(config, corpus, seed)
            for signal in config.signals:
                name = {"corpus": corpus, "words": config.words, "signal": signal, "seed": seed}
                noise, own = measure(config, counts, SIGNALS[signal], name)
                noises.append(noise)
                rows += own
                progress.step(f"{corpus} {signal} {seed}")
    return noises, rows


def count(config: Config, name: str, seed: int) -> Counts:
    """Counts of a corpus in 64 parts; of four, part `seed % 4` is the observed one."""
    with tempfile.TemporaryDirectory() as folder:
        if config.tokens is None:
            (path,) = _record.data(CORPORA[name])
            tokens = jaxmeta.text.whitespace if path.suffix == ".zip" else jaxmeta.text.lower_words
            corpus = jaxmeta.Corpus(path, tokenise=tokens)
        else:
            made = corpus_to_sources.SMOKE
            made = dataclasses.replace(made, size=config.words, tokens=config.tokens)
            corpus = corpus_to_sources.recipes(made, Path(folder))[0].corpus
        found = jaxmeta.text.build_vocabulary(corpus)
        words = Vocabulary(found.words[: config.words], found.counts[: config.words], found.tokens)
        split = jaxmeta.text.random_blocks(seed, config.block, PARTS)
        return jaxmeta.text.count_windows(corpus, words, window=config.window, split=split)


def measure(
    config: Config, counts: Counts, signal: Callable[..., Any], name: dict[str, Any]
) -> tuple[Noise, list[Row]]:
    """One signal of the observed quarter against the truth of the others."""
    seen = name["seed"] % 4
    others = [part for part in range(4) if part != seen]
    total = symmetric_window(counts.part(4, seen)).sum()

    def signal_of(*parts: tuple[int, int]) -> np.ndarray:
        added = sum(symmetric_window(counts.part(*part)) for part in parts)
        return signal(added * (total / added.sum())).toarray().astype(np.float32)

    def parts(number: int, index: int, of: int) -> Iterator[np.ndarray]:
        """Signals of so many parts of a part."""
        return (signal_of((number * of, index * of + i)) for i in range(of))

    def levels(number: int, index: int) -> list[Iterator[np.ndarray]]:
        """Signals of the halves of a part, of its quarters, and of its eighths."""
        return [parts(number, index, of) for of in (2, 4, 8)]

    def dealt(number: int) -> list[np.ndarray]:
        """Signals of the truth, dealt into as many parts."""
        own = [(4 * number, i) for i in range(4 * number) if i // number != seen]
        return [signal_of(*own[i::number]) for i in range(number)]

    truth, both = signal_of(*((4, part) for part in others)), dealt(2)
    noise = nested_noise([both, dealt(4), dealt(8)]).sigma
    square = float(np.sum(truth**2, dtype=np.float64) - truth.size * float(noise) ** 2)
    product = float(shared_square(*both))
    observed = signal_of((4, seen))
    whole = look(observed, levels(4, seen))
    found, again = (compare(whole, truth, x) for x in (square, product))
    crossed: list[dict[tuple[str, str], tuple[int, float]]] = []
    halves = [signal_of((8, 2 * seen + half)) for half in range(2)]
    if config.crossed and name["seed"] == config.seeds[0]:
        shared = float(shared_square(*halves))
        for half in range(2):
            part = look(halves[half], levels(8, 2 * seen + half))
            crossed.append(compare(part, halves[1 - half], shared))
    rows = [
        Row(
            **name,
            kind=kind,
            name=way,
            k=k,
            loss=loss,
            product=again[kind, way][1],
            crossed=float(np.mean([c[kind, way][1] for c in crossed])) if crossed else np.nan,
        )
        for (kind, way), (k, loss) in found.items()
    ]
    # Noise of a half: its variance is half of what the difference has.
    difference = jnp.asarray(halves[0] - halves[1])
    return Noise(
        **name,
        halves=whole.halves,
        nested=float(whole.noise.sigma),
        error=float(whole.noise.standard_error),
        other=float(np.sqrt(np.mean((observed - signal_of((4, others[0]))) ** 2) / 2)),
        growth=float(whole.noise.growth[0]),
        square=square,
        product=product,
        law=law(difference),
        law_equalised=law(equalise(difference, whole.noise.scales)),
    ), rows


def law(noise: Any) -> float:
    """Distance of noise to the semicircle with its own variance."""
    return semicircle_distance(jnp.linalg.eigvalsh(noise), sigma=float(jnp.std(noise)))


def look(signal: np.ndarray, levels: Sequence[Iterator[np.ndarray]]) -> Look:
    """All that is known without the truth."""
    first, *rest = levels
    halves = tuple(first)
    noise = nested_noise([halves, *rest])
    values, vectors = eigenpairs(jnp.asarray(signal))
    pairs = all_pairs(equalise(jnp.asarray(signal), noise.scales))
    estimate = functools.partial(estimate_ideal, pairs, sigma=noise.sigma, scales=noise.scales)
    return Look(
        np.asarray(values, np.float64),
        np.asarray(vectors),
        float(jaxmeta.noise_std(*map(jnp.asarray, halves))),
        noise,
        estimate(k=len(signal)),
        estimate(),
    )


@jax.jit
def eigenpairs(signal: Any) -> tuple[Any, Any]:
    """All eigenvalues by magnitude, and their vectors."""
    values, vectors = jnp.linalg.eigh(signal)
    order = jnp.argsort(-jnp.abs(values))
    return values[order], vectors[:, order]


def all_pairs(signal: Any) -> Eigenpairs:
    """The same as `leading_eigenpairs` gives them."""
    values, vectors = eigenpairs(signal)
    density = Density(jnp.sort(values), jnp.ones_like(values))
    return Eigenpairs(values, vectors, jnp.zeros_like(values), density, 0)


def compare(look: Look, truth: np.ndarray, square: float) -> dict[Any, tuple[int, float]]:
    """Each rule and each weighting: its dimensions, and its loss over the best."""
    magnitudes, signs, n = np.abs(look.values), np.sign(look.values), len(look.values)
    images = truth @ look.vectors
    t = signs * np.einsum("ij,ij->j", look.vectors, images, dtype=np.float64)

    def root(change: Any) -> Any:
        """The loss, NaN where the square of the truth is too small for one."""
        squares = square + np.asarray(change)
        return np.sqrt(np.where(squares > 0, squares, np.nan))

    def loss(x: np.ndarray) -> float:
        return float(root(np.sum(x**2 - 2 * x * t)))

    def loss_of(estimate: IdealEstimate) -> float:
        vectors, values = map(np.asarray, estimate.spectrum)
        own = np.einsum("ij,ij->j", vectors, truth @ vectors, dtype=np.float64)
        signed = np.asarray(values * estimate.signs, np.float64)
        return float(root(np.sum(signed**2 - 2 * signed * own)))

    eigenvalues = jnp.asarray(look.values, jnp.float32)
    strengths = strengths_against(look.few.spectrum, jnp.asarray(look.vectors), alpha=ALPHA)
    changes = np.cumsum(magnitudes**2 - 2 * magnitudes * t)
    curve, best = root(changes), 1 + int(np.argmin(changes))
    ks = {"best": best, "no rule": n}
    for sigma, means in ((look.halves, "halves"), (look.noise.sigma, "nested")):
        for rule, choose in RULES.items():
            if rule != "released":
                ks[f"{rule}, {means}"] = max(1, int(choose(eigenvalues, float(sigma), ALPHA)))
    ks["equalised"] = int(jaxmeta.best_dimension(jnp.abs(eigenvalues), strengths, alpha=ALPHA))
    found: dict[Any, tuple[int, float]] = {
        ("k", rule): (k, float(curve[k - 1] / curve[best - 1])) for rule, k in ks.items()
    }
    oracle = loss(np.maximum(t, 0))
    found["weights", "oracle"] = n, 1.0
    found["weights", "no weights, best k"] = best, float(curve[best - 1] / oracle)
    for sigma, means in ((look.halves, "halves"), (look.noise.sigma, "nested")):
        source = Observed(jnp.abs(eigenvalues), n, ALPHA, float(sigma), eigenvalues)
        for weighting in ("DW", "spiked", "RIE", "ideal strengths"):
            (weights,) = weigh(name_of(weighting), [source])
            x = np.asarray(weights, np.float64) ** 2 * magnitudes
            found["weights", f"{weighting}, {means}"] = n, loss(x) / oracle
    source = Observed(jnp.abs(eigenvalues), n, ALPHA, strengths=strengths)
    (weights,) = weigh("estimated-ideal", [source])
    x = np.asarray(weights, np.float64) ** 2 * magnitudes
    found["weights", "estimated ideal"] = n, loss(x) / oracle
    for label, estimate in (("equalised", look.estimate), ("equalised, fewer", look.few)):
        found["weights", label] = len(estimate.signs), loss_of(estimate) / oracle
    return found


def report(config: Config, out: Path) -> tuple[list[Noise], list[Row]]:
    """Run, write tables, provenance and figure into `out`, and print."""
    started = time.time()
    noises, rows = run(config)
    _record.publish(
        out,
        config,
        {"noise": noises, "rows": rows},
        started=started,
        texts={"summary": summary},
        figures=FIGURES,
    )
    return noises, rows


def main() -> None:
    """Do as the command line says."""
    parser: argparse.ArgumentParser = _record.parser(__doc__)
    parser.add_argument("--words", type=int, help="of the vocabulary, if not 3,000")
    parser.add_argument("--seeds", type=int, nargs="+", help="if not 0 and 1")
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, help="if not all three")
    asked = parser.parse_args()
    config, name = SMOKE if asked.smoke else Config(), Path(sys.argv[0]).stem
    if asked.words is not None:
        # Beyond some thousands of words halves would take hours.
        crossed = asked.words <= 4096
        config = dataclasses.replace(config, words=asked.words, crossed=crossed)
        name = f"{name}_{asked.words}"
    if asked.seeds is not None:
        config = dataclasses.replace(config, seeds=tuple(asked.seeds))
    if asked.corpora is not None:
        config = dataclasses.replace(config, corpora=tuple(asked.corpora))
    report(config, _record.folder(asked, name))


if __name__ == "__main__":
    main()
