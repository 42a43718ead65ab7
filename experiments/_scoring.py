"""Embeddings in tasks, side by side: scores, comparisons, Markdown tables and figures.

A *setting* is a set of sources with one vocabulary, so all its embeddings are scored on the same
items, whatever the task. Every row says how far an embedding is from unweighted concatenation, by
a bootstrap of the items. `Best` says of each task which embedding comes first, and whether it is
ahead of the second: by the paper's test (Fisher's z at p < .01, or Clopper and Pearson's interval
at 95 %), and by the bootstrap.
"""

import itertools
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jaxmeta
from experiments import _forest, _generated, _made_of, _record
from jaxmeta.evaluate import (
    TASKS,
    MissingData,
    Score,
    fisher_test,
    load,
    outside_interval,
    paired_bootstrap,
)

Embeddings = Mapping[str, Callable[[], Any]]
"""Name to a function that makes the matrix: one at a time is in memory."""

REFERENCE = "UW"
PARTS = ("Google: semantic", "Google: syntactic")
"""Of all parts of data sets, those that rows are kept of."""


@dataclass(frozen=True)
class Row:
    """One embedding in one task."""

    setting: str
    seed: int
    """Of the split that gives the noise, and of folds and training in tasks."""
    method: str
    dimensions: int
    task: str
    metric: str
    value: float
    low: float
    high: float
    """The score, with its 95 % interval."""
    covered: int
    total: int
    """Items that could be scored, of how many."""
    difference: float
    difference_low: float
    difference_high: float
    p: float
    """To unweighted concatenation on the same items: 95 % interval and p of a paired bootstrap."""


@dataclass(frozen=True)
class Best:
    """The first and the second in one task."""

    setting: str
    seed: int
    task: str
    metric: str
    best: str
    second: str
    difference: float
    p: float
    """Of a paired bootstrap."""
    paper_test: bool
    """Whether the paper's test calls the difference significant."""


def tasks(names: Sequence[str], model: jaxmeta.text.LatentModel | None) -> dict[str, Any]:
    """The data of each task, or the end of the program; of a model, where text is generated."""
    if model is not None:
        return {name: _generated.task(name, model) for name in names}
    try:
        return {name: load(TASKS[name][0]) for name in names}
    except MissingData as error:
        sys.exit(str(error))


def score(
    embeddings: Embeddings,
    words: tuple[str, ...],
    data: Mapping[str, Any],
    *,
    setting: str,
    seed: int,
    draws: int = 2000,
) -> tuple[list[Row], list[Best]]:
    """All embeddings in all tasks, and who is first."""
    progress = _record.Progress(len(embeddings) * len(data))
    found: dict[str, dict[tuple[str, str], Score]] = {}
    dimensions = {}
    for method, make in embeddings.items():
        matrix = np.asarray(make())
        if not np.isfinite(matrix).all():
            raise ValueError(f"{setting}, {method}: got NaN or infinity; expected numbers.")
        dimensions[method], found[method] = matrix.shape[1], {}
        for task, own in data.items():
            for one in TASKS[task][1]((words, matrix), own, None, seed):
                if one.task in TASKS or one.task in PARTS:
                    found[method][one.task, one.metric] = one
            progress.step(f"{setting}, seed {seed}: {method}, {task}")
    rows = [
        _row(setting, seed, method, dimensions[method], one, found[REFERENCE][at], draws)
        for method, own in found.items()
        for at, one in own.items()
    ]
    best = [
        _best(setting, seed, {method: own[at] for method, own in found.items()}, draws)
        for at in found[REFERENCE]
    ]
    return rows, best


def _row(
    setting: str, seed: int, method: str, k: int, one: Score, reference: Score, draws: int
) -> Row:
    against = paired_bootstrap(one, reference, seed=seed, draws=draws)
    return Row(
        setting, seed, method, k, one.task, one.metric, one.value, one.low, one.high,
        one.covered, one.total, against.difference, against.low, against.high, against.p,
    )  # fmt: skip


