"""Tables and the figure of `unseen_pairs`, made of its rows as they are read from CSV."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import spearmanr

from experiments import _record
from experiments._unseen_methods import METHODS, separating

SPELLED = 0.2
"""Mean product of pairs that are spelled alike by chance, above which a file sees spelling.

Seen after the fact: it is .02 to .16 for files of whole words, .2 to .85 for those of parts.
"""
GAPS = ((3.0, "more than 3"), (2.0, "2 to 3"), (1.0, "1 to 2"), (0.0, "less than 1"))

HALVES = {
    "develop": "development half",
    "test": "test half",
    "both": "files of both halves",
    "degenerate": "noise, shuffled, copy",
}
"""Where files are from, and what the figure says of it."""
DRAWN = {
    "unit rows": (_record.GREY, "s"),
    "default": (_record.VERMILION, "o"),
    "word forms less chance": (_record.BLUE, "^"),
}
"""Methods of the figure: colours and markers."""


# Tables. Rows are dictionaries, as read from CSV.

Rows = list[dict[str, Any]]


def table(rows: Rows, _: Rows) -> str:
    """The best single file of each group, and how far methods are above it, with intervals."""
    heads = ("", "half", "words", "best file", *METHODS, "default over unit rows")
    lines = []
    for files in _record.unique(rows, "files"):
        own = {row["method"]: row for row in rows if row["files"] == files}
        default = own["default"]
        best = default["mean"] - default["over_best"]
        cells = [_shown(own[m], "over_best", "low", "high") for m in METHODS]
        over = _shown(default, "over_unit_rows", "unit_low", "unit_high")
        lines.append(
            (files, default["half"], f"{default['words']:.0f}", f"{100 * best:.2f}", *cells, over)
        )
    return _record.markdown(heads, lines)


def _shown(row: Mapping[str, Any], *names: str) -> str:
    """A difference in points, bold if its interval is above 0 and italic if it is below."""
    middle, low, high = (100 * row[name] for name in names)
    mark = "**" if low > 0 else "*" if high < 0 else ""
    return f"{mark}{middle:+.2f}{mark}"


def summary(rows: Rows, _: Rows) -> str:
    """How often methods are at or above the best file, by halves, and by how much."""
    heads = [
        "", "half", "groups", "mean", "least", "at or above", "surely below",
        "mean over default", "above default",
    ]  # fmt: skip
    lines = []
    for half in _record.unique(rows, "half"):
        own = [row for row in rows if row["half"] == half]
        base = {row["files"]: row["over_best"] for row in own if row["method"] == "default"}
        for method in METHODS:
            of = [row for row in own if row["method"] == method]
            over = np.array([100 * row["over_best"] for row in of])
            gain = np.array([100 * (row["over_best"] - base[row["files"]]) for row in of])
            low, high = _over_files([row["files"] for row in of], gain)
            lines.append(
                (
                    method, half, str(len(of)), f"{over.mean():+.2f}", f"{over.min():+.2f}",
                    str(int((over >= 0).sum())), str(sum(row["high"] < 0 for row in of)),
                    f"{gain.mean():+.2f}{_range(low, high)}", str(int((gain > 0).sum())),
                )
            )  # fmt: skip
    return _record.markdown(heads, lines)


def _range(low: float, high: float, form: str = "+.2f") -> str:
    """An interval in brackets; nothing, if files are too few to draw from."""
    return "" if np.isnan(low) else f" ({low:{form}} to {high:{form}})"


def spelling(rows: Rows, signs: Rows) -> str:
    """The same for pairs with a file that sees how words are spelled, and for those without."""
    sees = {sign["files"] for sign in signs if sign["chance"] > SPELLED}
    heads = ("", "half", "a file sees spelling", "pairs", "mean over best", "at or above")
    lines = []
    for half, seen in itertools.product(("develop", "test", "both"), (False, True)):
        for method in ("unit rows", "default", "word forms less chance"):
            of = [
                100 * row["over_best"]
                for row in rows
                if (row["half"], row["method"]) == (half, method)
                and row["files"].count(" + ") == 1
                and (row["files"] in sees) == seen
            ]
            if of:
                above = sum(over >= 0 for over in of)
                cells = (str(len(of)), f"{np.mean(of):+.2f}", str(above))
                lines.append((method, half, "yes" if seen else "no", *cells))
    return _record.markdown(heads, lines)


def apart(rows: Rows, signs: Rows) -> str:
    """The default by how far apart word forms less chance of two files are: what `diagnose` says.

    A file sees spelling here if chance is more than .4 of word forms, as it is there.
    """
    default = {row["files"]: row for row in rows if row["method"] == "default"}
    cells: dict[tuple[str, str], list[tuple[float, bool, bool, bool]]] = {}
    for pair in _pairs(rows, signs):
        own = [sign for sign in signs if sign["files"] == pair.files]
        sees = any(sign["chance"] > 0.4 * sign["forms"] for sign in own)
        gap = pair.better["word forms less chance"]
        size = next(name for least, name in GAPS if abs(gap) >= least)
        below = pair.best < 0, default[pair.files]["high"] < 0
        cell = cells.setdefault((size, "yes" if sees else "no"), [])
        cell.append((100 * pair.best, *below, gap * pair.scores > 0))
    heads = (
        "files apart by", "a file sees spelling", "pairs", "mean over best", "below best",
        "surely below", "the file that separates better is better",
    )  # fmt: skip
    lines = []
    for key in itertools.product([name for _, name in reversed(GAPS)], ("no", "yes")):
        if key in cells:
            over, *counts = zip(*cells[key], strict=True)
            shown = map(str, (len(over), f"{np.mean(over):+.2f}", *map(sum, counts)))
            lines.append((*key, *shown))
    return _record.markdown(heads, lines)


def _over_files(
    groups: Sequence[str],
    values: np.ndarray,
    statistic: Callable[[np.ndarray, np.ndarray], float] | None = None,
    draws: int = 1000,
) -> tuple[float, float]:
    """A 95 % interval of a mean, or of a statistic of places and weights, with files drawn anew.

    Pairs share files, so it is files that are drawn; a group counts as often as all of its files.
    """
    split = [group.split(" + ") for group in groups]
    files = sorted(set(itertools.chain(*split)))
    members = [[files.index(file) for file in group] for group in split]
    rng = np.random.default_rng(0)
    found = []
    for _ in range(draws):
        count = np.bincount(rng.integers(len(files), size=len(files)), minlength=len(files))
        weight = np.array([np.prod(count[group]) for group in members])
        if weight.sum() < 3:
            continue
        places = np.repeat(np.arange(len(values)), weight)
        one = values[places].mean() if statistic is None else statistic(places, weight)
        found.append(one)
    if not np.isfinite(found).any():
        return float("nan"), float("nan")
    low, high = np.nanquantile(found, [0.025, 0.975])
    return float(low), float(high)


def prediction(rows: Rows, signs: Rows) -> str:
    """What label-free signs say of pairs: which file is better, and what the default is above.

    For the better file: how often the sign of a difference is right. For differences: Spearman's
    correlation with the sign, over pairs, with an interval over files. Word forms less chance were
    chosen on the half "develop" alone; the signs for differences after all pairs had been scored.
    """
    pairs = _pairs(rows, signs)
    lines = []
    for half in ("develop", "test", "both"):
        own = [pair for pair in pairs if pair.half == half]
        for name in pairs[0].better if pairs else ():
            right = np.array([one.better[name] * one.scores > 0 for one in own])
            if len(own) >= 3:
                low, high = _over_files([one.files for one in own], 1.0 * right)
                shown = f"{right.mean():.2f}{_range(low, high, '.2f')}"
                lines.append(("which file is better", half, str(len(own)), name, shown))
        for target, value in (("default - unit rows", "unit"), ("default - best file", "best")):
            y = np.array([getattr(one, value) for one in own])
            for name in pairs[0].signs if pairs else ():
                x = np.array([one.signs[name] for one in own])
                if len(own) < 3 or not np.isfinite(x).all():
                    continue

                def over(places: np.ndarray, _: np.ndarray, x: Any = x, y: Any = y) -> float:
                    return _correlation(x[places], y[places])

                low, high = _over_files([one.files for one in own], y, over)
                shown = f"{_correlation(x, y):+.2f}{_range(low, high)}"
                lines.append((target, half, str(len(own)), name, shown))
    return _record.markdown(("what", "half", "pairs", "sign", "right, or correlation"), lines)


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(spearmanr(x, y).statistic)


class _Pair(NamedTuple):
    files: str
    half: str
    scores: float
    """Of the first file less that of the second."""
    unit: float
    best: float
    better: dict[str, float]
    """Differences of signs of the two; above 0 if the first is said to be better."""
    signs: dict[str, float]
    """What is said of the default: more is better for it."""


def _pairs(rows: Rows, signs: Rows) -> list[_Pair]:
    default = {row["files"]: row for row in rows if row["method"] == "default"}
    found = []
    for files in _record.unique(signs, "files"):
        own = [sign for sign in signs if sign["files"] == files]
        if len(own) != 2 or own[0]["half"] == "degenerate":
            continue
        first, second = own
        rank = float(np.log(first["effective_rank"] / second["effective_rank"]))
        apart = first["separation"] - second["separation"]
        better = {
            "effective rank": rank,
            "shorter mean vector": second["mean_vector"] - first["mean_vector"],
            "word forms": float(
                np.log(max(first["forms"], 1e-3) / max(second["forms"], 1e-3)) + rank / 2
            ),
            "word forms less chance": apart,
        }
        told = {
            "agreement": first["agreement"],
            "effective ranks alike": -abs(rank),
            "longest mean vector": max(first["mean_vector"], second["mean_vector"]),
            "separations alike": -abs(apart),
            "the higher effective rank separates better": float(np.sign(apart)) * rank,
        } | _predicted(first, second)
        one = default[files]
        difference = first["score"] - second["score"]
        over = one["over_unit_rows"], one["over_best"]
        found.append(_Pair(files, one["half"], difference, *over, better, told))
    return found


def _predicted(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, float]:
    """What the model says of the default's weights, with differences by word forms less chance."""
    difference = np.array([max(one["forms"] - one["chance"], 1e-3) for one in (first, second)])
    ranks = np.array([one["effective_rank"] for one in (first, second)])
    spread = ranks**-0.5
    inner = np.array([[1.0, first["agreement"]], [first["agreement"], 1.0]])
    covariance = inner * np.outer(spread, spread)

    def separation(q: np.ndarray) -> float:
        return float(difference @ q / np.sqrt(q @ covariance @ q))

    most = separation(separating(covariance, difference))
    return {
        "efficiency of the default's weights": separation(ranks) / most,
        "the default's separation over the better file's": separation(ranks)
        / float((difference / spread).max()),
    }


