"""Figures of the demo, panel by panel, from its tables."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import NullFormatter, NullLocator

from experiments import _record
from experiments._demo_text import ORACLE, PLANS, TOGETHER, planned, refitted
from experiments._page import Panel

Rows = Sequence[dict[str, Any]]

PRINTED, TRUE, OURS = _record.VERMILION, _record.GREEN, _record.BLUE
DOTS = {"mew": 1.6, "ms": 8, "ls": ""}
RULES = {
    "paper": ("the paper's rule", PRINTED, "v"),
    "equalised": ("the rule “equalised”", OURS, "o"),
}
SIGMAS = {
    "halves": ("from two halves, as the paper", PRINTED, "v"),
    "nested": ("from nested parts", OURS, "o"),
}


def column(rows: Rows, name: str) -> np.ndarray:
    """One column of a table."""
    return np.array([row[name] for row in rows])


def where(rows: Rows, **wanted: Any) -> list[dict[str, Any]]:
    """The rows that have all of this."""
    return [row for row in rows if all(row[name] == x for name, x in wanted.items())]


def _above(axes: Any, title: str, columns: int) -> None:
    """A legend that is in nobody's way."""
    axes.legend(
        frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, title=title or None,
        alignment="left", fontsize=11, borderaxespad=0.2, columnspacing=1.2,
    )  # fmt: skip


def counterexample(examples: Rows) -> Panel:
    """Bounds and loss against the size of the sources."""

    def draw(axes: Any, ink: str) -> None:
        k = column(examples, "k")
        axes.plot(k, column(examples, "corrected"), "s--", color=OURS, label="corrected bound")
        axes.plot(k, column(examples, "loss"), "o-", color=ink, label="true PIP loss")
        axes.plot(k, column(examples, "printed"), "^:", color=PRINTED, label="printed bound")
        axes.set(xlabel="dimensions k of each source", ylabel="PIP loss and its bounds", ylim=0)
        axes.legend(frameon=False)

    last = examples[-1]
    return Panel(
        draw,
        f"Lines against k: at k = {last['k']:.0f} the true loss is {last['loss']:.2f}, the printed "
        f"bound {last['printed']:.2f} and the corrected bound {last['corrected']:.2f}.",
    )


def tightness(bounds: Rows) -> Panel:
    """Shares of instances whose bound is at most so many times the loss."""

    def draw(axes: Any, ink: str) -> None:
        share = np.arange(1, len(bounds) + 1) / len(bounds)
        axes.axvspan(0.2, 1, color=PRINTED, alpha=0.15, lw=0)
        axes.text(0.22, 0.93, "not a bound", color=ink)
        for name, colour, line in (("printed", PRINTED, ":"), ("corrected", OURS, "--")):
            ratios = np.sort(column(bounds, name))
            axes.plot(ratios, share, color=colour, ls=line, lw=2.4, label=name)
        axes.set(xscale="log", xlim=(0.2, 6), ylim=(0, 1), xlabel="bound / true PIP loss")
        ticks = [0.2, 0.5, 1, 2, 5]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_ylabel("share of instances")
        axes.legend(frameon=False, loc="lower right")

    low = {name: column(bounds, name).min() for name in ("printed", "corrected")}
    return Panel(
        draw,
        f"Shares of {len(bounds)} instances against bound over loss: the smallest is "
        f"{low['printed']:.2f} for the printed bound and {low['corrected']:.2f} for the corrected.",
    )


def spectrum(values: Rows, source: str) -> Panel:
    """Values as observed, of the ideal, and as estimated."""
    own = where(values, source=source)

    def draw(axes: Any, ink: str) -> None:
        i = column(own, "i")
        axes.plot(i, column(own, "observed"), color=_record.ORANGE, lw=2.6, label="observed")
        axes.plot(i, column(own, "ideal"), color=ink, lw=2, label="ideal")
        dots = DOTS | {"ms": 6, "mfc": "none", "color": OURS}
        axes.plot(i, column(own, "estimated"), marker="o", **dots, label="estimated")
        axes.axhline(own[0]["edge"], color=_record.GREY, ls="--", label="edge of the noise")
        axes.set(xscale="log", ylim=0, xlabel="direction", ylabel="value")
        axes.xaxis.set_major_formatter("{x:g}")
        _above(axes, f"{source} corpus", 2)

    first = own[0]
    return Panel(
        draw,
        f"Values of the {source} corpus, descending: the first is {first['observed']:.1f} as "
        f"observed, {first['ideal']:.1f} in the ideal and {first['estimated']:.1f} as estimated; "
        f"the edge of the noise is at {first['edge']:.1f}.",
        (5.2, 4.2),
    )


def sigmas(noises: Rows) -> Panel:
    """Estimated over true noise."""
    return _beside(
        noises,
        {name: (column(noises, name) / column(noises, "noise"), *x) for name, x in SIGMAS.items()},
        "estimated / true noise",
        "Estimated over true noise",
    )


def costs(noises: Rows) -> Panel:
    """The loss at the k of each rule, over the smallest."""
    best = column(noises, "best_loss")
    found = {name: (column(noises, f"{name}_loss") / best, *x) for name, x in RULES.items()}
    return _beside(noises, found, "loss at k / smallest loss", "Loss over the smallest")


