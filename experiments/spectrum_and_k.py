r"""What matters more: the power of the spectrum, or how many dimensions are kept.

    python -m experiments.spectrum_and_k             sources of the wiki corpus, 8,000 words
    python -m experiments.spectrum_and_k --smoke     generated text and tasks, in seconds

All eigenpairs of the three signals are computed, so that every rule for $k$ can have its way: the
paper's recipe, one less as in its released code, and the smallest loss predicted by the spiked
model, by rotation-invariant estimation and by `ideal_strengths`; and beside the rules the same
number for every source, from 50 up. Each is combined with exponents from 0 to 1. Scored is the
mean of Spearman's correlations over the seven sets of word similarity, for the sources and for
their unweighted concatenation.
"""

import dataclasses
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import matplotlib
import numpy as np

import jaxmeta
from experiments import _record, _scoring, corpus_to_sources
from experiments._labels import RULES
from jaxmeta.evaluate import SIMILARITY, similarity

MARKS = {"paper": "v", "spiked": "^", "rie": "s", "ideal": "D"}
"""Of rules for k in the figure."""


@dataclass(frozen=True)
class Config:
    """Sources, exponents and dimensionalities."""

    sources: corpus_to_sources.Config
    alphas: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
    sizes: tuple[int, ...] = (50, 100, 200, 400, 800, 1600)
    tasks: tuple[str, ...] = SIMILARITY


# Nothing is left out of the spectrum: whatever a rule wants is there.
FULL = Config(corpus_to_sources.Config(size=8_000, rule="ideal"))
SMOKE = Config(dataclasses.replace(corpus_to_sources.SMOKE, rule="ideal"), sizes=(5, 20))


@dataclass(frozen=True)
class Row:
    """One embedding with k by one rule at one exponent."""

    embedding: str
    rule: str
    k: int
    alpha: float
    mean: float
    """Of Spearman's correlations over the sets."""
    scores: str
    """Those of the sets, times 100."""
    worst_coverage: float


def dimensions(source: jaxmeta.text.Source, config: Config) -> dict[str, int]:
    """k by every rule, at an exponent of ½, and those that are the same for every source."""
    values = jnp.asarray(source.eigenvalues)
    computed = len(source.spectrum.values)
    by_rule = {name: int(rule(values, source.sigma, 0.5)) for name, rule in RULES.items()}
    same = {f"k = {size}": size for size in config.sizes}
    return {name: min(max(k, 1), computed) for name, k in (by_rule | same).items()}


def run(config: Config, cache: Path) -> list[Row]:
    """All rules at all exponents."""
    data = _scoring.tasks(config.tasks, corpus_to_sources.model(config.sources))
    sources = corpus_to_sources.sources(config.sources, cache)
    chosen = [dimensions(source, config) for source in sources]
    progress = _record.Progress(len(config.alphas) * len(chosen[0]))
    rows = []
    for alpha in config.alphas:
        for rule in chosen[0]:
            parts = {
                s.name: np.asarray(jaxmeta.embed(s.spectrum, k=k[rule], alpha=alpha))
                for s, k in zip(sources, chosen, strict=True)
            }
            parts["UW"] = np.concatenate(list(parts.values()), axis=1)
            for name, matrix in parts.items():
                if matrix.shape[1] < 2:
                    continue  # cosines of numbers are all 1 or -1
                scores = [similarity((sources[0].words, matrix), d) for d in data.values()]
                rows.append(
                    Row(
                        name,
                        rule,
                        matrix.shape[1],
                        alpha,
                        float(np.mean([score.value for score in scores])),
                        " ".join(f"{100 * score.value:.1f}" for score in scores),
                        min(score.covered / score.total for score in scores),
                    )
                )
            progress.step(f"alpha {alpha:g}, {rule}")
    return rows


