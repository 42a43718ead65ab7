r"""How near do weights come to the best there are? PIP loss as a ratio to the oracle's.

    python -m experiments.weights_vs_oracle [--smoke] [--out DIR]

The ideal signal is known here, so the best weights are too: for one source they follow from the
strengths $t_i = \tilde u_i^\top|M|^{2\alpha}\tilde u_i$, for several they are non-negative least
squares. Estimates see the noisy spectrum and the noise level and nothing else; those of the paper
also the spectrum of the ideal, where it says so. Noise is rotation invariant, so the ideal may be
taken as diagonal, and one eigendecomposition serves a draw. Seeds start where no one has tuned
anything. On a busy machine keep to one processor (`taskset -c 0`): threads that wait for one
another cost far more there than they gain.
"""

import math
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta
from experiments import _debiased, _draws, _record
from experiments._draws import Draw, Spectrum, power
from experiments._labels import name_of
from jaxmeta.weightings import Observed, weigh


@dataclass(frozen=True)
class Config(_draws.Config):
    """What is drawn."""

    other_sigmas: tuple[float, ...] = (0.06, 0.24)
    """More noise levels, for the second spectrum."""
    shared_n: int = 1200
    shared_spectra: tuple[Spectrum, ...] = (Spectrum(0.5, 100), Spectrum(0.7))
    shared_sigmas: tuple[float, ...] = (0.06, 0.12, 0.20)
    """Noise of sources that share one ideal; the first two of them are also taken alone."""
    spikes: int = 30
    """Isolated ideal values, for the debiased spectrum."""


SMOKE = Config(
    **vars(_draws.SMOKE),
    other_sigmas=(0.19,),
    shared_n=120,
    shared_spectra=(Spectrum(0.5, 10),),
    shared_sigmas=(0.19, 0.38, 0.63),
    spikes=5,
)


@dataclass(frozen=True)
class Setting:
    """What a row is about, but for the method."""

    sources: int
    n: int
    spectrum: str
    signs: str
    sigma: str
    alpha: float


@dataclass(frozen=True)
class Row(Setting):
    """One method in one setting, over all seeds."""

    method: str
    loss: float
    """Mean over seeds."""
    mean_ratio: float
    worst_ratio: float
    """To the oracle's loss on the same draw."""
    seeds: int


def run(config: Config, *, draws: Path) -> list[Row]:
    """All rows; `draws` is the folder in which draws are kept for the next time."""
    ratios: dict[tuple[Setting, str], list[tuple[float, float]]] = defaultdict(list)
    with jax.enable_x64(True):
        for setting, oracle, losses in _losses(config, draws):
            for method, loss in losses.items():
                ratios[setting, method].append((loss, loss / oracle))
    rows = []
    for (setting, method), pairs in ratios.items():
        loss, ratio = np.array(pairs).T
        rows.append(
            Row(
                **vars(setting),
                method=method,
                loss=float(loss.mean()),
                mean_ratio=float(ratio.mean()),
                worst_ratio=float(ratio.max()),
                seeds=len(pairs),
            )
        )
    return rows


def _losses(config: Config, draws: Path) -> Iterator[tuple[Setting, float, dict[str, float]]]:
    """Setting, loss of the oracle and losses of all methods, for each draw and alpha."""
    one = [(spectrum, config.sigma) for spectrum in config.signed]
    one += [(config.spectra[1], sigma) for sigma in config.other_sigmas]
    progress = _record.Progress((len(one) + len(config.shared_spectra)) * config.seeds)
    for spectrum, sigma in one:
        for seed in config.all_seeds:
            draw = config.draw(draws, spectrum, seed, sigma)
            for alpha, truth, weights in one_source(draw, spectrum, sigma, config):
                setting = Setting(
                    1, config.n, spectrum.name, spectrum.signs, f"{sigma:g}", float(alpha)
                )
                loss = partial(_loss, draw, truth, alpha)
                yield setting, loss(truth), {name: loss(t) for name, t in weights.items()}
            progress.step(f"exponent {spectrum.name} {spectrum.signs}, sigma {sigma:g}")
    for spectrum in config.shared_spectra:
        for seed in config.all_seeds:
            n, all_sigmas = config.shared_n, config.shared_sigmas
            shared = _draws.shared(
                draws, spectrum, n=n, sigmas=all_sigmas, seed=seed, alphas=config.alphas
            )
            for count in range(2, len(all_sigmas) + 1):
                sigmas = all_sigmas[:count]
                named = "/".join(f"{s:g}" for s in sigmas)
                for i, alpha in enumerate(config.alphas):
                    setting = Setting(count, n, spectrum.name, "positive", named, alpha)
                    yield setting, *several_sources(shared, sigmas, alpha, i)
            progress.step(f"shared ideal, exponent {spectrum.name}")


