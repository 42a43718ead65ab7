r"""Encoders of sentences, combined by a plan that is fitted to some and applied to others.

    python -m experiments.sentences            GoogleNews, GloVe and MiniLM on STS-B and SICK
    python -m experiments.sentences --smoke    generated vectors and sentences, in seconds

An encoder takes a sentence to the mean of its words' vectors in one file. Plans are fitted to the
sentences in the part "train" of a data set that are in no other part, without scores of people, and
applied to all of it, and to all of the other data set; scores are those of the parts "test". In
STS-B and SICK cosines are scored, in SICK-R a regression on features of pairs, which is fitted to
"train". Single encoders, as they are and by the default, stand beside concatenation as it is and
with rows of length 1, where there is nothing to fit, and the default with all dimensions and with
the fewest that change its PIP matrix by 5 % at most.
"""

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments import _forest, _record, pretrained
from jaxmeta.adapters import Encoders
from jaxmeta.evaluate import (
    Comparison,
    Score,
    SentencePairs,
    centroids,
    load,
    paired_bootstrap,
    relatedness,
    sts,
)
from jaxmeta.methods import Settings

METHODS = {
    "concatenation": ("UW", None),
    "unit rows": ("UW-unit", None),
    "default": ("default", None),
    "default, k by .05": ("default", Settings(k=0.05)),
}
"""A name to that of the method, and what it is told."""

FITTED = "default", "default, k by .05"
"""Those that depend on the sentences that they are fitted to."""

TASKS: dict[str, tuple[str, Callable[..., tuple[Score, ...]]]] = {
    "STS-B": ("STS-B", sts),
    "SICK": ("SICK", sts),
    "SICK-R": ("SICK", relatedness),
}
"""Name of a task to that of its data and what scores vectors in it."""

SHOWN = {"STS-B": "spearman", "SICK": "spearman", "SICK-R": "pearson"}
"""What is customary, of both metrics."""


@dataclass(frozen=True)
class Config:
    """Whose sentences are encoded."""

    files: pretrained.Config
    pairs: int | None = None
    """Of generated sentences; None means that data sets are read."""
    batch: int = 2048
    """Sentences at a time."""
    seed: int = 0
    draws: int = 2000
    """Of the bootstrap."""


FULL = Config(pretrained.Config())
SMOKE = Config(
    files=dataclasses.replace(pretrained.SMOKE, files=("wide", "long")),
    pairs=240,
    batch=100,
    draws=100,
)


@dataclass(frozen=True)
class Row:
    """One way of encoding in one task."""

    files: str
    method: str
    fitted: str
    """The data set whose part "train" the plan is of; "" if nothing is fitted."""
    sentences: int
    """That it is fitted to."""
    dimensions: int
    task: str
    metric: str
    value: float
    low: float
    high: float
    """The score, with its 95 % interval."""
    difference: float
    difference_low: float
    difference_high: float
    p: float
    """To the best of its encoders as they are: 95 % interval and p of a paired bootstrap."""
    alike: float
    alike_low: float
    alike_high: float
    alike_p: float
    """The same to the best of them by the default of the same sentences: what combining adds to
    it. NaN for what is not the default of several."""


def static(vectors: Any) -> Callable[[list[str]], np.ndarray]:
    """An encoder by the mean of the vectors of words."""
    return lambda texts: centroids(vectors, [text.split() for text in texts])[0]


def whole(data: SentencePairs) -> SentencePairs:
    """The pairs with sentences as their only tokens, so that tasks look up vectors of sentences."""
    first, second = (tuple((" ".join(s),) for s in side) for side in (data.first, data.second))
    return data._replace(first=first, second=second)


def sentences(data: SentencePairs) -> dict[str, list[str]]:
    """Sentences of pairs that are whole, each once: all, and those that are in "train" alone."""
    found: dict[str, set[str]] = {}
    for sides in zip(data.first, data.second, data.parts, strict=True):
        for (sentence,) in sides[:2]:
            found.setdefault(sentence, set()).add(sides[2])
    return {"all": list(found), "train": [one for one in found if found[one] == {"train"}]}


def generated(name: str, words: tuple[str, ...], config: Config) -> SentencePairs:
    """Pairs of sentences of eight words, and as a score how many the two share."""
    count = config.pairs or 0
    rng = np.random.default_rng((config.seed, list(TASKS).index(name)))
    tokens = np.array(words)[rng.integers(len(words), size=(2, count, 8))]
    shared = rng.integers(9, size=count)
    second = np.where(np.arange(8) < shared[:, None], tokens[0], tokens[1])
    parts = np.array(("train", "train", "dev", "test"))[np.arange(count) % 4]
    first, second = (
        [tuple(map(str, sentence)) for sentence in side] for side in (tokens[0], second)
    )
    scores, labels = 5 * shared / 8, np.zeros(count, int)
    return SentencePairs(name, tuple(first), tuple(second), scores, tuple(map(str, parts)), labels)


Found = dict[tuple[str, str], Score]
"""Scores by task and metric."""