def table(rows: Sequence[Mapping[str, Any]], embedding: str) -> str:
    """Means for one embedding: rules and exponents."""
    own = [row for row in rows if row["embedding"] == embedding]
    found = {(row["rule"], row["alpha"]): row for row in own}
    alphas = _record.unique(own, "alpha")
    top = max(row["mean"] for row in own)
    lines = []
    for rule in _record.unique(own, "rule"):
        cells = []
        for alpha in alphas:
            mean = found[rule, alpha]["mean"]
            cells.append(f"**{100 * mean:.2f}**" if mean == top else f"{100 * mean:.2f}")
        lines.append((rule, f"{found[rule, alphas[0]]['k']:.0f}", *cells))
    return _record.markdown((embedding, "k", *(f"alpha {alpha:g}" for alpha in alphas)), lines)


def tables(rows: Sequence[Mapping[str, Any]]) -> str:
    """Those of all embeddings, the concatenation first."""
    found = _record.unique(rows, "embedding")
    return "\n\n".join(
        table(rows, name) for name in ("UW", *corpus_to_sources.SIGNALS) if name in found
    )


def plot(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Scores against k, a line for each exponent; marks above show where the rules are."""
    names = _record.unique(rows, "embedding")
    alphas = _record.unique(rows, "alpha")
    shades = matplotlib.colormaps["viridis"](np.linspace(0, 0.9, len(alphas)))
    shared = {"sharex": True, "sharey": True}
    size = 1 + 3 * len(names), 5.2
    with _record.drawing(path, 1, len(names), size=size, dpi=110, **shared) as (figure, (panels,)):
        for axes, name in zip(panels, names, strict=True):
            own = [row for row in rows if row["embedding"] == name]
            lines = {
                alpha: sorted((row["k"], 100 * row["mean"]) for row in own if row["alpha"] == alpha)
                for alpha in alphas
            }
            for (alpha, line), colour in zip(lines.items(), shades, strict=True):
                axes.plot(*zip(*line, strict=True), color=colour, lw=2, label=f"exponent {alpha:g}")
            for (rule, marker), y in zip(MARKS.items(), (1.02, 1.05, 1.08, 1.11), strict=True):
                k = next((row["k"] for row in own if row["rule"] == rule), None)
                if k is not None:
                    axes.axvline(k, color=_record.GREY, lw=0.8, ls=":")
                    axes.plot(
                        k, y, marker, color="black", ms=6, clip_on=False, label=f"k by “{rule}”",
                        transform=axes.get_xaxis_transform(), ls="",
                    )  # fmt: skip
            by_power, by_k = _moves(own, "alpha"), _moves(own, "k")
            title = (
                f"{name}: the exponent moves the\nbest by {by_power:.0f} points, k by {by_k:.0f}"
            )
            axes.set_xscale("log")
            axes.set_title(title, fontsize=11, pad=38)
        panels[0].set_ylabel("mean of Spearman's correlations, times 100")
        handles, _ = panels[0].get_legend_handles_labels()
        # A legend is filled column by column: exponents above, rules below.
        pairs = itertools.zip_longest(handles[: len(alphas)], handles[len(alphas) :])
        ordered = [handle for pair in pairs for handle in pair if handle is not None]
        _record.below(figure, "dimensions k", ordered, len(alphas))


def _moves(rows: Sequence[Mapping[str, Any]], name: str) -> float:
    """How far the best score goes with what rows have under a name."""
    best: dict[float, float] = {}
    for row in rows:
        best[row[name]] = max(best.get(row[name], -np.inf), 100 * row["mean"])
    return max(best.values()) - min(best.values())


FIGURES = {"spectrum_and_k": plot}


def report(config: Config, out: Path) -> list[Row]:
    """Run, write and print."""
    started = time.time()
    rows = run(config, out.parent / "cache")
    texts = {"table": tables}
    _record.publish(out, config, {"rows": rows}, started=started, texts=texts, figures=FIGURES)
    return rows


if __name__ == "__main__":
    _record.main(__doc__, report, FULL, SMOKE)
