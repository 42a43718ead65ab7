r"""Scores of an equalised source in tasks, beside those of the raw one and of trained vectors.

    python -m experiments.downstream             PPMI and log counts of the wiki corpus
    python -m experiments.downstream --smoke     generated text and tasks, in seconds

A smaller PIP loss is not by itself a better score. So for sources of 10,000 words, at exponents of
½ and ¼, *raw* embeddings, which are the leading directions of the signal as it is,

* at k by the paper's recipe, by the rule "equalised", at 300, and with as many dimensions as the
  estimated ideal has; and of the last the one with the weights "estimated ideal";

stand beside *denoised* ones, which are those of the estimated ideal itself: all of its directions,
the leading 300, if there are more, and as many as the rule keeps of the raw ones. Beside both stand
gensim's Word2Vec (skip-grams, 5 negative samples) and fastText, of the same text in 300 dimensions,
by the same window for 5 epochs. Gensim sees all words that are there 5 times, as it does unless
told otherwise, so its words have more contexts than counts of 10,000 words; "these words" is
without the others. By two threads it finds other vectors each time. All are scored on the same
10,000 words, so on the same pairs: in word similarity, and in STS by the cosine of centroids.

Intervals are of a paired bootstrap. For means over sets, variances of sets add up: pairs of two
sets are taken for independent. Sentences of STS-B are in STS13 to STS16, too, so that it stands
alone. Steps and trained vectors are kept in results/cache, with the time that they took.
"""

import dataclasses
import itertools
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jaxmeta
from experiments import (
    _embeddings,
    _equalised,
    _forest,
    _record,
    _scoring,
    _trained,
    corpus_to_sources,
)
from jaxmeta.evaluate import SIMILARITY, TASKS, Score
from jaxmeta.files import Cache
from jaxmeta.text import Source

SIGNALS = "PPMI", "log counts"
TRAINED: dict[str, dict[str, Any]] = {
    "Word2Vec": {"restrict": False, "subwords": False},
    "fastText": {"restrict": False, "subwords": True},
    "Word2Vec, these words": {"restrict": True, "subwords": False},
}
GROUPS = {
    "word similarity": SIMILARITY,
    "STS13 to STS16": ("STS13", "STS14", "STS15", "STS16"),
    "STS-B": ("STS-B",),
}
GENSIM = "gensim"
BEST = "raw, k equalised"
"""The raw source that all are compared with, at the k that the rule says is its best."""


@dataclass(frozen=True)
class Config:
    """Sources, and what is trained."""

    sources: corpus_to_sources.Config
    trained: tuple[str, ...] = tuple(TRAINED)
    width: int = 300
    """Of trained vectors, and of the leading directions that are compared with them."""
    epochs: int = 5
    alphas: tuple[float, ...] = (0.5, 0.25)
    seed: int = 0
    draws: int = 1000


FULL = Config(corpus_to_sources.Config(corpora=("corpora/wiki.zip",) * 3, size=10_000))
SMOKE = Config(corpus_to_sources.SMOKE, width=20, epochs=1, draws=50)


@dataclass(frozen=True)
class Row:
    """One embedding in one task."""

    setting: str
    embedding: str
    dimensions: int
    task: str
    metric: str
    value: float
    low: float
    high: float
    """The score, with its 95 % interval."""
    covered: int
    total: int


@dataclass(frozen=True)
class Difference:
    """One embedding against another, in one of `GROUPS`."""

    setting: str
    embedding: str
    other: str
    group: str
    difference: float
    low: float
    high: float
    """Of the means over sets, with a 95 % interval."""


@dataclass(frozen=True)
class Took:
    """From text to vectors, when it was done; NaN where some steps had been done before."""

    what: str
    seconds: float
    processor: float


Found = dict[str, tuple[int, dict[str, Score]]]
"""Name of an embedding to its dimensions and its scores."""


def run(config: Config, cache: Path) -> tuple[list[Row], list[Difference], list[Took]]:
    """All signals and exponents, and all that is trained."""
    tasks = list(itertools.chain(*GROUPS.values()))
    data = _scoring.tasks(tasks, corpus_to_sources.model(config.sources))
    trained = config.trained if _trained.installed() else ()
    progress = _record.Progress(len(trained) + len(SIGNALS) * len(config.alphas))
    found: dict[str, Found] = {}
    times = []
    with tempfile.TemporaryDirectory() as folder:
        recipes = corpus_to_sources.recipes(config.sources, Path(folder))
        took = _equalised.build_time(config.sources, recipes, cache)
        times.append(Took("three sources, each decomposed twice", *took))
        for alpha in config.alphas:
            built = _equalised.sources(config.sources, recipes, SIGNALS, alpha, cache)
            for signal, pair in built.items():
                setting, ideal = f"{signal}, alpha {alpha:g}", pair.equalised.ideal
                assert ideal is not None
                rank = max(config.width, len(ideal.values))
                wide = _equalised.widened(config.sources, recipes, signal, pair, rank, cache)
                made = embeddings(wide, config.width)
                found[setting] = scores(pair.paper.words, made, data, config.seed)
                progress.step(setting)
        words = pair.paper.words
        found[GENSIM] = {}
        for name in trained:
            told = TRAINED[name] | settings(config)
            vectors, took = _trained.train(recipes[0].corpus, words, Cache(cache), **told)
            found[GENSIM] |= scores(words, {name: partial(np.asarray, vectors)}, data, config.seed)
            times.append(Took(name, *took))
            progress.step(name)
    rows = [
        Row(
            setting, name, k, one.task, one.metric, one.value, one.low, one.high, one.covered,
            one.total,
        )
        for setting, own in found.items()
        for name, (k, by_task) in own.items()
        for one in by_task.values()
    ]  # fmt: skip
    return rows, differences(config, found), times


