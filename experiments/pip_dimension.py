r"""How many dimensions to keep: PIP loss against k, its true argmin and what rules make of it.

    python -m experiments.pip_dimension [--smoke] [--out DIR]

Rules see the noisy spectrum and the noise level: estimated strengths (RIE at $\alpha = ½$ and
`ideal_strengths`), the spiked closed form, and the paper's recipe, which takes the thresholded
spectrum for the ideal and adds noise again: in closed form (`paper_dimension`), by simulation
(`simulate_curve`) and as the released code reads it off, one dimension lower. Draws are those of
`experiments.weights_vs_oracle`, from the same folder.
"""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta
from experiments import _draws, _record
from experiments._draws import Draw, Spectrum, power
from jaxmeta.shrinkage import rie_strengths


@dataclass(frozen=True)
class Config(_draws.Config):
    """What is drawn."""

    simulations: int = 2
    """Draws of the paper's Monte Carlo, of which the paper takes one; at alpha = 1/2 alone."""
    depth: int = 4
    """Blocks of that simulation."""


SMOKE = Config(**vars(_draws.SMOKE))


@dataclass(frozen=True)
class Row:
    """One rule in one setting, over all seeds."""

    n: int
    spectrum: str
    signs: str
    sigma: float
    alpha: float
    rule: str
    true_k: float
    k: float
    """Means over seeds."""
    worst_k_off: int
    """The largest distance to the true argmin."""
    within: float
    """Share of seeds with k within 10 % or 2 dimensions of the true argmin."""
    mean_ratio: float
    worst_ratio: float
    """Of the loss at k to the smallest of all."""
    seeds: int


@dataclass(frozen=True)
class Point:
    """The curve of one spectrum at one k."""

    spectrum: str
    k: int
    loss: float
    """Of the first seed."""
    lowest: float
    highest: float
    """Of all seeds."""
    simulated: float
    """What the paper's recipe expects of the first seed; NaN beyond its rank."""
    marks: str
    """Rules that choose this k for the first seed, separated by semicolons."""


def run(config: Config, *, draws: Path) -> tuple[list[Row], list[Point]]:
    """Rows, and the curves at alpha = 1/2 of positive signals."""
    progress = _record.Progress(len(config.signed) * config.seeds)
    rows, points = [], []
    for spectrum in config.signed:
        found: dict[tuple[float, str], list[tuple[int, int, float]]] = defaultdict(list)
        curves, first = [], None
        for seed in config.all_seeds:
            draw = config.draw(draws, spectrum, seed)
            with jax.enable_x64(True):
                simulated, chosen = rules(draw, spectrum, config, seed)
            for i, alpha in enumerate(config.alphas):
                curve = true_curve(draw, alpha, i)
                best = 1 + int(np.argmin(curve))
                for rule, k in chosen[alpha].items():
                    at_k = curve[k - 1] / curve[best - 1]
                    found[alpha, rule].append((best, k, float(at_k)))
                if alpha == 0.5:
                    curves.append(curve)
                    first = first or (simulated, {"true argmin": best} | chosen[alpha])
            progress.step(f"exponent {spectrum.name} {spectrum.signs}")
        rows += [_row(config, spectrum, *what, values) for what, values in found.items()]
        if first is not None and not spectrum.indefinite:
            points += _points(spectrum, curves, *first)
    return rows, points


def true_curve(draw: Draw, alpha: float, row: int) -> np.ndarray:
    """PIP loss at k = 1, ..., n."""
    b = power(np.abs(draw.eigenvalues), 2 * alpha)
    total = np.sum(power(np.abs(draw.ideal), 4 * alpha))
    return np.sqrt(total + np.cumsum(b * (b - 2 * draw.strengths[row])))