def _loss(draw: Draw, truth: np.ndarray, alpha: float, given: np.ndarray) -> float:
    """PIP loss of a source of which dimension i is given strength `given[i]`, not `truth[i]`."""
    total = np.sum(power(np.abs(draw.ideal), 4 * alpha))
    return float(np.sqrt(total - truth @ truth + np.sum((given - truth) ** 2)))


def one_source(
    draw: Draw, spectrum: Spectrum, sigma: float, config: Config
) -> Iterator[tuple[float, np.ndarray, dict[str, np.ndarray]]]:
    """For each alpha the true strengths, and the strengths that methods leave in the embedding."""
    n, positive = len(draw.eigenvalues), not spectrum.indefinite
    eigenvalues = jnp.asarray(draw.eigenvalues)
    values = jnp.abs(eigenvalues)
    estimated = config.estimated(draw, spectrum, sigma)
    # Dimensions inside the noise are dropped by the methods of the paper; zeros stand for them.
    kept = jaxmeta.usvt(values, sigma=sigma, n=n) > 0
    source = jnp.where(kept, values, 0)
    true = (jnp.where(kept, jnp.sort(jnp.abs(jnp.asarray(draw.ideal)))[::-1], 0),)
    for alpha, truth, strengths in zip(config.alphas, draw.strengths, estimated, strict=True):
        b = power(np.asarray(values), 2 * alpha)
        k = 1 + np.argmin(np.cumsum(b * (b - 2 * truth)))
        whole = Observed(values, n, alpha, sigma, eigenvalues, positive)
        dropped = whole._replace(values=source)
        own = {
            name: jnp.where(kept, jnp.asarray(weigh(name_of(name), [dropped])[0]), 0)
            for name in ("SW", "DW", "DW as released")
        }
        of_strengths = partial(jaxmeta.strength_weights, values, alpha=alpha)
        sw = jaxmeta.source_weights(true, (source,), alpha=alpha)[0]
        weights = {
            "UW": kept,
            "UW at the best k": np.arange(n) < k,
            "SW, own USVT": own["SW"],
            "DW, own USVT": own["DW"],
            "SW, true spectrum": jnp.where(kept, sw, 0),
            "DW, true spectrum": jaxmeta.dimension_weights(true, (source,), alpha=alpha)[0],
            "DW as released": own["DW as released"],
            "spiked": weigh("spiked", [whole])[0],
        }
        if alpha == 0.5:
            weights["RIE"] = weigh("RIE", [whole])[0]
        weights["ideal strengths"] = of_strengths(strengths)
        weights["exact"] = of_strengths(jnp.asarray(truth))
        yield alpha, truth, {name: np.asarray(c) ** 2 * b for name, c in weights.items()}


def several_sources(
    shared: dict[str, np.ndarray], sigmas: Sequence[float], alpha: float, row: int
) -> tuple[float, dict[str, float]]:
    """Loss of the oracle and of all methods, for the first few sources."""
    count, n = len(sigmas), shared["values"].shape[1]
    chosen = shared["owner"] < count
    sizes = [int(np.sum(shared["owner"] == j)) for j in range(count)]
    kept = [np.where(np.arange(n) < k, v, 0) for k, v in zip(sizes, shared["values"], strict=False)]

    def joined(parts: Any) -> np.ndarray:
        whole = [np.broadcast_to(c, n) for c in parts]
        return np.concatenate([c[:k] for c, k in zip(whole, sizes, strict=True)])

    b = power(joined(kept), 2 * alpha)
    gram = np.outer(b, b) * shared["overlaps"][np.ix_(chosen, chosen)]
    linear = b * shared["strengths"][row, chosen]
    constant = np.sum(power(shared["ideal"], 4 * alpha))

    def loss(q: np.ndarray) -> float:
        return float(np.sqrt(q @ gram @ q - 2 * linear @ q + constant))

    sources = tuple(jnp.asarray(v) for v in kept)
    observed = [Observed(v, n, alpha, sigma) for v, sigma in zip(sources, sigmas, strict=True)]

    def squares(name: str) -> np.ndarray:
        return joined(weigh(name_of(name), observed)) ** 2

    padded = np.pad(shared["ideal"], (0, n))
    starts = np.cumsum([0, *sizes])
    blocks = tuple(
        jnp.asarray(np.where(np.arange(n) < k, padded[at : at + n], 0))
        for at, k in zip(starts, sizes, strict=False)
    )
    q = {
        "UW": squares("UW"),
        "UW / N": squares("UW") / count,
        "SW, own USVT / N": squares("SW") / count,
        "DW, own USVT / N": squares("DW") / count,
        "SW, true blocks": joined(jaxmeta.source_weights(blocks, sources, alpha=alpha)) ** 2,
        "DW, true blocks": joined(jaxmeta.dimension_weights(blocks, sources, alpha=alpha)) ** 2,
        "DW as released": squares("DW as released"),
        "aligned": squares("aligned"),
    }
    losses = {name: loss(given) for name, given in q.items()}
    owner, spiked = np.repeat(np.arange(count), sizes), squares("spiked")
    alone = [loss(np.where(owner == j, spiked, 0)) for j in range(count)]
    losses["spiked, best source"] = min(alone)
    losses["exact"] = loss(_exact(gram, linear, constant))
    return losses["exact"], losses