def plot(rows: Rows, _signs: Rows, path: Path) -> None:
    """Above the best file: unit rows, the default and weights by word forms.

    Combinations stand side by side, in the order of the default; names are in the table.
    """
    every = {x: [r for r in rows if r["half"] == x] for x in HALVES}
    every = {half: own for half, own in every.items() if own}
    counts = {half: len(_record.unique(own, "files")) for half, own in every.items()}
    widths = {"width_ratios": [max(count, 26) for count in counts.values()]}
    shown = {100 * r["over_best"] for r in rows if r["method"] in DRAWN}
    low, high = min(shown) - 2, max(shown) + 2
    with _record.drawing(
        path, 1, len(every), size=(13, 6.2), dpi=110, sharey=True, gridspec_kw=widths
    ) as (figure, (panels,)):
        for axes, (half, own) in zip(panels, every.items(), strict=True):
            found = {(r["method"], r["files"]): 100 * r["over_best"] for r in own}
            files = sorted(_record.unique(own, "files"), key=lambda x: found["default", x])
            places = range(len(files))
            columns = {method: [found[method, x] for x in files] for method in DRAWN}
            ends = (list(map(end, zip(*columns.values(), strict=True))) for end in (min, max))
            axes.vlines(places, *ends, color=_record.GREY, lw=0.7, alpha=0.6)
            for method, (colour, marker) in DRAWN.items():
                axes.plot(places, columns[method], marker, color=colour, ms=4.5, label=method)
            axes.axhline(0, color="black", lw=0.8)
            above = sum(x >= 0 for x in columns["default"])
            title = f"{HALVES[half]}:\ndefault not below in {above} of {len(files)}"
            axes.set_title(title, fontsize=10)
            axes.set(xticks=[], ylim=(low, high), xlim=(-1, len(files)))
        panels[0].set_ylabel("points above the best single file")
        fair = {r["files"]: r["over_best"] >= 0 for r in rows
                if r["method"] == "default" and r["half"] != "degenerate"}  # fmt: skip
        figure.suptitle(
            f"The default is at or above the best file for {sum(fair.values())} of {len(fair)} "
            "combinations of files that have something to give",
            fontsize=12,
        )
        handles, _ = panels[0].get_legend_handles_labels()
        _record.below(figure, "combinations of files, in the order of the default", handles)
