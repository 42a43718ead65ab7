r"""Where the ideal is known exactly, what is estimated approaches it as the corpus grows.

    python -m experiments.known_ideal [--smoke] [--out DIR]

Text is drawn from a `LatentModel`, so that the ideal signal is known: that of the expected counts.
Corpora of growing size go through `build_sources`, and what comes out is set against the ideal:

* sigma, from halves and from nested parts, against the true noise, the root mean square of observed
  minus ideal entries;
* the leading values as observed, by USVT and debiased, against the ideal's;
* the PIP loss of the source at the k of each rule against the loss at the best k, and that of the
  estimated ideal ("equalised, denoised") against that of the best weights of the observed
  directions. Relative to the norm of the ideal's PIP matrix, so 1 is the loss of no embedding.

All of it approaches the ideal. From 1.6 million tokens on nearly every pair is seen, and the noise
of PMI and log counts falls about as $\text{tokens}^{-1/2}$, the loss at the best k as fast or
faster, the error of their values as observed about as $1/\text{tokens}$; debiased ones are nearer,
and USVT's fall more slowly. Before that most pairs are rare, two of three unseen in 25,000 tokens:

* Sigma from halves is too small, down to 0.6 of the noise, as a pair that was seen once or twice
  varies less than the model has it, and one that neither half has seen not at all. That spoils k by
  "ideal", whose loss is up to 2.7 times the best, up to keeping all n dimensions, and by "spiked"
  (2.1 times). The paper's rule keeps too few dimensions at any given sigma and gains by it: within
  13 % but for the largest corpora of PPMI (24 %).
* Sigma from nested parts is between 0.91 and 1.13 of the random part of the noise, at every size
  and for every signal. It errs by more than its standard error of 1 to 4 %: that knows of chance,
  and not of a growth that does not change geometrically.
* The rule "equalised" has at most 1.031 times the loss of the best k in all 27 cells, and at most
  1.01 times in 21; those beyond are PMI (three) and log counts (three, 1.014 at most). "ideal" with
  the true sigma is within 3 % but for one cell (PMI at 3.2 million tokens, 9 %).
* The estimated ideal loses less than the best k in 26 of 27 cells (by 36 % at most; log counts of
  25,000 tokens are the other, by less than 1 %), and less than *any* weights of the observed
  directions in nine: PMI from 400,000 tokens on (by 1 to 20 %) and log counts from 800,000 on (2 to
  11 %). For PPMI never, though ever more nearly: 1.9 times those of 50,000 tokens, 1.02 at the
  largest size.
* Where most pairs are rare, no k helps: PPMI and PMI of up to 200,000 tokens have losses above 1 at
  the best k, and so has the estimated ideal, but for PMI at the last of these. Much of that is
  systematic, as logarithms and cut-offs of counts are biased and PMI of unseen pairs is $-\infty$
  where the signal has 0. Parts share that, so no sigma holds it; it falls faster than the rest.
* PPMI cuts off noise around 0, and that of halves more than that of the whole: its sigma from
  halves is too small even at the end. Its ideal has no low rank, so ever more dimensions are worth
  keeping, and debiasing, which is for few values that stand out, gains nothing from 400,000 tokens
  on.
* Entries of rare words vary far more than those of frequent ones. So the noise ends beyond
  $2\sigma\sqrt n$, sigma from halves, at 1.2 to 2.1 times that, and of the values above that edge
  nine or more are noise (`rank` against `ideal_rank`).
* Blocks cut documents, so that the halves are not quite independent. The chain forgets within a few
  words, and nothing of that shows here; real text has topics.

On a busy machine set OPENBLAS_NUM_THREADS=1: threads that wait for one another take ten times as
long there.
"""

import itertools
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta
from experiments import _known_ideal, _record
from experiments._known_ideal import (
    BEST,
    DENOISED,
    ESTIMATES,
    INFORMED,
    ORACLE,
    WEIGHTED,
)
from jaxmeta.nested import NestedNoise
from jaxmeta.pip import strengths_against

ALPHA = 0.5

