"""Tables and figures of equalised sources. Rows are dictionaries, as read from CSV."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments import _record

EQUALISED = "equalised"
LAWS = "as it is", EQUALISED

Rows = Sequence[dict[str, Any]]


def summary(noises: Rows, ks: Rows, weighings: Rows, _: Rows, __: Rows) -> str:
    """The noise, then k and weights of each signal."""
    parts = [
        _record.markdown(
            ("signal", "sigma, halves", "nested ± error", "growth", "scales of words",
             "distance to the law", "equalised", "directions of the ideal"),
            [
                (r["signal"], f"{r['halves']:.4f}", f"{r['nested']:.4f} ± {r['error']:.4f}",
                 f"{r['growth']:.2f}", f"{r['least']:.2f} to {r['most']:.2f}", f"{r['law']:.3f}",
                 f"{r['law_equalised']:.3f}", f"{r['ideal']:.0f}")
                for r in noises
            ],
        )
    ]  # fmt: skip
    for signal in _record.unique(noises, "signal"):
        (best,) = (r for r in noises if r["signal"] == signal)
        halves = f"k of halves (best {best['first']:.0f}, {best['second']:.0f})"
        heads = (f"{signal}: rule", "sigma from", "k", "its own loss", "by the estimated ideal",
                 halves, "cross-validated, over the best")  # fmt: skip
        lines = [
            (r["rule"], r["sigma"], f"{r['k']:.0f}", number(r["own"], 1),
             number(r["predicted"], 1), f"{r['first']:.0f}, {r['second']:.0f}",
             number(r["crossed"], 3))
            for r in ks if r["signal"] == signal
        ]  # fmt: skip
        parts.append(_record.markdown(heads, lines))
        of_weights = (f"{signal}: weights", "sigma from", "range", "by the estimated ideal",
                      "of halves: cross-validated, over the best k's")  # fmt: skip
        ranges = [
            (r["weighting"], r["sigma"], f"{number(r['least'], 3)} to {number(r['most'], 3)}",
             number(r["predicted"], 1), number(r["crossed"], 3))
            for r in weighings if r["signal"] == signal
        ]  # fmt: skip
        parts.append(_record.markdown(of_weights, ranges))
    return "\n\n".join(parts)


def number(value: float, digits: int) -> str:
    """Nothing, where there is none."""
    return "∞" if value == np.inf else "" if np.isnan(value) else f"{value:.{digits}f}"


NEAR = 32
"""Neighbours whose mean is drawn, as `semicircle_distance` takes it."""


def plot_bulk(noises: Rows, _: Rows, __: Rows, ___: Rows, bulk: Rows, path: Path) -> None:
    """Share of the eigenvalues of noise below a point, as they are and equalised, and the law's."""
    x = np.linspace(-1, 1, 400)
    law = 0.5 + (x * np.sqrt(1 - x**2) + np.arcsin(x)) / np.pi
    colours = dict(zip(LAWS, (_record.BLUE, _record.VERMILION), strict=True))
    size = 4.4 * len(noises), 4.6
    with _record.drawing(path, 1, len(noises), size=size, sharey=True) as (figure, (panels,)):
        for axes, r in zip(panels, noises, strict=True):
            for which, distance in zip(LAWS, (r["law"], r["law_equalised"]), strict=True):
                own = [b for b in bulk if (b["signal"], b["noise"]) == (r["signal"], which)]
                points, counts = (np.array([b[field] for b in own]) for field in ("point", "count"))
                order = np.argsort(points)
                share = (np.cumsum(counts[order]) - counts[order] / 2) / counts.sum()
                # Points of a density stand in groups, whose means lie on the curve.
                near = np.full(min(NEAR, len(points)), 1 / min(NEAR, len(points)))
                smooth = (np.convolve(values, near, "valid") for values in (points[order], share))
                label = f"{which}: {distance:.3f} from the law"
                axes.plot(*smooth, color=colours[which], lw=2, label=label)
            style = {"color": "black", "lw": 1.2, "ls": "--", "label": "semicircle"}
            axes.plot([-2, *x, 2], [0, *law, 1], **style)
            axes.set(xlim=(-1.6, 1.6), title=str(r["signal"]))
            axes.set_xlabel(r"eigenvalue over $2\sigma\sqrt{n}$")
            axes.legend(frameon=False, fontsize=10, loc="upper left")
        panels[0].set(ylabel="share of eigenvalues below", ylim=(-0.02, 1.4), yticks=[0, 0.5, 1])
        figure.suptitle(_bulk_title(noises), fontsize=13)