def _exact(gram: np.ndarray, linear: np.ndarray, constant: float) -> np.ndarray:
    """The best squared weights; padded, so that few sizes are compiled."""
    size = len(linear)
    more = -size % 64
    quadratic = jaxmeta.quadratic.PipQuadratic(
        jnp.asarray(np.pad(gram, (0, more))),
        jnp.asarray(np.pad(linear, (0, more))),
        jnp.asarray(constant),
    )
    solution = jaxmeta.exact_weights(quadratic)
    if not solution.residual < 1e-9:
        raise RuntimeError(f"exact_weights: residual {solution.residual:.1e}, expected below 1e-9")
    return np.asarray(solution.weights)[:size] ** 2


# Methods in the order of the paper, and then these.
LAST = ("spiked", "spiked, best source", "RIE", "ideal strengths", "aligned")
TICKS = (1.001, 1.01, 1.1, 2.0, 10.0, 100.0, 1e4, 1e6)


def print_table(rows: Sequence[Row]) -> None:
    """All rows, by setting."""
    print("PIP loss over the oracle's: mean and worst over seeds")
    for (*_, alpha), own in _record.groups(rows, *Setting.__dataclass_fields__):
        r = own[0]
        print(
            f"\nN = {r.sources}, n = {r.n}, exponent/rank {r.spectrum}, {r.signs}, "
            f"sigma {r.sigma}, alpha {alpha:g}, {r.seeds} seeds"
        )
        _record.show(
            ("method", "loss", "mean", "worst"),
            [
                (r.method, f"{r.loss:.2f}", f"{r.mean_ratio:.3f}", f"{r.worst_ratio:.3f}")
                for r in own
            ],
        )


def print_targets(rows: Sequence[Row]) -> None:
    """What was to be reached, and what was."""
    print("\nTargets")
    # The noise level is that of the first row, which the other levels are told from.
    main = [r for r in rows if r.sources == 1 and r.alpha == 0.5 and r.sigma == rows[0].sigma]
    for method in ("RIE", "ideal strengths"):
        for row in (r for r in main if r.method == method and r.signs == "positive"):
            print(
                f"  {method} weights, exponent/rank {row.spectrum}, n = {row.n}: "
                f"{row.mean_ratio:.3f} x oracle, worst {row.worst_ratio:.3f} (target 1.05): "
                f"{_record.verdict(row.mean_ratio, row.worst_ratio, 1.05)}"
            )
    most = max(r.sources for r in rows)
    shared = [r for r in rows if r.sources == most and r.alpha == 0.5]
    for row in sorted(shared, key=lambda r: (r.spectrum, r.method != "aligned")):
        where = f"{row.sources} sources, exponent/rank {row.spectrum}, n = {row.n}"
        result = f"{row.mean_ratio:.3f} x oracle NNLS, worst {row.worst_ratio:.3f}"
        if row.method == "aligned":
            outcome = _record.verdict(row.mean_ratio, row.worst_ratio, 1.05)
            print(f"  aligned weights, {where}: {result} (target 1.05): {outcome}")
        elif "blocks" in row.method or "USVT" in row.method:
            print(f"    for comparison {row.method}: {result}")