def settings(config: Config) -> dict[str, Any]:
    """What gensim is told."""
    return {
        "sg": 1,
        "negative": 5,
        "vector_size": config.width,
        "window": config.sources.window,
        "epochs": config.epochs,
        "workers": 2,
        "min_count": 5,
        "seed": config.seed,
    }


def embeddings(pair: _equalised.Pair, width: int) -> _scoring.Embeddings:
    """All of one signal at one exponent."""
    paper, equalised = pair
    assert equalised.ideal is not None
    wide = len(equalised.ideal.values)
    # Cosines of one dimension are all 1 or -1: generated text may have no more.
    few, own = (max(source.k, 2) for source in pair)

    def cut(k: int) -> Source:
        return equalised._replace(k=k)

    def weighted() -> Any:
        source = cut(wide)
        weights = _embeddings.weights("estimated ideal", [source])
        return jaxmeta.concatenate((source.embedding,), weights)

    return {
        "raw, k of the paper": lambda: paper._replace(k=few).embedding,
        BEST: lambda: cut(own).embedding,
        f"raw, {width}": lambda: cut(width).embedding,
        "raw, k of the ideal": lambda: cut(wide).embedding,
        "raw, weights": weighted,
        "denoised": lambda: equalised.denoised,
        "denoised, k equalised": lambda: equalised.denoised[:, :own],
        f"denoised, {width}": lambda: equalised.denoised[:, :width],
    }


def scores(
    words: tuple[str, ...], made: _scoring.Embeddings, data: Mapping[str, Any], seed: int
) -> Found:
    """Spearman's correlations, one embedding at a time in memory."""
    found: Found = {}
    for name, make in made.items():
        matrix = np.asarray(make())
        own = (s for task in data for s in TASKS[task][1]((words, matrix), data[task], None, seed))
        spearman = {s.task: s for s in own if s.metric == "spearman" and s.task in data}
        found[name] = matrix.shape[1], spearman
    return found


def pairs(config: Config, names: Sequence[str], trained: Sequence[str]) -> list[tuple[str, str]]:
    """What is compared with what: all with one raw source, and then those of as many dimensions."""
    width = config.width
    same = [
        ("denoised", "raw, k of the ideal"),
        ("denoised", "raw, k of the paper"),
        (f"denoised, {width}", f"raw, {width}"),
        ("raw, weights", "raw, k of the ideal"),
    ]
    others = [(f"denoised, {width}", name) for name in trained]
    return [*((name, BEST) for name in (*names, *trained) if name != BEST), *same, *others]


def differences(config: Config, found: Mapping[str, Found]) -> list[Difference]:
    """In all groups of tasks."""
    trained = found[GENSIM]
    made = []
    for setting, own in found.items():
        if setting == GENSIM:
            continue
        every = own | trained
        for one, other in pairs(config, list(own), list(trained)):
            for group, tasks in GROUPS.items():
                first, second = ([every[name][1][task] for task in tasks] for name in (one, other))
                apart = _scoring.mean_difference(
                    first, second, seed=config.seed, draws=config.draws
                )
                made.append(Difference(setting, one, other, group, *apart))
    return made


def table(rows: Sequence[dict], _: Any, times: Sequence[dict]) -> str:
    """Scores times 100, a line for each embedding."""
    every = [task for tasks in GROUPS.values() for task in tasks]
    value = {(r["setting"], r["embedding"], r["task"]): 100 * r["value"] for r in rows}
    lines = []
    for setting, name, k in _record.unique(rows, "setting", "embedding", "dimensions"):
        of_task = {task: value[setting, name, task] for task in every}
        means = (np.mean([of_task[task] for task in tasks]) for tasks in GROUPS.values())
        of_group = dict(zip(GROUPS, means, strict=True))
        cells = {x: of_group[x] for x in list(GROUPS)[:2]} | of_task
        lines.append((setting, name, f"{k:.0f}", *(f"{x:.2f}" for x in cells.values())))
    heads = (_scoring.heading(rows, (task, "spearman")) for task in every)
    took = [(t["what"], f"{t['seconds']:.0f}", f"{t['processor']:.0f}") for t in times]
    means = (f"mean of {name}" for name in list(GROUPS)[:2])
    return "\n\n".join(
        (
            _record.markdown(("", "", "k", *means, *heads), lines),
            _record.markdown(("from text to vectors", "seconds", "of processors"), took),
        )
    )