def _best(setting: str, seed: int, scores: Mapping[str, Score], draws: int) -> Best:
    first, second, *_ = sorted(scores, key=lambda method: -scores[method].value)
    best, other = scores[first], scores[second]
    against = paired_bootstrap(best, other, seed=seed, draws=draws)
    if best.metric == "accuracy":
        paper = outside_interval(best, other)
    else:
        paper = fisher_test(best, other) < 0.01
    return Best(
        setting, seed, best.task, best.metric, first, second, against.difference, against.p, paper
    )


def mean_difference(
    scores: Sequence[Score], others: Sequence[Score], *, seed: int, draws: int
) -> tuple[float, float, float]:
    """Difference of the means of two embeddings over data sets, with a 95 % bootstrap interval."""
    compared = [
        paired_bootstrap(one, other, seed=seed, draws=draws)
        for one, other in zip(scores, others, strict=True)
    ]
    difference = float(np.mean([c.difference for c in compared]))
    # Sets are independent, so variances of their differences add up.
    spread = np.sqrt(np.sum([((c.high - c.low) / 2) ** 2 for c in compared])) / len(compared)
    return difference, difference - float(spread), difference + float(spread)


def joined(found: Iterable[tuple[list[Row], list[Best]]]) -> tuple[list[Row], list[Best]]:
    """Those of several settings or seeds together."""
    rows, best = zip(*found, strict=True)
    return list(itertools.chain(*rows)), list(itertools.chain(*best))


# Tables. Rows are dictionaries, as read from CSV.

Cell = tuple[str, str]
"""A task and a metric."""


def means(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str, str], float]:
    """Means over seeds: setting, method, task and metric to the value."""
    values: dict[tuple[str, str, str, str], list[float]] = {}
    for row in rows:
        at = (str(row["setting"]), str(row["method"]), str(row["task"]), str(row["metric"]))
        values.setdefault(at, []).append(float(row["value"]))
    return {at: float(np.mean(own)) for at, own in values.items()}


def markdown(
    rows: Sequence[Mapping[str, Any]],
    best: Sequence[Mapping[str, Any]],
    cells: Sequence[Cell],
    *,
    setting: str,
) -> str:
    """Scores times 100, a line for each method, a column for each cell; means over seeds.

    The highest of a column is bold, with a star if in all seeds the paper's test has it ahead of
    the second, and a dagger if the bootstrap has, at p < .01.
    """
    own = [row for row in rows if row["setting"] == setting]
    mean = means(own)
    sizes: dict[str, list[float]] = {}
    for row in own:
        sizes.setdefault(str(row["method"]), []).append(float(row["dimensions"]))
    first = {cell: max(sizes, key=lambda method: mean[setting, method, *cell]) for cell in cells}
    lines = []
    for method, ks in sizes.items():
        texts = [f"{100 * mean[setting, method, *cell]:.2f}" for cell in cells]
        marked = (
            f"**{text}**{_mark(best, setting, cell)}" if method == first[cell] else text
            for text, cell in zip(texts, cells, strict=True)
        )
        k = f"{min(ks):.0f}" if min(ks) == max(ks) else f"{min(ks):.0f} to {max(ks):.0f}"
        lines.append((method, k, *marked))
    return _record.markdown(("", "k", *(heading(own, cell) for cell in cells)), lines)


def heading(rows: Sequence[Mapping[str, Any]], cell: Cell) -> str:
    """Task, metric if it is not the usual one, and how many items are covered."""
    one = next(row for row in rows if (row["task"], row["metric"]) == cell)
    metric = " Pearson" if cell[1] == "pearson" else ""
    covered = f"{one['covered']:.0f} of {one['total']:.0f}"
    return f"{cell[0]}{metric} ({covered})"


def _mark(best: Sequence[Mapping[str, Any]], setting: str, cell: Cell) -> str:
    own = [b for b in best if b["setting"] == setting and (b["task"], b["metric"]) == cell]
    if len({b["best"] for b in own}) != 1:
        return ""
    star = all(str(b["paper_test"]) == "True" for b in own)
    dagger = all(float(b["p"]) < 0.01 for b in own)
    return (r"\*" if star else "") + ("†" if dagger else "")