def plot(rows: Sequence[dict], _: Any, path: Path) -> None:
    """Mean ratios with a whisker to the worst, a panel for each kind of setting."""
    sigma = rows[0]["sigma"]
    one = [r for r in rows if r["sources"] == 1]
    half = [r for r in one if r["alpha"] == 0.5]
    middle = _record.unique(one, "spectrum")[1]
    several = [r for r in rows if r["sources"] > 1 and r["alpha"] == 0.5]

    def among(rows: Sequence[dict], **values: Any) -> list[dict]:
        return [r for r in rows if all(r[name] == value for name, value in values.items())]

    panels = [
        ("One source, positive signal", "spectrum", among(half, sigma=sigma, signs="positive")),
        ("One source, indefinite signal", "spectrum", among(half, sigma=sigma, signs="indefinite")),
        (f"Noise levels, {middle}, positive", "sigma",
         among(half, spectrum=middle, signs="positive")),
        (f"Exponents of the embedding, {middle}, positive", "alpha",
         among(one, sigma=sigma, signs="positive", spectrum=middle)),
        ("Two sources that share an ideal", "spectrum", among(several, sources=2)),
        ("Three sources that share an ideal", "spectrum", among(several, sources=3)),
    ]  # fmt: skip
    labels = {"spectrum": "exponent/rank", "sigma": r"$\sigma$", "alpha": r"$\alpha$"}
    look = [(_record.BLUE, "o"), (_record.ORANGE, "s"), (_record.GREEN, "^")]
    with _record.drawing(path, 2, 3, size=(17, 9.5), dpi=100) as (figure, grid):
        for axes, (title, by, chosen) in zip(grid.flat, panels, strict=True):
            if not chosen:
                axes.set_axis_off()
                continue
            present = dict.fromkeys(r["method"] for r in chosen if r["method"] != "exact")
            methods = sorted(present, key=lambda m: LAST.index(m) if m in LAST else -1)
            places = {method: len(methods) - i for i, method in enumerate(methods)}
            series = sorted({r[by] for r in chosen}, key=str)
            for i, (value, (colour, marker)) in enumerate(zip(series, look, strict=False)):
                own = [r for r in chosen if r[by] == value and r["method"] in places]
                y = [places[r["method"]] + 0.22 * (len(series) / 2 - 0.5 - i) for r in own]
                mean, worst = (
                    [max(r[x] - 1, 1e-4) for r in own] for x in ("mean_ratio", "worst_ratio")
                )
                axes.hlines(y, mean, worst, color=colour, lw=2)
                shown = f"{value:g}" if isinstance(value, float) else value
                axes.plot(mean, y, marker, color=colour, label=f"{labels[by]} {shown}", ms=6)
                axes.plot(worst, y, "|", color=colour, ms=9, mew=2)
            axes.axvline(0.05, color="black", lw=1.2, ls="--")
            axes.set_yticks(list(places.values()), list(places))
            axes.grid(color="#EEEEEE")
            axes.set_axisbelow(True)
            top = max(r["worst_ratio"] for r in chosen if r["method"] in places)
            ticks = [t for t in TICKS if t <= max(2, 1.5 * top)]
            axes.set(xscale="log", xlim=(5e-4, max(1.5, 1.5 * top)))
            axes.set_xticks([t - 1 for t in ticks], [f"{t:,g}" for t in ticks])
            axes.set_xticks([], minor=True)
            axes.tick_params(axis="x", labelsize=9)
            axes.set_title(title)
            axes.legend(fontsize=9, loc="lower right")
        for axes in grid[-1]:
            axes.set_xlabel("PIP loss / that of the best weights")
        figure.suptitle(_headline(half))


def _headline(rows: Sequence[dict]) -> str:
    worst = {
        name: max(r["worst_ratio"] for r in rows if r["method"] == name)
        for name in ("ideal strengths", "DW, own USVT")
    }
    return (
        f"Ideal strengths are within {math.ceil(100 * worst['ideal strengths'] - 100)} % of the "
        f"best weights of a source, the paper's DW up to {worst['DW, own USVT']:.2f} times it.\n"
        r"Mean (marker) and worst (bar) of draws; dashed: 1.05; $\alpha$ = ½ unless said otherwise"
    )


FIGURES = {"ratio_to_oracle": plot}


def report(config: Config, out: Path) -> list[Row]:
    """Run, write tables, provenance and figure into `out`, and print."""
    started = time.time()
    draws = out.parent / "draws"
    rows = run(config, draws=draws)
    errors = _debiased.debiased(config, draws=draws)
    print_table(rows)
    _debiased.print_table(errors)
    print_targets(rows)
    _debiased.print_targets(errors)
    _record.publish(
        out,
        config,
        {"rows": rows, "debiased": errors},
        started=started,
        figures=FIGURES,
        dtype="float64",
    )
    return rows


if __name__ == "__main__":
    _record.main(__doc__, report, Config(), SMOKE)
