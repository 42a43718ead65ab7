r"""Where the ideal is known exactly, what is estimated approaches it as the corpus grows.

    python -m experiments.known_ideal [--smoke] [--out DIR]

Text is drawn from a `LatentModel`, so that the ideal signal is known: that of the expected counts.
Corpora of growing size go through `build_sources`, and what comes out is set against the ideal:

* sigma against the true noise, the root mean square of observed minus ideal entries;
* the leading values as observed, by USVT and debiased, against the ideal's;
* the PIP loss of the source at the k of each rule against the loss at the best k. Relative to the
  norm of the ideal's PIP matrix, so 1 is the loss of no embedding at all.

All of it approaches the ideal. Once nearly every pair is seen, here from 3.2 million tokens on,
noise and sigma of PMI and log counts fall about as $\text{tokens}^{-1/2}$, and so do USVT's error
and the loss (that of log counts faster). The error of values as observed falls nearly as
$1/\text{tokens}$; debiased ones are nearer, and fall somewhat more slowly. But not everything in
the model of the noise comes true:

* Before that, sigma is too small, down to 0.7 of the noise. It rests on halves having twice the
  variance of the whole, but a pair seen once or twice varies less than that, and one that neither
  half has seen not at all. This is what spoils k there, up to keeping all n dimensions, and not
  the rule: given the true noise ("ideal, true sigma") its loss is within 4 % of the best. The
  paper's rule, which keeps too few dimensions at any given sigma, gains by it.
* PMI of unseen pairs is $-\infty$; the signal has 0. Its noise hardly falls until all are seen.
* PPMI cuts off noise around 0, and that of halves more than that of the whole: its sigma stays
  too small for longer, and its noise falls more slowly. Its ideal has no low rank, so ever more
  dimensions are worth keeping, the loss falls more slowly than the noise, and debiasing, which is
  for few values that stand out, gains nothing.
* The noise is partly systematic, as logarithms and cut-offs of counts are biased. Halves share
  that, so sigma does not hold it; it falls faster than the rest.
* Sigma is one number, but entries of rare words vary far more than those of frequent ones. So the
  noise ends beyond $2\sigma\sqrt n$, at 1.2 times that or more at any size, and of the values above
  that edge a dozen or more are noise (`rank` against `ideal_rank`).
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
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator

import jaxmeta
from experiments import _record

ALPHA = 0.5

# No shift: a pair that was never seen is stored as 0. At shift 1 that is chance, the least wrong
# of all constants; at a larger one it lies above every pair seen as often as by chance.
SIGNALS: dict[str, Callable[..., Any]] = {
    "ppmi": jaxmeta.ppmi,
    "pmi": partial(jaxmeta.shifted_pmi, shift=1.0),
    "log_count": jaxmeta.log_count,
}
RULES = ("paper", "spiked", "ideal")
WEIGHTED = "ideal, weighted"
INFORMED = "ideal, true sigma"
BEST = "best k"
ESTIMATES = ("observed", "usvt", "debiased")


@dataclass(frozen=True)
class Config:
    """What is drawn."""

    n: int = 300
    rank: int = 10
    """Of the model's vectors; so many leading values are compared."""
    strength: float = 0.4
    model_seed: int = 0
    tokens: tuple[int, ...] = tuple(200_000 * 2**i for i in range(7))
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
    """As `build_sources` estimates it, mean."""
    noise: float
    """Root mean square of observed minus ideal entries."""
    random: float
    systematic: float
    """Its two parts, noise² = random² + systematic²: what differs between corpora of a size, and
    what they share. From unbiased estimates of the squares; 0 where that is negative."""
    ratio: float
    """sigma / noise."""
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
    rank: int
    ideal_rank: int
    errors: dict[str, float]
    losses: dict[str, tuple[int, float]]
    """By rule: k, and the relative loss there."""


def run(config: Config) -> tuple[list[Row], list[Loss]]:
    """All sizes and signals."""
    with jax.enable_x64(True):
        return _run(config)