def rules(
    draw: Draw, spectrum: Spectrum, config: Config, seed: int
) -> tuple[np.ndarray, dict[float, dict[str, int]]]:
    """The paper's simulated curve at alpha = 1/2, and the k that each rule chooses, by alpha."""
    n, sigma, positive = config.n, config.sigma, not spectrum.indefinite
    eigenvalues = jnp.asarray(draw.eigenvalues)
    values = jnp.abs(eigenvalues)
    estimated = config.estimated(draw, spectrum, sigma)
    usvt = jaxmeta.usvt(values, sigma=sigma, n=n)
    rank = max(1, int(jnp.sum(usvt > 0)))
    # Zeros among the thresholded values change nothing and leave few sizes to compile.
    size = min(n, rank + -rank % 32)
    simulated = np.zeros(0)
    chosen: dict[float, dict[str, int]] = {}
    for alpha, strengths in zip(config.alphas, estimated, strict=True):
        ks = {"ideal strengths": jaxmeta.best_dimension(values, strengths, alpha=alpha)}
        if alpha == 0.5:
            rie = rie_strengths(eigenvalues, sigma=sigma, positive=positive)
            ks["RIE"] = jaxmeta.best_dimension(values, rie, alpha=alpha)
        ks["spiked"], ks["paper, closed form"] = (
            jaxmeta.RULES[name](eigenvalues, sigma, alpha) for name in ("spiked", "paper")
        )
        if alpha == 0.5:
            curve = jaxmeta.dimension.simulate_curve(
                usvt[:size],
                sigma=sigma,
                n=n,
                alpha=alpha,
                key=jax.random.key(seed),
                draws=config.simulations,
                depth=config.depth,
            )
            simulated = np.asarray(curve.mean)[:rank]
            ks["paper, simulated"] = 1 + jnp.argmin(jnp.asarray(simulated))
            # A k of 0, which the released code can come to, leaves nothing: 1 stands for it.
            released = jaxmeta.released.released_dimension(jnp.asarray(simulated))
            ks["released"] = jnp.maximum(released, 1)
        chosen[alpha] = {rule: int(k) for rule, k in ks.items()}
    return simulated, chosen


def _row(
    config: Config,
    spectrum: Spectrum,
    alpha: float,
    rule: str,
    values: Sequence[tuple[int, int, float]],
) -> Row:
    true, k, ratio = np.array(values).T
    off = np.abs(k - true)
    return Row(
        n=config.n,
        spectrum=spectrum.name,
        signs=spectrum.signs,
        sigma=config.sigma,
        alpha=alpha,
        rule=rule,
        true_k=float(true.mean()),
        k=float(k.mean()),
        worst_k_off=int(off.max()),
        within=float(np.mean(off <= np.maximum(0.1 * true, 2))),
        mean_ratio=float(ratio.mean()),
        worst_ratio=float(ratio.max()),
        seeds=len(values),
    )


def _points(
    spectrum: Spectrum,
    curves: Sequence[np.ndarray],
    simulated: np.ndarray,
    marks: dict[str, int],
) -> list[Point]:
    """The curve as far as it is of interest."""
    last = min(len(curves[0]), max(len(simulated), int(1.3 * max(marks.values())) + 5))
    return [
        Point(
            spectrum=spectrum.name,
            k=k,
            loss=float(curves[0][k - 1]),
            lowest=float(min(curve[k - 1] for curve in curves)),
            highest=float(max(curve[k - 1] for curve in curves)),
            simulated=float(simulated[k - 1]) if k <= len(simulated) else float("nan"),
            marks=";".join(rule for rule, at in marks.items() if at == k),
        )
        for k in range(1, last + 1)
    ]


def print_table(rows: Sequence[Row]) -> None:
    """All rows, by setting."""
    print("Chosen k against the true argmin, and PIP loss at k over the smallest")
    for (spectrum, signs, alpha), own in _record.groups(rows, "spectrum", "signs", "alpha"):
        first = own[0]
        print(
            f"\nn = {first.n}, exponent/rank {spectrum}, {signs}, sigma {first.sigma:g}, "
            f"alpha {alpha:g}, {first.seeds} seeds: true argmin {first.true_k:.1f} in the mean"
        )
        _record.show(
            ("rule", "mean k", "worst off", "within", "loss: mean", "worst"),
            [
                (
                    r.rule, f"{r.k:.1f}", f"{r.worst_k_off}", f"{r.within:.0%}",
                    f"{r.mean_ratio:.4f}", f"{r.worst_ratio:.4f}",
                )
                for r in own
            ],
        )  # fmt: skip