# No shift: a pair that was never seen is stored as 0. At shift 1 that is chance, the least wrong
# of all constants; at a larger one it lies above every pair seen as often as by chance.
SIGNALS: dict[str, Callable[..., Any]] = {
    "ppmi": jaxmeta.ppmi,
    "pmi": partial(jaxmeta.shifted_pmi, shift=1.0),
    "log_count": jaxmeta.log_count,
}
RULES = ("paper", "spiked", "ideal", "equalised")


@dataclass(frozen=True)
class Config:
    """What is drawn."""

    n: int = 300
    rank: int = 10
    """Of the model's vectors; so many leading values are compared."""
    strength: float = 0.4
    model_seed: int = 0
    tokens: tuple[int, ...] = tuple(25_000 * 2**i for i in range(9))
    document: int = 400
    """Words of a document. Blocks of `random_blocks` cut through some, as in real text."""
    window: int = 2
    """Words far apart are all but independent: a wide window adds noise and no signal."""
    candidates: int = 512
    """For the density of the ideal, in `ideal_strengths`."""
    first_seed: int = 1000
    seeds: int = 3
    """Corpora of each size, every one with a seed of its own."""


SMOKE = Config(n=60, rank=5, tokens=(20_000, 80_000, 320_000), candidates=48, seeds=2)


@dataclass(frozen=True)
class Row:
    """Noise and spectrum of one signal at one size, over all corpora of that size."""

    signal: str
    tokens: int
    unseen: float
    """Share of pairs that were never seen."""
    sigma: float
    """As `build_sources` estimates it from halves, mean."""
    nested: float
    """As its rule "equalised" does, from halves, quarters and eighths."""
    error: float
    """The standard error that `nested` is given with, root mean square."""
    growth: float
    """Variance of the whole over that of a half, as extrapolated, mean."""
    noise: float
    """Root mean square of observed minus ideal entries."""
    random: float
    systematic: float
    """Its two parts, noise² = random² + systematic²: what differs between corpora of a size, and
    what they share. From unbiased estimates of the squares; 0 where that is negative."""
    ratio: float
    """sigma / noise."""
    nested_ratio: float
    """nested / noise."""
    edge: float
    """Largest eigenvalue of the random part, over 2 sigma sqrt n: about 1 if all entries had the
    same variance sigma²."""
    rank: float
    """How many observed values are above 2 sigma sqrt n, mean."""
    ideal_rank: float
    """How many ideal ones are."""
    observed: float
    usvt: float
    debiased: float
    """Root mean square of the relative errors of the leading values."""
    corpora: int


@dataclass(frozen=True)
class Loss:
    """PIP loss of one signal at one size by one rule."""

    signal: str
    tokens: int
    rule: str
    k: float
    """Mean."""
    loss: float
    """Over the norm of the ideal's PIP matrix, mean."""
    highest: float
    """Of all corpora."""
    corpora: int


@dataclass(frozen=True)
class Measured:
    """One signal of one corpus against its ideal."""

    difference: np.ndarray
    sigma: float
    noise: NestedNoise
    rank: int
    ideal_rank: int
    errors: dict[str, float]
    losses: dict[str, tuple[int, float]]
    """By rule: k, and the relative loss there."""


def run(config: Config) -> tuple[list[Row], list[Loss]]:
    """All sizes and signals."""
    model = jaxmeta.text.latent_model(
        config.n, rank=config.rank, strength=config.strength, seed=config.model_seed
    )
    seeds = itertools.count(config.first_seed)
    progress = _record.Progress(len(config.tokens) * config.seeds)
    rows, losses = [], []
    for tokens in config.tokens:
        documents = tokens // config.document
        expected = jaxmeta.text.expected_counts(
            model, tokens=tokens, documents=documents, window=config.window
        )
        ideals = {name: signal(jnp.asarray(expected)) for name, signal in SIGNALS.items()}
        found: dict[str, list[Measured]] = defaultdict(list)
        unseen = []
        for seed in itertools.islice(seeds, config.seeds):
            text = jaxmeta.text.sample_tokens(model, tokens=tokens, documents=documents, seed=seed)
            counts = count_directly(text, n=config.n, window=config.window)
            unseen.append(np.mean(counts == 0))
            sources = build(model, text, window=config.window)
            for name, ideal in ideals.items():
                observed = SIGNALS[name](jnp.asarray(counts))
                found[name].append(measure(ideal, observed, sources[name], model.words, config))
            progress.step(f"{tokens} tokens")
        for name, measured in found.items():
            rows.append(_row(name, tokens, float(np.mean(unseen)), measured))
            losses += _losses(name, tokens, measured)
    return rows, losses


