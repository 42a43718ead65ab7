r"""The exponent of the spectrum (Appendix D of the paper and its first figure there).

    python -m experiments.effect_of_alpha             sources of the wiki corpus
    python -m experiments.effect_of_alpha --smoke     generated text and tasks, in seconds

$E = U_{1:k}D^\alpha$ for $\alpha$ from -½ to 2.5, with $k$ by the paper's recipe at $\alpha = ½$:
the paper cites Caron for 1 to 2 as the best for LSA, and for losses above 2 and below 0.
The paper has Pearson's correlation on MTurk-771, and reports that it is highest at $\alpha = ½$ for
all three sources, and nearly so in all other tasks. Here are both correlations on the seven sets of
word similarity, for the sources, for their concatenation without weights, and for DW as printed.
"""

import dataclasses
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments import _embeddings, _record, _scoring, corpus_to_sources
from jaxmeta.evaluate import SIMILARITY, correlation_interval, similarity

DEVELOPMENT = "MTurk-771"
ALPHAS = tuple(i / 8 for i in range(-4, 21))
COLOURS = corpus_to_sources.COLOURS | {"UW": "black", "DW": _record.PURPLE}


@dataclass(frozen=True)
class Config:
    """Sources and exponents."""

    sources: corpus_to_sources.Config
    alphas: tuple[float, ...] = ALPHAS
    tasks: tuple[str, ...] = SIMILARITY


FULL = Config(corpus_to_sources.Config())
SMOKE = Config(dataclasses.replace(corpus_to_sources.SMOKE, rule="spiked"))


@dataclass(frozen=True)
class Row:
    """One embedding at one exponent in one task."""

    embedding: str
    k: int
    alpha: float
    task: str
    covered: int
    total: int
    spearman: float
    pearson: float
    pearson_low: float
    pearson_high: float


def run(config: Config, cache: Path) -> list[Row]:
    """All exponents in all tasks."""
    data = _scoring.tasks(config.tasks, corpus_to_sources.model(config.sources))
    sources = corpus_to_sources.sources(config.sources, cache)
    progress = _record.Progress(len(config.alphas))
    rows = []
    for alpha in config.alphas:
        own = _embeddings.at(sources, alpha)
        made = {**_embeddings.single(own), **_embeddings.methods(own, ("UW", "DW"))}
        for name, make in made.items():
            vectors = (sources[0].words, np.asarray(make()))
            for task, pairs in data.items():
                score = similarity(vectors, pairs)
                assert score.gold is not None
                pearson = float(np.corrcoef(score.items, score.gold)[0, 1])
                interval = correlation_interval(pearson, score.covered)
                at = (name, vectors[1].shape[1], alpha, task, score.covered, score.total)
                rows.append(Row(*at, score.value, pearson, *interval))
        progress.step(f"alpha {alpha:g}")
    return rows


def best(rows: Sequence[Mapping[str, Any]]) -> str:
    """The exponent with the highest score of each embedding, as Markdown."""
    lines = []
    for name in _record.unique(rows, "embedding"):
        own = [row for row in rows if row["embedding"] == name]
        cells = []
        for curve in (
            {r["alpha"]: r["pearson"] for r in own if r["task"] == DEVELOPMENT},
            mean_curve(own),
        ):
            top = max(curve, key=curve.__getitem__)
            cells += [f"{top:g}", f"{100 * curve[top]:.2f}; {100 * curve[0.5]:.2f}"]
        lines.append((name, *cells))
    pearson, spearman = f"Pearson on {DEVELOPMENT}", "mean Spearman of all sets"
    heads = ((f"best alpha, {x}", "there; at ½") for x in (pearson, spearman))
    return _record.markdown(("", *itertools.chain(*heads)), lines)


def mean_curve(rows: Sequence[Mapping[str, Any]]) -> dict[float, float]:
    """Exponent to the mean of Spearman's correlations over the sets."""
    values: dict[float, list[float]] = {}
    for row in rows:
        values.setdefault(row["alpha"], []).append(row["spearman"])
    return {alpha: float(np.mean(own)) for alpha, own in values.items()}


def plot(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Scores against the exponent, a column for each embedding, over the others in grey.

    Above Pearson's correlation on MTurk-771 with its interval, below the mean over all sets.
    """
    names = _record.unique(rows, "embedding")
    own = {name: [row for row in rows if row["embedding"] == name] for name in names}
    development = {
        name: {r["alpha"]: r for r in of if r["task"] == DEVELOPMENT} for name, of in own.items()
    }
    above = {name: {a: r["pearson"] for a, r in of.items()} for name, of in development.items()}
    below = {name: mean_curve(of) for name, of in own.items()}
    shared = {"sharex": True, "sharey": True}
    size = 1 + 2.4 * len(names), 6.4
    with _record.drawing(path, 2, len(names), size=size, dpi=110, **shared) as (figure, grid):
        for panels, curves in zip(grid, (above, below), strict=True):
            for axes, name in zip(panels, names, strict=True):
                for other, curve in curves.items():
                    front = {"color": COLOURS[name], "lw": 2.5, "zorder": 3}
                    back = {"color": _record.GREY, "lw": 0.8, "alpha": 0.7}
                    values = [100 * value for value in curve.values()]
                    axes.plot(list(curve), values, **(front if other == name else back))
                top = max(curves[name], key=curves[name].__getitem__)
                style = {"color": "white", "mec": COLOURS[name], "mew": 2, "zorder": 4}
                axes.plot(top, 100 * curves[name][top], "o", **style)
                axes.axvline(0.5, color="black", ls="--", lw=0.8)
                axes.set_title(f"{name}: best at {top:g}", fontsize=11)
        for axes, name in zip(grid[0], names, strict=True):
            ends = (
                [100 * r[f"pearson_{end}"] for r in development[name].values()]
                for end in ("low", "high")
            )
            axes.fill_between(list(development[name]), *ends, color=COLOURS[name], alpha=0.2, lw=0)
        grid[0, 0].set_ylabel(f"Pearson on {DEVELOPMENT},\n95 % band, times 100", fontsize=10)
        grid[1, 0].set_ylabel("Spearman, mean of all sets,\ntimes 100", fontsize=10)
        within = 0
        for of in development.values():
            best_row = max(of.values(), key=lambda row: row["pearson"])
            within += of[0.5]["pearson"] >= best_row["pearson_low"]
        figure.suptitle(
            f"The paper's exponent of ½ (dashed) is within the interval of the best (circle) "
            f"for {within} of {len(names)} embeddings",
            fontsize=12,
        )
        figure.supxlabel("exponent of the spectrum; grey: the other embeddings", fontsize=10)


FIGURES = {"alpha": plot}


def report(config: Config, out: Path) -> list[Row]:
    """Run, write and print."""
    started = time.time()
    rows = run(config, out.parent / "cache")
    texts = {"table": best}
    _record.publish(out, config, {"rows": rows}, started=started, texts=texts, figures=FIGURES)
    return rows


if __name__ == "__main__":
    _record.main(__doc__, report, FULL, SMOKE)