def compared(_: Any, found: Sequence[dict], __: Any) -> str:
    """Differences in points with intervals, bold where these are on one side of 0."""
    settings = _record.unique(found, "setting")
    at = {(d["setting"], d["embedding"], d["other"], d["group"]): d for d in found}
    lines = []
    for group, one, other in _record.unique(found, "group", "embedding", "other"):
        cells = []
        for setting in settings:
            d = at[setting, one, other, group]
            middle, low, high = (100 * d[x] for x in ("difference", "low", "high"))
            mark = "**" if low > 0 or high < 0 else ""
            cells.append(f"{mark}{middle:+.2f}{mark} ({low:+.2f} to {high:+.2f})")
        lines.append((group, f"{one} - {other}", *cells))
    lines.sort(key=lambda line: list(GROUPS).index(line[0]))
    return _record.markdown(("points", "", *settings), lines)


def plot(rows: Sequence[dict], found: Sequence[dict], _: Any, path: Path) -> None:
    """Differences to the raw source at its own k, a panel for each setting and group."""
    settings = _record.unique(found, "setting")
    own = [d for d in found if d["other"] == BEST]
    names = list(reversed(_record.unique(own, "embedding")))
    groups = list(GROUPS)[:2]
    ends = _forest.limits(100 * d[x] for d in own for x in ("difference", "low", "high"))
    size = 2 + 2.9 * len(settings), 6.6
    shared: dict[str, Any] = {"sharey": True, "sharex": "row"}
    with _record.drawing(path, len(groups), len(settings), size=size, **shared) as (figure, grid):
        for (group, setting), axes in zip(
            itertools.product(groups, settings), grid.flat, strict=True
        ):
            here = [d for d in own if (d["setting"], d["group"]) == (setting, group)]
            for d in here:
                place = names.index(d["embedding"])
                one = _forest.points(d["difference"], d["low"], d["high"])
                _forest.draw(axes, place, one, ends)
            axes.axvline(0, color="black", lw=0.8)
            axes.set_yticks(range(len(names)), names, fontsize=9)
            if group == groups[0]:
                k = next(
                    r["dimensions"]
                    for r in rows
                    if (r["setting"], r["embedding"]) == (setting, BEST)
                )
                axes.set_title(f"{setting}: raw has k = {k:.0f}", fontsize=10)
        for axes, group in zip(grid[:, 0], groups, strict=True):
            axes.set_ylabel(group, fontsize=11)
        figure.suptitle(headline(found), fontsize=12)
        figure.supxlabel(f"points above “{BEST}”, mean over sets, 95 % interval", fontsize=10)


def headline(found: Sequence[dict]) -> str:
    """What the figure shows: denoised and raw directions, as many of both."""
    said = []
    for group in list(GROUPS)[:2]:
        own = [
            d
            for d in found
            if d["group"] == group
            and (d["embedding"], d["other"]) == ("denoised", "raw, k of the ideal")
        ]
        gains = [100 * d["difference"] for d in own]
        said.append(f"{min(gains):+.1f} to {max(gains):+.1f} points in {group}")
    return f"Denoised over raw directions, as many of both: {', '.join(said)}"


FIGURES = {"differences": plot}


def report(config: Config, out: Path) -> list[Row]:
    """Run, write and print."""
    started = time.time()
    rows, found, times = run(config, out.parent / "cache")
    texts: dict[str, Callable[..., str]] = {"table": table, "differences": compared}
    _record.publish(
        out,
        config,
        {"rows": rows, "differences": found, "times": times},
        started=started,
        texts=texts,
        figures=FIGURES,
    )
    return rows


def main() -> None:
    """Do as the command line says."""
    parser = _record.parser(__doc__)
    parser.add_argument("--words", type=int, help="of the vocabulary, if not 10,000")
    parser.add_argument("--trained", nargs="*", choices=TRAINED, help="if not all of them")
    asked = parser.parse_args()
    config, name = SMOKE if asked.smoke else FULL, "downstream"
    if asked.words is not None:
        sources = dataclasses.replace(config.sources, size=asked.words)
        config, name = dataclasses.replace(config, sources=sources), f"{name}_{asked.words}"
    if asked.trained is not None:
        config = dataclasses.replace(config, trained=tuple(asked.trained))
    report(config, _record.folder(asked, name))


if __name__ == "__main__":
    main()