def run(config: Config) -> list[Row]:
    """Single encoders, also by the default, and all combinations of them by all methods."""
    files, _ = pretrained.read(config.files)
    encoders = {name: static(files[name]) for name in config.files.files}
    words = next(iter(files.values())).words
    data = {
        name: whole(load(name) if config.pairs is None else generated(name, words, config))
        for name in dict.fromkeys(name for name, _ in TASKS.values())
    }
    texts = {name: sentences(own) for name, own in data.items()}
    ways = [
        (group, method, fitted)
        for size in (1, 2, 3)
        for group in itertools.combinations(encoders, size)
        for method in (METHODS if size > 1 else ("default",))
        for fitted in (data if method in FITTED else ("",))
    ]
    progress = _record.Progress(len(encoders) + len(ways))

    def scores(encode: Callable[[list[str]], np.ndarray]) -> tuple[int, Found]:
        made = {name: (tuple(own["all"]), encode(own["all"])) for name, own in texts.items()}
        found = {
            (task, one.metric): one
            for task, (name, score) in TASKS.items()
            for one in score(made[name], data[name])
        }
        return next(iter(made.values()))[1].shape[1], found

    single: dict[str, Found] = {}
    alone: dict[tuple[str, str], Found] = {}
    rows = []
    for name, encode in encoders.items():
        dimensions, single[name] = scores(encode)
        rows += compared(config, (name, name, "", 0, dimensions), single[name], [single[name]], [])
        progress.step(name)
    for group, method, fitted in ways:
        called, settings = METHODS[method]
        to = texts[fitted or next(iter(data))]["train"]
        several = [encoders[name] for name in group]
        both = Encoders.fit(called, several, to, settings, batch_size=config.batch)
        dimensions, found = scores(partial(both.encode, batch_size=config.batch))
        about = " + ".join(group), method, fitted, len(to) if fitted else 0, dimensions
        others = [single[name] for name in group]
        if len(group) == 1:
            alone[group[0], fitted] = found
        alike = [alone[name, fitted] for name in group] if fitted and len(group) > 1 else []
        rows += compared(config, about, found, others, alike)
        progress.step(f"{about[0]}: {method} {fitted}")
    return rows


def compared(
    config: Config,
    about: tuple[str, str, str, int, int],
    found: Found,
    others: Sequence[Found],
    alike: Sequence[Found],
) -> list[Row]:
    """Scores beside those of the best of the others, task by task."""

    def to_best(of: Sequence[Found]) -> Comparison:
        if not of:
            return Comparison(*[float("nan")] * 4)
        best = max((other[task, metric] for other in of), key=lambda score: score.value)
        return paired_bootstrap(one, best, seed=config.seed, draws=config.draws)

    rows = []
    for (task, metric), one in found.items():
        score = one.value, one.low, one.high
        rows.append(Row(*about, task, metric, *score, *to_best(others), *to_best(alike)))
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Scores times 100 as Markdown: of a plan of the data's own sentences / of the other data's.

    Those with a sign differ from the best single encoder as it is, those with an arrow from the
    best by the default of the same sentences: p < .05, without a correction.
    """
    lines = []
    for files, method in _record.unique(rows, "files", "method"):
        own = [row for row in rows if (row["files"], row["method"]) == (files, method)]
        widths = sorted({f"{row['dimensions']:.0f}" for row in own})
        lines.append((files, method, " or ".join(widths), *map(" / ".join, _cells(own))))
    heads = (f"{task}, {metric.title()}" for task, metric in SHOWN.items())
    return _record.markdown(("", "", "dimensions", *heads), lines)


def _cells(rows: list[dict[str, Any]]) -> Iterator[list[str]]:
    """One way of encoding in each task: the plan of the same data first."""
    for task, metric in SHOWN.items():
        found = [row for row in rows if (row["task"], row["metric"]) == (task, metric)]
        found.sort(key=lambda row: row["fitted"] != TASKS[task][0])
        yield [
            f"{100 * row['value']:.2f}"
            + ("+" if row["difference"] > 0 else "-") * (row["p"] < 0.05)
            + ("↑" if row["alike"] > 0 else "↓") * (row["alike_p"] < 0.05)
            for row in found
        ]


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Differences to the best single encoder, with intervals; plans are of the same data."""
    panels = {
        f"{task}, {metric.title()}": {
            f"{row['files']}: {row['method']}": _forest.points(
                row["difference"], row["difference_low"], row["difference_high"]
            )
            for row in rows
            if (row["task"], row["metric"]) == (task, metric)
            and row["fitted"] in ("", TASKS[task][0])
            and row["files"] != row["method"]
        }
        for task, metric in SHOWN.items()
    }
    reference = "the best encoder"
    _forest.forest(
        path,
        panels,
        ends=_forest.limits_of(panels),
        title=f"Encoders of sentences: {_forest.verdict(panels, reference, 'tasks')}",
        reference=reference,
    )


FIGURES = {"differences": plot}


def report(config: Config, out: Path) -> list[Row]:
    """Run, write rows, provenance, table and figure."""
    started = time.time()
    rows = run(config)
    _record.publish(
        out,
        config,
        {"rows": rows},
        started=started,
        texts={"table": table},
        figures=FIGURES,
        dtype="float32",
    )
    return rows


if __name__ == "__main__":
    _record.main(__doc__, report, FULL, SMOKE)
