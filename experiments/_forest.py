"""Differences with their intervals, panel by panel, on one scale, with a legend."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.lines import Line2D

from experiments import _record

ABOVE, BELOW, UNSURE = _record.BLUE, _record.VERMILION, _record.GREY


class Difference(NamedTuple):
    """A difference in points, with its 95 % interval."""

    middle: float
    low: float
    high: float

    @property
    def colour(self) -> str:
        """Says on which side of 0 the whole interval is, if it is on one."""
        return ABOVE if self.low > 0 else BELOW if self.high < 0 else UNSURE


def points(middle: float, low: float, high: float) -> Difference:
    """The same times 100."""
    return Difference(100 * middle, 100 * low, 100 * high)


def limits(values: Iterable[float]) -> tuple[float, float]:
    """Ends of an axis that has 0 and all values but those far out.

    Those are more than three times the range of the middle half away from it.
    """
    found = np.array(list(values))
    lower, upper = np.percentile(found, (25, 75))
    far = 3 * (upper - lower)
    inside = found[(found >= lower - far) & (found <= upper + far)]
    low, high = min(0.0, *inside), max(0.0, *inside)
    room = 0.12 * (high - low) or 1.0
    return low - room, high + room


def limits_of(panels: Mapping[str, Mapping[str, Difference]]) -> tuple[float, float]:
    """The same of all differences and the ends of their intervals."""
    return limits(x for own in panels.values() for one in own.values() for x in one)


def legend(*, beyond: bool, reference: str) -> list[Line2D]:
    """What colours mean, and what an arrow at the edge, if there is one."""
    marks = [
        (ABOVE, "o", f"surely above {reference}"),
        (BELOW, "o", f"surely below {reference}"),
        (UNSURE, "o", "not sure: the 95 % interval has 0"),
    ]
    if beyond:
        marks.append(("black", ">", "lies beyond the axis, where the number says"))
    return [
        Line2D([], [], color=colour, marker=marker, lw=0 if marker == ">" else 2, ms=5, label=label)
        for colour, marker, label in marks
    ]


def verdict(panels: Mapping[str, Mapping[str, Difference]], reference: str, what: str) -> str:
    """Which row is surely above most often, in how many panels, and in how many below."""
    sure = {
        name: [sum(own[name].colour == side for own in panels.values()) for side in (ABOVE, BELOW)]
        for name in next(iter(panels.values()))
    }
    name = max(sure, key=lambda name: (sure[name][0], -sure[name][1]))
    above, below = sure[name]
    if above == 0:
        return f"nothing is surely above {reference}"
    return (
        f"“{name}” is surely above {reference} in {above} of {len(panels)} {what}, below in {below}"
    )


def forest(
    path: Path,
    panels: Mapping[str, Mapping[str, Difference]],
    *,
    ends: tuple[float, float],
    title: str,
    reference: str,
) -> None:
    """Draw a panel of rows under each heading, all with the same rows between the same ends."""
    rows = list(next(iter(panels.values())))
    down = 1 if len(panels) <= 5 else 2
    across = math.ceil(len(panels) / down)
    size = 12.5, 1.0 + (0.6 + 0.165 * len(rows)) * down
    every = [one for own in panels.values() for one in own.values()]
    beyond = any(not ends[0] <= one.middle <= ends[1] for one in every)
    with _record.drawing(path, down, across, size=size, dpi=110, sharex=True, sharey=True) as (
        figure,
        grid,
    ):
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        for place, (axes, (heading, own)) in enumerate(
            zip(grid.flat, panels.items(), strict=False)
        ):
            for y, one in enumerate(own.values()):
                if y % 2:
                    axes.axhspan(y - 0.5, y + 0.5, color="black", alpha=0.04, lw=0)
                draw(axes, y, one, ends)
            axes.axvline(0, color="black", lw=0.8)
            axes.set_title(heading, fontsize=10)
            axes.tick_params(axis="both", labelsize=9, length=2)
            axes.tick_params(labelbottom=place + across >= len(panels))
        axes = grid[0, 0]
        axes.set_yticks(range(len(rows)), rows)
        axes.set(xlim=ends, ylim=(len(rows) - 0.5, -0.5))
        figure.suptitle(title, fontsize=12)
        handles = legend(beyond=beyond, reference=reference)
        _record.below(figure, f"points above {reference}", handles)


def draw(
    axes: Any, y: float, one: Difference, ends: tuple[float, float], *, interval: bool = True
) -> None:
    """Draw a difference, or an arrow with its number where it lies beyond the ends."""
    left, right = ends
    if left <= one.middle <= right:
        if interval:
            axes.plot([one.low, one.high], [y, y], color=one.colour, lw=2)
        axes.plot(one.middle, y, "o", color=one.colour, ms=4.5)
        return
    low = one.middle < left
    edge, inward = (left, 1) if low else (right, -1)
    axes.plot(edge, y, "<" if low else ">", color=one.colour, ms=5, clip_on=False)
    text = f"{one.middle:.0f}".replace("-", "\N{MINUS SIGN}")
    axes.annotate(
        text, (edge, y), (5 * inward, 0), textcoords="offset points",
        ha="left" if low else "right", va="center", fontsize=8, color=one.colour,
    )  # fmt: skip
