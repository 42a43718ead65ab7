"""Tables and the figure of the noise of real counts. Rows are dictionaries, as read from CSV."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from experiments import _record

_EQUALISED = "noise equalised by its profile", _record.VERMILION, "D"
KNOWN = {
    "halves": (r"$\sigma$ from halves, as in the paper", _record.BLUE, "o"),
    "nested": (r"$\sigma$ from nested parts", _record.GREEN, "s"),
    "equalised": _EQUALISED,
    "estimated ideal": _EQUALISED,
    "": ("the truth", "black", "^"),
}
"""What the figure has for the end of a name: what is known of the noise, colour and marker."""


def mean(values: Sequence[float]) -> float:
    """Of those that are numbers."""
    known = [x for x in values if x == x]
    return float(np.mean(known)) if known else np.nan


def summary(noises: Sequence[dict], rows: Sequence[dict]) -> str:
    """Sigma, then ways by signal: mean over corpora and seeds, and the worst."""
    parts = [
        _record.markdown(
            ("corpus", "words", "signal", "seed", "sigma, halves", "nested ± error", "measured",
             "growth", "from the law", "equalised"),
            [
                (str(r["corpus"]), f"{r['words']:.0f}", str(r["signal"]), f"{r['seed']:.0f}",
                 f"{r['halves']:.4f}", f"{r['nested']:.4f} ± {r['error']:.4f}",
                 f"{r['other']:.4f}", f"{r['growth']:.2f}", f"{r['law']:.3f}",
                 f"{r['law_equalised']:.3f}")
                for r in noises
            ],
        )
    ]  # fmt: skip
    signals = _record.unique(rows, "signal")
    for kind in ("k", "weights"):
        lines = []
        for name in _record.unique([r for r in rows if r["kind"] == kind], "name"):
            cells = []
            for signal in signals:
                own = [
                    r for r in rows if (r["kind"], r["name"], r["signal"]) == (kind, name, signal)
                ]
                losses, crossed = ([r[x] for r in own] for x in ("loss", "crossed"))
                ks = [r["k"] for r in own]
                of_halves = f"{mean(crossed):.3f}; " if any(x == x for x in crossed) else ""
                cells.append(
                    f"{np.mean(losses):.3f}, {max(losses):.3f}; {of_halves}"
                    f"{min(ks):.0f} to {max(ks):.0f}"
                )
            lines.append((str(name), *cells))
        what = "loss over the best k's" if kind == "k" else "loss over the oracle's"
        halves = " of halves, crossed;" if any(r["crossed"] == r["crossed"] for r in rows) else ""
        heads = (f"{what}: mean, worst;{halves} dimensions", *map(str, signals))
        parts.append(_record.markdown(heads, lines))
    return "\n\n".join(parts)


def plot(noises: Sequence[dict], rows: Sequence[dict], path: Path) -> None:
    """Loss of each rule and of each weighting, a dot for each corpus and seed."""
    del noises
    signals = _record.unique(rows, "signal")
    shown = {
        "k": ("paper, halves", "rie, halves", "ideal, halves", "rie, nested", "ideal, nested",
              "equalised"),
        "weights": ("no weights, best k", "DW, halves", "spiked, halves", "RIE, halves",
                    "ideal strengths, halves", "RIE, nested", "ideal strengths, nested",
                    "estimated ideal", "equalised"),
    }  # fmt: skip
    what = {"k": "Number of dimensions:\nloss over that at the best k",
            "weights": "Weights: loss over that\nof the best weights"}  # fmt: skip
    losses = [r["loss"] for r in rows if r["name"] in shown[str(r["kind"])]]
    ends = 0.98 * min(losses), 1.03 * max(losses)
    ticks = [x for x in (1, 1.2, 1.5, 2, 3, 5) if x < ends[1]]
    heights = {"height_ratios": [len(names) for names in shown.values()]}
    shared: dict[str, Any] = {"sharex": True, "sharey": "row", "gridspec_kw": heights}
    size = 3.6 + 2.7 * len(signals), 7.4
    with _record.drawing(path, 2, len(signals), size=size, dpi=110, **shared) as (figure, grid):
        for panels, (kind, names) in zip(grid, shown.items(), strict=True):
            for panel, signal in zip(panels, signals, strict=True):
                for place, name in enumerate(names):
                    own = [
                        r["loss"] for r in rows
                        if (r["kind"], r["name"], r["signal"]) == (kind, name, signal)
                    ]  # fmt: skip
                    _, colour, marker = next(x for end, x in KNOWN.items() if name.endswith(end))
                    dots = np.linspace(-0.22, 0.22, len(own)) + place
                    panel.plot(own, dots, marker, color=colour, alpha=0.8, ms=5, mew=0)
                    if place % 2:
                        panel.axhspan(place - 0.5, place + 0.5, color="black", alpha=0.04, lw=0)
                panel.axvline(1, color="black", lw=0.8)
                panel.set(xscale="log", xlim=ends, ylim=(len(names) - 0.5, -0.5))
                panel.set_xticks(ticks, [f"{x:g}" for x in ticks])
                panel.minorticks_off()
                panel.set_yticks(range(len(names)), names)
            panels[0].set_ylabel(what[kind], fontsize=10)
        for panel, signal in zip(grid[0], signals, strict=True):
            panel.set_title(str(signal), fontsize=11)
        worst = {
            end: max(
                r["loss"] for r in rows
                if r["kind"] == "k" and r["name"] in shown["k"] and r["name"].endswith(end)
            )
            for end in ("paper, halves", "halves", "nested", "equalised")
        }  # fmt: skip
        figure.suptitle(
            "Loss at the chosen k over the best, at the worst: "
            f"{worst['paper, halves']:.2f} by the paper's rule;\nby the others "
            f"{worst['halves']:.2f} with noise from halves, {worst['nested']:.2f} from nested "
            f"parts, {worst['equalised']:.2f} equalised",
            fontsize=12,
        )
        figure.align_ylabels(grid[:, 0])
        handles = [
            Line2D([], [], color=colour, marker=marker, ls="", ms=6, label=label)
            for label, colour, marker in dict.fromkeys(KNOWN.values())
        ]
        _record.below(figure, "ratio of losses, a dot for each corpus and seed", handles)


FIGURES = {"real_noise": plot}