def surely(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether the paper's test has the first of two rows of one task ahead: see `Best`."""
    if first["value"] <= second["value"]:
        return False
    scores = [
        Score(
            row["task"], row["metric"], row["value"], row["low"], row["high"],
            row["covered"], row["total"], np.empty(0),
        )
        for row in (first, second)
    ]  # fmt: skip
    if first["metric"] == "accuracy":
        return outside_interval(*scores)
    return fisher_test(*scores) < 0.01


RELEASED = {"SW": "SW as released", "DW": "DW as released"}


def compare(
    rows: Sequence[Mapping[str, Any]],
    printed: Mapping[tuple[str, str, str], float],
    cells: Mapping[str, Cell],
) -> str:
    """The paper's figures beside ours, row by row; of SW and DW as in its released code, too.

    `printed` has (setting, method, the paper's name of the task) to a figure, `cells` the paper's
    names of tasks to ours.
    """
    mean = means(rows)
    settings = len({setting for setting, _, _ in printed}) > 1
    heads = ("method", "task", "paper", "ours", "ours - paper", "ours, as released", "that - paper")
    lines = []
    for (setting, method, task), value in printed.items():
        figures = []
        for own in (method, RELEASED.get(method)):
            ours = None if own is None else 100 * mean[setting, own, *cells[task]]
            figures += ["", ""] if ours is None else [f"{ours:.2f}", f"{ours - value:+.2f}"]
        lines.append((*[setting] * settings, method, task, f"{value:.2f}", *figures))
    return _record.markdown((*["sources"] * settings, *heads), lines)


def report(
    config: Any,
    out: Path,
    found: tuple[Sequence[Row], Sequence[Best]],
    cells: Sequence[Cell],
    *,
    made: Sequence[_made_of.Made] = (),
    started: float,
    **texts: Callable[[Sequence[Mapping[str, Any]]], str],
) -> None:
    """Write rows, who is first, sources, provenance, tables and figures, and print the tables.

    `texts` are more tables, made of the rows.
    """
    rows, best = found
    settings = list(dict.fromkeys(row.setting for row in rows))
    several = len(settings) > 1

    def tables(rows: Any, best: Any) -> str:
        return "\n\n".join(
            (f"#### {name}\n\n" if several else "") + markdown(rows, best, cells, setting=name)
            for name in settings
        )

    known: dict[str, Callable[..., str]] = {}
    if made:
        _record.write_table(out / "sources.csv", made)
        known["sources"] = lambda *_: _made_of.table(_record.read_table(out / "sources.csv"))
    others = {name: lambda rows, _, make=make: make(rows) for name, make in texts.items()}
    _record.publish(
        out,
        config,
        {"rows": rows, "best": best},
        started=started,
        texts=known | {"table": tables} | others,
        figures=figures(settings, cells),
    )


def slug(text: str) -> str:
    """A part of a name of a file."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower())


def figures(settings: Sequence[str], cells: Sequence[Cell]) -> dict[str, Callable[..., None]]:
    """Differences in each setting, by the name of the figure."""
    several = len(settings) > 1
    return {
        f"differences_{slug(name)}" if several else "differences": partial(plot, cells, name)
        for name in settings
    }


def plot(
    cells: Sequence[Cell], setting: str, rows: Sequence[Mapping[str, Any]], _: Any, path: Path
) -> None:
    """Differences to unweighted concatenation with intervals, a panel for each cell.

    Over several seeds: the mean of the differences, and the widest interval. All settings have the
    same scale.
    """
    drawn = [r for r in rows if (r["task"], r["metric"]) in cells and r["method"] != REFERENCE]
    own = [row for row in drawn if row["setting"] == setting]
    panels = {
        heading(own, cell).replace(" (", "\n("): {
            method: _difference(
                [r for r in own if (r["method"], r["task"], r["metric"]) == (method, *cell)]
            )
            for method in _record.unique(own, "method")
        }
        for cell in cells
    }
    _forest.forest(
        path,
        panels,
        ends=_forest.limits(
            100 * row[f"difference{end}"] for row in drawn for end in ("", "_low", "_high")
        ),
        title=f"{setting}: {_forest.verdict(panels, REFERENCE, 'tasks')}",
        reference=REFERENCE,
    )


def _difference(seeds: Sequence[Mapping[str, Any]]) -> _forest.Difference:
    return _forest.points(
        float(np.mean([row["difference"] for row in seeds])),
        min(row["difference_low"] for row in seeds),
        max(row["difference_high"] for row in seeds),
    )