def _run(config: Config) -> tuple[list[Row], list[Loss]]:
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
                found[name].append(
                    measure(
                        ideal,
                        observed,
                        sources[name],
                        model.words,
                        leading=config.rank,
                        candidates=config.candidates,
                    )
                )
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
    *,
    leading: int,
    candidates: int,
) -> Measured:
    """Set the sources of a signal, by rule, against its ideal; both in the order of `words`."""
    n = len(words)
    clean, noisy = jaxmeta.decompose(ideal), jaxmeta.decompose(observed)
    norm = float(jnp.linalg.norm(clean.values))  # of the PIP matrix: at alpha = ½ the values' own

    def losses_at(spectrum: jaxmeta.Spectrum) -> np.ndarray:
        return np.asarray(jaxmeta.pip_curve(clean, spectrum, alpha=ALPHA)) / norm

    losses = {}
    for rule, source in sources.items():
        losses[rule] = source.k, float(losses_at(_spectrum(source, words))[source.k - 1])

    source = sources["ideal"]
    eigenvalues, values = jnp.asarray(source.eigenvalues), jnp.abs(jnp.asarray(source.eigenvalues))
    strengths = partial(jaxmeta.ideal_strengths, eigenvalues, alpha=ALPHA, size=candidates)
    own = strengths(sigma=source.sigma).values
    weights = jaxmeta.strength_weights(values, own, alpha=ALPHA)
    spectrum = _spectrum(source, words)
    # Weights of dimensions are weights of values, to the power of alpha.
    weighted = spectrum._replace(values=spectrum.values * weights ** (1 / ALPHA))
    losses[WEIGHTED] = source.k, float(losses_at(weighted)[source.k - 1])

    difference = np.asarray(observed - ideal)
    informed = strengths(sigma=_rms(difference)).values
    k = int(jaxmeta.best_dimension(values, informed, alpha=ALPHA))
    curve = losses_at(noisy)
    losses[INFORMED] = k, float(curve[k - 1])
    losses[BEST] = 1 + int(np.argmin(curve)), float(np.min(curve))

    estimates = {
        "observed": values,
        "usvt": jaxmeta.usvt(values, sigma=source.sigma, n=n),
        "debiased": jaxmeta.debias(values, sigma=source.sigma, n=n),
    }
    return Measured(
        difference=difference,
        sigma=source.sigma,
        rank=source.rank,
        ideal_rank=int(jaxmeta.noise.usvt_rank(clean.values, sigma=source.sigma, n=n)),
        errors={
            name: _rms(np.asarray(x[:leading] / clean.values[:leading] - 1))
            for name, x in estimates.items()
        },
        losses=losses,
    )


def _spectrum(source: jaxmeta.text.Source, words: Sequence[str]) -> jaxmeta.Spectrum:
    """The spectrum of a source, in the order of `words`.

    Sources have words by frequency, which differs between corpora. Zeros up to n change nothing,
    and leave one size to compile.
    """
    place = {word: row for row, word in enumerate(source.words)}
    vectors = np.asarray(source.spectrum.vectors)[[place[word] for word in words]]
    missing = len(words) - vectors.shape[1]
    return jaxmeta.Spectrum(
        jnp.asarray(np.pad(vectors, ((0, 0), (0, missing)))),
        jnp.asarray(np.pad(np.asarray(source.spectrum.values), (0, missing))),
    )


def _rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(x**2)))


def _row(signal: str, tokens: int, unseen: float, measured: Sequence[Measured]) -> Row:
    differences = np.stack([m.difference for m in measured])
    sigma = float(np.mean([m.sigma for m in measured]))
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
        noise=noise,
        random=random,
        systematic=systematic,
        ratio=sigma / noise,
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


def exponent(tokens: Sequence[float], values: Sequence[float]) -> float:
    """The slope of log values against log tokens, by least squares."""
    return float(np.polyfit(np.log(tokens), np.log(values), 1)[0])


def print_table(rows: Sequence[Row], losses: Sequence[Loss]) -> None:
    """Signal by signal."""
    for signal in SIGNALS:
        own = [row for row in rows if row.signal == signal]
        print(f"\n{signal}: noise, and relative error of the leading values")
        print(
            f"{'tokens':>12}{'unseen':>8}{'sigma':>9}{'true':>8}{'random':>8}{'system.':>8}"
            f"{'ratio':>7}{'edge':>6}{'rank':>6}{'ideal':>6}"
            f"{'observed':>10}{'USVT':>7}{'debiased':>10}"
        )
        for r in own:
            print(
                f"{r.tokens:>12}{r.unseen:>8.1%}{r.sigma:>9.4f}{r.noise:>8.4f}{r.random:>8.4f}"
                f"{r.systematic:>8.4f}{r.ratio:>7.2f}{r.edge:>6.2f}{r.rank:>6.1f}"
                f"{r.ideal_rank:>6.1f}{r.observed:>10.3f}{r.usvt:>7.3f}{r.debiased:>10.3f}"
            )
        at = {(x.tokens, x.rule): x for x in losses if x.signal == signal}
        rules = list(dict.fromkeys(rule for _, rule in at))
        print(f"{signal}: relative PIP loss, at k dimensions")
        print(f"{'tokens':>12}" + "".join(f"{rule:>18}" for rule in rules))
        for r in own:
            cells = (at[r.tokens, rule] for rule in rules)
            print(f"{r.tokens:>12}" + "".join(f"{x.loss:>10.3f} at {x.k:>4.1f}" for x in cells))


def print_exponents(rows: Sequence[Row], losses: Sequence[Loss]) -> None:
    """How fast each number falls: tokens to which power, over all sizes and the larger half."""
    print("\nFitted exponents: falls as tokens^x, over all sizes (over the larger half of them)")
    curves: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for name in ("sigma", "noise", *ESTIMATES):
            curves[name][row.signal].append(getattr(row, name))
    for x in losses:
        curves[f"loss, {x.rule}"][x.signal].append(x.loss)
    tokens = sorted({row.tokens for row in rows})
    half = len(tokens) // 2 + 1
    print(f"{'':24}" + "".join(f"{signal:>18}" for signal in SIGNALS))
    for name, by_signal in curves.items():
        cells = (
            f"{exponent(tokens, y):>10.2f} ({exponent(tokens[-half:], y[-half:]):.2f})"
            for y in by_signal.values()
        )
        print(f"{name:24}" + "".join(cells))