def count_directly(text: np.ndarray, *, n: int, window: int) -> np.ndarray:
    """Symmetric window counts of a text in numbers, without reading or writing any file."""
    counts = np.zeros(n * n)
    for d in range(1, window + 1):
        counts += np.bincount((text[:, :-d] * n + text[:, d:]).ravel(), minlength=n * n)
    return counts.reshape(n, n) + counts.reshape(n, n).T


def build(
    model: jaxmeta.text.LatentModel, text: np.ndarray, *, window: int
) -> dict[str, dict[str, jaxmeta.text.Source]]:
    """Sources by signal and rule, as anyone would make them of a file of text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text"
        jaxmeta.text.write_corpus(path, model, text)
        corpus = jaxmeta.Corpus(path, lines_are_documents=True)
        recipes = [jaxmeta.Recipe(name, corpus, signal) for name, signal in SIGNALS.items()]
        sources: dict[str, dict[str, jaxmeta.text.Source]] = defaultdict(dict)
        for rule in RULES:
            built = jaxmeta.build_sources(
                recipes,
                size=None,
                window=window,
                alpha=ALPHA,
                rule=rule,
                cache=Path(folder) / "cache",  # the corpus is counted once for all rules
            )
            for source in built:
                sources[source.name][rule] = source
    return sources


def measure(
    ideal: Any,
    observed: Any,
    sources: dict[str, jaxmeta.text.Source],
    words: Sequence[str],
    config: Config,
) -> Measured:
    """Set the sources of a signal, by rule, against its ideal; both in the order of `words`."""
    n = len(words)
    clean, noisy = jaxmeta.decompose(ideal), jaxmeta.decompose(observed)
    norm = float(jnp.linalg.norm(clean.values))  # of the PIP matrix: at alpha = ½ the values' own

    def losses_at(spectrum: jaxmeta.Spectrum) -> np.ndarray:
        return np.asarray(jaxmeta.pip_curve(clean, spectrum, alpha=ALPHA)) / norm

    losses = {}
    for rule, source in sources.items():
        at = losses_at(_in_order(source, source.spectrum, words))
        losses[rule] = source.k, float(at[source.k - 1])
    equalised = sources["equalised"]
    assert equalised.ideal is not None  # by that rule
    assert equalised.noise is not None
    every = losses_at(_in_order(equalised, equalised.ideal, words))[-1]
    losses[DENOISED] = equalised.denoised.shape[1], float(every)

    source = sources["ideal"]
    eigenvalues, values = jnp.asarray(source.eigenvalues), jnp.abs(jnp.asarray(source.eigenvalues))
    strengths = partial(jaxmeta.ideal_strengths, eigenvalues, alpha=ALPHA, size=config.candidates)
    own = strengths(sigma=source.sigma).values
    weights = jaxmeta.strength_weights(values, own, alpha=ALPHA)
    spectrum = _in_order(source, source.spectrum, words)
    # Weights of dimensions are weights of values, to the power of alpha.
    weighted = spectrum._replace(values=spectrum.values * weights ** (1 / ALPHA))
    losses[WEIGHTED] = source.k, float(losses_at(weighted)[source.k - 1])

    difference = np.asarray(observed - ideal)
    informed = strengths(sigma=_rms(difference)).values
    k = int(jaxmeta.best_dimension(values, informed, alpha=ALPHA))
    curve = losses_at(noisy)
    losses[INFORMED] = k, float(curve[k - 1])
    losses[BEST] = 1 + int(np.argmin(curve)), float(np.min(curve))
    strongest = np.asarray(strengths_against(clean, noisy.vectors, alpha=ALPHA))
    # Squares of values as large as the strengths change the squared loss by this, the least.
    losses[ORACLE] = n, float(np.sqrt(max(norm**2 - np.sum(strongest**2), 0))) / norm

    estimates = {
        "observed": values,
        "usvt": jaxmeta.usvt(values, sigma=source.sigma, n=n),
        "debiased": jaxmeta.debias(values, sigma=source.sigma, n=n),
    }
    return Measured(
        difference=difference,
        sigma=source.sigma,
        noise=equalised.noise,
        rank=source.rank,
        ideal_rank=int(jaxmeta.noise.usvt_rank(clean.values, sigma=source.sigma, n=n)),
        errors={
            name: _rms(np.asarray(x[: config.rank] / clean.values[: config.rank] - 1))
            for name, x in estimates.items()
        },
        losses=losses,
    )


def _in_order(
    source: jaxmeta.text.Source, spectrum: jaxmeta.Spectrum, words: Sequence[str]
) -> jaxmeta.Spectrum:
    """A spectrum of a source, in the order of `words`.

    Sources have words by frequency, which differs between corpora. Zeros up to n change nothing,
    and leave one size to compile.
    """
    place = {word: row for row, word in enumerate(source.words)}
    vectors = np.asarray(spectrum.vectors)[[place[word] for word in words]]
    missing = len(words) - vectors.shape[1]
    return jaxmeta.Spectrum(
        jnp.asarray(np.pad(vectors, ((0, 0), (0, missing)))),
        jnp.asarray(np.pad(np.asarray(spectrum.values), (0, missing))),
    )


def _rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(x**2)))


def _row(signal: str, tokens: int, unseen: float, measured: Sequence[Measured]) -> Row:
    differences = np.stack([m.difference for m in measured])
    sigma = float(np.mean([m.sigma for m in measured]))
    nested = float(np.mean([m.noise.sigma for m in measured]))
    noise = _rms(differences)
    # The variance between corpora, and what it leaves of the mean square.
    random = float(np.sqrt(np.mean(np.var(differences, axis=0, ddof=1))))
    systematic = float(np.sqrt(max(noise**2 - random**2, 0)))
    corpora, n, _ = differences.shape
    centred = (differences - differences.mean(axis=0)) * (corpora / (corpora - 1)) ** 0.5
    largest = np.mean([np.linalg.norm(x, 2) for x in centred])
    return Row(
        signal=signal,
        tokens=tokens,
        unseen=unseen,
        sigma=sigma,
        nested=nested,
        error=_rms(np.array([m.noise.standard_error for m in measured])),
        growth=float(np.mean([m.noise.growth[0] for m in measured])),
        noise=noise,
        random=random,
        systematic=systematic,
        ratio=sigma / noise,
        nested_ratio=nested / noise,
        edge=float(largest / (2 * sigma * n**0.5)),
        rank=float(np.mean([m.rank for m in measured])),
        ideal_rank=float(np.mean([m.ideal_rank for m in measured])),
        **{name: float(np.mean([m.errors[name] for m in measured])) for name in ESTIMATES},
        corpora=corpora,
    )


def _losses(signal: str, tokens: int, measured: Sequence[Measured]) -> list[Loss]:
    rows = []
    for rule in measured[0].losses:
        k, loss = np.array([m.losses[rule] for m in measured]).T
        means = {"k": float(k.mean()), "loss": float(loss.mean())}
        rows.append(
            Loss(signal, tokens, rule, **means, highest=float(loss.max()), corpora=len(measured))
        )
    return rows


def about(config: Config) -> str:
    """What is drawn, for a title."""
    return f"{config.n} words of rank {config.rank}, {config.seeds} corpora of each size"


FIGURES = {"known_ideal": partial(_known_ideal.plot, about(Config()))}


def report(config: Config, out: Path) -> tuple[list[Row], list[Loss]]:
    """Run, write tables, provenance and figure into `out`, and print."""
    started = time.time()
    with jax.enable_x64(True):
        rows, losses = run(config)
    print(f"Text with a known ideal, {about(config)}")
    _known_ideal.print_tables(rows, losses)
    _known_ideal.print_exponents(rows, losses)
    _record.publish(
        out,
        config,
        {"rows": rows, "losses": losses},
        started=started,
        figures={"known_ideal": partial(_known_ideal.plot, about(config))},
        dtype="float64",
    )
    return rows, losses


if __name__ == "__main__":
    _record.main(__doc__, report, Config(), SMOKE)