def print_targets(rows: Sequence[Row]) -> None:
    """What was to be reached, and what was."""
    print("\nTargets (alpha = 1/2): k within 10 % or 2 dimensions of the true argmin, the loss")
    print("there within 1 % of the smallest; met means for every seed")
    for rule in ("RIE", "ideal strengths"):
        for row in rows:
            if row.alpha != 0.5 or row.rule != rule:
                continue
            k_outcome = "met" if row.within == 1 else f"MISSED by {1 - row.within:.0%} of seeds"
            near = abs(row.k - row.true_k) <= max(2, 0.1 * row.true_k)
            loss_outcome = _record.verdict(row.mean_ratio, row.worst_ratio, 1.01)
            print(
                f"  {rule}, {row.spectrum}, {row.signs}: k {row.k:.1f} against {row.true_k:.1f} in "
                f"the mean ({'within' if near else 'NOT within'}), worst off by {row.worst_k_off}: "
                f"{k_outcome}; loss {row.mean_ratio:.4f}, worst {row.worst_ratio:.4f}: "
                f"{loss_outcome}"
            )


# Colour, marker, size and whether it is filled: rings and crosses show what they lie on.
MARKS = {
    "true argmin": ("black", "*", 16, True),
    "RIE": (_record.BLUE, "o", 17, False),
    "ideal strengths": (_record.SKY, "D", 22, False),
    "spiked": (_record.GREEN, "^", 10, True),
    "paper, closed form": (_record.VERMILION, "v", 10, True),
    "paper, simulated": (_record.ORANGE, "s", 9, True),
}


def plot(settings: str, _: Any, points: Sequence[dict], path: Path) -> None:
    """One panel for each spectrum: the curve, the paper's expectation of it, and what is chosen."""
    names = _record.unique(points, "spectrum")
    with _record.drawing(path, 1, len(names), size=(5.4 * len(names), 6)) as (figure, (panels,)):
        for axes, name in zip(panels, names, strict=True):
            own = [p for p in points if p["spectrum"] == name]
            columns = {x: np.array([p[x] for p in own]) for x in Point.__dataclass_fields__}
            k, loss = columns["k"], columns["loss"]
            band = {"color": _record.GREY, "alpha": 0.3, "lw": 0}
            axes.fill_between(k, columns["lowest"], columns["highest"], **band, label="all seeds")
            axes.plot(k, loss, color="black", lw=2, label="true PIP loss, first seed")
            paper = {"color": _record.VERMILION, "ls": "--", "lw": 1.8}
            axes.plot(k, columns["simulated"], **paper, label="as the paper simulates it")
            for mark, (colour, marker, size, filled) in MARKS.items():
                at = [i for i, p in enumerate(own) if mark in str(p["marks"]).split(";")]
                on = columns["simulated"] if mark == "paper, simulated" else loss
                face = {"mfc": colour if filled else "none", "mec": "white" if filled else colour}
                axes.plot(
                    k[at], on[at], marker, color=colour, ms=size, mew=0.8 if filled else 2,
                    zorder=4, label=f"{mark}: k = {k[at[0]]:.0f}", **face,
                )  # fmt: skip
            axes.set(xscale="log", xlabel="dimensions k (log scale)", ylabel="PIP loss", ylim=0)
            ticks = [t for t in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if t <= k[-1]]
            axes.set_xticks(ticks, [str(t) for t in ticks])
            axes.set_xticks([], minor=True)
            axes.set_title(f"exponent/rank {name}")
            legend = axes.legend(
                fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False
            )
            for handle in legend.legend_handles:
                if hasattr(handle, "set_markersize"):
                    handle.set_markersize(9)
        ks = {
            mark: [p["k"] for p in points if mark in str(p["marks"]).split(";")]
            for mark in ("true argmin", "RIE", "paper, closed form")
        }
        told = {mark: ", ".join(f"{k:.0f}" for k in found) for mark, found in ks.items()}
        figure.suptitle(
            f"The loss is smallest at k = {told['true argmin']}; the RIE rule chooses "
            f"{told['RIE']}, the paper's recipe {told['paper, closed form']} ({settings})"
        )


def about(config: Config) -> str:
    """What is drawn, for a title."""
    return rf"n = {config.n}, $\sigma$ = {config.sigma:g}, $\alpha$ = ½"


FIGURES = {"pip_dimension": partial(plot, about(Config()))}


def report(config: Config, out: Path) -> list[Row]:
    """Run, write tables, provenance and figure into `out`, and print."""
    started = time.time()
    rows, points = run(config, draws=out.parent / "draws")
    print_table(rows)
    print_targets(rows)
    _record.publish(
        out,
        config,
        {"rows": rows, "curves": points},
        started=started,
        figures={"pip_dimension": partial(plot, about(config))},
        dtype="float64",
    )
    return rows


if __name__ == "__main__":
    _record.main(__doc__, report, Config(), SMOKE)
