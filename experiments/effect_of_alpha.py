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
    """Scores against the exponent: Pearson's on MTurk-771, and the mean over all sets."""
    with _record.drawing(path, 1, 2, size=(11, 4.4)) as (_, ((left, right),)):
        for name in _record.unique(rows, "embedding"):
            own = [row for row in rows if row["embedding"] == name]
            style = {"color": COLOURS[name], "lw": 2, "label": name}
            development = [row for row in own if row["task"] == DEVELOPMENT]
            alphas = [row["alpha"] for row in development]
            left.plot(alphas, [100 * row["pearson"] for row in development], **style)
            if name in corpus_to_sources.COLOURS:
                ends = (
                    [100 * row[f"pearson_{end}"] for row in development] for end in ("low", "high")
                )
                left.fill_between(alphas, *ends, color=COLOURS[name], alpha=0.12, lw=0)
            curve = mean_curve(own)
            right.plot(list(curve), [100 * value for value in curve.values()], **style)
        for axes, title in (
            (left, "Pearson's correlation on MTurk-771, 95 % bands"),
            (right, "mean of Spearman's correlations over seven sets"),
        ):
            axes.axvline(0.5, color=_record.GREY, ls="--", lw=1)
            axes.set(xlabel="exponent of the spectrum (the paper's: ½)", ylabel="times 100")
            axes.set_title(title, fontsize=11)
        left.legend(frameon=False, fontsize=9)


def report(config: Config, out: Path) -> list[Row]:
    """Run, write and print."""
    started = time.time()
    rows = run(config, out.parent / "cache")
    texts, figures = {"table": best}, {"alpha": plot}
    _record.publish(out, config, {"rows": rows}, started=started, texts=texts, figures=figures)
    return rows


if __name__ == "__main__":
    _record.main(__doc__, report, FULL, SMOKE)
