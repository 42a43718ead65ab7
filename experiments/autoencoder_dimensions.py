r"""Dimensions of autoencoded meta-embeddings (Appendix F of the paper and its table there).

    python -m experiments.autoencoder_dimensions             sources of the wiki corpus
    python -m experiments.autoencoder_dimensions --smoke     generated text and tasks, in a minute

DAEME and CAEME have as many dimensions as their sources have together; those of AAEME can be
chosen, and the paper takes 300 out of 50 to 600 by Pearson's correlation on MTurk-771. Here every
size is trained with three seeds, to see whether differences between sizes are larger than those
between seeds, and whether another set of word similarity would choose the same.
"""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxmeta
from experiments import _record, _scoring, corpus_to_sources
from jaxmeta.evaluate import similarity

COLOURS = {"MTurk-771": _record.BLUE, "MEN": _record.GREEN, "SimLex-999": _record.VERMILION}
FIXED = {
    "DAEME": jaxmeta.methods.decoupled_autoencoder,
    "CAEME": jaxmeta.methods.concatenated_autoencoder,
}


@dataclass(frozen=True)
class Config:
    """Sources, sizes and training."""

    sources: corpus_to_sources.Config
    sizes: tuple[int, ...] = (50, 100, 200, 300, 400, 500, 600)
    seeds: tuple[int, ...] = (0, 1, 2)
    epochs: int = 30
    """With 10,000 words the learning rate is at six tenths of its start by then."""
    tasks: tuple[str, ...] = tuple(COLOURS)


FULL = Config(corpus_to_sources.Config(size=10_000))
SMOKE = Config(
    dataclasses.replace(corpus_to_sources.SMOKE, rule="spiked"),
    sizes=(5, 20),
    seeds=(0, 1),
    epochs=2,
)


@dataclass(frozen=True)
class Row:
    """One training, in one task."""

    method: str
    dimensions: int
    seed: int
    loss: float
    """The lowest mean loss of an epoch, with masked inputs."""
    task: str
    covered: int
    total: int
    pearson: float
    spearman: float


def run(config: Config, cache: Path) -> list[Row]:
    """All trainings."""
    data = _scoring.tasks(config.tasks, corpus_to_sources.model(config.sources))
    sources = corpus_to_sources.sources(config.sources, cache)
    parts = tuple(source.embedding for source in sources)
    progress = _record.Progress((len(config.sizes) + len(FIXED)) * len(config.seeds))
    rows = []
    for seed in config.seeds:
        trained: dict[str, Any] = {}
        given: dict[str, Any] = {"key": jax.random.key(seed), "epochs": config.epochs}
        for name, train in FIXED.items():
            trained[name] = train(parts, **given)
            progress.step(f"seed {seed}: {name}")
        for k in config.sizes:
            trained[f"AAEME {k}"] = jaxmeta.methods.averaged_autoencoder(parts, k=k, **given)
            progress.step(f"seed {seed}: AAEME {k}")
        for name, found in trained.items():
            matrix = np.asarray(found.embedding)
            for task, pairs in data.items():
                score = similarity((sources[0].words, matrix), pairs)
                assert score.gold is not None
                rows.append(
                    Row(
                        name.split()[0],
                        matrix.shape[1],
                        seed,
                        float(np.min(found.loss_history)),
                        task,
                        score.covered,
                        score.total,
                        float(np.corrcoef(score.items, score.gold)[0, 1]),
                        score.value,
                    )
                )
    return rows


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Pearson's correlations times 100, mean and range over seeds."""
    tasks = _record.unique(rows, "task")
    lines = []
    for method, k in _record.unique(rows, "method", "dimensions"):
        own = [values(rows, method, k, task) for task in tasks]
        cells = (f"{np.mean(x):.2f} ({min(x):.2f} to {max(x):.2f})" for x in own)
        lines.append((method, f"{k:.0f}", *cells))
    return _record.markdown(("", "k", *tasks), lines)


def values(rows: Sequence[Mapping[str, Any]], method: str, k: float, task: str) -> list[float]:
    """Pearson's correlations times 100, one for each seed."""
    at = (method, k, task)
    return [
        100 * row["pearson"]
        for row in rows
        if (row["method"], row["dimensions"], row["task"]) == at
    ]


def plot(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """AAEME against its size; the others, of one size, as level lines."""
    trained = _record.unique(rows, "method", "dimensions")
    sizes = [k for method, k in trained if method == "AAEME"]
    fixed = [at for at in trained if at[0] != "AAEME"]
    with _record.drawing(path, size=(7, 4.6)) as (_, ((axes,),)):
        for task in _record.unique(rows, "task"):
            colour = COLOURS[task]
            own = [values(rows, "AAEME", k, task) for k in sizes]
            axes.plot(sizes, [np.mean(x) for x in own], "o-", color=colour, label=f"AAEME, {task}")
            ends = ([end(x) for x in own] for end in (min, max))
            axes.fill_between(sizes, *ends, color=colour, alpha=0.15, lw=0)
            for (method, k), style in zip(fixed, ("--", ":"), strict=True):
                mean = float(np.mean(values(rows, method, k, task)))
                label = f"{method}, k = {k:,.0f}" if task == "MTurk-771" else None
                axes.axhline(mean, color=colour, ls=style, lw=1.2, label=label)
        axes.set(xlabel="dimensions of AAEME", ylabel="Pearson's correlation, times 100")
        axes.legend(frameon=False, fontsize=9, ncols=2)


FIGURES = {"autoencoder_dimensions": plot}


def report(config: Config, out: Path) -> list[Row]:
    """Run, write and print."""
    started = time.time()
    rows = run(config, out.parent / "cache")
    texts = {"table": table}
    _record.publish(out, config, {"rows": rows}, started=started, texts=texts, figures=FIGURES)
    return rows


if __name__ == "__main__":
    _record.main(__doc__, report, FULL, SMOKE)