def _beside(noises: Rows, found: dict[str, Any], label: str, alt: str) -> Panel:
    """Ratios, a dot for each draw, source by source."""
    names = _record.unique(noises, "source")

    def draw(axes: Any, ink: str) -> None:
        axes.axhline(1, color=ink, lw=1)
        places = np.array([names.index(row["source"]) for row in noises])
        for shift, (ratios, text, colour, marker) in zip(
            (-0.12, 0.12), found.values(), strict=True
        ):
            style = DOTS | {"color": colour, "mfc": "none", "marker": marker}
            axes.plot(places + shift, ratios, **style, label=text)
        axes.set_xticks(range(len(names)), [f"{name} corpus" for name in names])
        axes.set(xlim=(-0.5, len(names) - 0.5), ylabel=label)
        axes.margins(y=0.12)
        _above(axes, "", 1)

    ranges = (f"{x[1]}: {x[0].min():.2f} to {x[0].max():.2f}" for x in found.values())
    return Panel(draw, f"{alt}, a dot for each source and draw. {'; '.join(ranges)}.")


def curve(losses: Rows, noises: Rows, source: str) -> Panel:
    """PIP loss against k, with the k of both rules."""
    (at,) = where(noises, source=source, draw=0)
    most = 4 * max(at["best"], *(at[name] for name in RULES))
    own = [row for row in where(losses, source=source) if row["k"] <= most]

    def draw(axes: Any, ink: str) -> None:
        k, loss = column(own, "k"), column(own, "loss")
        axes.plot(k, loss, color=ink, lw=2)
        best = {"marker": "*", "ms": 17, "mfc": "none", "color": TRUE, "mew": 1.6, "ls": ""}
        axes.plot(at["best"], at["best_loss"], **best, label=f"best k = {at['best']:.0f}")
        for name, (text, colour, marker) in RULES.items():
            style = DOTS | {"color": colour, "mfc": "none", "marker": marker, "zorder": 4}
            place = at[name], at[f"{name}_loss"]
            axes.plot(*place, **style, label=f"{text}: {at[name]:.0f}")
        axes.set(xlim=0, xlabel="dimensions k", ylabel="PIP loss / norm of the ideal")
        _above(axes, f"{source} corpus", 1)

    return Panel(
        draw,
        f"PIP loss of the {source} corpus against k: smallest at {at['best']:.0f} "
        f"({at['best_loss']:.3f}); the paper's rule takes {at['paper']:.0f} "
        f"({at['paper_loss']:.3f}), “equalised” {at['equalised']:.0f} "
        f"({at['equalised_loss']:.3f}).",
        (5.2, 4.2),
    )


def uses(rows: Rows, labels: dict[str, str]) -> Panel:
    """Losses over that of the best weights, as they are and at the best scale."""
    names = [name for name in labels if name != ORACLE]

    def draw(axes: Any, ink: str) -> None:
        axes.axvline(1, color=ink, lw=1)
        for name, text, colour, marker in (
            ("ratio", "as it is", OURS, "o"),
            ("scaled_ratio", "at its best scale", _record.ORANGE, "D"),
        ):
            shown = [row for row in rows if row["name"] in names]
            places = [names.index(row["name"]) for row in shown]
            style = DOTS | {"color": colour, "mfc": "none", "marker": marker}
            axes.plot(column(shown, name), places, **style, label=text)
        axes.set_yticks(range(len(names)), [labels[name] for name in names])
        axes.set(xscale="log", xlabel="PIP loss / that of the best weights")
        ticks = [x for x in (1, 1.5, 2, 3, 5, 8, 12) if x <= 1.3 * column(rows, "ratio").max()]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_minor_locator(NullLocator())
        axes.grid(axis="y", color=_record.GREY, alpha=0.35)
        axes.invert_yaxis()
        _above(axes, "", 2)

    means = (
        f"{labels[name]} {column(where(rows, name=name), 'ratio').mean():.2f}" for name in names
    )
    alt = f"Loss over that of the best weights, mean over draws: {', '.join(means)}."
    return Panel(draw, alt, (6.4, 4.6))


def applied(rows: Rows) -> Panel:
    """How near to the ideal rows of new words are."""
    names = _record.unique(rows, "name")
    colours = {TOGETHER: _record.ORANGE}
    colours |= {planned(method): OURS for method in PLANS}
    colours |= {refitted(method): _record.SKY for method in PLANS}

    def draw(axes: Any, _: str) -> None:
        for place, name in enumerate(names):
            found = column(where(rows, name=name), "alike")
            style = DOTS | {"color": colours.get(name, _record.GREY), "mfc": "none"}
            axes.plot(found, np.full(len(found), place), marker="o", **style)
            axes.plot(found.mean(), place, marker="|", ms=22, mew=2.5, color=style["color"])
        axes.set_yticks(range(len(names)), names)
        axes.set(xlabel="likeness to the ideal on new words (unbiased CKA)")
        axes.grid(axis="y", color=_record.GREY, alpha=0.35)
        axes.margins(y=0.12)
        axes.invert_yaxis()

    means = (f"{name} {column(where(rows, name=name), 'alike').mean():.3f}" for name in names)
    return Panel(draw, f"Unbiased CKA with the ideal, means: {', '.join(means)}.", (6.4, 4.2))
