"""What `experiments.known_ideal` found, in tables and a figure."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator

from experiments import _record

ESTIMATES = ("observed", "usvt", "debiased")
BEST = "best k"
ORACLE = "best weights"
DENOISED = "equalised, denoised"
WEIGHTED = "ideal, weighted"
INFORMED = "ideal, true sigma"

# Label, colour, style: estimates in colour, the truth in black, its parts lighter.
NOISE = {
    "noise": ("true", "black", "-"),
    "random": ("its random part", _record.SKY, "-"),
    "systematic": ("its systematic part", _record.ORANGE, ".-"),
    "sigma": ("estimated, halves", _record.BLUE, "o"),
    "nested": ("estimated, nested parts", _record.VERMILION, "v"),
}
SPECTRUM = {
    "usvt": ("USVT", _record.VERMILION, "v-"),
    "observed": ("as observed", "black", "o-"),
    "debiased": ("debiased", _record.BLUE, "D-"),
}
LOSSES = {
    BEST: ("at the best k", "black", "*-"),
    "paper": ("paper", _record.VERMILION, "v-"),
    "spiked": ("spiked", _record.GREEN, "^-"),
    "ideal": ("ideal strengths", _record.SKY, "D-"),
    WEIGHTED: ("ideal strengths, weighted", _record.PURPLE, "s-"),
    INFORMED: (r"ideal strengths, true $\sigma$", _record.ORANGE, "--"),
    "equalised": ("equalised noise", _record.BLUE, "o-"),
    DENOISED: ("estimated ideal", _record.BLUE, "s--"),
    ORACLE: ("the best weights", "black", ":"),
}
PANELS = {
    "noise of an entry": NOISE,
    "relative error of the leading values": SPECTRUM,
    "relative PIP loss": LOSSES,
}
FORMATS = {
    "tokens": "", "unseen": ".1%", "sigma": ".4f", "nested": ".4f", "error": ".4f",
    "growth": ".2f", "noise": ".4f", "random": ".4f", "systematic": ".4f", "ratio": ".2f",
    "nested_ratio": ".2f", "edge": ".2f", "rank": ".1f", "ideal_rank": ".1f",
    "observed": ".3f", "usvt": ".3f", "debiased": ".3f",
}  # fmt: skip
"""Of the fields of a row."""


def exponent(tokens: Sequence[float], values: Sequence[float]) -> float:
    """The slope of log values against log tokens, by least squares."""
    return float(np.polyfit(np.log(tokens), np.log(values), 1)[0])


def print_tables(rows: Sequence[Any], losses: Sequence[Any]) -> None:
    """Signal by signal."""
    for signal in dict.fromkeys(row.signal for row in rows):
        own = [row for row in rows if row.signal == signal]
        print(f"\n{signal}: noise, and relative error of the leading values")
        cells = [[format(getattr(r, name), form) for name, form in FORMATS.items()] for r in own]
        _record.show(tuple(FORMATS), cells)
        at = {(x.tokens, x.rule): x for x in losses if x.signal == signal}
        rules = list(dict.fromkeys(rule for _, rule in at))
        found = [[at[r.tokens, rule] for rule in rules] for r in own]
        print(f"{signal}: relative PIP loss, at k dimensions")
        _record.show(
            ("tokens", *rules),
            [(f"{x[0].tokens}", *(f"{y.loss:.3f} at {y.k:.1f}" for y in x)) for x in found],
        )


def print_exponents(rows: Sequence[Any], losses: Sequence[Any]) -> None:
    """How fast each number falls: tokens to which power, over all sizes and the larger half."""
    print("\nFitted exponents: falls as tokens^x, over all sizes (over the larger half of them)")
    curves: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for name in ("sigma", "nested", "noise", *ESTIMATES):
            curves[name][row.signal].append(getattr(row, name))
    for x in losses:
        curves[f"loss, {x.rule}"][x.signal].append(x.loss)
    tokens = sorted({row.tokens for row in rows})
    half = len(tokens) // 2 + 1
    lines = []
    for name, by_signal in curves.items():
        cells = (
            f"{exponent(tokens, y):.2f} ({exponent(tokens[-half:], y[-half:]):.2f})"
            for y in by_signal.values()
        )
        lines.append((name, *cells))
    _record.show(("", *curves["sigma"]), lines)


def plot(settings: str, rows: Sequence[dict], losses: Sequence[dict], path: Path) -> None:
    """A column for each signal; noise, spectrum and loss below one another."""
    signals = _record.unique(rows, "signal")
    with _record.drawing(path, 3, len(signals), size=(13.5, 11), dpi=110, sharex=True) as (
        figure,
        grid,
    ):
        for same in grid[:2]:  # losses are relative to norms that are not alike
            for axes in same[1:]:
                axes.sharey(same[0])
        for column, signal in zip(grid.T, signals, strict=True):
            own = [row for row in rows if row["signal"] == signal]
            tokens = np.array([row["tokens"] for row in own])
            for axes, shown in zip(column, PANELS.values(), strict=True):
                for name, (label, colour, style) in shown.items():
                    y = np.array(
                        [x["loss"] for x in losses if (x["signal"], x["rule"]) == (signal, name)]
                        if shown is LOSSES
                        else [row[name] for row in own]
                    )
                    y = np.where(y > 0, y, np.nan)  # what is not told from 0 has no logarithm
                    size = 10 if style in ("*-", "o", "v") else 6
                    # A ring shows the line that it should lie on.
                    ring = {"mfc": "none", "mew": 1.8} if style in ("o", "v") else {}
                    axes.plot(tokens, y, style, color=colour, ms=size, lw=1.8, label=label, **ring)
                slope = axes.lines[0].get_ydata()[-1] * (tokens / tokens[-1]) ** -0.5
                axes.plot(tokens, slope, "--", color=_record.GREY, label=r"$\sim$ tokens$^{-1/2}$")
                axes.set(xscale="log", yscale="log")
                axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axes.yaxis.set_major_formatter("{x:g}")
                axes.yaxis.set_minor_formatter("")
                axes.tick_params(labelleft=True)
            column[0].set_title(signal)
            column[-1].set_xlabel("tokens (millions)")
            column[-1].set_xticks(tokens[::2], [f"{x / 1e6:g}" for x in tokens[::2]])
            column[-1].set_xticks([], minor=True)
        for line, title in zip(grid, PANELS, strict=True):
            line[0].set_ylabel(title)
            line[-1].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
        figure.suptitle(f"What is estimated approaches the ideal, {settings}")