def _bulk_title(noises: Rows) -> str:
    before, after = ([r[field] for r in noises] for field in ("law", "law_equalised"))
    return (
        f"Noise of halves is {min(before):.2f} to {max(before):.2f} away from the semicircle as it "
        f"is, and {min(after):.3f} to {max(after):.3f} with rows equalised"
    )


SHOWN = {"paper": "v", "spiked": "^", "rie": "s", "ideal": "D", EQUALISED: "o"}
COLOURS = {"halves": _record.GREY, "nested": _record.BLUE}


def plot_crossed(noises: Rows, ks: Rows, _: Rows, points: Rows, __: Rows, path: Path) -> None:
    """Cross-validated loss of a half against k, with k by the rules."""
    size = 4.6 * len(noises), 5.4
    with _record.drawing(path, 1, len(noises), size=size) as (figure, (panels,)):
        for axes, about in zip(panels, noises, strict=True):
            signal, best = about["signal"], about["best"]
            own = [p for p in points if p["signal"] == signal]
            k, crossed, predicted = (
                np.array([p[field] for p in own]) for field in ("k", "crossed", "predicted")
            )
            axes.plot(k, crossed / best, color="black", lw=2, label="cross-validated")
            style = {"color": _record.VERMILION, "lw": 1.5, "ls": "--"}
            axes.plot(k, predicted / best, **style, label="predicted by the estimated ideal")
            for r in (r for r in ks if r["signal"] == signal and r["rule"] in SHOWN):
                middle, loss = (r["first"] + r["second"]) / 2, r["crossed"]
                inside = np.isfinite(loss)
                what = r["rule"] if r["rule"] == EQUALISED else f"{r['rule']}, {r['sigma']}"
                where = f"{middle:.0f}; {loss:.3f}" if inside else f"{middle:,.0f}: not shown"
                colour = _record.VERMILION if r["rule"] == EQUALISED else COLOURS[r["sigma"]]
                place = ([middle], [loss]) if inside else ([], [])
                mark = {"color": colour, "ms": 9, "ls": "", "mec": "white", "zorder": 4}
                axes.plot(*place, SHOWN[r["rule"]], label=f"{what}: k = {where}", **mark)
            axes.set_xscale("log")
            both = np.concatenate([crossed, predicted]) / best
            low, high = np.nanmin(both), np.nanmax(both)
            axes.set_ylim(low - 0.05 * (high - low), high + 0.9 * (high - low))
            bests = f"{about['first']:.0f} and {about['second']:.0f}"
            axes.set_title(f"{signal}: best k of halves {bests}", fontsize=11)
            axes.set_xlabel("dimensions k")
            axes.legend(frameon=False, fontsize=8.5, loc="upper center")
        panels[0].set_ylabel("loss of halves, over that at their best k")
        figure.suptitle(_crossed_title(ks), fontsize=13)


def _crossed_title(ks: Rows) -> str:
    worst = {}
    for way in ((EQUALISED, "nested"), ("paper", "halves")):
        losses = [r["crossed"] for r in ks if (r["rule"], r["sigma"]) == way]
        inside = [x for x in losses if np.isfinite(x)]
        known = len(inside) == len(losses)
        worst[way[0]] = f"{100 * (max(inside) - 1):.1f} %" if known else "more than is drawn"
    return (
        f"Of halves, k by the rule “equalised” costs at most {worst[EQUALISED]} over the "
        f"best k, by the paper's recipe {worst['paper']}"
    )


FIGURES = {"bulk": plot_bulk, "cross_validated": plot_crossed}
