r"""From corpora to sources: their noise, spectra and dimensionalities (sections 4.1 and 4.2, E).

    python -m experiments.corpus_to_sources             all three signals of the wiki corpus
    python -m experiments.corpus_to_sources --three     of a corpus each: wiki, news, reviews
    python -m experiments.corpus_to_sources --words 10000     the sources of tables 2 and 3
    python -m experiments.corpus_to_sources --released     as the released code makes them
    python -m experiments.corpus_to_sources --smoke     of generated text, in seconds

GloVe's signal is $\log(1 + X)$, that of SGNS $\mathrm{PMI} - \log 3$, that of LSA
$\max(\mathrm{PMI}, 0)$; 20,000 words, a window of 5, $\alpha = ½$, $k$ by the paper's recipe. Then
SW and DW meta-embeddings of the three, each matched to its own thresholded spectrum. Drawn are the
spectra with the edge of the noise $2\sigma\sqrt n$, and PIP loss against dimensionality as in the
paper's Figures 2 to 4: by its recipe, and as predicted by `ideal_strengths`, which does not put the
noise in twice. Steps are kept in results/cache, so a second run takes seconds.

The released code has a window of six words on the left and five on the right, which is not
symmetric, and takes left singular vectors; it splits the corpus in the middle, $\beta$ is 1, and k
one too few. Rules and curves that ask for eigenvalues with their signs say nothing then.

The paper has text8, WMT news and Amazon reviews, which are other texts than these.
"""

import dataclasses
import functools
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from matplotlib.lines import Line2D

import jaxmeta
from experiments import _embeddings, _record
from experiments._labels import RULES
from jaxmeta import Corpus, Recipe
from jaxmeta.text import SIGNALS, Source

shifted_by_one = functools.partial(jaxmeta.shifted_pmi, shift=1.0)
KS = tuple(RULES)
COLOURS = {"GloVe": _record.BLUE, "SGNS": _record.GREEN, "LSA": _record.VERMILION}


@dataclass(frozen=True)
class Config:
    """What sources are built of."""

    corpora: tuple[str, ...] = ("corpora/wiki.zip",) * 3
    """Of GloVe, SGNS and LSA, below JAXMETA_DATA."""
    size: int | None = 20_000
    """Of the vocabulary; None is every word that all corpora have `min_count` times."""
    min_count: int = 1
    window: int = 5
    alpha: float = 0.5
    rule: str = "paper"
    contiguous: bool = False
    """Whether halves for the noise are those of the released code, and not random blocks."""
    seed: int = 0
    tokens: int | None = None
    """Of generated text; None means that the corpora are read."""
    released: bool = False
    """Whether windows are those of the released code, and beta is 1."""


RELEASED = Config(rule="released", contiguous=True, window=6, released=True)
THREE = Config(corpora=("corpora/wiki.zip", "corpora/news.txt.gz", "corpora/reviews.txt.gz"))
SMOKE = Config(corpora=("generated",) * 3, size=300, tokens=400_000)


@dataclass(frozen=True)
class Row:
    """One source."""

    source: str
    corpus: str
    words: int
    sigma: float
    edge: float
    rank: int
    """Values above the edge; beyond the computed ones from the density of the spectrum."""
    k: int
    paper: int
    paper_spiked: int
    released: int
    spiked: int
    rie: int
    ideal: int
    """k by each rule."""
    computed: int
    residual: float
    not_convex: int
    """At how many k the paper's curve is not convex."""
    minima: int
    """Of the paper's curve, up to the rank."""
    source_weight: float
    least_weight: float
    """SW, and the smallest dimension weight."""


@dataclass(frozen=True)
class Point:
    """A source at one k."""

    source: str
    k: int
    value: float
    computed: bool
    usvt: float
    paper: float
    """PIP loss by the paper's recipe."""
    predicted: float
    """PIP loss by `ideal_strengths`."""


def model(config: Config, *, rank: int = 10) -> jaxmeta.text.LatentModel | None:
    """What text is generated from, if it is."""
    if config.tokens is None:
        return None
    assert config.size is not None
    return jaxmeta.text.latent_model(config.size, rank=rank, strength=0.5, seed=0)