# Label, colour, style: estimates in colour, the truth in black, its parts lighter.
NOISE = {
    "noise": ("true", "black", "-"),
    "random": ("its random part", _record.SKY, "-"),
    "systematic": ("its systematic part", _record.ORANGE, ".-"),
    "sigma": ("estimated", _record.BLUE, "o"),
}
SPECTRUM = {
    "usvt": ("USVT", _record.VERMILION, "v-"),
    "observed": ("as observed", "black", "o-"),
    "debiased": ("debiased", _record.BLUE, "D-"),
}
LOSSES = {
    BEST: ("at the best k", "black", "*-"),
    "paper": ("paper", _record.VERMILION, "v-"),
    "spiked": ("spiked", _record.GREEN, "^-"),
    "ideal": ("ideal strengths", _record.SKY, "D-"),
    WEIGHTED: ("ideal strengths, weighted", _record.PURPLE, "s-"),
    INFORMED: (r"ideal strengths, true $\sigma$", _record.ORANGE, "--"),
}


def plot(folder: Path, figure_path: Path, *, settings: str) -> None:
    """A column for each signal; noise, spectrum and loss below one another."""
    rows = _record.read_table(folder / "rows.csv")
    losses = _record.read_table(folder / "losses.csv")
    titles = (
        "noise of an entry",
        "relative error of the leading values",
        "relative PIP loss",
    )
    with plt.rc_context(_record.STYLE):
        figure, grid = plt.subplots(
            3, len(SIGNALS), figsize=(13.5, 11), layout="constrained", sharex=True
        )
        for same in grid[:2]:  # losses are relative to norms that are not alike
            for axes in same[1:]:
                axes.sharey(same[0])
        for column, signal in zip(grid.T, SIGNALS, strict=True):
            own = [row for row in rows if row["signal"] == signal]
            tokens = np.array([row["tokens"] for row in own])
            for axes, shown in zip(column, (NOISE, SPECTRUM, LOSSES), strict=True):
                for name, (label, colour, style) in shown.items():
                    if shown is LOSSES:
                        of_rule = (x for x in losses if (x["signal"], x["rule"]) == (signal, name))
                        y = np.array([x["loss"] for x in of_rule])
                    else:
                        y = np.array([row[name] for row in own])
                    y = np.where(y > 0, y, np.nan)  # what is not told from 0 has no logarithm
                    size = 10 if style in ("*-", "o") else 6
                    # A ring shows the line that it should lie on.
                    ring = {"mfc": "none", "mew": 1.8} if style == "o" else {}
                    axes.plot(tokens, y, style, color=colour, ms=size, lw=1.8, label=label, **ring)
                slope = axes.lines[0].get_ydata()[-1] * (tokens / tokens[-1]) ** -0.5
                axes.plot(tokens, slope, "--", color=_record.GREY, label=r"$\sim$ tokens$^{-1/2}$")
                axes.set(xscale="log", yscale="log")
                axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axes.yaxis.set_major_formatter("{x:g}")
                axes.yaxis.set_minor_formatter("")
                axes.tick_params(labelleft=True)
            column[0].set_title(signal)
            column[-1].set_xlabel("tokens (millions)")
            column[-1].set_xticks(tokens, [f"{x / 1e6:g}" for x in tokens])
            column[-1].set_xticks([], minor=True)
        for row_of_axes, title in zip(grid, titles, strict=True):
            row_of_axes[0].set_ylabel(title)
            row_of_axes[-1].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
        figure.suptitle(f"What is estimated approaches the ideal, {settings}")
        with jaxmeta.files.write_whole(figure_path) as part:
            figure.savefig(part, dpi=110)
        plt.close(figure)


def report(config: Config, out: Path) -> tuple[list[Row], list[Loss]]:
    """Run, write tables, provenance and figure into `out`, and print."""
    started = time.time()
    rows, losses = run(config)
    _record.write_table(out / "rows.csv", rows)
    _record.write_table(out / "losses.csv", losses)
    _record.write_provenance(out / "provenance.json", config, started=started, dtype="float64")
    settings = f"{config.n} words of rank {config.rank}, {config.seeds} corpora of each size"
    plot(out, out / "known_ideal.png", settings=settings)
    print(f"Text with a known ideal, {settings}")
    print_table(rows, losses)
    print_exponents(rows, losses)
    print(f"\n{time.time() - started:.0f} s; written to {out}")
    return rows, losses


def main() -> None:
    """Do as the command line says."""
    asked = _record.arguments(__doc__, "known_ideal")
    report(SMOKE if asked.smoke else Config(), asked.out)


if __name__ == "__main__":
    main()
