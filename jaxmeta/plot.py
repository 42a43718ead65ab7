"""All drawing of the library is here. It needs matplotlib: `pip install "jaxmeta[plot]"`."""

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxmeta import _checks
from jaxmeta._files import write_whole
from jaxmeta.diagnosis import Diagnosis, SourceProfile, shown

__all__ = ["plot_curves", "plot_diagnosis"]


def plot_diagnosis(diagnosis: Diagnosis, path: str | Path, *, title: str | None = None) -> None:
    """Draw a diagnosis into one file, whose suffix says which kind: .png, .pdf or .svg.

    The `title` is its verdict unless another is given.
    """
    figures = _checks.package("matplotlib.figure", "plot")
    parts = (*diagnosis.sources, diagnosis.result)
    figure = figures.Figure(figsize=(15, 9), layout="constrained")
    grid = figure.add_gridspec(2, 3)
    _plot_shares(figure.add_subplot(grid[0, :2]), diagnosis.sources)
    _plot_spectra(figure.add_subplot(grid[0, 2]), parts)
    names = [part.name for part in parts]
    alike = "How alike they are: CKA (1 = the same)"
    apart = "How far apart: PIP distance at equal norms"
    _plot_table(figure.add_subplot(grid[1, 0]), names, diagnosis.cka, 1.0, alike)
    _plot_table(figure.add_subplot(grid[1, 1]), names, diagnosis.pip_distance, 2**0.5, apart)
    _plot_words(figure.add_subplot(grid[1, 2]), diagnosis.disagreements)
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    title = diagnosis.verdict if title is None else title
    figure.suptitle(textwrap.fill(title, 125), fontsize=13, parse_math=False)
    with write_whole(path) as part:
        figure.savefig(part, dpi=130)


def plot_curves(
    curves: Mapping[str, Float[np.ndarray, " _"]],
    chosen: Mapping[str, int],
    path: str | Path,
    *,
    title: str,
    ylabel: str,
    xscale: str = "linear",
) -> None:
    """Draw curves against k = 1, 2, ... into one file, and on the first of them what is chosen.

    `chosen` has a k for each name of a rule or tolerance.
    """
    figures = _checks.package("matplotlib.figure", "plot")
    figure = figures.Figure(figsize=(9, 5), layout="constrained")
    axes = figure.add_subplot()
    for (name, curve), colour in zip(curves.items(), itertools.cycle(_COLOURS)):
        axes.plot(1 + np.arange(len(curve)), curve, lw=2, label=name, color=colour)
    first = next(iter(curves.values()))
    marks: dict[int, list[str]] = {}
    for name, k in chosen.items():
        marks.setdefault(k, []).append(name)
    for (k, names), marker in zip(sorted(marks.items()), itertools.cycle("os^vDPX")):
        # Rules may choose what is beyond the curve, or nothing.
        place = first[k - 1] if 1 <= k <= len(first) else np.nan
        style = {"marker": marker, "color": "black", "ls": "none", "clip_on": False, "zorder": 3}
        axes.plot(k, place, label=f"{', '.join(names)}: k = {k:,}", **style)
    axes.set(xscale=xscale, xlabel="k, dimensions", ylabel=ylabel, ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, loc="left", parse_math=False)
    _legend(axes, "best")
    with write_whole(path) as part:
        figure.savefig(part, dpi=130)


# Okabe and Ito's palette: distinct to colour-blind readers too.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999")


def _plot_shares(axes: Any, sources: Sequence[SourceProfile]) -> None:
    width = 0.8 / len(sources)
    for j, part in enumerate(sources):
        at = np.arange(4) + (j - (len(sources) - 1) / 2) * width
        label = f"{part.name}: rows of length {part.row_norm:.3g} ± {part.row_spread:.2g}"
        shares, colour = np.array(part[-4:]), _COLOURS[j % len(_COLOURS)]
        bars = axes.bar(at, np.nan_to_num(shares), 0.94 * width, color=colour, label=label)
        axes.bar_label(bars, [shown(x, "%") for x in shares], padding=2)
    labels = ("dimensions", "squared norm", "cosine variance", "cosine variance\nat equal norms")
    axes.set_xticks(range(4), labels)
    axes.set(yticks=[], xlim=(-0.6, 3.6))
    axes.axhline(0, color="black", lw=0.8)
    axes.spines["left"].set_visible(False)
    axes.margins(y=0.25)
    axes.set_title("Share of each source in the result", loc="left")
    _legend(axes, "upper left")


def _plot_spectra(axes: Any, parts: Sequence[SourceProfile]) -> None:
    for j, part in enumerate(parts):
        last = j == len(parts) - 1
        style = {"color": "black", "ls": "--"} if last else {"color": _COLOURS[j % len(_COLOURS)]}
        # What is rounding alone would stretch the axis.
        kept = part.singular_values[part.singular_values > 1e-6 * part.singular_values[0]]
        axes.plot(1 + np.arange(len(kept)), kept, lw=2, label=part.name, **style)
    axes.set(xscale="log", yscale="log", xlabel="direction", ylabel="singular value")
    axes.set_title("Singular values, after weights", loc="left")
    _legend(axes, "lower left")


def _legend(axes: Any, place: str) -> None:
    for text in axes.legend(frameon=False, loc=place).get_texts():
        text.set_parse_math(False)  # names and words may have dollar signs


def _plot_table(axes: Any, names: Sequence[str], table: np.ndarray, top: float, title: str) -> None:
    axes.set_title(title, loc="left")
    axes.imshow(np.nan_to_num(table), cmap="cividis", vmin=0, vmax=top, aspect="auto")
    for i, j in itertools.product(range(len(names)), repeat=2):
        colour = "black" if table[i, j] > 0.55 * top else "white"
        axes.text(j, i, shown(table[i, j]), ha="center", va="center", color=colour, fontsize=13)
    wrapped = [textwrap.fill(name, 12) for name in names]  # so that they do not touch
    axes.set_xticks(range(len(names)), wrapped, parse_math=False)
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _plot_words(axes: Any, words: Sequence[tuple[str | int, float]]) -> None:
    bars = axes.barh(range(len(words)), [score for _, score in words], color="#999999")
    axes.bar_label(bars, fmt="%.2f", padding=2)
    labels = [textwrap.shorten(str(word), 24, placeholder="…") for word, _ in words]
    axes.set_yticks(range(len(words)), labels, parse_math=False)
    axes.set(xticks=[], xmargin=0.12)
    axes.spines["bottom"].set_visible(False)
    axes.invert_yaxis()
    axes.set_title("Words placed most differently", loc="left")