def recipes(config: Config, generated: Path, *, rank: int = 10) -> list[Recipe]:
    """A signal and a corpus each; text is generated into a folder if it is to be."""
    drawn = model(config, rank=rank)
    if drawn is not None:
        assert config.tokens is not None
        path = generated / "generated.txt"
        text = jaxmeta.text.sample_tokens(drawn, tokens=config.tokens, documents=400, seed=1)
        jaxmeta.text.write_corpus(path, drawn, text)
        corpora = [Corpus(path, lines_are_documents=True)] * 3
    else:
        # Corpora with their case and punctuation still in them are read in lower case.
        corpora = [
            Corpus(path)
            if path.suffix == ".zip"
            else Corpus(path, tokenise=jaxmeta.text.lower_words)
            for path in _record.data(*config.corpora)
        ]
    signals = SIGNALS | ({"SGNS": shifted_by_one} if config.released else {})
    window = jaxmeta.released.released_window if config.released else None
    return [
        Recipe(name, c, s, window) for (name, s), c in zip(signals.items(), corpora, strict=True)
    ]


def sources(config: Config, cache: Path) -> tuple[Source, ...]:
    """The sources of a configuration, with steps kept in `cache`."""
    with tempfile.TemporaryDirectory() as folder:
        return build(config, recipes(config, Path(folder)), cache)


def build(config: Config, made_of: Sequence[Recipe], cache: Path) -> tuple[Source, ...]:
    """Sources of other recipes, with the settings of a configuration."""
    return jaxmeta.build_sources(
        made_of,
        size=config.size,
        min_count=config.min_count,
        window=config.window,
        alpha=config.alpha,
        rule=config.rule,
        contiguous=config.contiguous,
        seed=config.seed,
        cache=cache,
        progress=jaxmeta.ProgressBar(),
    )


def run(config: Config, cache: Path) -> tuple[list[Row], list[Point]]:
    """Build sources and meta-embeddings, and take their measure."""
    built = sources(config, cache)
    sw, dw = (_embeddings.weights(name, built) for name in ("SW", "DW"))
    for make in _embeddings.methods(built, ("SW", "DW")).values():
        make()
    rows, points = [], []
    for source, corpus, c, d in zip(built, config.corpora, sw, dw, strict=True):
        own = curves(source)
        points += own
        rows.append(row(source, corpus, own, float(c), float(jnp.min(d))))
    return rows, points


def curves(source: Source) -> list[Point]:
    """Values and PIP losses at all k up to the rank."""
    eigenvalues = jnp.asarray(source.eigenvalues)
    n, alpha, magnitudes = len(eigenvalues), source.alpha, jnp.abs(eigenvalues)
    strengths, squares = (
        jaxmeta.ideal_strengths(eigenvalues, sigma=source.sigma, alpha=exponent).values
        for exponent in (alpha, 2 * alpha)
    )
    total = jnp.sum(squares)
    predicted = jaxmeta.dimension.predicted_curve(magnitudes, strengths, alpha=alpha, total=total)
    paper = jaxmeta.dimension.paper_curve(magnitudes, sigma=source.sigma, n=n, alpha=alpha)
    usvt = jaxmeta.usvt(magnitudes, sigma=source.sigma, n=n)
    columns = (np.asarray(x, np.float64) for x in (magnitudes, usvt, paper, predicted))
    return [
        Point(source.name, i + 1, v, i < len(source.spectrum.values), u, p, q)
        for i, (v, u, p, q) in enumerate(zip(*columns, strict=True))
    ][: max(source.rank, source.k)]


