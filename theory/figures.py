"""Pictures of the theory: what the bound is made of, how tight it is, where the print fails."""

from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import jaxmeta

from .dense import eigen, embedding, pip_loss
from .instances import RELATIONS, SPECTRA, Instance, draw, frame, losses, symmetric_noise
from .library import bounds
from .theorem1 import misled, printed

# Okabe and Ito's palette: distinct to colour-blind readers too.
GREY, ORANGE, SKY, GREEN, BLUE, VERMILION = (
    "#999999", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00",
)  # fmt: skip


def draw_all(directory: Path, *, instances: int, seed: int) -> Iterator[Path]:
    """Draw every figure into `directory`, and yield the files."""
    directory.mkdir(parents=True, exist_ok=True)
    style = {"font.size": 11, "axes.spines.top": False, "axes.spines.right": False}
    with jax.enable_x64(True), plt.rc_context(style):  # type: ignore[arg-type]
        drawn = draw(np.random.default_rng(seed), instances)
        figures = {
            "bound_against_noise": lambda: bound_against_noise(seed),
            "tightness": lambda: tightness(drawn),
            "where_the_print_fails": lambda: where_the_print_fails(drawn),
        }
        for name, make in figures.items():
            figure = make()
            path = directory / f"{name}.png"
            with jaxmeta.files.write_whole(path) as part:
                figure.savefig(part, dpi=130)
            plt.close(figure)
            yield path


def bound_against_noise(seed: int, n: int = 200, k: int = 10) -> Figure:
    """The terms of the bound, stacked, and the loss, as the noise in two sources grows."""
    rng = np.random.default_rng(seed)
    u = frame(rng, n)
    values = 10 / np.sqrt(np.arange(1.0, 31))
    ideal = jaxmeta.Spectrum(jnp.asarray(u[:, :30]), jnp.asarray(values))
    # Source 1 sees the first block of the ideal signal, source 2 the second, each with noise.
    parts = [(u[:, i : i + k] * values[i : i + k]) @ u[:, i : i + k].T for i in (0, k)]
    noise = [symmetric_noise(rng, n) / np.sqrt(n) for _ in parts]
    levels = np.geomspace(0.01, 3, 25)
    stacks, forms, loss = [], [], []
    for level in levels:
        found = [eigen(part + level * z) for part, z in zip(parts, noise, strict=True)]
        sources = tuple(
            jaxmeta.Spectrum(jnp.asarray(vectors[:, :k]), jnp.asarray(strengths[:k]))
            for vectors, strengths in found
        )
        terms = jaxmeta.bound_terms(ideal, sources, alpha=0.5)
        stacks.append([terms.bias, *terms.magnitude, *terms.direction])
        forms.append([terms.split, terms.tight])
        meta = np.concatenate([embedding(x, mu[:k], 0.5) for x, mu in found], axis=1)
        loss.append(pip_loss(embedding(u, values, 0.5), meta))

    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    names = ["bias"] + [f"{x}, source {j}" for x in ("magnitude", "direction") for j in (1, 2)]
    colours = [GREY, "#F5C76A", ORANGE, "#A6D8F5", SKY]
    axes.stackplot(levels, np.transpose(stacks), labels=names, colors=colours)
    split, tight = np.transpose(forms)
    axes.plot(levels, split, color=GREEN, ls="--", lw=2, label="split bound")
    axes.plot(levels, tight, color=BLUE, ls="-.", lw=2, label="tight bound")
    axes.plot(levels, loss, color="black", lw=2.5, label="true PIP loss")
    axes.set(
        xscale="log",
        xlabel="noise level $\\sigma\\sqrt{n}$",
        ylabel="PIP loss and its bound",
        ylim=0,
    )
    axes.margins(x=0)
    axes.set_title(f"Telescoped bound (stacked) as noise grows: n = {n}, k = {k} + {k}, d = 30")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], loc="upper left", fontsize=9)
    return figure


def tightness(drawn: list[Instance]) -> Figure:
    """Shares of instances whose bound is at most so many times the loss."""
    loss, found = losses(drawn), bounds(drawn)
    some = loss > 1e-9 * np.array([instance.scale for instance in drawn])
    forms = {
        "as printed": (np.array([printed(instance) for instance in drawn]), VERMILION, ":"),
        "telescoped": (found.telescoped, SKY, "-"),
        "split": (found.split, GREEN, "--"),
        "tight": (found.tight, BLUE, "-."),
    }
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    axes.axvspan(0.3, 1, color=VERMILION, alpha=0.12, lw=0)
    axes.text(0.32, 0.96, "not a bound", color=VERMILION, va="top")
    share = np.arange(1, some.sum() + 1) / some.sum()
    for name, (bound, colour, line) in forms.items():
        ratio = np.sort(bound[some] / loss[some])
        label = f"{name} (median {np.median(ratio):.2f}, smallest {ratio[0]:.2f})"
        axes.plot(ratio, share, color=colour, ls=line, lw=2.2, label=label)
    axes.set(xscale="log", xlim=(0.3, 6), ylim=(0, 1), xlabel="bound / true PIP loss")
    ticks = [0.3, 0.5, 1, 1.5, 2, 3, 4, 6]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_ylabel("share of instances at or below")
    axes.set_title(rf"Tightness over {int(some.sum())} instances, N = 1 to 5, $\alpha$ from 0 to 2")
    axes.legend(loc="lower right")
    return figure


def where_the_print_fails(drawn: list[Instance]) -> Figure:
    """Failures of the printed bound by kind of instance, and the pinned counterexample."""
    share = np.full((len(SPECTRA), len(RELATIONS)), np.nan)
    fails = np.array([x.loss > printed(x) + 1e-9 * x.scale for x in drawn])
    for i, spectrum in enumerate(SPECTRA):
        for j, relation in enumerate(RELATIONS):
            chosen = [x.spectrum == spectrum and x.relation == relation for x in drawn]
            share[i, j] = fails[chosen].mean() if any(chosen) else np.nan

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(12.5, 4.8), layout="constrained", width_ratios=[1.5, 1]
    )
    image = left.imshow(100 * share, cmap="cividis", vmin=0, aspect="auto")
    left.set_xticks(range(len(RELATIONS)), RELATIONS, rotation=30, ha="right")
    left.set_yticks(range(len(SPECTRA)), SPECTRA)
    left.set(xlabel="sources, relative to the ideal", ylabel="ideal spectrum")
    left.spines[:].set_visible(False)
    middle = 50 * np.nanmax(share)
    for (i, j), value in np.ndenumerate(100 * share):
        colour = "black" if value > middle else "white"
        left.text(j, i, f"{value:.0f}", ha="center", va="center", color=colour)
    left.set_title(f"Printed bound below the true loss: {fails.sum()} of {len(drawn)} instances")
    figure.colorbar(image, ax=left, label="failures (%)")

    sizes = np.array([1, 4, 10, 20, 40])
    examples = [misled(int(k)) for k in sizes]
    corrected = [x.terms.telescoped for x in examples]
    right.plot(sizes, corrected, "s--", color=BLUE, label="corrected bound")
    right.plot(sizes, losses(examples), "o-", color="black", label="true PIP loss")
    right.plot(sizes, list(map(printed, examples)), "^:", color=VERMILION, label="printed bound")
    right.set(xlabel="dimensions k of each source", ylabel="PIP loss and its bounds", ylim=0)
    right.set_title("The pinned counterexample, N = 2")
    right.legend()
    return figure