def row(source: Source, corpus: str, points: list[Point], sw: float, least: float) -> Row:
    """A source in numbers."""
    eigenvalues, alpha = jnp.asarray(source.eigenvalues), source.alpha
    dimensions = {name: int(rule(eigenvalues, source.sigma, alpha)) for name, rule in RULES.items()}
    steps = np.diff([point.paper for point in points])
    # Rounding of a step is that of the loss, not its own.
    rounding = 8 * float(jnp.finfo(eigenvalues.dtype).eps) * points[0].paper
    turns = steps[np.abs(steps) > rounding] > 0
    return Row(
        source=source.name,
        corpus=Path(corpus).name,
        words=len(source.words),
        sigma=source.sigma,
        edge=2 * source.sigma * len(source.words) ** 0.5,
        rank=source.rank,
        k=source.k,
        **dimensions,
        computed=len(source.spectrum.values),
        residual=source.residual,
        not_convex=int(np.sum(np.diff(steps) < -rounding)),
        minima=int(np.sum(~turns[:-1] & turns[1:])) + int(not turns[-1]) + int(turns[0]),
        source_weight=sw,
        least_weight=least,
    )


def print_table(rows: Sequence[Row]) -> None:
    """Sources, one a line."""
    print()
    _record.show(
        ("", "corpus", "words", "sigma", "edge", "rank", *KS, "residual", "SW", "DW from"),
        [
            (
                r.source, r.corpus, f"{r.words:,}", f"{r.sigma:.4f}", f"{r.edge:.1f}",
                f"{r.rank:,}", *(f"{getattr(r, name):,}" for name in KS), f"{r.residual:.1e}",
                f"{r.source_weight:.3f}", f"{r.least_weight:.3f}",
            )
            for r in rows
        ],
    )  # fmt: skip
    print(f"k by the rules {KS[0]} … {KS[-1]}. PIP loss by the paper's recipe, up to the rank:")
    for r in rows:
        verdict = "convex" if r.not_convex == 0 else f"not convex at {r.not_convex:,} of its k"
        print(f"  {r.source:<8}{verdict}, minima: {r.minima}")


def plot_spectra(rows: Sequence[dict], points: Sequence[dict], path: Path) -> None:
    """Values by rank, the edge of the noise, and k."""
    size = 5 * len(rows), 5
    with _record.drawing(path, 1, len(rows), size=size, sharey=True) as (_, (panels,)):
        for axes, r in zip(panels, rows, strict=True):
            k, value, usvt = columns(points, r, "k", "value", "usvt")
            known, colour = k <= r["computed"], COLOURS[str(r["source"])]
            axes.loglog(k[known], value[known], color=colour, lw=2.5, label="computed")
            rest = {"color": colour, "lw": 2, "ls": ":", "label": "from the density"}
            axes.loglog(k[~known], value[~known], **rest)
            thresholded = {"color": _record.GREY, "lw": 1.5, "label": "thresholded (USVT)"}
            axes.loglog(k, np.where(usvt > 0, usvt, np.nan), **thresholded)
            edge = r"noise edge $2\sigma\sqrt{n}$"
            axes.axhline(r["edge"], color="black", lw=1, ls="--", label=edge)
            for name, marker in (("paper", "v"), ("spiked", "^")):
                at = k == r[name]
                style = {"color": "white", "mec": "black", "ms": 9, "mew": 1.5, "zorder": 4}
                axes.plot(k[at], value[at], marker, **style, label=f"k, {name}: {r[name]:,.0f}")
            axes.set_title(rf"{r['source']}, {r['corpus']}, $\sigma$ = {r['sigma']:.3f}")
            axes.set_xlabel("i, by magnitude")
            axes.legend(frameon=False, fontsize=9)
        panels[0].set_ylim(bottom=0.5 * min(r["edge"] for r in rows))
        panels[0].set_ylabel("singular value")


def columns(points: Sequence[dict], row: dict, *names: str) -> Iterator[np.ndarray]:
    """Columns of the points of one source."""
    own = [point for point in points if point["source"] == row["source"]]
    return (np.array([point[name] for point in own]) for name in names)


def plot_losses(rows: Sequence[dict], points: Sequence[dict], path: Path) -> None:
    """PIP loss against k: by the paper's recipe, and predicted, up to the edge of the noise.

    Where a curve is smallest beyond that edge, its k is marked on the axis.
    """
    shared = {"sharex": True, "sharey": True}
    size = 4.2 * len(rows), 4.8
    with _record.drawing(path, 1, len(rows), size=size, dpi=110, **shared) as (figure, (panels,)):
        for axes, r in zip(panels, rows, strict=True):
            k, paper, predicted = columns(points, r, "k", "paper", "predicted")
            for y, best, colour, line, marker in (
                (paper, r["paper"], _record.VERMILION, "--", "o"),
                (predicted, r["ideal"], _record.BLUE, "-", "D"),
            ):
                axes.plot(k, y, color=colour, ls=line, lw=2.2)
                at = k == best
                place = (best, y[at][0]) if at.any() else (best, 0)
                side = "center" if at.any() else "left" if best < 0.5 * r["words"] else "right"
                style = {"color": "white", "mec": colour, "mew": 2, "ms": 8, "zorder": 4}
                axes.plot(*place, marker, **style, clip_on=False)
                axes.annotate(
                    f"k = {best:,.0f}", place, (0, -18 if at.any() else 9), ha=side,
                    textcoords="offset points", color=colour, fontsize=10, zorder=3,
                    bbox={"color": "white", "pad": 1},
                )  # fmt: skip
            axes.axvline(k[-1], color=_record.GREY, lw=1, ls=":")
            axes.set_xscale("log")
            axes.set_title(f"{r['source']}, {r['corpus']}", fontsize=11)
        panels[0].set(xlim=(0.9, 1.15 * max(r["words"] for r in rows)), ylim=0)
        panels[0].set_ylabel("estimated PIP loss")
        ratios = [r["ideal"] / r["paper"] for r in rows]
        figure.suptitle(
            "ideal_strengths has the smallest loss at "
            f"{min(ratios):.2g} to {max(ratios):.2g} times the dimensions of the paper's recipe",
            fontsize=12,
        )
        handles = [
            Line2D([], [], color=colour, ls=line, marker=marker, mfc="white", mew=2, label=label)
            for colour, line, marker, label in (
                (_record.VERMILION, "--", "o", "the paper's recipe, and its smallest loss"),
                (
                    _record.BLUE,
                    "-",
                    "D",
                    "ideal_strengths (on the axis: smallest where none is drawn)",
                ),
                (_record.GREY, ":", "", "edge of the noise: curves end"),
            )
        ]
        _record.below(figure, "dimensions k", handles)


FIGURES = {"spectra": plot_spectra, "pip_loss": plot_losses}


def report(config: Config, out: Path) -> list[Row]:
    """Run, write tables, provenance and figures into `out`, and print."""
    started = time.time()
    rows, points = run(config, out.parent / "cache")
    seconds = time.time() - started
    print_table(rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\n{seconds:.0f} s to the meta-embeddings and curves, {peak:.1f} GiB at the most")
    # Neighbours on a logarithmic axis look the same: the table keeps those that do not.
    chosen = {(row.source, getattr(row, name)) for row in rows for name in KS}
    kept = [p for p in points if p.k % max(p.k // 100, 1) == 0 or (p.source, p.k) in chosen]
    _record.publish(out, config, {"rows": rows, "curves": kept}, started=started, figures=FIGURES)
    return rows


def main() -> None:
    """Do as the command line says."""
    parser = _record.parser(__doc__)
    parser.add_argument("--three", action="store_true", help="a corpus for each source")
    parser.add_argument("--released", action="store_true", help="as the released code has them")
    parser.add_argument("--words", type=int, help="of the vocabulary, if not 20,000")
    asked = parser.parse_args()
    config = THREE if asked.three else RELEASED if asked.released else Config()
    config = SMOKE if asked.smoke else config
    kind = "_three" if asked.three else "_released" if asked.released else ""
    name = f"corpus_to_sources{kind}"
    if asked.words is not None:
        config, name = dataclasses.replace(config, size=asked.words), f"{name}_{asked.words}"
    report(config, _record.folder(asked, name))


if __name__ == "__main__":
    main()
